#!/usr/bin/python3
"""The inject sink: what was sent is what the other end of the pair sees, and the rest is counted by name."""
import os, re, subprocess, time

import frames as f
import weirtest as t
from frames import counter, finish, node, started


def numbered(n, size=60):
    return [f.ether(f.IP, f.ipv4(17, f.udp(b"%08d" % i, sport=1000 + i % 977))).ljust(size, b"\0") for i in range(n)]


def outcomes(report, name="out"):
    return {key: value["packets"] for key, value in node(report, name)["outputs"].items() if value["packets"]}


def trace_of(frames):
    path = os.path.join(t.tempdir(), "trace.pcap")
    f.write_pcap(path, frames)
    return path


def replay(ns, frames, element, stages=""):
    """Injects the frames from a file, and returns the report."""
    run = t.weir("-e", f"out = inject {element}; pcap-replay {trace_of(frames)} {stages} -> out", netns=ns)
    return run.report


def seen_by(ns, interface, send):
    """What another Weir sees on the interface meanwhile."""
    path = os.path.join(t.tempdir(), "seen.pcap")
    run = started(ns, f"tap = afpacket {interface} direction=in; tap -> pcap {path}")
    report = send()
    finish(run)
    return f.read_pcap(path), report


def test_what_is_sent_is_what_the_other_end_sees():
    t.need_root()
    t.need_program("tcpdump")
    tagged = [f.ether(f.IP, f.ipv4(17, f.udp(b"tag %d" % i)), (0x8100, 29 + i)) for i in range(3)]
    stacked = [f.ether(f.IP, f.ipv4(17, f.udp(b"stack")), (0x88a8, 5), (0x8100, 6)), f.ether(f.ARP, b"\0" * 28)]
    sent = numbered(500) + tagged + stacked + numbered(500, 1514)
    with t.Namespace() as ns:
        a, b = ns.veth()
        dump = os.path.join(t.tempdir(), "tcpdump.pcap")
        tcpdump = t.bound_to_test(ns.popen("tcpdump", "-i", b, "-U", "-w", dump, stderr=subprocess.PIPE, text=True))
        assert "listening on" in tcpdump.stderr.readline()
        records, report = seen_by(ns, b, lambda: replay(ns, sent, a))
        assert f.bytes_of(records) == sent
        assert outcomes(report) == {"sent": len(sent)} and report["lost"] == 0
        assert counter(report, "interface-sent", "out") == len(sent), node(report, "out")
        t.wait_until(lambda: count(dump) >= len(sent), what="tcpdump saw less")
        tcpdump.terminate()
        tcpdump.wait()
        assert count(dump) == len(sent)


def count(path):
    done = subprocess.run(["tcpdump", "-r", path, "--count"], capture_output=True, text=True)
    found = re.search(r"(\d+) packet", done.stdout)
    return int(found.group(1)) if found else 0


def test_several_lanes():
    t.need_root()
    sent = numbered(5000)
    with t.Namespace() as ns:
        a, b = ns.veth()
        records, report = seen_by(ns, b, lambda: replay(ns, sent, a, "-> queue 8MiB lanes=3"))
        assert sorted(f.bytes_of(records)) == sorted(sent)
        assert outcomes(report) == {"sent": 5000}


def test_too_long_for_the_mtu():
    t.need_root()
    tag = (0x8100, 7)
    fits = [f.ether(f.IP, f.ipv4(17, f.udp(b"x" * 1472))), f.ether(f.IP, f.ipv4(17, f.udp(b"x" * 1472)), tag)]
    long = [f.ether(f.IP, f.ipv4(17, f.udp(b"x" * 1473))), f.ether(f.IP, f.ipv4(17, f.udp(b"x" * 1473)), tag),
            f.ether(f.IP, f.ipv4(17, f.udp(b"x" * 9000)))]
    with t.Namespace() as ns:
        a, b = ns.veth()
        records, report = seen_by(ns, b, lambda: replay(ns, [fits[0], *long, fits[1]], a))
        assert f.bytes_of(records) == fits
        assert outcomes(report) == {"sent": 2, "too-long": 3} and report["lost"] == 3
        ns.run("ip", "link", "set", a, "mtu", "9100")
        ns.run("ip", "link", "set", b, "mtu", "9100")
        records, report = seen_by(ns, b, lambda: replay(ns, long, a))
        assert f.bytes_of(records) == long


def test_destination_is_rewritten():
    t.need_root()
    sent = numbered(20)
    with t.Namespace() as ns:
        a, b = ns.veth()
        records, _ = seen_by(ns, b, lambda: replay(ns, sent, f"{a} dst-mac=02:00:00:00:00:99"))
        assert f.bytes_of(records) == [bytes.fromhex("020000000099") + frame[6:] for frame in sent]


def test_pace_of_packets_and_bits():
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        for pace, size, seconds in (("10kpps", 60, 0.2), ("8Mbps", 500, 1.0)):
            records, report = seen_by(ns, b, lambda: replay(ns, numbered(2000, size), f"{a} pace={pace}"))
            took = (records[-1][0] - records[0][0]) / 1e9
            assert outcomes(report) == {"sent": 2000}, "behind files everything is sent"
            assert seconds * 0.97 < took < seconds * (5 if t.SANITIZED else 1.5), f"{pace}: {took} s"


def pairs(ns):
    """What is sent to the first is captured on the second and injected into the third, which is seen on the fourth."""
    return (*ns.veth("in0", "in1"), *ns.veth("out0", "out1"))


