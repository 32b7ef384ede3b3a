#!/usr/bin/python3
"""snaplen and bpf: what goes where, what is counted, what is refused and in whose words."""
import struct, subprocess
from frames import ARP, IP, bytes_of, ether, ipv4, read_pcap, udp, write_pcap
from weirtest import WEIR, Run, main, tempdir, weir

PLAIN = [ether(IP, ipv4(17, udp(b"plain %d" % i, dport=53))) for i in range(20)]
TAGGED = [ether(IP, ipv4(17, udp(b"tagged %d" % i, dport=53)), (0x8100, 7)) for i in range(30)]
OTHERS = [ether(ARP, bytes(28)) for _ in range(10)]


def node(run, name):
    return next(n for n in run.report["nodes"] if n["name"] == name)


def out(run, name, output):
    return node(run, name)["outputs"][output]["packets"]


def counter(run, name, which):
    return node(run, name)["counters"].get(which, 0)


def mixed():
    folder = tempdir()
    write_pcap(folder + "/in.pcap", PLAIN + TAGGED + OTHERS)
    return folder, folder + "/in.pcap"


def test_snaplen_lowers_caplen_only():
    folder = tempdir()
    frames = [ether(IP, ipv4(17, udp(bytes(n)))) for n in (10, 58, 59, 1000)]  # 100 bytes and below, 101 and above
    write_pcap(folder + "/in.pcap", frames)
    run = weir("-e", f"pcap-replay {folder}/in.pcap -> snaplen 100 -> pcap {folder}/out.pcap")
    assert [(wirelen, data) for _, wirelen, data in read_pcap(folder + "/out.pcap")] == [(len(f), f[:100]) for f in frames]
    assert counter(run, "snaplen:1", "cut") == 2


def test_bpf_divides_without_loss():
    folder, path = mixed()
    run = weir("-e", f"b = bpf 'udp port 53'; pcap-replay {path} -> b -> pcap {folder}/m.pcap; b.rest -> pcap {folder}/r.pcap")
    assert bytes_of(read_pcap(folder + "/m.pcap")) == PLAIN
    assert bytes_of(read_pcap(folder + "/r.pcap")) == TAGGED + OTHERS
    assert run.report["lost"] == 0


def test_skip_looks_behind_tags_and_changes_nothing():
    folder, path = mixed()
    run = weir("-e", f"pcap-replay {path} -> bpf 'udp port 53' vlan=skip -> pcap {folder}/m.pcap")
    assert bytes_of(read_pcap(folder + "/m.pcap")) == PLAIN + TAGGED
    assert counter(run, "bpf:1", "tagged-rest") == 0


def test_a_filter_that_misses_tagged_packets_gets_a_hint():
    _, path = mixed()
    run = weir("-e", f"pcap-replay {path} -> bpf 'udp port 53' -> null")
    assert counter(run, "bpf:1", "tagged-rest") == len(TAGGED)
    assert "vlan=skip" in run.stderr, run.stderr
    for text in ("vlan and udp", "tcp or vlan 8", "udp port 53' vlan='skip"):
        run = weir("-e", f"pcap-replay {path} -> bpf '{text}' -> null")
        assert counter(run, "bpf:1", "tagged-rest") == 0 and "vlan=skip does" not in run.stderr, run.stderr


def test_the_hint_is_in_the_ledger_file():
    folder, path = mixed()
    weir("-e", f"pcap-replay {path} -> bpf 'udp port 53' -> null", "--ledger", folder + "/ledger")
    with open(folder + "/ledger") as file:
        assert any('"hint"' in line for line in file)


def test_filter_file():
    folder, path = mixed()
    with open(folder + "/filter", "w") as file:
        file.write("# name servers,\nudp port 53 # answers too\n or (vlan and udp port 53)\n")
    run = weir("-e", f"pcap-replay {path} -> bpf filter-file={folder}/filter -> null")
    assert out(run, "bpf:1", "match") == len(PLAIN + TAGGED)


def block(kind, body):
    body = body.ljust((len(body) + 3) & ~3, b"\0")
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def write_two_link_types(path, first, second):
    """A pcapng file in which an interface of raw IP appears behind the packets of an Ethernet one."""
    def packet(interface, data):
        return block(6, struct.pack("<IIIII", interface, 0, 0, len(data), len(data)) + data)
    with open(path, "wb") as file:
        file.write(block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)))
        file.write(block(1, struct.pack("<HHI", 1, 0, 0)))
        file.write(b"".join(packet(0, data) for data in first))
        file.write(block(1, struct.pack("<HHI", 101, 0, 0)))
        file.write(b"".join(packet(1, data) for data in second))


def test_an_interface_that_appears_later():
    folder = tempdir()
    raw = [frame[14:] for frame in PLAIN]
    # Enough packets in front that the second interface is not known when the sources have been opened.
    write_two_link_types(folder + "/in.pcapng", PLAIN * 2000, raw)
    run = weir("-e", f"pcap-replay {folder}/in.pcapng -> bpf 'udp port 53' -> null")
    assert (out(run, "bpf:1", "match"), out(run, "bpf:1", "unfit")) == (len(PLAIN) * 2000 + len(raw), 0)

    run = weir("-e", f"pcap-replay {folder}/in.pcapng -> bpf 'ether src 02:00:00:00:00:02' -> null")
    assert (out(run, "bpf:1", "match"), out(run, "bpf:1", "unfit")) == (len(PLAIN) * 2000, len(raw))
    assert run.report["lost"] == len(raw)
    assert run.stderr.count("go to `unfit`") == 1, run.stderr

    run = weir("-e", f"b = bpf 'ether src 02:00:00:00:00:02'; pcap-replay {folder}/in.pcapng -> b -> null; "
                     f"b.unfit -> pcap {folder}/unfit.pcapng")
    assert (out(run, "pcap:1", "written"), run.report["lost"]) == (len(raw), 0)


def test_refused_before_anything_opens():
    for element, words in (("bpf 'udp prot 53'", "syntax error"), ("bpf", "needs a filter"),
                           ("bpf tcp filter-file=/nowhere", "give one of the two"),
                           ("bpf filter-file=/nowhere", "/nowhere: No such file"), ("snaplen 0", "snaplen"),
                           ("snaplen", "bytes"), ("snaplen 262145", "262144")):
        done = subprocess.run([WEIR, "check", "-e", f"pcap-replay x.pcap -> {element} -> null"], capture_output=True, text=True)
        assert done.returncode == 2 and words in done.stderr, f"{element}: {done.returncode} {done.stderr}"


def test_refused_for_the_link_type():
    _, path = mixed()
    for element, words in (("bpf 'ip and ip6'", "expression rejects all packets"),
                           ("bpf 'wlan type mgt'", "supported only on 802.11"),
                           ("bpf inbound", "not supported on"),
                           ("bpf 'vlan 7' vlan=skip", "vlan=skip takes off")):
        run = Run("-e", f"pcap-replay {path} -> {element} -> null", report=False).wait()
        assert run.status == 2 and words in run.stderr, f"{element}: {run.status} {run.stderr}"


main()
