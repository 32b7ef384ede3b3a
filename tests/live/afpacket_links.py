#!/usr/bin/python3
"""AF_PACKET: links that go and come back, refusals that help, privileges, and doing nothing when there is nothing."""
import os, re, select, subprocess, time

import frames as f
import weirtest as t
from frames import node, started


def numbered(n):
    return [f.ether(f.IP, f.ipv4(17, f.udp(b"%08d" % i))) for i in range(n)]


def finish(run):
    before = time.monotonic()
    report = f.finish(run)
    assert time.monotonic() - before < (5 if t.SANITIZED else 1), "the stop took a second"
    return report


def processor_seconds(run):
    """Of the process, all threads: utime and stime in ticks of 10 ms."""
    with open(f"/proc/{run.process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def assert_idle(run, seconds=3):
    before = processor_seconds(run)
    time.sleep(seconds)
    used = processor_seconds(run) - before
    assert used <= seconds * 0.01 * (10 if t.SANITIZED else 1), f"{used} s of processor time in {seconds} s"


def test_idle_is_idle_and_stops_at_once():
    t.need_root()
    with t.Namespace() as ns:
        _, b = ns.veth()
        for lanes in (1, 2):
            run = started(ns, f"tap = afpacket {b} lanes={lanes}; tap -> pcap {t.tempdir()}/%{{lane}}.pcap")
            assert_idle(run)
            finish(run)


def test_one_packet_waits_no_longer_than_100_ms():
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        for text in ("afpacket {} -> pipe -", "afpacket {} lanes=2 -> queue 8MiB lanes=1 -> pipe -"):
            run = started(ns, text.format(b))
            stream = run.process.stdout.fileno()
            waits = []
            for frame in numbered(5):
                time.sleep(0.437)
                while select.select([stream], [], [], 0)[0]:
                    os.read(stream, 65536)
                before = time.monotonic()
                f.send(ns, a, [frame])
                assert select.select([stream], [], [], 10)[0], "nothing came"
                waits.append(time.monotonic() - before)
            finish(run)
            print(f"# {text}: {', '.join(f'{wait * 1000:.0f} ms' for wait in waits)}")
            assert max(waits) < 0.1 * (5 if t.SANITIZED else 1), waits


def test_link_down_and_up():
    t.need_root()
    sent = numbered(20)
    with t.Namespace() as ns:
        a, b = ns.veth()
        for lanes in (1, 2):
            run = started(ns, f"tap = afpacket {b} lanes={lanes}; tap -> pcap {t.tempdir()}/%{{lane}}.pcap")
            f.send(ns, a, sent[:10])
            ns.run("ip", "link", "set", b, "down")
            run.wait_for(f"{b} went down")
            assert_idle(run, 1)
            ns.run("ip", "link", "set", b, "up")
            run.wait_for(f"{b} is up again")
            f.send(ns, a, sent[10:])
            report = finish(run)
            assert node(report)["outputs"]["out"]["packets"] == 20
            assert run.stderr.count("went down") == 1, run.stderr


def test_link_removed_and_made_anew():
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = started(ns, f"tap = afpacket {b}; tap -> pcap {t.tempdir()}/out.pcap")
        f.send(ns, a, numbered(10))
        ns.run("ip", "link", "del", a)
        run.wait_for(f"{b} was removed")
        assert_idle(run, 2)
        assert run.process.poll() is None, "the run ended by itself"
        a, b = ns.veth()
        run.wait_for(f"{b} is up again")
        f.send(ns, a, numbered(10))
        assert node(finish(run))["outputs"]["out"]["packets"] == 20


def test_link_of_a_group_removed():
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = started(ns, f"tap = afpacket {b} lanes=2; tap -> pcap {t.tempdir()}/%{{lane}}.pcap")
        f.send(ns, a, numbered(10))
        ns.run("ip", "link", "del", a)
        run.wait_for("cannot be bound again")
        assert_idle(run, 1)
        assert run.process.poll() is None, "the run ended by itself"
        assert node(finish(run))["outputs"]["out"]["packets"] == 10


def test_link_events_are_in_the_ledger_file():
    t.need_root()
    with t.Namespace() as ns:
        _, b = ns.veth()
        ledger = os.path.join(t.tempdir(), "ledger")
        run = started(ns, f"tap = afpacket {b}; tap -> pcap {t.tempdir()}/out.pcap", "--ledger", ledger)
        ns.run("ip", "link", "set", b, "down")
        run.wait_for("went down")
        ns.run("ip", "link", "set", b, "up")
        run.wait_for("is up again")
        finish(run)
        with open(ledger) as file:
            text = file.read()
        assert text.count("link-down") == 1 and text.count("link-up") == 1, text


def refused(ns, text, *expected, **more):
    run = t.Run("-e", text, netns=ns, **more).wait()
    assert run.status in (1, 2), f"{text}: status {run.status}: {run.stderr}"
    for part in expected:
        assert re.search(part, run.stderr), f"{text}: no {part!r} in: {run.stderr}"


def test_refusals_say_what_would_work():
    t.need_root()
    with t.Namespace() as ns:
        _, b = ns.veth()
        ns.run("ip", "link", "add", "gone0", "type", "veth", "peer", "name", "gone1")
        sink = f"-> pcap {t.tempdir()}/%{{lane}}.pcap"
        refused(ns, f"tap = afpacket nosuch0; tap {sink}", r"^-e:1:\d+: tap: .*nosuch0")
        refused(ns, f"tap = afpacket gone0; tap {sink}", "tap: .*gone0 is down.*ip link set gone0 up")
        refused(ns, f"tap = afpacket {b} ring=1TiB; tap {sink}", "tap: ring=1048576MiB .*available")
        refused(ns, f"tap = afpacket {b} block-size=5000; tap {sink}", "block-size=5000.*page size.*8192 would work")
        refused(ns, f"tap = afpacket {b} lanes=4 ring=2MiB; tap {sink}", "ring=2048KiB .*ring=8192KiB would work")
        refused(ns, f"tap = afpacket {b},{b}; tap {sink}", f"{b} is given twice")
        refused(ns, f"tap = afpacket averyveryverylongname; tap {sink}", "averyveryverylongname.* too long")
        # All at once, each at its place.
        refused(ns, f"tap = afpacket nosuch0,gone0; tap {sink}", "nosuch0", "gone0 is down")


CAPABILITIES = ["setpriv", "--bounding-set={0}", "--inh-caps={0}", "--"]


def test_net_raw_alone_suffices():
    t.need_root()
    t.need_program("setpriv")
    prefix = [word.format("-all,+net_raw") for word in CAPABILITIES]
    with t.Namespace() as ns:
        a, b = ns.veth()
        for tap in (b, f"{b} lanes=2"):
            run = started(ns, f"tap = afpacket {tap}; tap -> pcap {t.tempdir()}/%{{lane}}.pcap", prefix=prefix)
            assert "promiscuity 1" in ns.run("ip", "-d", "link", "show", b).stdout or tap != b
            f.send(ns, a, numbered(10))
            assert node(finish(run))["outputs"]["out"]["packets"] == 10


def test_without_net_raw_the_message_names_it():
    t.need_root()
    t.need_program("setpriv")
    prefix = [word.format("-all") for word in CAPABILITIES]
    with t.Namespace() as ns:
        _, b = ns.veth()
        refused(ns, f"tap = afpacket {b}; tap -> pcap {t.tempdir()}/out.pcap", "tap: .*CAP_NET_RAW", prefix=prefix)


def test_promiscuity_ends_with_the_process():
    t.need_root()
    with t.Namespace() as ns:
        _, b = ns.veth()

        def promiscuity():
            return int(re.search(r"promiscuity (\d+)", ns.run("ip", "-d", "link", "show", b).stdout).group(1))
        for option, expect in (("yes", 1), ("no", 0)):
            run = started(ns, f"tap = afpacket {b} promisc={option}; tap -> pcap {t.tempdir()}/out.pcap")
            assert promiscuity() == expect
            run.process.kill()
            run.process.wait()
            t.wait_until(lambda: promiscuity() == 0, 10, "the interface stays promiscuous")


def test_nic_counters_stand_beside():
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = started(ns, f"tap = afpacket {b}; tap -> pcap {t.tempdir()}/out.pcap")
        f.send(ns, a, numbered(10))
        report = finish(run)
        assert [node(report)["counters"][name] for name in ("nic-missed", "nic-fifo", "nic-errors")] == [0, 0, 0]
        assert report["nic"] == 0


if __name__ == "__main__":
    t.main()
