#!/usr/bin/python3
"""AF_PACKET: the bytes of frames are those of the wire, and each frame is there once."""
import os, socket, struct

import frames as f
import weirtest as t
from frames import capture, counter


def tagged_frames():
    """Every way of tagging, each with a number of its own in the payload."""
    tags = [[], [(0x8100, 29)], [(0x8100, 0xe01d)], [(0x8100, 0)], [(0x8100, 0xa000)], [(0x88a8, 5)],
            [(0x88a8, 0)], [(0x88a8, 5), (0x8100, 29)], [(0x8100, 5), (0x8100, 29)], [(0x9100, 7)],
            [(0x88a8, 1), (0x88a8, 2), (0x8100, 3)]]
    return [f.ether(f.IP, f.ipv4(17, f.udp(struct.pack(">I", i))), *tag) for i, tag in enumerate(tags * 3)]


def test_tags_are_those_of_the_wire():
    t.need_root()
    sent = tagged_frames()
    with t.Namespace() as ns:
        a, b = ns.veth()
        for tap in (b, f"{a} direction=out"):
            records, report = capture(ns, tap, lambda: f.send(ns, a, sent), len(sent))
            assert f.bytes_of(records) == sent, tap
            assert [r[1] for r in records] == [len(frame) for frame in sent], tap
        assert counter(report, "kernel-drops") == 0


def test_tags_of_a_vlan_interface():
    """The tag of a frame that a VLAN interface sends is only in the kernel's metadata, on both ends."""
    t.need_root()
    sent = [f.ether(f.IP, f.ipv4(17, f.udp(b"%d" % i))) for i in range(10)]
    with t.Namespace() as ns:
        a, b = ns.veth()
        made = ns.run("ip", "link", "add", "link", a, "name", "v29", "type", "vlan", "id", "29", check=False)
        if made.returncode:
            raise t.Skip("this kernel has no VLAN interfaces")
        ns.run("ip", "link", "set", "v29", "up", "arp", "off")
        for tap in (b, f"{a} direction=out"):
            records, _ = capture(ns, tap, lambda: f.send(ns, "v29", sent), len(sent))
            assert f.bytes_of(records) == [frame[:12] + b"\x81\0\0\x1d" + frame[12:] for frame in sent], tap


def test_loopback_shows_each_packet_once():
    t.need_root()
    with t.Namespace() as ns:
        with f.inside(ns):
            to, sock = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
            to.bind(("127.0.0.1", 0))

        def send():
            for i in range(20):
                sock.sendto(b"%d" % i, to.getsockname())
        for direction in ("both", "in", "out"):
            records, _ = capture(ns, f"lo direction={direction}", send, 20)
            assert [int(r[2][42:]) for r in records] == list(range(20))


def test_direction():
    t.need_root()
    sent = [f.ether(f.IP, f.ipv4(17, f.udp(b"%d" % i))) for i in range(20)]
    with t.Namespace() as ns:
        a, b = ns.veth()

        def send():
            f.send(ns, a, sent)
            f.send(ns, b, sent[:5])
        for direction, expect in (("both", 25), ("out", 20), ("in", 5)):
            _, report = capture(ns, f"{a} direction={direction}", send, expect)
            assert counter(report, "kernel-packets") == expect


def test_unsegmented_frame_is_whole():
    t.need_root()
    payload = os.urandom(65226 - 14 - 20 - 20)
    frame = f.ether(f.IP, f.ipv4(6, f.tcp(payload)))
    with t.Namespace() as ns:
        a, b = ns.veth()
        records, report = capture(ns, b, lambda: f.send_unsegmented(ns, a, frame), 1)
        assert records[0][1:] == (65226, frame)
        assert counter(report, "cut") == 0


def test_frame_larger_than_a_block_is_counted():
    t.need_root()
    frame = f.ether(f.IP, f.ipv4(6, f.tcp(os.urandom(60000))))
    with t.Namespace() as ns:
        a, b = ns.veth()
        records, report = capture(ns, f"{b} ring=1MiB block-size=32KiB", lambda: f.send_unsegmented(ns, a, frame), 1)
        (_, wirelen, data), = records
        assert wirelen == len(frame)
        assert 30000 < len(data) < 32768 and frame.startswith(data)
        assert counter(report, "cut") == 1


def test_two_interfaces_in_one_lane_are_in_order():
    t.need_root()
    sent = [f.ether(f.IP, f.ipv4(17, f.udp(b"%d" % i))) for i in range(2000)]
    with t.Namespace() as ns:
        a, b = ns.veth()
        records, _ = capture(ns, f"{a},{b}", lambda: f.send(ns, a, sent), 2 * len(sent))
        stamps = [r[0] for r in records]
        assert all(later >= earlier - 50000 for earlier, later in zip(stamps, stamps[1:]))
        assert sorted(f.bytes_of(records)) == sorted(sent * 2)


if __name__ == "__main__":
    t.main()
