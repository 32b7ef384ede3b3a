#!/usr/bin/python3
"""AF_PACKET: filters and snaplens that went into the kernel mean what they mean on a file."""
import os, struct, subprocess

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


FILTERS = ["tcp", "vlan", "vlan 29 and tcp", "tcp or (vlan and tcp)", "ether[12:2] = 0x8100", "vlan and vlan",
           "not ip", "len > 1000", "ip[6:2] & 0x1fff != 0", "ip6", "host 10.0.0.5 or (vlan and host 10.0.0.5)",
           "udp port 2000", "not vlan", "arp"]


def test_filters_mean_live_what_they_mean_on_a_file():
    t.need_root()
    t.need_program("tcpdump")
    sent = numbered_frames()
    path = os.path.join(t.tempdir(), "all.pcap")
    f.write_pcap(path, sent)
    with t.Namespace() as ns:
        a, b = ns.veth()
        for text in FILTERS:
            subprocess.run(["tcpdump", "-r", path, "-w", path + ".expected", "--nano", text], check=True,
                           stderr=subprocess.DEVNULL)
            expected = f.bytes_of(f.read_pcap(path + ".expected"))
            assert expected, text
            records, report = capture(ns, b, lambda: f.send(ns, a, sent), None, f'-> bpf "{text}"')
            assert f.bytes_of(records) == expected, f"{text}: {len(records)} packets, not {len(expected)}"
            untagged = sum(frame[12:14] not in (b"\x81\0", b"\x88\xa8") for frame in expected)
            assert counter(report, "kernel-packets") == untagged + len(sent) // 2, text


def test_snaplen_cuts_in_the_kernel():
    t.need_root()
    sent = [f.ether(f.IP, f.ipv4(17, f.udp(b"x" * n))) for n in range(0, 1400, 20)]
    with t.Namespace() as ns:
        a, b = ns.veth()
        records, report = capture(ns, b, lambda: f.send(ns, a, sent), len(sent), "-> snaplen 100")
        assert f.bytes_of(records) == [frame[:100] for frame in sent]
        assert [r[1] for r in records] == [len(frame) for frame in sent]
        assert counter(report, "cut") == sum(len(frame) > 100 for frame in sent)


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
