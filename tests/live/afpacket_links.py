#!/usr/bin/python3
"""AF_PACKET: links that go and come back, refusals that help, privileges, and doing nothing when there is nothing."""
import json, os, re, select, signal, time

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


def test_idle_is_idle_and_stops_at_once():
    t.need_root()
    with t.Namespace() as ns:
        _, b = ns.veth()
        for lanes in (1, 2):
            run = started(ns, f"tap = afpacket {b} lanes={lanes}; tap -> pcap {t.tempdir()}/%{{lane}}.pcap")
            t.assert_idle(run)
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
                    assert os.read(stream, 65536), "the stream has ended"
                before = time.monotonic()
                f.send(ns, a, [frame])
                assert select.select([stream], [], [], 10)[0], "nothing came"
                waits.append(time.monotonic() - before)
            finish(run)
            print(f"# {text}: {', '.join(f'{wait * 1000:.0f} ms' for wait in waits)}")
            assert max(waits) < 0.1 * (5 if t.SANITIZED else 1), waits


def went_down(ns, a, b, lanes, sent):
    """A run that has got these packets, and has then seen its interface go down."""
    run = started(ns, f"tap = afpacket {b} lanes={lanes}; tap -> pcap {t.tempdir()}/%{{lane}}.pcap")
    f.send(ns, a, sent)
    ns.run("ip", "link", "set", b, "down")
    run.wait_for(f"{b} went down")
    return run


def test_link_down_and_up():
    t.need_root()
    sent = numbered(20)
    with t.Namespace() as ns:
        a, b = ns.veth()
        for lanes in (1, 2):
            run = went_down(ns, a, b, lanes, sent[:10])
            t.assert_idle(run, 5 if lanes == 1 else 1)
            ns.run("ip", "link", "set", b, "up")
            run.wait_for(f"{b} is up again")
            f.send(ns, a, sent[10:])
            report = finish(run)
            assert node(report)["outputs"]["out"]["packets"] == 20
            assert run.stderr.count("went down") == 1, run.stderr


def test_a_renamed_link_is_the_same_link():
    t.need_root()
    sent = numbered(20)
    with t.Namespace() as ns:
        a, b = ns.veth()
        for lanes in (1, 2):
            run = went_down(ns, a, b, lanes, sent[:10])
            ns.run("ip", "link", "set", b, "name", "other")
            ns.run("ip", "link", "set", "other", "up")
            run.wait_for(f"{b} is up again, named other now")
            f.send(ns, a, sent[10:])
            assert node(finish(run))["outputs"]["out"]["packets"] == 20
            ns.run("ip", "link", "set", "other", "down")
            ns.run("ip", "link", "set", "other", "name", b)
            ns.run("ip", "link", "set", b, "up")


def test_link_removed_and_made_anew():
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = started(ns, f"tap = afpacket {b}; tap -> pcap {t.tempdir()}/out.pcap")
        f.send(ns, a, numbered(10))
        ns.run("ip", "link", "del", a)
        run.wait_for(f"{b} was removed")
        t.assert_idle(run, 2)
        assert run.process.poll() is None, "the run ended by itself"
        a, b = ns.veth()
        run.wait_for(f"{b} is up again")
        f.send(ns, a, numbered(10))
        assert node(finish(run))["outputs"]["out"]["packets"] == 20


def link_events(ledger):
    """Unlike what is on standard error, each of them, however many a second."""
    with open(ledger) as file:
        return [line["event"] for line in map(json.loads, file) if line["event"].startswith("link-")]


def test_link_that_goes_down_and_is_removed_goes_once():
    """The kernel takes a link down before it removes it, and either may be seen."""
    t.need_root()
    with t.Namespace() as ns:
        for lanes in 1, 2:
            a, b = ns.veth(queues=2)
            ledger = os.path.join(t.tempdir(), "ledger")
            run = started(ns, f"tap = afpacket {b} lanes={lanes}; tap -> null", "--ledger", ledger)
            ns.run("ip", "link", "set", b, "down")
            run.wait_for(f"{b} went down")
            ns.run("ip", "link", "del", a)
            run.wait_for(f"{b} was removed")
            ns.veth(queues=2)
            run.wait_for(f"{b} is up again")
            finish(run)
            assert link_events(ledger) == ["link-down", "link-up"]
            ns.run("ip", "link", "del", a)