def test_slow_pace_behind_a_live_source_loses_by_name():
    t.need_root()
    with t.Namespace() as ns:
        first, tap, out, _ = pairs(ns)
        run = started(ns, f"tap = afpacket {tap}; out = inject {out} pace=100pps ring=1MiB linger=0ms; tap -> out")
        f.send(ns, first, numbered(2000, 1400))
        report = finish(run)
        found = outcomes(report)
        assert sum(found.values()) == 2000 and found["ring-full"] > 500 and found["unsent"] > 500, found
        assert report["lost"] == 2000 - found.get("sent", 0)


def test_interface_down_and_made_anew():
    t.need_root()
    with t.Namespace() as ns:
        first, tap, out, far = pairs(ns)
        ledger = os.path.join(t.tempdir(), "ledger")
        run = started(ns, f"tap = afpacket {tap}; out = inject {out}; tap -> out", "--ledger", ledger)
        f.send(ns, first, numbered(10))
        t.wait_until(lambda: interface_sent(ns, out) == 10)
        ns.run("ip", "link", "set", out, "down")
        f.send(ns, first, numbered(10))
        run.wait_for(f"{out} is down or gone")
        ns.run("ip", "link", "set", out, "up")
        f.send(ns, first, numbered(10))
        t.wait_until(lambda: interface_sent(ns, out) == 20)
        ns.run("ip", "link", "del", out)
        f.send(ns, first, numbered(10))
        t.wait_until(lambda: events(ledger, "link-down") == 2)
        ns.veth(out, far)
        time.sleep(0.2)
        f.send(ns, first, numbered(11))
        t.wait_until(lambda: interface_sent(ns, out) >= 10)
        found = outcomes(finish(run))
        assert found == {"sent": found["sent"], "link-down": 51 - found["sent"]} and 30 <= found["sent"] <= 31, found
        assert events(ledger, "link-up") == 2


def interface_sent(ns, interface):
    return int(ns.run("cat", f"/sys/class/net/{interface}/statistics/tx_packets").stdout)


def events(ledger, event):
    with open(ledger) as file:
        return file.read().count(f'"{event}"')


def test_own_capture_is_warned_of():
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = started(ns, f'afpacket {a} -> bpf "udp port 9" -> inject {a}')
        assert f"sends out of {a}, which this pipeline captures" in run.stderr
        run.stop()
        run = started(ns, f"afpacket {a} direction=in -> inject {b}")
        assert "which this pipeline captures" not in run.stderr
        run.stop()


def assert_refused(ns, element, *expected, **more):
    run = t.Run("-e", f"pcap-replay {trace_of(numbered(1))} -> inject {element}", netns=ns, **more).wait()
    assert run.status in (1, 2), f"{element}: status {run.status}: {run.stderr}"
    for part in expected:
        assert re.search(part, run.stderr), f"{element}: no {part!r} in: {run.stderr}"


def test_refusals_say_what_would_work():
    t.need_root()
    with t.Namespace() as ns:
        a, _ = ns.veth()
        ns.run("ip", "link", "add", "gone0", "type", "veth", "peer", "name", "gone1")
        assert_refused(ns, "nosuch0", "no interface 'nosuch0'")
        assert_refused(ns, "gone0", "gone0 is down; 'ip link set gone0 up' would help")
        assert_refused(ns, f"{a} pace=fast", "'fast' is no pace; max, 500kpps")
        assert_refused(ns, f"{a} dst-mac=ff:ff:ff:ff:ff:ff", "no unicast address; 02:00")
        assert_refused(ns, f"{a} dst-mac=02:00:00:00:00", "no unicast address")


def test_other_link_types_are_counted():
    t.need_root()
    with t.Namespace() as ns:
        a, _ = ns.veth()
        path = trace_of([f.ipv4(17, f.udp(b"raw"))] * 4)
        with open(path, "r+b") as file:
            file.seek(20)
            file.write((101).to_bytes(4, "little"))
        run = t.weir("-e", f"out = inject {a}; pcap-replay {path} -> out", netns=ns)
        assert outcomes(run.report) == {"other-linktype": 4}


def test_the_named_capability_suffices_and_its_lack_is_named():
    t.need_root()
    t.need_program("setpriv")
    with t.Namespace() as ns:
        a, _ = ns.veth()
        trace = trace_of(numbered(5))
        words = "setpriv --bounding-set={0} --inh-caps={0} --"
        run = t.weir("-e", f"out = inject {a}; pcap-replay {trace} -> out", netns=ns,
                     prefix=words.format("-all,+net_raw").split())
        assert outcomes(run.report) == {"sent": 5}
        assert_refused(ns, a, "CAP_NET_RAW", prefix=words.format("-all").split())


def test_idle_is_idle_and_stops_at_once():
    t.need_root()
    with t.Namespace() as ns:
        _, tap, out, _ = pairs(ns)
        run = started(ns, f"afpacket {tap} -> inject {out}")
        before = t.processor_seconds(run.process)
        time.sleep(2)
        used = t.processor_seconds(run.process) - before
        assert used <= 0.02 * (10 if t.SANITIZED else 1), f"{used} s in 2 s"
        before = time.monotonic()
        finish(run)
        assert time.monotonic() - before < (5 if t.SANITIZED else 1)


if __name__ == "__main__":
    t.main()
