#!/usr/bin/python3
"""Lanes that become one: what holds packets back, times that step back, and that nobody waits for ever."""
import os, struct
from frames import read_pcap
from weirtest import BUILD, SANITIZED, main, tempdir, weir

PLUGINS = ["--plugin-path", os.path.join(BUILD, "tests", "plugins")]
MANY = 20_000 if SANITIZED else 100_000


def counter(run, node, name):
    return next(n for n in run.report["nodes"] if n["name"] == node)["counters"].get(name, 0)


def seen(run):
    return [n["outputs"]["seen"]["packets"] for n in run.report["nodes"] if n["plugin"] == "check-order"]


def write(name, times_ns, size=1000):
    """A capture file whose packets' first byte says whether their position is odd."""
    path = os.path.join(tempdir(), name)
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 262144, 1))
        for number, ns in enumerate(times_ns):
            file.write(struct.pack("<IIII", ns // 10**9, ns % 10**9, size, size) + bytes([number % 2]) + bytes(size - 1))
    return path


def test_what_a_stage_holds_is_waited_for():
    for stages in ("hold", "hold -> hold", "hold -> snaplen 60", "queue 8MiB lanes=2 -> hold"):
        run = weir(*PLUGINS, "-e", f"numbers count={MANY} lanes=2 gap=10us -> {stages} -> q -> check-order\nq = queue 8MiB")
        assert seen(run) == [2 * MANY], stages
        assert counter(run, "q", "late") == 0 and counter(run, "check-order:1", "backwards") == 0, stages


def test_who_is_held_back_by_one_branch_is_not_by_the_other():
    """The direct branch of each lane tells its own time, though the lane holds packets for the other."""
    run = weir(*PLUGINS, "-e", f"""
        a = numbers count={MANY} lanes=2 gap=10us
        a -> queue 8MiB -> check-order
        a -> hold -> queue 8MiB -> check-order""")
    assert seen(run) == [2 * MANY, 2 * MANY]
    for sink in ("check-order:1", "check-order:2"):
        assert counter(run, sink, "backwards") == 0, sink


def test_a_queue_that_is_too_small_for_what_is_held_beside_it_is_late_and_does_not_wait_for_ever():
    run = weir(*PLUGINS, "-e", """
        a = numbers count=1000 gap=10us bytes=1400
        q = queue 1300KiB
        a -> queue 1MiB -> hold -> q -> check-order
        a -> q""")
    assert seen(run) == [2000] and counter(run, "q", "late") > 0 and run.report["lost"] == 0


CROSSED = """
a = pcap-replay {a}
b = pcap-replay {b}
odd-a = bpf 'ether[0] = 1'
odd-b = bpf 'ether[0] = 1'
q = queue 4MiB
r = queue 4MiB
a -> odd-a -> q -> check-order
b -> odd-b -> q
odd-a.rest -> r -> check-order
odd-b.rest -> r
"""


def test_files_whose_times_step_back_cannot_wait_for_each_other():
    """Each begins with a packet of the far future, which goes into one of the rings only."""
    count = 10_000
    times = [i * 1000 for i in range(count)]
    a = write("a.pcap", [*times[:1], 10**12, *times[1:]])
    b = write("b.pcap", [9 * 10**11, *times])
    run = weir("-e", CROSSED.format(a=a, b=b), *PLUGINS)
    assert sum(seen(run)) == 2 * (count + 1) and run.report["lost"] == 0
    assert counter(run, "q", "late") + counter(run, "r", "late") > 0


def test_files_that_run_backwards_lose_nothing():
    count = 10_000
    up = write("up.pcap", [i * 1000 for i in range(count)])
    down = write("down.pcap", [(count - i) * 1000 for i in range(count)])
    for a, b in ((up, down), (down, up), (down, down)):
        run = weir(*PLUGINS, "-e", CROSSED.format(a=a, b=b))
        assert seen(run) == [count, count] and run.report["lost"] == 0


def test_small_steps_back_stay_as_small():
    """As of a ring that several processors fill: up to 21 us, and both lanes in one file."""
    steps = (0, 15_000, -6_000, 9_000)
    paths = [write(name, [10**9 + (i - i % 4) * 5_000 + steps[i % 4] + shift for i in range(20_000)])
             for name, shift in (("a.pcap", 0), ("b.pcap", 2_500))]
    out = os.path.join(tempdir(), "out.pcap")
    run = weir("-e", f"q = queue 4MiB\npcap-replay {paths[0]} -> q -> pcap {out}\npcap-replay {paths[1]} -> q")
    assert counter(run, "q", "late") == 0
    newest = 0
    for now, _, _ in read_pcap(out):
        assert newest - now <= 21_000, (newest, now)
        newest = max(newest, now)


main()
