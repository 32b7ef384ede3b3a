#!/usr/bin/python3
"""AF_XDP: what is attached goes away, links that go and come back, refusals that help, privileges, idleness."""
import json, os, re, signal, subprocess, time

import frames as f
import weirtest as t
from afxdp import Taken, need_xdp, numbered
from frames import node, started


def start(ns, text, *options, **more):
    return started(ns, f"tap = afxdp {text}; tap -> pcap {t.tempdir()}/%{{lane}}.pcap", *options, **more)


def out(report):
    return node(report)["outputs"]["out"]["packets"]


def finish(run):
    before = time.monotonic()
    report = f.finish(run)
    assert time.monotonic() - before < (5 if t.SANITIZED else 1), "the stop took a second"
    return report


def link_of(ns, interface):
    return json.loads(ns.run("ip", "-d", "-j", "link", "show", interface).stdout)[0]


def is_clean(ns, interface):
    link = link_of(ns, interface)
    return "xdp" not in link and link["promiscuity"] == 0


# ---- What is attached goes away ----

def test_nothing_stays_after_the_end():
    need_xdp()
    with t.Namespace() as ns:
        _, b = ns.veth(queues=2)
        for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
            run = start(ns, b)
            assert not is_clean(ns, b)
            assert link_of(ns, b)["promiscuity"] == 1
            run.process.send_signal(sig)
            run.process.wait()
            t.wait_until(lambda: is_clean(ns, b), 10, f"something stays after signal {sig}")


def test_starting_again_at_once():
    need_xdp()
    sent = numbered(100)
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        for sig in (signal.SIGKILL, signal.SIGTERM) * 5:
            run = start(ns, b)
            run.process.send_signal(sig)
            run.process.wait()
            run = start(ns, b)
            f.send(ns, a, sent)
            assert out(finish(run)) == 100


def test_a_queue_that_is_taken_is_waited_for():
    """For up to two seconds, since one that was just closed is still taken for a moment."""
    need_xdp()
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        with Taken(ns, b, 1):
            run = t.Run("-e", f"tap = afxdp {b}; tap -> null", netns=ns)
            time.sleep(0.7)
            assert run.process.poll() is None and "running" not in run.stderr, run.stderr
        run.wait_for("running")
        f.send(ns, a, numbered(100))
        assert out(finish(run)) == 100
        with Taken(ns, b, 1):
            refused(ns, b, f"queue 1 of {b} belongs to another AF_XDP socket")


def test_another_weir_on_the_interface():
    """Is refused if it stays, and waited for if it is about to end."""
    need_xdp()
    with t.Namespace() as ns:
        _, b = ns.veth()
        run = start(ns, b)
        refused(ns, b, f"an XDP program is on {b} already")
        second = t.Run("-e", f"tap = afxdp {b}; tap -> null", netns=ns)
        time.sleep(0.7)
        run.process.kill()
        run.process.wait()
        second.wait_for("running")
        finish(second)


def test_foreign_program_is_refused_by_its_id():
    need_xdp()
    t.need_program("clang")
    with t.Namespace() as ns:
        a, b = ns.veth()
        source, program = (os.path.join(t.tempdir(), name) for name in ("pass.c", "pass.o"))
        with open(source, "w") as file:
            file.write('__attribute__((section("xdp"), used)) int pass(void *ctx) { return 2; }\n')
        subprocess.run(["clang", "-target", "bpf", "-O2", "-c", source, "-o", program], check=True)
        for kind in ("xdpdrv", "xdpgeneric"):
            ns.run("ip", "link", "set", b, kind, "obj", program, "sec", "xdp")
            number = link_of(ns, b)["xdp"]["prog"]["id"]
            for mode in ("auto", "skb", "native"):
                refused(ns, f"{b} mode={mode}", f"an XDP program is on {b} already, of id {number} ")
            assert link_of(ns, b)["xdp"]["prog"]["id"] == number, "the foreign program is gone"
            ns.run("ip", "link", "set", b, kind, "off")
        finish(start(ns, b))


# ---- Idle, latency, stop ----