def test_link_of_a_group_removed_and_made_anew():
    """Each lane gets a new socket, in a group of their own; none of the first ten is lost over it, twice."""
    t.need_root()
    sent = numbered(10)
    with t.Namespace() as ns:
        a, b = ns.veth()
        for fanout in ("hash", "lb"):
            folder = t.tempdir()
            ledger = os.path.join(t.tempdir(), "ledger")
            run = started(ns, f"tap = afpacket {b} lanes=2 fanout={fanout} defrag=yes retire=500ms; "
                          f"tap -> pcap {folder}/%{{lane}}.pcap", "--ledger", ledger)
            for number in range(2):
                f.send(ns, a, sent)
                ns.run("ip", "link", "del", a)
                t.wait_until(lambda: link_events(ledger) == ["link-down", "link-up"] * number + ["link-down"])
                a, b = ns.veth()
                t.wait_until(lambda: link_events(ledger) == ["link-down", "link-up"] * (number + 1))
            f.send(ns, a, sent)
            report = finish(run)
            assert node(report)["counters"]["kernel-packets"] == 30
            files = [f.bytes_of(f.read_pcap(os.path.join(folder, name))) for name in os.listdir(folder)]
            assert sorted(sum(files, [])) == sorted(sent * 3), fanout
            assert fanout == "hash" or all(len(file) == 15 for file in files)


def test_link_moved_to_another_namespace_and_back():
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        for lanes in (1, 2):
            run = started(ns, f"tap = afpacket {b} lanes={lanes}; tap -> pcap {t.tempdir()}/%{{lane}}.pcap")
            f.send(ns, a, numbered(10))
            f.move_away_and_back(ns, b, run)
            f.send(ns, a, numbered(10))
            assert node(finish(run))["outputs"]["out"]["packets"] == 20


def test_group_cannot_be_made_anew_without_privileges():
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        folder = t.tempdir()
        os.chmod(folder, 0o777)
        run = started(ns, f"tap = afpacket {b} lanes=2; tap -> pcap {folder}/%{{lane}}.pcap", "--user", "nobody", report=False)
        f.send(ns, a, numbered(10))
        ns.run("ip", "link", "del", a)
        run.wait_for("was removed")
        ns.veth()
        run.wait_for("CAP_NET_RAW, which this run has given up (--user)")
        t.assert_idle(run, 1)
        assert run.process.poll() is None, "the run ended by itself"
        run.stop()
        assert run.status == 0 and "balanced" in run.stderr, run.stderr


def test_on_lost_exit_ends_the_run_with_all_that_came():
    t.need_root()
    with t.Namespace() as ns:
        for lanes, lose in (1, "down"), (3, "down"), (1, "del"), (3, "del"):
            a, b = ns.veth()
            run = started(ns, f"tap = afpacket {b} lanes={lanes} on-lost=exit retire=10s; tap -> pcap {t.tempdir()}/%{{lane}}.pcap")
            f.send(ns, a, numbered(10))
            ns.run("ip", "link", *(["del", b] if lose == "del" else ["set", b, "down"]))
            run.wait(10)
            assert run.status == 1
            assert len(re.findall(f"tap: {b} (went down|was removed), and on-lost=exit", run.stderr)) == 1, run.stderr
            assert run.report["balanced"] and node(run.report)["outputs"]["out"]["packets"] == 10, run.stderr
            ns.run("ip", "link", "del", a, check=False)


