#!/usr/bin/python3
"""AF_XDP: the bytes of frames are those of the wire, each frame is there once, from all queues."""
import os, struct, subprocess

import frames as f
import weirtest as t
from afxdp import MODES, need_xdp, numbered
from frames import counter


def capture(ns, tap, sender, stages=""):
    """Records of all lanes, and the report of a capture while sender() sends."""
    folder = t.tempdir()
    run = f.started(ns, f"tap = afxdp {tap}; tap {stages} -> pcap {folder}/%{{lane}}.pcap")
    sender()
    report = f.finish(run)
    return [f.read_pcap(os.path.join(folder, name)) for name in sorted(os.listdir(folder))], report


def everything(lanes):
    return sorted(f.bytes_of(sum(lanes, [])))


def test_every_frame_of_64_flows_on_two_queues():
    need_xdp()
    sent = numbered(10000)
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        for mode in MODES:
            lanes, report = capture(ns, f"{b} mode={mode}", lambda: f.send(ns, a, sent))
            assert len(lanes) == 2, "one lane a queue"
            assert everything(lanes) == sorted(sent), mode
            assert counter(report, "redirected") == 10000 and report["lost"] == 0
            if mode == "native":
                assert all(lanes), "one queue had no frames"


def test_tags_are_those_of_the_wire():
    need_xdp()
    tags = [[], [(0x8100, 29)], [(0x8100, 0xe01d)], [(0x8100, 0)], [(0x8100, 0xa000)], [(0x88a8, 5)],
            [(0x88a8, 0)], [(0x88a8, 5), (0x8100, 29)], [(0x8100, 5), (0x8100, 29)], [(0x9100, 7)],
            [(0x88a8, 1), (0x88a8, 2), (0x8100, 3)]]
    sent = [f.ether(f.IP, f.ipv4(17, f.udp(struct.pack(">I", i))), *tag) for i, tag in enumerate(tags * 3)]
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        for mode in MODES:
            lanes, _ = capture(ns, f"{b} mode={mode}", lambda: f.send(ns, a, sent))
            assert everything(lanes) == sorted(sent), mode


PUSH_TAG = """
static long (*vlan_push)(void *skb, unsigned short proto, unsigned short tci) = (void *)18;
__attribute__((section("tc"), used)) int push(void *skb) { vlan_push(skb, 0x0081, 29); return 0; }
char LICENSE[] __attribute__((section("license"), used)) = "GPL";
"""


def test_tags_beside_the_frame_are_named():
    """As a VLAN interface sends them: on a veth pair they never come into the frame, unless the sender is told to."""
    need_xdp()
    t.need_program("tc", "clang", "ethtool")
    sent = numbered(10)
    folder = t.tempdir()
    with open(f"{folder}/push.c", "w") as file:
        file.write(PUSH_TAG)
    subprocess.run(["clang", "-target", "bpf", "-O2", "-c", f"{folder}/push.c", "-o", f"{folder}/push.o"], check=True)
    with t.Namespace() as ns:
        a, b = ns.veth()
        ns.run("tc", "qdisc", "add", "dev", a, "clsact")
        ns.run("tc", "filter", "add", "dev", a, "egress", "bpf", "da", "obj", f"{folder}/push.o", "sec", "tc")
        run = f.started(ns, f"tap = afxdp {b}; tap -> null")
        assert f"the other end of {b} may send VLAN tags beside frames" in run.stderr and "txvlan off" in run.stderr
        f.finish(run)
        lanes, _ = capture(ns, b, lambda: f.send(ns, a, sent))
        assert f.bytes_of(lanes[0]) == sent, "this kernel shows tags to XDP: the message is wrong"
        ns.run("ethtool", "-K", a, "txvlan", "off")
        for mode in MODES:
            lanes, _ = capture(ns, f"{b} mode={mode}", lambda: f.send(ns, a, sent))
            assert f.bytes_of(lanes[0]) == [frame[:12] + b"\x81\0\0\x1d" + frame[12:] for frame in sent], mode


def test_frames_of_several_chunks_are_whole():
    need_xdp()
    sizes = (1400, 1749, 1750, 1751, 3000, 3797, 3798, 8958, 16000, 65184)
    sent = [f.ether(f.IP, f.ipv4(17, f.udp(os.urandom(size)))) for size in sizes]
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        for end in (a, b):
            ns.run("ip", "link", "set", end, "mtu", "65500")
        for mode in MODES:
            for chunk, room in (("2KiB", 1792), ("4KiB", 3840)):
                lanes, report = capture(ns, f"{b} mode={mode} chunk={chunk}", lambda: f.send(ns, a, sent))
                assert everything(lanes) == sorted(sent), (mode, chunk)
                assert all(len(data) == wirelen for lane in lanes for _, wirelen, data in lane)
                assert counter(report, "joined") == sum(len(frame) > room for frame in sent)


def test_many_frames_of_64_kib_in_a_row():
    """More than the memory in which a lane puts frames together holds at a time."""
    need_xdp()
    sent = [f.ether(f.IP, f.ipv4(17, f.udp(struct.pack(">I", i) * 16296))) for i in range(100)]
    with t.Namespace() as ns:
        a, b = ns.veth()
        for end in (a, b):
            ns.run("ip", "link", "set", end, "mtu", "65500")
        lanes, _ = capture(ns, b, lambda: f.send(ns, a, sent))
        assert f.bytes_of(lanes[0]) == sent


def test_unsegmented_frame_is_whole():
    """In native mode the kernel takes segmentation offload from the sending end of a veth pair instead."""
    need_xdp()
    frame = f.ether(f.IP, f.ipv4(6, f.tcp(os.urandom(65226 - 54))))
    with t.Namespace() as ns:
        a, b = ns.veth()
        lanes, _ = capture(ns, f"{b} mode=skb", lambda: f.send_unsegmented(ns, a, frame))
        assert f.bytes_of(lanes[0]) == [frame]
        lanes, _ = capture(ns, f"{b} mode=native", lambda: f.send_unsegmented(ns, a, frame))
        segments = f.bytes_of(lanes[0])
        assert len(segments) > 1 and b"".join(segment[54:] for segment in segments) == frame[54:]


if __name__ == "__main__":
    t.main()
