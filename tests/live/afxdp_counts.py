#!/usr/bin/python3
"""AF_XDP: what was sent is what was redirected, passed and dropped; what was redirected is what was read or lost by name."""
import os, re, signal, struct, subprocess

import frames as f
import weirtest as t
from afxdp import MODES, need_xdp, numbered
from frames import counter, finish, node, started


def out(report):
    return node(report)["outputs"]["out"]["packets"]


def sum_of(report, *names):
    return sum(counter(report, name) for name in names)


def received(ns, interface):
    return int(ns.run("cat", f"/sys/class/net/{interface}/statistics/rx_packets").stdout)


def test_a_queue_without_a_socket_passes_its_frames_on():
    need_xdp()
    sent = numbered(1000)
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        for queues in ("0", "1"):
            run = started(ns, f"tap = afxdp {b} mode=native queues={queues}; tap -> null")
            f.send(ns, a, sent)
            report = finish(run)
            counts = [counter(report, name) for name in ("redirected", "passed-unserved")]
            assert sum(counts) == 1000 and all(counts), counts
            assert out(report) == counts[0]
            assert [lane["counters"]["passed-unserved"] for lane in node(report)["lanes"]] == [0]


def test_the_stack_gets_what_nobody_wants():
    """Frames that are filtered out reach a socket of the host; those that are taken do not."""
    need_xdp()
    sent = numbered(1000, flows=100)
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        for mode in MODES:
            for rest in ("pass", "drop"):
                run = started(ns, f'tap = afxdp {b} mode={mode} rest={rest}; tap -> bpf "udp src port 1005" -> null')
                host = started(ns, f"tap = afpacket {b} direction=in; tap -> null")
                f.send(ns, a, sent)
                report, passed = finish(run), finish(host)
                kept_out = "passed" if rest == "pass" else "program-dropped"
                assert (counter(report, "redirected"), counter(report, kept_out)) == (10, 990), (mode, rest)
                assert node(report)["kept_out"] == 990
                assert sum_of(report, "redirected", "passed", "passed-unserved", "program-dropped") == 1000
                assert out(passed) == (990 if rest == "pass" else 0), (mode, rest)


def numbered_frames():
    """Tagged in several ways or not; each kind; the number stands at the end."""
    kinds = [(f.IP, f.ipv4(6, f.tcp(b""))), (f.IP, f.ipv4(17, f.udp(b""))),
             (f.IP, f.ipv4(6, f.tcp(b"", dport=443), src="10.0.0.5")), (f.IP, f.ipv4(17, f.udp(b"x" * 1100))),
             (f.IP, f.ipv4(17, b"fragment", fragment=0x2000)), (f.IP, f.ipv4(17, b"fragment", fragment=0x0010)),
             (f.IP6, f.ipv6(6, f.tcp(b""))), (f.ARP, struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1) + bytes(20)),
             (f.IP6, f.ipv6(0, b"\x06\0\1\4\0\0\0\0" + f.tcp(b"")))]
    tags = [[], [(0x8100, 29)], [(0x8100, 0)], [(0x88a8, 5), (0x8100, 29)], [(0x88a8, 30)]]
    return [f.ether(ethertype, payload, *tag) + struct.pack(">I", i)
            for i, (tag, (ethertype, payload)) in enumerate((tag, kind) for tag in tags for kind in kinds * 4)]


FILTERS = ["tcp", "vlan", "vlan 29 and tcp", "tcp or (vlan and tcp)", "ether[12:2] = 0x8100", "vlan and vlan",
           "not ip", "len > 1000", "ip[6:2] & 0x1fff != 0", "ip6", "ip6 protochain 6 or arp", "udp port 2000",
           "host 10.0.0.5 or (vlan and host 10.0.0.5)", "not vlan", "arp"]