def test_on_lost_exit_names_each_link_that_is_lost():
    """Both while the run is stopped, so that it sees them at once."""
    t.need_root()
    with t.Namespace() as ns:
        (_, one), (_, other) = ns.veth(), ns.veth("veth2", "veth3")
        ledger = os.path.join(t.tempdir(), "ledger")
        run = started(ns, f"tap = afpacket {one},{other} on-lost=exit; tap -> null", "--ledger", ledger)
        run.process.send_signal(signal.SIGSTOP)
        for name in (one, other):
            ns.run("ip", "link", "set", name, "down")
        run.process.send_signal(signal.SIGCONT)
        run.wait(10)
        with open(ledger) as file:
            lines = file.read()
        for name in (one, other):
            assert run.stderr.count(f"tap: {name} went down, and on-lost=exit") == 1, run.stderr
            assert len(re.findall(f'"link-down".*{name}', lines)) == 1, lines


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
        assert link_events(ledger) == ["link-down", "link-up"]


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
        refused(ns, f"tap = afpacket {b} cpus=1023; tap {sink}", "processor 1023 is not there.*cpus=auto would work")
        refused(ns, f"tap = afpacket {b} lanes=2 cpus=0; tap {sink}", "cpus= names 1 processor for 2 lanes")
        refused(ns, f"tap = afpacket {b} cpus=first; tap {sink}", "'first' is no number of a processor")
        refused(ns, f"tap = afpacket {b},lo timestamps=hardware; tap {sink}", "timestamps=hardware takes one interface")
        # All at once, each at its place.
        refused(ns, f"tap = afpacket nosuch0,gone0; tap {sink}", "nosuch0", "gone0 is down")


def test_options_that_need_more_say_so():
    t.need_root()
    t.need_program("setpriv")
    sink = "-> null"
    raw, both = ([word.format(caps) for word in CAPABILITIES] for caps in ("-all,+net_raw", "-all,+net_raw,+net_admin"))
    with t.Namespace() as ns:
        a, b = ns.veth()
        refused(ns, f"tap = afpacket {b} busy-poll=50us; tap {sink}", "busy-poll= needs the capability CAP_NET_ADMIN", prefix=raw)
        refused(ns, f"tap = afpacket {b} timestamps=hardware; tap {sink}", f"{b} has no clock.*timestamps=software would work",
                prefix=both)
        run = started(ns, f"tap = afpacket {b} busy-poll=50us; tap {sink}", prefix=both)
        f.send(ns, a, numbered(10))
        assert node(finish(run))["outputs"]["out"]["packets"] == 10


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


def test_lanes_run_on_their_processors():
    t.need_root()
    allowed = sorted(os.sched_getaffinity(0))
    last = allowed[-1]
    with t.Namespace() as ns:
        _, b = ns.veth()
        for cpus, expect in (f"{last},{allowed[0]}", [last, allowed[0]]), ("auto", [allowed[0], allowed[1 % len(allowed)]]):
            run = started(ns, f"tap = afpacket {b} lanes=2 cpus={cpus}; tap -> null")
            found = {}
            for task in os.listdir(f"/proc/{run.process.pid}/task"):
                with open(f"/proc/{run.process.pid}/task/{task}/comm") as file:
                    found[file.read().strip()] = os.sched_getaffinity(int(task))
            finish(run)
            assert [found["tap/0"], found["tap/1"]] == [{n} for n in expect], (cpus, found)
            plan = ns.run(t.WEIR, "plan", "-e", f"tap = afpacket {b} lanes=2 cpus={cpus}; tap -> null").stdout
            assert f"lanes on processors {expect[0]}, {expect[1]}\n" in plan, plan


def test_plan_shows_queues():
    t.need_root()
    with t.Namespace() as ns:
        _, b = ns.veth(queues=4)
        plan = ns.run("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--", t.WEIR, "plan", "-e",
                      f"afpacket {b},lo,nosuch0 -> null").stdout
        assert f"\n  {b}: 4 receive queues; the driver does not tell" in plan, plan
        assert "\n  lo: 1 receive queue\n  nosuch0: no such interface here\n" in plan, plan


