#!/usr/bin/python3
"""AF_PACKET: filters and snaplens that went into the kernel mean what they mean on a file."""
import os, struct, subprocess, time

import frames as f
import weirtest as t
from frames import capture, counter


def numbered_frames():
    """Half of them tagged in one of four ways; each kind both ways; the number stands at the end."""
    kinds = [
        lambda p: (f.IP, f.ipv4(6, f.tcp(p))),
        lambda p: (f.IP, f.ipv4(17, f.udp(p))),
        lambda p: (f.IP, f.ipv4(6, f.tcp(p, dport=443), src="10.0.0.5")),
        lambda p: (f.IP, f.ipv4(17, f.udp(b"x" * 1100 + p))),
        lambda p: (f.IP, f.ipv4(17, b"fragment" + p, fragment=0x2000)),
        lambda p: (f.IP, f.ipv4(17, b"fragment" + p, fragment=0x0010)),
        lambda p: (f.IP6, f.ipv6(6, f.tcp(p))),
        lambda p: (f.ARP, struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1) + bytes(20) + p),
    ]
    tags = [[(0x8100, 29)], [(0x8100, 0)], [(0x88a8, 5), (0x8100, 29)], [(0x88a8, 30)]]
    result = []
    for i in range(320):
        ethertype, payload = kinds[i % 8](b"")
        tag = tags[i // 16 % 4] if i // 8 % 2 else []
        result.append(f.ether(ethertype, payload, *tag) + struct.pack(">I", i))
    return result


def test_snaplen_cuts_in_the_kernel():
    """To the byte, also where a tag that the kernel has taken off comes back."""
    t.need_root()
    tags = [[], [(0x8100, 29)], [(0x88a8, 5), (0x8100, 29)]]
    sent = [f.ether(f.IP, f.ipv4(17, f.udp(b"x" * n)), *tags[n // 20 % 3]) for n in range(0, 1400, 20)]
    with t.Namespace() as ns:
        a, b = ns.veth()
        records, report = capture(ns, b, lambda: f.send(ns, a, sent), len(sent), "-> snaplen 128")
        assert f.bytes_of(records) == [frame[:128] for frame in sent]
        assert [r[1] for r in records] == [len(frame) for frame in sent]
        assert counter(report, "cut") == sum(len(frame) > 128 for frame in sent)
        out = f.node(report)["outputs"]["out"]
        assert out["captured_bytes"] == sum(min(len(frame), 128) for frame in sent)
        assert out["wire_bytes"] == sum(map(len, sent))


def matching(path, text):
    """What tcpdump, reading the file, says that matches."""
    subprocess.run(["tcpdump", "-r", path, "-w", path + ".expected", "--nano", text], check=True,
                   stderr=subprocess.DEVNULL)
    return f.bytes_of(f.read_pcap(path + ".expected"))


def test_branches_get_what_each_wants():
    t.need_root()
    t.need_program("tcpdump")
    folder = t.tempdir()
    f.write_pcap(f"{folder}/all.pcap", numbered_frames())
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = f.started(ns, f"""tap = afpacket {b}
            tap -> bpf "tcp" -> snaplen 60 -> pcap {folder}/heads.pcap
            tap -> bpf "udp" -> snaplen 200 -> pcap {folder}/udp.pcap
            tap -> bpf "vlan" -> pcap {folder}/tagged.pcap""")
        f.send(ns, a, numbered_frames())
        report = f.finish(run)
    for name, text, most in ("heads", "tcp", 60), ("udp", "udp", 200), ("tagged", "vlan", 2000):
        expected = [frame[:most] for frame in matching(f"{folder}/all.pcap", text)]
        assert expected and f.bytes_of(f.read_pcap(f"{folder}/{name}.pcap")) == expected, name
    assert counter(report, "kernel-packets") == len(matching(f"{folder}/all.pcap", "tcp or udp or vlan"))
    assert f.node(report)["pushed_down"] == "bpf:1, snaplen:1, bpf:2, snaplen:2, bpf:3"
    assert f.node(report)["kept_out"] is None and "kept out by the kernel: unknown" in run.stderr
    assert counter(report, "cut") > 0


def test_what_a_filter_looks_at_is_there_behind_a_snaplen():
    """The stage runs once more, on what the kernel has kept."""
    t.need_root()
    t.need_program("tcpdump")
    folder = t.tempdir()
    f.write_pcap(f"{folder}/all.pcap", numbered_frames())
    text = "udp[8:4] = 0x78787878 and ether[1000] = 0x78"
    with t.Namespace() as ns:
        a, b = ns.veth()
        records, _ = capture(ns, b, lambda: f.send(ns, a, numbered_frames()), None, f'-> bpf "{text}" -> snaplen 40')
    expected = matching(f"{folder}/all.pcap", text)
    assert expected and f.bytes_of(records) == [frame[:40] for frame in expected]


def test_nothing_foreign_gets_in_at_the_start():
    """Opened in the midst of traffic, the ring holds only what matches, from the first packet on."""
    t.need_root()
    t.need_program("tcpreplay")
    path = os.path.join(t.tempdir(), "udp.pcap")
    f.write_pcap(path, [f.ether(f.IP, f.ipv4(17, f.udp(b"x")))] * 1000)
    with t.Namespace() as ns:
        a, b = ns.veth()
        sender = ns.popen("tcpreplay", "-q", "-i", a, "--preload-pcap", "--pps=50000", "--loop=0", path,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        received = f"/sys/class/net/{b}/statistics/rx_packets"
        try:
            for lanes in (1, 2):
                run = f.started(ns, f'tap = afpacket {b} lanes={lanes}; tap -> bpf "tcp" -> null')
                before = int(ns.run("cat", received).stdout)
                t.wait_until(lambda: int(ns.run("cat", received).stdout) > before + 1000)
                assert counter(f.finish(run), "kernel-packets") == 0
        finally:
            sender.terminate()
            sender.wait()


def test_the_first_tagged_frames_are_passed_up():
    """On a trunk a filter without `vlan` matches none, which somebody has to say; then they are kept out."""
    t.need_root()
    sent = [f.ether(f.IP, f.ipv4(17, f.udp(b"x")), (0x8100, 29))] * 3000
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = f.started(ns, f'tap = afpacket {b}; tap -> bpf "host 10.0.0.1" -> null')
        f.send(ns, a, sent)
        run.wait_for("vlan=skip does")
        for _ in range(20):
            time.sleep(0.1)
            f.send(ns, a, sent[:100])
        report = f.finish(run)
    assert 2000 <= counter(report, "kernel-packets") < 5000
    assert counter(report, "tagged-rest", "bpf:1") == counter(report, "kernel-packets")


def test_what_nobody_wants_costs_nothing():
    """A million frames at the highest rate of one sender, half of them tagged, all of them rejected."""
    t.need_root()
    t.need_program("tcpreplay")
    path = os.path.join(t.tempdir(), "udp.pcap")
    f.write_pcap(path, [f.ether(f.IP, f.ipv4(17, f.udp(b"x")), *tag) for tag in ([], [(0x8100, 29)])] * 500)
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = f.started(ns, f'tap = afpacket {b}; tap -> bpf "tcp or (vlan and tcp)" -> null')
        received = f"/sys/class/net/{b}/statistics/rx_packets"
        before, began = t.processor_seconds(run.process), time.monotonic()
        ns.run("tcpreplay", "-q", "-i", a, "--preload-pcap", "--topspeed", "--loop=1000", path)
        used, elapsed = t.processor_seconds(run.process) - before, time.monotonic() - began
        assert int(ns.run("cat", received).stdout) >= 10**6
        assert counter(f.finish(run), "kernel-packets") == 0
    assert used < 0.02 * elapsed, f"{used:.3f} s of processor time in {elapsed:.2f} s"


def test_filter_too_long_for_the_kernel_stays_outside():
    t.need_root()
    sent = [f.ether(f.IP, f.ipv4(17, f.udp(b"%d" % i), src=f"10.0.0.{i % 4}")) for i in range(40)]
    with t.Namespace() as ns:
        a, b = ns.veth()
        hosts = " or ".join(f"host 10.9.{i}.7" for i in range(250))
        if ns.run("sysctl", "-qw", "net.core.optmem_max=2048", check=False).returncode:
            raise t.Skip("this kernel has no net.core.optmem_max for each namespace")
        _, report = capture(ns, b, lambda: f.send(ns, a, sent), 40, f'-> bpf "host 10.0.0.2 or {hosts}"')
        assert counter(report, "kernel-packets") == 40


if __name__ == "__main__":
    t.main()