def test_idle_is_idle_and_stops_at_once():
    need_xdp()
    with t.Namespace() as ns:
        _, b = ns.veth(queues=2)
        for mode in ("native", "skb"):
            run = start(ns, f"{b} mode={mode}")
            t.assert_idle(run)
            finish(run)


def test_packets_just_before_the_stop_are_in_the_file():
    need_xdp()
    sent = numbered(10)
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        for turn in range(int(os.environ.get("WEIR_ROUNDS", "10"))):
            for extra in ("", "gather=50ms", "mode=skb"):
                run = start(ns, f"{b} {extra}")
                f.send(ns, a, sent)
                time.sleep(0.05)
                assert out(finish(run)) == 10, (turn, extra)


def test_busy_polling():
    need_xdp()
    with t.Namespace() as ns:
        a, b = ns.veth()
        for mode in ("native", "skb"):
            run = start(ns, f"{b} mode={mode} busy-poll=1ms")
            f.send(ns, a, numbered(1000))
            assert out(finish(run)) == 1000


def test_one_packet_waits_no_longer_than_100_ms():
    need_xdp()
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = started(ns, f"afxdp {b} -> pipe -")
        stream = run.process.stdout.fileno()
        waits = []
        for frame in numbered(5):
            time.sleep(0.237)
            waits.append(f.wait_for_bytes(stream, lambda: f.send(ns, a, [frame])))
        finish(run)
        print(f"# {', '.join(f'{wait * 1000:.0f} ms' for wait in waits)}")
        assert max(waits) < 0.1 * (5 if t.SANITIZED else 1), waits


# ---- Links that go and come back ----

def test_link_down_and_up():
    need_xdp()
    sent = numbered(20)
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        for mode in ("native", "skb"):
            run = start(ns, f"{b} mode={mode}")
            f.send(ns, a, sent[:10])
            ns.run("ip", "link", "set", b, "down")
            run.wait_for(f"{b} went down")
            t.assert_idle(run, 1)
            ns.run("ip", "link", "set", b, "up")
            run.wait_for(f"{b} is up again")
            f.send(ns, a, sent[10:])
            assert out(finish(run)) == 20
            assert run.stderr.count("went down") == 1, run.stderr


def test_link_that_flaps():
    need_xdp()
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        run = start(ns, b)
        for _ in range(100):
            ns.run("ip", "link", "set", b, "down")
            ns.run("ip", "link", "set", b, "up")
        f.send(ns, a, numbered(10))
        t.assert_idle(run, 1)
        assert out(finish(run)) == 10


def test_link_removed_and_made_anew():
    need_xdp()
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        ledger = os.path.join(t.tempdir(), "ledger")
        run = start(ns, b, "--ledger", ledger)
        f.send(ns, a, numbered(10))
        ns.run("ip", "link", "del", a)
        run.wait_for(f"{b} was removed")
        t.assert_idle(run, 2)
        assert run.process.poll() is None, "the run ended by itself"
        a, b = ns.veth(queues=2)
        run.wait_for(f"{b} is up again")
        f.send(ns, a, numbered(10))
        report = finish(run)
        assert out(report) == 20 and report["lost"] == 0
        with open(ledger) as file:
            text = file.read()
        assert text.count("link-down") == 1 and text.count("link-up") == 1, text


def test_link_that_goes_down_and_is_removed_goes_once():
    """The kernel takes a link down before it removes it, and either may be seen."""
    need_xdp()
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        ledger = os.path.join(t.tempdir(), "ledger")
        run = start(ns, b, "--ledger", ledger)
        ns.run("ip", "link", "set", b, "down")
        run.wait_for(f"{b} went down")
        ns.run("ip", "link", "del", a)
        run.wait_for(f"{b} was removed")
        ns.veth(queues=2)
        run.wait_for(f"{b} is up again")
        finish(run)
        with open(ledger) as file:
            text = file.read()
        assert text.count("link-down") == 1 and text.count("link-up") == 1, text


