#!/usr/bin/python3
"""What core promises of every run, on sources and sinks made for tests."""
import os, signal, subprocess, time
from weirtest import BUILD, WEIR, SANITIZED, Run, main, need_root, tempdir, wait_until, weir

PLUGINS = ["--plugin-path", os.path.join(BUILD, "tests", "plugins")]
MANY = 100_000 if SANITIZED else 1_000_000


def node(run, name):
    return next(n for n in run.report["nodes"] if n["name"] == name)


def out(run, name, output):
    return node(run, name)["outputs"][output]["packets"]


def backwards(run, name):
    return node(run, name)["counters"].get("backwards", 0)


def test_packets_that_vanish_without_a_word_do_not_balance():
    run = weir(*PLUGINS, "-e", "numbers count=1000 -> leaky -> check-order", expect=1, balanced=False)
    words = "leaky:1: 4 packets came in and never left"
    assert any(words in problem for problem in run.report["problems"]), run.report["problems"]
    assert words in run.stderr, run.stderr


def test_a_verdict_that_is_no_output_is_named():
    for text, node, count in (("wayward -> check-order", "wayward", 256),
                              ("wayward verdict=255 -> check-order", "wayward", 256),  # only sinks may leave it open
                              ("wayward-sink", "wayward-sink", 256)):
        run = weir(*PLUGINS, "-e", f"numbers count={4 * count} -> {text}", expect=1, balanced=False)
        words = f"{node}:1: plugin '{node}' gave {count} packets a verdict that is none of its 2 outputs"
        assert words in run.report["problems"], run.report["problems"]
        assert f"weir: warning: {node}:1: a fault of plugin '{node}': a verdict that is none" in run.stderr, run.stderr


def test_a_plugin_that_asks_for_what_cannot_be_is_named_and_does_no_harm():
    emits, judges = "numbers count=300 -> faulty fault={} -> check-order", "numbers count=300 -> faulty-sink fault={}"
    polls = "faulty-source fault={} -> check-order"
    for text, fault, words in (
        (emits, "emit", "weir_emit() to output 2, which is not in its table"),
        (emits, "count", "counter 1 is not in its table"),
        (emits, "witness", "counter 1 is not in its table"),
        (emits, "settle", "weir_settle() of outcome 2"),
        (emits, "finish", "weir_finish() of what is no sink"),
        (emits, "long", "a packet of 4294967295 captured bytes"),
        (emits, "no-lane", "weir_emit() where there is no lane"),
        (emits, "nulls", "weir_interface_add() of no interface"),
        (judges, "emit", "weir_emit() outside of transform() and tick()"),
        (judges, "settle", "weir_settle() of outcome 2"),
        (polls, "long", "a packet of 268435456 captured bytes"),
        (polls, "poll-many", "poll() returned 257"),
        (polls, "poll-negative", "poll() returned -3"),
    ):
        run = weir(*PLUGINS, "-e", text.format(fault), expect=1, balanced=False)
        assert "warning: faulty" in run.stderr and words in run.stderr, run.stderr
        assert any("faults of plugin 'faulty" in problem for problem in run.report["problems"]), run.report["problems"]
    for text, fault, words in ((emits, "affinity", "affinity() returned 17"),
                               (polls, "no-lanes", "lanes() returned 0"),
                               (polls, "many-lanes", "lanes() returned 4294967295")):
        run = weir(*PLUGINS, "-e", text.format(fault), expect=2, balanced=None)
        assert words in run.stderr, run.stderr


def test_two_lanes_become_one_in_order_of_time():
    run = weir(*PLUGINS, "-e", f"numbers count={MANY} lanes=2 -> queue 8MiB lanes=1 -> check-order")
    assert out(run, "check-order:1", "seen") == 2 * MANY and backwards(run, "check-order:1") == 0


def test_lanes_of_a_queue_share_the_whole():
    run = weir(*PLUGINS, "-e", f"numbers count={MANY} lanes=2 -> queue 16MiB lanes=4 -> check-order")
    lanes = [lane["outputs"]["seen"]["packets"] for lane in node(run, "check-order:1")["lanes"]]
    assert sum(lanes) == 2 * MANY and len(lanes) == 4
    assert min(lanes) > MANY / 4, lanes


