#!/usr/bin/python3
"""A filter accepts the same frames wherever they come from, in the kernel or out of it, as tcpdump does of a file."""
import struct, subprocess

import frames as f
import weirtest as t

# How a source listens on an interface, and whether its kernel counts: None, "all", or only what is "wanted".
SOURCES = {
    "afpacket": ("afpacket {tap}", "wanted"),
    "afpacket_without_pushdown": ("afpacket {tap} pushdown=no", "all"),
    "afxdp": ("afxdp {tap}", None),
    "libpcap": ("libpcap {tap}", None),
}

FILTERS = ["tcp", "not ip", "arp", "ip6", "ip6 and tcp", "udp port 2000", "len > 1000", "len <= 64",
           "host 10.0.0.5 or (vlan and host 10.0.0.5)",
           "vlan", "not vlan", "vlan 29 and tcp", "vlan 0", "tcp or (vlan and tcp)", "vlan 5 and vlan 29",
           "vlan and vlan", "ether[12:2] = 0x8100", "ether[14:2] & 0xe000 != 0", "ether proto 0x88a8",
           "ip[6:2] & 0x1fff != 0", "vlan and ip[6:2] & 0x3fff != 0",
           "ip6[6] = 0 and ip6[40] = 6", "vlan and ip6[6] = 44"]
SKIPPING = ["tcp", "tcp port 443", "not ip", "ip6[6] = 0", "len > 1000", "ip[6:2] & 0x1fff != 0"]

KINDS = [
    (f.IP, f.ipv4(6, f.tcp(b""))),
    (f.IP, f.ipv4(17, f.udp(b""))),
    (f.IP, f.ipv4(6, f.tcp(b"", dport=443), src="10.0.0.5")),
    (f.IP, f.ipv4(17, f.udp(b"x" * 1100))),
    (f.IP, f.ipv4(17, b"fragment", fragment=0x2000)),
    (f.IP, f.ipv4(17, b"fragment", fragment=0x0010)),
    (f.IP6, f.ipv6(6, f.tcp(b""))),
    (f.IP6, f.ipv6(0, b"\x06\x00\x01\x04\x00\x00\x00\x00" + f.tcp(b""))),
    (f.IP6, f.ipv6(44, b"\x06\x00\x00\x01\x00\x00\x00\x07" + f.tcp(b""))),
    (f.ARP, struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1) + bytes(20)),
]
TAGS = [[], [], [], [(0x8100, 29)], [(0x8100, 0)], [(0x8100, 0xe01d)], [(0x88a8, 30)], [(0x88a8, 5), (0x8100, 29)],
        [(0x8100, 5), (0x8100, 29)], [(0x88a8, 1), (0x88a8, 2), (0x8100, 3)], [(0x9100, 7)]]


def tags_of(number):
    return TAGS[number // len(KINDS) % len(TAGS)]


def numbered_frames(count, tagged=True):
    """Each kind with each tagging in turn; the number stands at the end."""
    return [f.ether(*KINDS[i % len(KINDS)], *(tags_of(i) if tagged else [])) + struct.pack(">I", i)
            for i in range(count)]


def numbers(path):
    return [struct.unpack(">I", data[-4:])[0] for data in f.bytes_of(f.read_pcap(path))]


def expected(folder, count):
    """The numbers of the frames that each filter matches, by tcpdump; behind tags: of the same frames without."""
    result = {}
    for vlan, texts in ("exact", FILTERS), ("skip", SKIPPING):
        f.write_pcap(f"{folder}/{vlan}.pcap", numbered_frames(count, vlan == "exact"))
        for text in texts:
            subprocess.run(["tcpdump", "-r", f"{folder}/{vlan}.pcap", "-w", f"{folder}/right.pcap", "--nano", text],
                           check=True, stderr=subprocess.DEVNULL)
            result[f'bpf "{text}" vlan={vlan}'] = numbers(f"{folder}/right.pcap")
            assert 0 < len(result[f'bpf "{text}" vlan={vlan}']) < count, text
    return result


def test_replay():
    t.need_program("tcpdump")
    folder = t.tempdir()
    right = expected(folder, 20000)
    t.weir("-e", f"file = pcap-replay {folder}/exact.pcap;" +
           ";".join(f"file -> {stage} -> pcap {folder}/{i}.pcap" for i, stage in enumerate(right)))
    for i, (stage, accepted) in enumerate(right.items()):
        assert numbers(f"{folder}/{i}.pcap") == accepted, stage


def is_stripped(number):
    return any(tpid in (0x8100, 0x88a8) for tpid, _ in tags_of(number)[:1])


def wanted(stage, accepted, count):
    """What the kernel hands on of that many frames: behind more than two tags it does not look, and where no
    tagged frame matches, the first ones are passed up, for the hint at vlan=skip."""
    more = set()
    if "skip" in stage:
        more = {n for n in range(count) if len(tags_of(n)) > 2}
    elif not any(map(is_stripped, accepted)):
        more = set(filter(is_stripped, range(count)))
    return len(more.union(accepted))


def check_live(source, counts):
    t.need_root()
    t.need_program("tcpdump")
    folder = t.tempdir()
    sent = numbered_frames(330)
    with t.Namespace() as ns:
        a, b = ns.veth()
        for i, (stage, accepted) in enumerate(expected(folder, len(sent)).items()):
            run = f.started(ns, f"tap = {source.format(tap=b)}; tap -> {stage} -> pcap {folder}/{i}.pcap")
            f.send(ns, a, sent)
            report = f.finish(run)
            assert numbers(f"{folder}/{i}.pcap") == accepted, f"{stage}: {run.stderr}"
            right = {"all": len(sent), "wanted": wanted(stage, accepted, len(sent))}.get(counts)
            assert right is None or f.counter(report, "kernel-packets") == right, f"{stage}: not {right}"


for name, how in SOURCES.items():
    globals()[f"test_{name}"] = lambda how=how: check_live(*how)


if __name__ == "__main__":
    t.main()
