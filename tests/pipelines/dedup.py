#!/usr/bin/python3
"""dedup on traces with mirror copies, whose truth is known, and its refusals."""
import os, subprocess
from captures import checksum, packets, path_of, quoted
from weirtest import Run, main, need_program, tempdir, weir


def trace(folder, name, *options):
    """A deterministic trace; with -D it has copies, and the truth is in name.truth."""
    need_program("cc")
    path = os.path.join(folder, name)
    subprocess.run([path_of("trace/mk_trace.sh"), path, "-n", "30000", "-N", *options], check=True,
                   stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder})
    return path


def truth(path):
    """For each packet in order whether it is an original or a retransmission."""
    with open(path) as file:
        return [line.split("\t")[1] in ("O", "R") for line in file]


def node(run, name):
    return next(n for n in run.report["nodes"] if n["name"] == name)


def counts(run):
    outputs = node(run, "dedup:1")["outputs"]
    return outputs["unique"]["packets"], outputs["duplicate"]["packets"]


def test_every_copy_goes_and_every_original_stays():
    folder = tempdir()
    span = trace(folder, "span.pcap", "-D", "1000000", "-T", folder + "/truth")
    plain = trace(folder, "plain.pcap")
    copies, kept = folder + "/copies.pcapng", folder + "/kept.pcapng"
    run = weir("-e", f"d = dedup; pcap-replay {quoted(span)} -> d -> pcap {quoted(kept)}; d.duplicate -> pcap {quoted(copies)}")
    original = truth(folder + "/truth")
    everything = packets(span)
    assert checksum(packets(kept)) == checksum(packets(plain)), "what was kept is not the trace without copies"
    assert packets(copies) == [packet for packet, first in zip(everything, original) if not first]
    assert node(run, "d")["outputs"]["duplicate"]["packets"] == original.count(False)


def test_some_copies_among_originals():
    folder = tempdir()
    span = trace(folder, "span.pcap", "-D", "300000", "-s", "2", "-T", folder + "/truth")
    original = truth(folder + "/truth")
    run = weir("-e", f"pcap-replay {quoted(span)} -> dedup -> null")
    assert counts(run) == (original.count(True), original.count(False))


def test_copies_cut_by_a_snaplen():
    folder = tempdir()
    span = trace(folder, "span.pcap", "-D", "1000000", "-l", "96", "-T", folder + "/truth")
    original = truth(folder + "/truth")
    run = weir("-e", f"pcap-replay {quoted(span)} -> dedup -> null")
    assert counts(run) == (original.count(True), original.count(False))


def test_lanes_by_flow_find_the_same():
    folder = tempdir()
    span = trace(folder, "span.pcap", "-D", "1000000", "-T", folder + "/truth")
    original = truth(folder + "/truth")
    run = weir("-e", f"pcap-replay {quoted(span)} -> queue 16MiB lanes=3 -> dedup -> null")
    assert counts(run) == (original.count(True), original.count(False))


def test_what_is_not_ignored_makes_no_copy():
    folder = tempdir()
    span = trace(folder, "span.pcap", "-D", "1000000", "-T", folder + "/truth")
    with open(folder + "/truth") as file:
        kinds = [line.split("\t")[1] for line in file]
    for ignore, found in (("none", ["D0"]), ("vlan", ["D0", "D3"]), ("mac,ttl,checksum", ["D0", "D1"]), ("mac,ttl", ["D0"])):
        run = weir("-e", f"pcap-replay {quoted(span)} -> dedup ignore={ignore} -> null")
        if ignore == "mac,ttl":  # IPv6 has no checksum that routers change
            assert counts(run)[1] > kinds.count("D0")
        else:
            assert counts(run)[1] == sum(kinds.count(kind) for kind in found), ignore


def test_exact_is_editcap_on_a_trace():
    need_program("editcap")
    folder = tempdir()
    span = trace(folder, "span.pcap", "-D", "1000000")
    for option, stage in (("-D 1000", "packets=1000"), ("-w 0.00005", "window=50us")):
        name = folder + "/" + stage
        subprocess.run(["editcap", *option.split(), span, name + ".editcap"], check=True, stderr=subprocess.DEVNULL)
        weir("-e", f"pcap-replay {quoted(span)} -> dedup mode=exact {stage} -> pcap {quoted(name)}.pcapng")
        expected = packets(name + ".editcap")
        assert 0 < len(expected) < 60000
        assert packets(name + ".pcapng") == expected, stage


def test_too_little_memory_is_counted():
    folder = tempdir()
    span = trace(folder, "span.pcap", "-D", "1000000")
    run = weir("-e", f"pcap-replay {quoted(span)} -> dedup 1h memory=1MiB -> null")
    assert node(run, "dedup:1")["counters"]["evicted-early"] > 0
    run = weir("-e", f"pcap-replay {quoted(span)} -> dedup memory=4MiB -> null")
    assert node(run, "dedup:1")["counters"].get("evicted-early", 0) == 0


def test_refusals():
    for options, words in (("mode=exact ignore=mac", "mode=exact ignores nothing"),
                           ("mode=exact packets=10000000 memory=64MiB", "needs memory="),
                           ("mode=exact packets=5 window=0", "window"),
                           ("ignore=mac,tos", "tos")):
        run = Run("-e", f"pcap-replay x.pcap -> dedup {options} -> null", report=False).wait()
        assert run.status == 2 and words in run.stderr, f"{options}: {run.status} {run.stderr}"


main()