CROSSED = """
a = numbers count={count} bytes=1400
b = numbers count={count} gap=2us bytes=1400
q = queue {size}
r = queue {size}
a -> q -> check-order
b -> q
a -> r -> check-order
b -> r
"""


def test_two_files_through_two_queues_cannot_wait_for_each_other():
    for size in ("1300KiB", "1500KiB", "8MiB"):
        run = weir(*PLUGINS, "-e", CROSSED.format(count=MANY // 10, size=size))
        for sink in ("check-order:1", "check-order:2"):
            assert out(run, sink, "seen") == 2 * (MANY // 10) and backwards(run, sink) == 0
        assert run.report["lost"] == 0


def test_a_slow_branch_stalls_no_other():
    run = weir(*PLUGINS, "-e", f"""
        tap = numbers-live count={MANY}
        tap -> queue 1MiB -> check-order delay=20ms
        tap -> queue 64MiB -> check-order""")
    assert out(run, "check-order:2", "seen") + out(run, "queue:2", "full") == MANY
    assert out(run, "queue:1", "full") > 0, "the slow branch lost nothing"
    assert run.report["lost"] == out(run, "queue:1", "full") + out(run, "queue:2", "full")
    assert ("queue:1", "full") in {(loss["node"], loss["what"]) for loss in run.report["losses"]}


def test_behind_files_a_full_queue_waits():
    run = weir(*PLUGINS, "-e", "numbers count=20000 -> queue 1MiB -> check-order delay=1ms")
    assert out(run, "check-order:1", "seen") == 20000 and run.report["lost"] == 0


def test_what_a_full_queue_refuses_can_go_elsewhere():
    run = weir(*PLUGINS, "-e", f"""
        q = queue 1MiB
        numbers-live count={MANY} -> q -> check-order delay=1ms
        q.full -> check-order""")
    assert out(run, "check-order:1", "seen") + out(run, "check-order:2", "seen") == MANY
    assert out(run, "check-order:2", "seen") == out(run, "q", "full") > 0
    assert run.report["lost"] == 0


def test_live_and_files_into_one_queue_must_say_what_shall_happen():
    both = "q = queue 2MiB {}\nnumbers count=10 -> q -> check-order\nnumbers-live count=10 -> q"
    run = weir(*PLUGINS, "-e", both.format(""), expect=2)
    assert "on-full=drop" in run.stderr and "on-full=block" in run.stderr, run.stderr
    for choice in ("drop", "block"):
        run = weir(*PLUGINS, "-e", both.format(f"on-full={choice}"))
        assert out(run, "check-order:1", "seen") == 20


def test_branches_join_in_the_order_of_the_source():
    run = weir(*PLUGINS, "-e", f"""
        keys = bpf 'ip[15] & 1 = 1'
        sink = check-order
        numbers count={MANY} -> keys -> sink
        keys.rest -> snaplen 50 -> sink""")
    assert out(run, "sink", "seen") == MANY and out(run, "keys", "match") == MANY // 2
    assert backwards(run, "sink") == 0


def test_strict_makes_loss_an_exit_status():
    weir(*PLUGINS, "--strict", "-e", f"numbers-live count={MANY} -> queue 1MiB -> check-order delay=5ms", expect=3)
    weir(*PLUGINS, "--strict", "-e", "numbers count=10 -> check-order", expect=0)


def test_what_the_nic_lost_is_loss_under_strict():
    run = weir(*PLUGINS, "--strict", "-e", "missing -> null", expect=3)
    assert run.report["nic"] == 7 and run.report["lost"] == 0 and "; lost by the NIC: 7\n" in run.stderr, run.stderr
    weir(*PLUGINS, "-e", "missing -> null", expect=0)
    assert "nic" not in weir(*PLUGINS, "-e", "numbers -> null").report


ENDLESS = "numbers count=1000000000 -> check-order delay=1ms"


def test_duration_ends_the_run():
    weir(*PLUGINS, "--duration", "200ms", "-e", ENDLESS)


def test_signals():
    run = Run(*PLUGINS, "-e", ENDLESS)
    run.wait_for("running")
    # Again and again, since ThreadSanitizer puts off a signal that comes just before a poll() of GLib's.
    wait_until(lambda: "not built yet" in run.stderr or run.process.send_signal(signal.SIGUSR2), what="a word on USR2")
    run.process.send_signal(signal.SIGUSR1)
    run.wait_for("check-order:1")
    run.process.send_signal(signal.SIGHUP)
    run.stop(signal.SIGINT)
    assert run.status == 0 and run.report["balanced"] is True, run.stderr


def test_a_second_signal_abandons_what_is_queued():
    run = Run(*PLUGINS, "-e", "numbers count=1000000000 -> queue 64MiB -> check-order delay=50ms")
    run.wait_for("running")
    time.sleep(0.3)  # any amount may be queued by then
    run.process.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    run.stop()
    assert run.status == 0 and run.report["balanced"] is True, run.stderr
    assert run.report["lost"] == out(run, "queue:1", "abandoned") + out(run, "queue:1", "full") > 0


def test_the_first_signal_abandons_nothing_though_the_run_is_ending_already():
    run = Run(*PLUGINS, "--duration", "100ms", "-e",
              "numbers count=1000000000 bytes=1000 -> queue 1MiB -> check-order delay=200ms")
    run.wait_for("running")
    time.sleep(0.3)  # the duration is over, and the queue is full for longer
    run.stop()
    assert run.status == 0 and run.report["balanced"] is True, run.stderr
    assert out(run, "queue:1", "abandoned") == 0 and out(run, "check-order:1", "seen") > 0, run.stderr


def test_signals_at_the_very_end_do_not_change_the_exit_status():
    for _ in range(20):
        run = Run(*PLUGINS, "-e", "numbers count=1000000000 -> check-order")
        run.wait_for("running")
        run.process.send_signal(signal.SIGTERM)
        while run.process.poll() is None and not os.path.exists(run.report_path):
            pass
        while run.process.poll() is None:
            run.process.send_signal(signal.SIGTERM)
        assert run.status == 0, run.status


def test_standard_output_carries_nothing():
    assert weir(*PLUGINS, "-e", "numbers count=10 -> check-order").stdout == b""


def test_lanes_that_do_not_fit_are_refused_with_what_would():
    for text, words in (
        ("numbers lanes=4 count=1 -> pcap /tmp/weir-never.pcap", ["written by 4 lanes", "%{lane}", "queue lanes=1"]),
        ("numbers lanes=4 count=1 -> queue 1MiB lanes=2 -> check-order", ["divided among 8 rings"]),
    ):
        run = weir(*PLUGINS, "-e", text, expect=2)
        assert all(word in run.stderr for word in words), run.stderr


def test_a_lane_that_cannot_start_fails_the_run_at_once():
    need_root()
    for threads in range(3, 7):
        user = ("setpriv", "--reuid", str(55000 + threads), "--clear-groups", "prlimit", f"--nproc={threads}")
        run = Run(*PLUGINS, "-e", "numbers count=1000 -> queue 1MiB -> check-order", prefix=user, report=False).wait()
        assert run.status == (1 if "cannot start the thread" in run.stderr else 0), run.stderr


def test_a_report_that_cannot_be_written_is_a_failure():
    run = Run(*PLUGINS, "-e", "numbers count=10 -> check-order", "--report", "/dev/full", report=False).wait()
    assert run.status == 1 and "/dev/full" in run.stderr, run.stderr


def test_a_limit_on_the_size_of_files_is_no_death():
    path = os.path.join(tempdir(), "out.pcap")
    run = weir(*PLUGINS, "-e", f"numbers count=5000 bytes=1000 -> pcap {path}", prefix=["prlimit", "--fsize=2000000"])
    assert run.report["lost"] == out(run, "pcap:1", "write-error") == 5000 - len(payloads(path)) > 0, run.stderr


def test_many_paths_are_given_up_at_once():
    chain = ["a0 = afpacket lo"] + [f"a{i} = bpf ip" for i in range(1, 60)]
    edges = ["a0 -> a1"] + [f"a{i}.match -> a{i + 1}\na{i}.rest -> a{i + 1}" for i in range(1, 59)] + ["a59 -> null"]
    done = subprocess.run([WEIR, "plan", "-e", "\n".join(chain + edges)], stdout=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0 and "more than 64 paths" in done.stdout, done.stdout


def test_one_packet_twice_is_warned_about():
    run = weir(*PLUGINS, "-e", "a = numbers count=10\ns = check-order\na -> s\na -> snaplen 60 -> s")
    assert "can reach s 2 times" in run.stderr, run.stderr
    assert out(run, "s", "seen") == 20


def payloads(path):
    """Each packet's bytes, of a classic little-endian file."""
    with open(path, "rb") as file:
        data = file.read()
    at, found = 24, []
    while at < len(data):
        size = int.from_bytes(data[at + 8:at + 12], "little")
        found.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return found


def test_what_is_emitted_is_neither_overwritten_nor_lost():
    """More than an inbox holds, through a stage that hands descriptors on without copying them."""
    path = os.path.join(tempdir(), "out.pcap")
    weir(*PLUGINS, "-e", f"numbers count=256 -> burst -> snaplen 1000 -> snaplen 999 -> pcap {path}")
    sizes = [len(packet) for packet in payloads(path)]
    assert sizes == [42 + i % 22 for i in range(700)], len(sizes)
    for middle in ("snaplen 1000 -> hold", "burst", "hold -> hold -> snaplen 60"):
        run = weir(*PLUGINS, "-e", f"numbers count=5000 -> burst -> {middle} -> check-order")
        assert run.report["lost"] == 0


def test_packets_that_are_held_come_later_whole_and_in_order():
    for stages in ("hold", "hold -> hold", "hold -> snaplen 1000 -> hold", "scribble -> hold -> scribble"):
        path = os.path.join(tempdir(), "out.pcap")
        weir(*PLUGINS, "-e", f"numbers count=20000 gap=10us -> {stages} -> pcap {path}")
        numbers = [int.from_bytes(packet[42:46], "little") for packet in payloads(path)]
        assert numbers == list(range(20000)), stages


def test_held_packets_join_others_in_the_order_they_were_emitted():
    run = weir(*PLUGINS, "-e", """
        keys = bpf 'ip[15] & 1 = 1'
        join = snaplen 1000
        numbers count=100000 gap=10us -> keys -> hold -> join -> check-order
        keys.rest -> bpf 'ip[15] & 1 = 1' -> join""")
    assert out(run, "join", "out") == 50000 and backwards(run, "check-order:1") == 0


def test_who_changes_bytes_changes_them_for_no_other():
    source = os.path.join(tempdir(), "in.pcap")
    weir(*PLUGINS, "-e", f"numbers count=3000 -> pcap {source}")
    plain = payloads(source)
    for stages in ("", "-> queue 1MiB", "-> snaplen 1000", "-> hold"):
        for between in ("", "-> hold"):
            changed, kept = (os.path.join(tempdir(), name) for name in ("changed.pcap", "kept.pcap"))
            weir(*PLUGINS, "-e", f"""
                fork = snaplen 2000
                pcap-replay {source} {stages} -> fork {between} -> scribble -> pcap {changed}
                fork {between} -> pcap {kept}""")
            assert payloads(kept) == plain, (stages, between)
            assert payloads(changed) == [bytes(b ^ 255 for b in packet) for packet in plain], (stages, between)


def test_a_run_ends_when_all_sinks_have_finished():
    run = weir(*PLUGINS, "-e", """
        a = numbers count=1000000000
        a -> finisher after=1000
        a -> queue 1MiB -> finisher after=50000""")
    for sink, after in (("finisher:1", 1000), ("finisher:2", 50000)):
        assert out(run, sink, "taken") == after and out(run, sink, "after-end") > 0
    assert run.report["lost"] == 0


def test_many_edges_into_one_node():
    edges = "\n".join(f"a -> snaplen {60 + i} -> join" for i in range(50))
    run = weir(*PLUGINS, "-e", f"a = numbers count=10000\njoin = snaplen 50\n{edges}\njoin -> check-order")
    assert out(run, "join", "out") == 500000 and backwards(run, "check-order:1") == 0


main()