def test_filters_mean_live_what_they_mean_on_a_file():
    need_xdp()
    t.need_program("tcpdump")
    sent = numbered_frames()
    path = os.path.join(t.tempdir(), "all.pcap")
    f.write_pcap(path, sent)
    with t.Namespace() as ns:
        a, b = ns.veth()
        for text in FILTERS:
            expected = matching(path, text)
            assert expected, text
            for mode in MODES:
                target = os.path.join(t.tempdir(), "out.pcap")
                run = started(ns, f'tap = afxdp {b} mode={mode}; tap -> bpf "{text}" -> pcap {target}')
                f.send(ns, a, sent)
                report = finish(run)
                assert f.bytes_of(f.read_pcap(target)) == expected, (text, mode)
                # What is kept out is kept out by the program, and counted; a loop cannot be translated.
                taken = len(sent) if "protochain" in text else len(expected)
                assert counter(report, "redirected") == taken, (text, mode)
                assert sum_of(report, "redirected", "passed") == len(sent)


def matching(path, text):
    subprocess.run(["tcpdump", "-r", path, "-w", path + ".expected", "--nano", text], check=True, stderr=subprocess.DEVNULL)
    return f.bytes_of(f.read_pcap(path + ".expected"))


def test_the_plan_says_what_goes_into_the_program():
    need_xdp()
    for tap, stages, expect in (("lo", '-> bpf "udp"', r"bpf:1; \d+ instructions, which are \d+ in the XDP program"),
                                ("lo pushdown=no", '-> bpf "udp"', "nothing, since pushdown=no"),
                                ("lo", "", "nothing, since null:1 wants every packet whole")):
        done = subprocess.run([t.WEIR, "plan", "-e", f"tap = afxdp {tap}; tap {stages} -> null"], check=True,
                              stdout=subprocess.PIPE, text=True)
        assert re.search(f"into the kernel, by tap: {expect}", done.stdout), done.stdout


def test_stopped_for_a_while_it_loses_by_name():
    """With SIGSTOP in the midst of the frames the memory fills up; delivered + lost = sent, exactly."""
    need_xdp()
    sent = numbered(30000)
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        for mode in MODES:
            folder = t.tempdir()
            run = started(ns, f"tap = afxdp {b} mode={mode} umem=4MiB; tap -> pcap {folder}/%{{lane}}.pcapng")
            f.send(ns, a, sent[:5000])
            run.process.send_signal(signal.SIGSTOP)
            f.send(ns, a, sent[5000:])
            run.process.send_signal(signal.SIGCONT)
            report = finish(run)
            assert counter(report, "redirected") == 30000
            assert counter(report, "rx-dropped") > 0 and counter(report, "fill-empty") > 0
            assert out(report) == 30000 - sum_of(report, "rx-dropped", "rx-ring-full")
            assert report["lost"] == sum_of(report, "rx-dropped", "rx-ring-full")


def test_sizes_in_combinations():
    """Each takes everything, or says what it lost, or is refused with what would work."""
    need_xdp()
    sent = numbered(2000)
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        for umem in ("128KiB", "512KiB", "4MiB", "33MiB"):
            for chunk in ("2KiB", "4KiB"):
                for queues in ("all", "0,1"):
                    run = t.Run("-e", f"tap = afxdp {b} umem={umem} chunk={chunk} queues={queues}; tap -> null", netns=ns)
                    if umem == "128KiB":
                        run.wait()
                        assert run.status == 2 and re.search(r"umem=\d+KiB would work", run.stderr), run.stderr
                        continue
                    run.wait_for("running")
                    f.send(ns, a, sent)
                    report = finish(run)
                    assert out(report) + report["lost"] == counter(report, "redirected") == 2000, (umem, chunk)
                    assert report["lost"] == 0 or umem != "33MiB", (chunk, report["lost"])  # which has room for all of them


def test_the_ledger_in_between():
    """200 signals for it a second disturb nothing."""
    need_xdp()
    sent = numbered(20000)
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        run = started(ns, f"tap = afxdp {b}; tap -> null")
        for i in range(100):
            run.process.send_signal(signal.SIGUSR1)
            f.send(ns, a, sent[i * 200:i * 200 + 200])
        report = finish(run)
        assert out(report) == counter(report, "redirected") == 20000 and report["lost"] == 0
        assert run.stderr.count("weir: ledger") > 1


