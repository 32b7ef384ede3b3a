#!/usr/bin/python3
"""AF_PACKET: what was sent is what was read, what was written, and what the kernel says it dropped."""
import os, signal, subprocess, time

import frames as f
import peers
import weirtest as t
from frames import finish, node, started

ROUNDS = int(os.environ.get("WEIR_ROUNDS", "20"))


def numbered(n, size=60):
    return [f.ether(f.IP, f.ipv4(17, f.udp(b"%08d" % i, sport=1000 + i % 977))).ljust(size, b"\0") for i in range(n)]


def out(report, name="tap"):
    return node(report, name)["outputs"]["out"]["packets"]


def test_packets_just_before_the_stop_are_in_the_file():
    """Ten packets 50 ms before the signal, whatever the retire time; read = packets - drops."""
    t.need_root()
    sent = numbered(10)
    with t.Namespace() as ns:
        a, b = ns.veth()
        for turn in range(ROUNDS):
            retire = ("20ms", "1s", "10s")[turn % 3]
            path = os.path.join(t.tempdir(), "out.pcap")
            run = started(ns, f"tap = afpacket {b} retire={retire}; tap -> pcap {path}")
            f.send(ns, a, sent)
            time.sleep(0.05)
            before = time.monotonic()
            report = finish(run)
            assert time.monotonic() - before < 5, "the stop waited for the block to retire"
            assert f.bytes_of(f.read_pcap(path)) == sent, f"round {turn}, retire={retire}"
            assert node(report)["counters"]["kernel-packets"] == 10


def test_read_is_packets_less_drops_when_the_ring_overflows():
    t.need_root()
    sent = numbered(30000, 400)
    with t.Namespace() as ns:
        a, b = ns.veth()
        path = os.path.join(t.tempdir(), "out.pcap")
        run = started(ns, f"tap = afpacket {b} ring=1MiB block-size=128KiB; tap -> pcap {path}")
        f.send(ns, a, sent[:5000])
        run.process.send_signal(signal.SIGSTOP)
        f.send(ns, a, sent[5000:])
        run.process.send_signal(signal.SIGCONT)
        report = finish(run)
        counters = node(report)["counters"]
        assert counters["kernel-packets"] == 30000
        assert counters["kernel-drops"] > 0 and counters["ring-freezes"] > 0
        assert out(report) == 30000 - counters["kernel-drops"] == len(f.read_pcap(path))
        assert report["lost"] == counters["kernel-drops"]