def test_offloads_are_named_with_the_command_against_them():
    t.need_root()
    t.need_program("ethtool")
    with t.Namespace() as ns:
        _, b = ns.veth()

        def command(options=""):
            run = started(ns, f"tap = afpacket {b} {options}; tap -> null")
            finish(run)
            assert run.stderr.count("offloads") == run.stderr.count("ethtool -K") <= 1, run.stderr
            found = re.search(r"'(ethtool -K [^']*)'", run.stderr)
            return found and found.group(1)
        ns.run("ethtool", "-K", b, "gro", "on", "tso", "on")
        assert command("direction=in") == f"ethtool -K {b} gro off"
        said = command()
        assert said.startswith(f"ethtool -K {b} gro off tso off"), said
        ns.run(*said.split())
        assert command() is None
        run = started(ns, "afpacket lo -> null")
        finish(run)
        assert "offloads" not in run.stderr


def test_feedback_is_warned_of():
    """Of a source that hears what its own sink sends, by whatever way the endpoint leads there."""
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        ns.run("ip", "addr", "add", "10.1.1.1/24", "dev", b)

        def warnings(tap, endpoint, stages="", options="insecure=yes"):
            run = started(ns, f"tap = afpacket {tap}; tap {stages} -> zmq {endpoint} {options}")
            run.stop()
            assert run.status == 0, run.stderr
            return run.stderr.count(f"tap captures {b}, over which zmq:1 sends") + run.stderr.count("tap captures lo, over")
        assert warnings(b, "tcp://10.1.1.1:5555") == 1
        assert warnings(b, f"tcp://{b}:5555") == 1
        assert warnings(b, "'tcp://*:5555'") == 1
        assert warnings(b, "tcp://10.1.1.2:5555", options="connect=yes insecure=yes linger=0ms") == 1
        assert warnings("lo", "tcp://127.0.0.1:5555") == 1
        assert warnings(f"lo,{b}", "tcp://127.0.0.1:5555,tcp://10.1.1.1:5556") == 2
        assert warnings(b, "tcp://127.0.0.1:5555") == 0
        assert warnings(a, "tcp://10.1.1.1:5555") == 0
        assert warnings(a, "'tcp://*:5555'") == 0
        assert warnings(b, "tcp://10.1.1.1:5555", "-> bpf 'not tcp port 5555'") == 0
        assert warnings(b, f"ipc://{t.tempdir()}/socket") == 0


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


NOT_IP = b"\xff" * 40


def write_refused(tun, packet):
    try:
        os.write(tun, packet)
    except OSError:
        return
    raise AssertionError("the tun device took what is no IP")


KERNEL_ROWS = ["nic-missed", "nic-fifo", "nic-dropped", "nic-errors"]


def test_nic_counters_stand_beside():
    """A veth pair has drops of its driver's own, and none of missing buffers: absent, not 0."""
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = started(ns, f"tap = afpacket {b}; tap -> pcap {t.tempdir()}/out.pcap")
        f.send(ns, a, numbered(10))
        report = finish(run)
        counters = node(report)["counters"]
        rows = [name for name in counters if name.startswith("nic-")]
        assert rows == KERNEL_ROWS + ["nic-driver-dropped", "nic-beyond"], rows
        assert all(counters[name] == 0 for name in rows) and report["nic"] == 0


def test_what_the_nic_drops_is_counted_apart():
    """A tun device drops what is no IP, as its driver and the kernel say: rx_dropped."""
    t.need_root()
    with t.Namespace() as ns:
        tun = f.tun(ns, "tun0")
        write_refused(tun, NOT_IP)  # before the run: not of this one
        run = started(ns, f"tap = afpacket tun0; tap -> pcap {t.tempdir()}/out.pcap")
        for _ in range(7):
            write_refused(tun, NOT_IP)
        for i in range(5):
            os.write(tun, f.ipv4(17, f.udp(b"%d" % i)))
        report = finish(run)
        os.close(tun)
        counters = node(report)["counters"]
        assert [counters[name] for name in KERNEL_ROWS] == [0, 0, 7, 0], counters
        assert "nic-driver-dropped" not in counters and "nic-beyond" not in counters, counters
        assert (report["nic"], report["lost"], node(report)["outputs"]["out"]["packets"]) == (7, 0, 5)
        assert "lost by the NIC: 7" in run.stderr


if __name__ == "__main__":
    t.main()