def test_link_made_anew_under_load():
    """Nothing goes to sockets of the old one, which would be neither captured nor counted."""
    need_xdp()
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        run = start(ns, b)
        with f.flow(ns, a, numbered(1)[0]):
            ns.run("ip", "link", "del", a)
            run.wait_for(f"{b} was removed")
            ns.veth(queues=2)
            run.wait_for(f"{b} is up again")
        finish(run)


def test_link_made_anew_again_and_again():
    """One that is gone again while it is being opened is waited for like any other."""
    need_xdp()
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        run = f.started(ns, f"tap = afxdp {b}; tap -> queue lanes=1 -> pipe -")
        for i in range(40):
            ns.run("ip", "link", "del", a)
            ns.veth(queues=2)
            time.sleep(0.005 * i)
        with f.flow(ns, a, numbered(1)[0]):
            f.wait_for_bytes(run.process.stdout.fileno(), lambda: None)
        finish(run)
        assert "cannot be opened again" not in run.stderr and "takes no XDP program" not in run.stderr, run.stderr


def test_link_moved_to_another_namespace_and_back():
    need_xdp()
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        for mode in ("native", "skb"):
            run = start(ns, f"{b} mode={mode}")
            f.send(ns, a, numbered(10))
            f.move_away_and_back(ns, b, run)
            f.send(ns, a, numbered(10))
            assert out(finish(run)) == 20


def test_on_lost_exit_ends_the_run():
    need_xdp()
    with t.Namespace() as ns:
        for change, said in ((("set", "{}", "down"), "went down"), (("del", "{}"), "was removed")):
            a, b = ns.veth(queues=2)
            run = start(ns, f"{b} on-lost=exit")
            f.send(ns, a, numbered(10))
            ns.run("ip", "link", *(word.format(b) for word in change))
            run.wait()
            assert run.status == 1 and f"{b} {said}, and on-lost=exit ends the run" in run.stderr, run.stderr
            assert out(run.report) == 10 and run.report["balanced"] is True
            ns.run("ip", "link", "del", a, check=False)


def test_without_privileges_a_new_interface_cannot_be_taken():
    need_xdp()
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = started(ns, f"tap = afxdp {b}; tap -> null", "--user", "nobody", report=False)
        ns.run("ip", "link", "del", a)
        run.wait_for(f"{b} was removed")
        ns.veth()
        run.wait_for(f"{b} is back, but queue 0 needs a new socket, and so CAP_NET_RAW")
        t.assert_idle(run, 1)
        run.stop()
        assert run.status == 0, run.stderr


def test_lanes_have_processors_of_their_own():
    need_xdp()
    with t.Namespace() as ns:
        _, b = ns.veth(queues=2)
        run = start(ns, f"{b} cpus=auto")
        allowed = sorted(os.sched_getaffinity(0))
        for lane in (0, 1):
            thread = next(number for number in os.listdir(f"/proc/{run.process.pid}/task")
                          if open(f"/proc/{run.process.pid}/task/{number}/comm").read().strip() == f"tap/{lane}")
            assert os.sched_getaffinity(int(thread)) == {allowed[lane % len(allowed)]}
        finish(run)
        refused(ns, f"{b} cpus=0", "cpus= names 1 processor for 2 lanes; one for each, or cpus=auto, would work")


# ---- Refusals, privileges ----

def refused(ns, tap, *expected, **more):
    run = t.Run("-e", f"tap = afxdp {tap}; tap -> pcap {t.tempdir()}/%{{lane}}.pcap", netns=ns, **more).wait()
    assert run.status in (1, 2), f"{tap}: status {run.status}: {run.stderr}"
    for part in expected:
        assert re.search(part, run.stderr), f"{tap}: no {part!r} in: {run.stderr}"


