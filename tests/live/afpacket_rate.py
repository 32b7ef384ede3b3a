#!/usr/bin/python3
"""AF_PACKET: at the highest rate of one tcpreplay a capture to disk loses nothing; what others lose is printed beside.

300,000 frames of 1,514 bytes, once; with WEIR_FULL=1 2,000,000, five times, which takes 3 GB on a disk.
"""
import os, signal

import frames as f
import peers
import weirtest as t

FRAMES, ROUNDS = (2000000, 5) if os.environ.get("WEIR_FULL") else (300000, 1)
TRACE_FRAMES = 10000
RING_MIB = 64


def lost(ns, tool, trace):
    """Of FRAMES, by the file that the tool leaves."""
    path = os.path.join(t.tempdir(), "out.pcap")
    process = peers.start(ns, *peers.commands("veth1", path, RING_MIB)[tool], path + ".log")
    sent = peers.replay(ns, "veth0", trace, FRAMES // TRACE_FRAMES)
    assert sent == FRAMES, f"tcpreplay sent {sent}"
    peers.wait_until_idle(process)
    process.send_signal(signal.SIGINT)
    process.wait(60)
    missing = FRAMES - peers.packets_in(path)
    with open(path + ".log", errors="replace") as file:
        said = file.read()
    os.unlink(path)
    return missing, said


def test_weir_loses_nothing_of_large_frames():
    t.need_root()
    t.need_program("tcpreplay", "tcpdump", "dumpcap", "netsniff-ng")
    if t.SANITIZED:
        raise t.Skip("a sanitizer is no measure of speed")
    trace = os.path.join(t.tempdir(), "large.pcap")
    f.write_pcap(trace, [f.ether(f.IP, f.ipv4(17, f.udp(b"%08d" % i))).ljust(1514, b"x") for i in range(TRACE_FRAMES)])
    with t.Namespace() as ns:
        ns.veth()
        for _ in range(ROUNDS):
            for tool in peers.commands("veth1", "", RING_MIB):
                missing, said = lost(ns, tool, trace)
                print(f"# {tool}: lost {missing} of {FRAMES}, {missing / FRAMES:.1%}", flush=True)
                if tool == peers.WEIR:
                    assert missing == 0 and "lost 0 packets" in said and "balanced" in said, said


if __name__ == "__main__":
    t.main()