def test_stop_in_the_middle_of_traffic():
    """What still comes in while a lane stops is neither read nor counted."""
    t.need_root()
    t.need_program("tcpreplay")
    trace = os.path.join(t.tempdir(), "trace.pcap")
    f.write_pcap(trace, numbered(1000, 200))
    with t.Namespace() as ns:
        a, b = ns.veth()
        sender = ns.popen("tcpreplay", "-q", "-i", a, "--preload-pcap", "--topspeed", "--loop=0", trace,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for turn in range(ROUNDS // 2):
                folder = t.tempdir()
                run = started(ns, f"tap = afpacket {b} lanes={1 + turn % 2}; tap -> disk; disk = pcap {folder}/%{{lane}}.pcap")
                t.wait_until(lambda: any(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)))
                report = finish(run)
                counters = node(report)["counters"]
                assert out(report) == counters["kernel-packets"] - counters["kernel-drops"] > 0
                files = [f.read_pcap(os.path.join(folder, name)) for name in os.listdir(folder)]
                assert sum(map(len, files)) == out(report)
        finally:
            sender.terminate()
            sender.wait()


def flow_of(frame):
    return frozenset([(frame[26:30], frame[34:36]), (frame[30:34], frame[36:38])])


def test_lanes_of_a_fanout_group_lose_nothing():
    t.need_root()
    flows = [f.ether(f.IP, f.ipv4(17, f.udp(b"%06d" % i, 1000 + i % 97, 2000), *ends))
             for i in range(1000) for ends in (("10.0.0.1", "10.0.0.2"),)]
    back = [f.ether(f.IP, f.ipv4(17, f.udp(b"%06d" % i, 2000, 1000 + i % 97), "10.0.0.2", "10.0.0.1"))
            for i in range(1000)]
    with t.Namespace() as ns:
        a, b = ns.veth()
        for fanout in ("hash", "rnd", "lb", "cpu", "qm", "rollover"):
            folder = t.tempdir()
            run = started(ns, f"tap = afpacket {b} lanes=2 fanout={fanout}; tap -> pcap {folder}/%{{lane}}.pcap")
            f.send(ns, a, flows + back)
            report = finish(run)
            assert out(report) == 2000, fanout
            lanes = [f.bytes_of(f.read_pcap(os.path.join(folder, name))) for name in sorted(os.listdir(folder))]
            assert sorted(sum(lanes, [])) == sorted(flows + back), fanout
            if fanout in ("hash", "lb", "rnd"):
                assert len(lanes) == 2 and all(lanes), fanout
            if fanout == "hash":
                first, second = ({flow_of(frame) for frame in lane} for lane in lanes)
                assert not first & second, "a flow is in two lanes"


def test_fragments_are_put_together_on_request():
    t.need_root()
    whole = f.udp(b"x" * 1600)
    pieces = [f.ether(f.IP, f.ipv4(17, whole[:800], ident=7, fragment=0x2000)),
              f.ether(f.IP, f.ipv4(17, whole[800:], ident=7, fragment=100))]
    with t.Namespace() as ns:
        a, b = ns.veth()
        for defrag, expect in (("no", 2), ("yes", 1)):
            run = started(ns, f"tap = afpacket {b} lanes=2 defrag={defrag}; tap -> pcap {t.tempdir()}/%{{lane}}.pcap")
            f.send(ns, a, pieces)
            assert out(finish(run)) == expect, defrag


def test_two_runs_with_groups_in_one_namespace():
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        text = "tap = afpacket {} lanes=2; tap -> pcap {}/%{{lane}}.pcap"
        runs = [started(ns, text.format(tap, t.tempdir())) for tap in (b, b, a, f"{b} fanout=lb", f"{a},{b}")]
        f.send(ns, a, numbered(1000))
        assert [out(finish(run)) for run in runs] == [1000, 1000, 1000, 1000, 2000]


def mixed(n):
    sizes = [64] * 7 + [594] * 4 + [1514]
    return [frame.ljust(sizes[i % 12], b"x") for i, frame in enumerate(numbered(n))]


def test_highest_rate_of_one_tcpreplay():
    t.need_root()
    t.need_program("tcpreplay", "tcpdump")
    if t.SANITIZED:
        raise t.Skip("a sanitizer is no measure of speed")
    trace = os.path.join(t.tempdir(), "mixed.pcap")
    f.write_pcap(trace, mixed(24000))
    with t.Namespace() as ns:
        a, b = ns.veth()
        for text in ("tap = afpacket {} lanes=1; tap -> disk; disk = pcap {}",
                     "tap = afpacket {} lanes=2 fanout=hash; tap -> queue 256MiB lanes=1 -> disk; disk = pcap {}"):
            path = os.path.join(t.tempdir(), "out.pcap")
            run = started(ns, text.format(b, path))
            sent = peers.replay(ns, a, trace, 20)
            report = finish(run)
            written = node(report, "disk")["outputs"]["written"]["packets"]
            assert sent == 480000
            assert (out(report), written, peers.packets_in(path)) == (sent, sent, sent), report
            assert report["lost"] == 0
            stamps = [record[0] for record in f.read_pcap(path)]
            worst = max(earlier - later for earlier, later in zip(stamps, stamps[1:]))
            print(f"# steps back by at most {worst} ns")
            # Microseconds, or a slice of the scheduler; lanes that were not merged differ by the time of a block.
            assert worst < 10_000_000


if __name__ == "__main__":
    t.main()
