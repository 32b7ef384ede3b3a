#!/usr/bin/python3
"""AF_PACKET: a million frames while the process is stopped or signalled, links that flap, rings of every shape."""
import os, signal, subprocess, threading, time
from contextlib import contextmanager

import frames as f
import peers
import weirtest as t
from frames import finish, node, started

MILLION = 1000000 if not t.SANITIZED else 100000
RING = "16MiB" if not t.SANITIZED else "4MiB"  # less than what comes within two seconds


def numbered(n, size=60):
    return [f.ether(f.IP, f.ipv4(17, f.udp(b"%08d" % i, sport=1000 + i % 97))).ljust(size, b"\0") for i in range(n)]


def received(ns, interface):
    """By the interface, as the kernel says."""
    return int(ns.run("cat", f"/sys/class/net/{interface}/statistics/rx_packets").stdout)


@contextmanager
def a_million_frames(ns, interface):
    """Are sent meanwhile; all have been by the end of the block."""
    t.need_program("tcpreplay")
    trace = os.path.join(t.tempdir(), "trace.pcap")
    f.write_pcap(trace, numbered(10000))
    command = peers.replay_command(interface, trace, MILLION // 10000)
    if t.SANITIZED:  # as long as a million at full rate, so that something can happen meanwhile
        command = [word.replace("--topspeed", "--pps=25000") for word in command]
    sender = t.bound_to_test(ns.popen(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    yield
    assert sender.wait(120) == 0


def test_stopped_for_two_seconds_in_the_middle_of_a_million_frames():
    """Delivered + dropped = sent, exactly: by each of two lanes' files, and by the report."""
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        folder = t.tempdir()
        run = started(ns, f"tap = afpacket {b} lanes=2 ring={RING}; tap -> disk; disk = pcap {folder}/%{{lane}}.pcap")
        with a_million_frames(ns, a):
            t.wait_until(lambda: received(ns, b) > MILLION // 10)
            run.process.send_signal(signal.SIGSTOP)
            time.sleep(2)
            run.process.send_signal(signal.SIGCONT)
        report = finish(run)
        counters, out = node(report)["counters"], node(report)["outputs"]["out"]["packets"]
        delivered = sum(peers.packets_in(os.path.join(folder, name)) for name in os.listdir(folder))
        assert counters["kernel-packets"] == MILLION == received(ns, b), counters
        assert counters["kernel-drops"] > 0 and out == MILLION - counters["kernel-drops"]
        assert delivered + report["lost"] == MILLION, report["losses"]


def test_two_hundred_usr1_a_second_during_a_million_frames():
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        path = os.path.join(t.tempdir(), "out.pcap")
        run = started(ns, f"tap = afpacket {b} ring=256MiB; tap -> pcap {path}")
        done, signals = threading.Event(), 0

        def ask():
            nonlocal signals
            while not done.wait(0.005):
                run.process.send_signal(signal.SIGUSR1)
                signals += 1
        asking = threading.Thread(target=ask)
        asking.start()
        try:
            with a_million_frames(ns, a):
                pass
        finally:
            done.set()
            asking.join()
        report = finish(run)
        assert signals > 20 and run.stderr.count("weir: ledger of") > 10, (signals, run.stderr.count("weir: ledger of"))
        assert report["lost"] == 0 and peers.packets_in(path) == MILLION


def test_flapping_a_hundred_times():
    """What the interface has received is captured, whatever happens between."""
    t.need_root()
    sent = numbered(10)
    with t.Namespace() as ns:
        a, b = ns.veth()
        for lanes in (1, 2):
            run = started(ns, f"tap = afpacket {b} lanes={lanes}; tap -> null")
            before = received(ns, b)
            for _ in range(100):
                ns.run("ip", "-batch", "-", input=f"link set {b} down\nlink set {b} up\n")
                f.send(ns, a, sent[:1])
            t.wait_until(lambda: "is up again" in run.stderr)
            last = received(ns, b)
            f.send(ns, a, sent)
            assert received(ns, b) == last + 10
            report = finish(run)
            assert node(report)["counters"]["kernel-packets"] == received(ns, b) - before >= 10
            assert report["lost"] == 0
            assert len(run.stderr.splitlines()) < 100, "a line for each time"


def test_rings_of_twelve_shapes():
    """Each captures everything, or refuses with the reason."""
    t.need_root()
    sent = numbered(300, 1514)
    with t.Namespace() as ns:
        a, b = ns.veth()
        for ring in ("1MiB", "3MiB", "64MiB"):
            for block in ("4KiB", "1MiB"):
                for snaplen in (96, 1514):
                    shape = f"{b} ring={ring} block-size={block}"
                    if (ring, block) == ("1MiB", "1MiB"):
                        run = t.Run("-e", f"afpacket {shape} -> snaplen {snaplen} -> null", netns=ns).wait()
                        assert run.status == 2 and "less than 2 blocks" in run.stderr and "ring=2048KiB would work" in run.stderr
                        continue
                    records, report = f.capture(ns, shape, lambda: f.send(ns, a, sent), 300, f"-> snaplen {snaplen}")
                    assert f.bytes_of(records) == [frame[:snaplen] for frame in sent], shape
                    assert node(report)["counters"]["cut"] == (300 if snaplen == 96 else 0), shape


def test_two_instances_on_one_interface_and_one_on_another():
    """Each counts what it saw, and nothing of the others."""
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        c, d = ns.veth("veth2", "veth3")
        runs = [started(ns, f"tap = afpacket {tap}; tap -> null") for tap in (b, f"{b} lanes=2", d)]
        f.send(ns, a, numbered(3000))
        f.send(ns, c, numbered(500))
        for run, expect in zip(runs, (3000, 3000, 500)):
            assert node(finish(run))["outputs"]["out"]["packets"] == expect


if __name__ == "__main__":
    t.main()
