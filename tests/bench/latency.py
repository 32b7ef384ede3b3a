"""From the wire to a subscriber: a live capture of a veth pair, published over ZeroMQ, at 1,000 packets a second."""
import struct, threading, time

import frames as f
import streamtest as s
import weirtest as t

PACKETS, GAP_S, MAX_DELAY_MS = 5000, 0.001, 10


def send_paced(ns, interface):
    frame = f.ether(f.IP, f.ipv4(17, f.udp(bytes(400), 1000, 53)))
    started = time.monotonic()
    for i in range(0, PACKETS, 10):
        time.sleep(max(0, started + i * GAP_S - time.monotonic()))
        f.send(ns, interface, [frame] * 10)


def delays_ms(body, now_ns):
    """Of each packet, from the kernel's time stamp on."""
    at = 0
    while at < len(body):
        kind, size = struct.unpack_from("<II", body, at)
        if kind == 6:
            high, low = struct.unpack_from("<II", body, at + 12)
            yield (now_ns - (high << 32 | low)) / 1e6
        at += size


def p99_ms():
    endpoint, found = s.ipc(), []
    with t.Namespace() as ns:
        a, b = ns.veth()
        peer = s.Peer(endpoint)
        run = t.Run("-e", f"afpacket {b} retire=3ms -> zmq {endpoint} max-delay={MAX_DELAY_MS}ms name=in", netns=ns)
        peer.receive()  # a heartbeat: it is there
        sender = threading.Thread(target=send_paced, args=(ns, a))
        sender.start()
        while len(found) < PACKETS:
            message = peer.receive()
            found += delays_ms(message.body, time.time_ns())
        sender.join()
        run.stop()
        peer.close()
    return sorted(found)[len(found) * 99 // 100]
