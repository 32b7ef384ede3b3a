#!/usr/bin/python3
"""Writes the packets of a zmq sink to standard output as pcapng, and says what was lost on the way.

usage: subscriber.py ENDPOINT [TOPIC [OWN-KEY SINKS-PUBLIC-KEY]] > capture.pcapng
TOPIC "" is all; the keys are files of weir keygen; docs/stream.md explains the numbers.
"""
import struct, sys, zmq

END = 1
socket = zmq.Context().socket(zmq.SUB)
socket.subscribe(sys.argv[2] if len(sys.argv) > 2 else "")
if len(sys.argv) > 4:
    secret, socket.curve_serverkey = (open(path, "rb").read().split()[0] for path in sys.argv[3:5])
    socket.curve_secretkey, socket.curve_publickey = secret, zmq.curve_public(secret)
socket.connect(sys.argv[1])
streams = {}  # (publisher, topic) -> packets sent and packets unsent as of its last message
received = lost = 0
try:
    while True:
        topic, header, body = socket.recv_multipart()
        magic, version, length, publisher, number, before, count, flags, unsent, sent_ns = \
            struct.unpack_from("<4sHHQQQIIQq", header)
        if magic != b"WEIR" or version != 1:
            sys.exit("this is no stream of Weir")
        last_sent, last_unsent = streams.get((publisher, topic), (before, unsent))
        lost += (before - last_sent) + (unsent - last_unsent)
        streams[publisher, topic] = before + count, unsent
        received += count
        if count:
            sys.stdout.buffer.write(body)
            sys.stdout.buffer.flush()
        if flags & END and streams.pop((publisher, topic)) and not streams:
            break
except KeyboardInterrupt:
    pass
print(f"received {received}, lost {lost}", file=sys.stderr)