def test_refusals_say_what_would_work():
    need_xdp()
    with t.Namespace() as ns:
        _, b = ns.veth(queues=2)
        ns.run("ip", "link", "add", "gone0", "type", "veth", "peer", "name", "gone1")
        ns.run("ip", "tuntap", "add", "mode", "tun", "name", "tun0")
        ns.run("ip", "link", "set", "tun0", "up")
        refused(ns, "nosuch0", r"^-e:1:\d+: tap: .*nosuch0")
        refused(ns, "gone0", "tap: .*gone0 is down.*ip link set gone0 up")
        refused(ns, "tun0", "tun0 is no Ethernet interface.*afpacket would work")
        refused(ns, f"{b} mode=zerocopy", "mode=zerocopy: the driver of veth1 cannot do it; mode=native or mode=auto would work")
        refused(ns, f"{b} queues=1-2", "veth1 has no queue 2, only 0 to 1")
        refused(ns, f"{b} queues=1,0-1", "queues= gives a queue twice")
        refused(ns, f"{b} queues=first", "queues= takes all, or numbers and ranges such as 0,2-5")
        refused(ns, f"{b} chunk=3KiB", "chunks are of 2KiB or 4KiB")
        refused(ns, f"{b} umem=128KiB", "umem=128KiB gives each of 2 queues less than 64 chunks; umem=256KiB would work")
        refused(ns, f"{b} umem=1TiB", "umem=1048576MiB is more than the .* MiB of memory that are available")
        refused(ns, "lo mode=native", "mode=native: lo takes no XDP program.*mode=skb would work")


def test_taking_the_best_mode():
    need_xdp()
    with t.Namespace() as ns:
        _, b = ns.veth(queues=2)
        for tap, said in ((b, "veth1: mode native, with a copy; 2 of 2 queues"), ("lo", "lo: not native, since its driver says: Operation not supported"),
                          (f"{b} queues=1", "mode native, with a copy; 1 of 2 queues"), (f"{b} mode=skb", "mode skb")):
            run = start(ns, tap)
            assert said in run.stderr, run.stderr
            finish(run)


def with_capabilities(capabilities):
    return ["setpriv", f"--bounding-set={capabilities}", f"--inh-caps={capabilities}", "--"]


NEEDED = ("net_admin", "net_raw", "bpf", "ipc_lock")


def test_the_documented_capabilities_suffice():
    need_xdp()
    t.need_program("setpriv")
    prefix = with_capabilities("-all," + ",".join("+" + name for name in NEEDED))
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        run = started(ns, f'tap = afxdp {b}; tap -> bpf "udp src port 1003" -> null', prefix=prefix)
        f.send(ns, a, numbered(10))
        report = finish(run)
        assert out(report) == 1 and node(report)["kept_out"] == 9


def test_without_one_the_message_names_it():
    need_xdp()
    t.need_program("setpriv")
    with t.Namespace() as ns:
        _, b = ns.veth(queues=2)
        for lacking in NEEDED:
            prefix = with_capabilities("-all," + ",".join("+" + name for name in NEEDED if name != lacking))
            prefix += ["prlimit", "--memlock=8388608", "--"]
            refused(ns, b, f"tap: .*CAP_{lacking.upper()}", prefix=prefix)


def test_memory_that_may_not_be_locked():
    need_xdp()
    t.need_program("setpriv", "prlimit")
    limits, unprivileged = ["prlimit", "--memlock=8388608:8388608", "--"], with_capabilities("-all,+net_admin,+net_raw,+bpf")
    with t.Namespace() as ns:
        a, b = ns.veth()
        refused(ns, f"{b} umem=64MiB", "umem=65536KiB is more than this process may lock, 8192KiB.*RLIMIT_MEMLOCK",
                prefix=limits + unprivileged)
        # What it may allow itself, it does.
        limits[1] = "--memlock=65536:8388608"
        run = start(ns, f"{b} umem=4MiB", prefix=limits + unprivileged)
        f.send(ns, a, numbered(10))
        assert out(finish(run)) == 10


def test_privileges_are_dropped_once_it_is_open():
    need_xdp()
    sent = numbered(100)
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        run = started(ns, f'tap = afxdp {b}; tap -> bpf "udp" -> null', "--user", "nobody", report=False)
        f.send(ns, a, sent)
        run.stop()
        assert run.status == 0 and "balanced" in run.stderr and re.search(r"tap .* 100 ", run.stderr), run.stderr


if __name__ == "__main__":
    t.main()
