#!/usr/bin/env node
// Writes the packets of a zmq sink to standard output as pcapng, and says what was lost on the way.
//
// usage: subscriber.mjs ENDPOINT [TOPIC [OWN-KEY SINKS-PUBLIC-KEY]] > capture.pcapng        (needs: npm install zeromq)
// TOPIC "" is all; the keys are files of weir keygen; docs/stream.md explains the numbers.
import { readFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
const { Subscriber } = createRequire(process.cwd() + "/")("zeromq");

const END = 1, [endpoint, wanted = "", ownKey, sinksKey] = process.argv.slice(2);
const key = (path) => readFileSync(path, "latin1").split(/\s/)[0];
const socket = new Subscriber({ linger: 0 });
const streams = new Map(); // publisher and topic -> packets sent and packets unsent as of its last message
let received = 0n, lost = 0n;
if (sinksKey) Object.assign(socket, { curveSecretKey: key(ownKey), curvePublicKey: key(ownKey + ".pub"), curveServerKey: key(sinksKey) });
socket.subscribe(wanted);
socket.connect(endpoint);
process.on("SIGINT", () => socket.close());
for await (const [topic, header, body] of socket) {
    if (header.toString("latin1", 0, 4) !== "WEIR" || header.readUInt16LE(4) !== 1) throw new Error("this is no stream of Weir");
    const before = header.readBigUInt64LE(24), count = header.readUInt32LE(32), flags = header.readUInt32LE(36);
    const unsent = header.readBigUInt64LE(40), stream = `${header.readBigUInt64LE(8)} ${topic}`;
    const [lastSent, lastUnsent] = streams.get(stream) ?? [before, unsent];
    lost += before - lastSent + (unsent - lastUnsent);
    received += BigInt(count);
    streams.set(stream, [before + BigInt(count), unsent]);
    for (let at = 0; count && at < body.length;) at += writeSync(1, body, at);
    if (flags & END && streams.delete(stream) && streams.size === 0) break;
}
console.error(`received ${received}, lost ${lost}`);
socket.close();