def test_stop_in_the_middle_of_traffic():
    """What comes in while a lane stops is neither read nor counted, but passed on."""
    need_xdp()
    t.need_program("tcpreplay")
    trace = os.path.join(t.tempdir(), "trace.pcap")
    f.write_pcap(trace, numbered(1000))
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        sender = ns.popen("tcpreplay", "-q", "-i", a, "--preload-pcap", "--topspeed", "--loop=0", trace,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for turn in range(int(os.environ.get("WEIR_ROUNDS", "10"))):
                before = received(ns, b)
                run = started(ns, f"tap = afxdp {b} mode={MODES[turn % 2]}; tap -> null")
                t.wait_until(lambda: received(ns, b) > before + 5000)
                report = finish(run)
                assert out(report) == counter(report, "redirected") - report["lost"] > 0
        finally:
            sender.terminate()
            sender.wait()


def replay(ns, interface, trace, loops):
    done = ns.run("tcpreplay", "-q", "-i", interface, "--preload-pcap", "--topspeed", f"--loop={loops}", trace)
    return int(re.search(r"Actual: (\d+) packets", done.stdout).group(1))


def test_highest_rate_of_one_tcpreplay():
    need_xdp()
    t.need_program("tcpreplay")
    if t.SANITIZED:
        raise t.Skip("a sanitizer is no measure of speed")
    trace = os.path.join(t.tempdir(), "mixed.pcap")
    sizes = [64] * 7 + [594] * 4 + [1514]
    f.write_pcap(trace, [frame.ljust(sizes[i % 12], b"x") for i, frame in enumerate(numbered(24000))])
    with t.Namespace() as ns:
        a, b = ns.veth(queues=2)
        for mode in MODES:
            folder = t.tempdir()
            run = started(ns, f"tap = afxdp {b} mode={mode} umem=128MiB; tap -> pcap {folder}/%{{lane}}.pcap")
            sent = replay(ns, a, trace, 20)
            report = finish(run)
            assert (sent, out(report), report["lost"]) == (480000, 480000, 0), report
            for name in os.listdir(folder):
                stamps = [record[0] for record in f.read_pcap(os.path.join(folder, name))]
                worst = max((earlier - later for earlier, later in zip(stamps, stamps[1:])), default=0)
                # A processor that is interrupted between stamp and ring has no bound.
                print(f"# {mode}: steps back by at most {worst} ns")


def lost_by(ns, command, ready, interface, trace, loops, path):
    """What a capture of one queue loses at the highest rate of one tcpreplay, and how many packets were sent."""
    log = os.path.join(t.tempdir(), "log")
    with open(log, "wb") as said:
        process = t.bound_to_test(ns.popen(*command, stdin=subprocess.DEVNULL, stdout=said, stderr=said))
    t.wait_until(lambda: ready in open(log, errors="replace").read(), 30, f"{ready!r} of {command[0]}")
    sent = replay(ns, interface, trace, loops)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0, open(log, errors="replace").read()
    return sent - len(f.read_pcap(path)), sent


def test_loses_no_more_than_a_plain_loop():
    """The one of libxdp's examples, with libxdp's program and default rings, just before and just after."""
    need_xdp()
    t.need_program("tcpreplay")
    loop = os.path.join(t.BUILD, "tests", "bench", "xsk_loop")
    if t.SANITIZED or not os.path.exists(loop):
        raise t.Skip("a sanitizer is no measure of speed, or the loop was not built")
    trace, path = (os.path.join(t.tempdir(), name) for name in ("trace.pcap", "out.pcap"))
    f.write_pcap(trace, numbered(20000))
    with t.Namespace() as ns:
        a, b = ns.veth()
        ours = [t.WEIR, "run", "-e", f"afxdp {b} -> pcap {path} overwrite=yes"]
        losses = {"weir": 0, "loop": 0}
        for name, command in (("loop", [loop, b, path]), ("weir", ours), ("loop", [loop, b, path])):
            lost, sent = lost_by(ns, command, "running", a, trace, 15, path)
            losses[name] = max(losses[name], lost)
        print(f"# of {sent} packets lost: {losses}")
        assert losses["weir"] <= losses["loop"], losses


if __name__ == "__main__":
    t.main()
