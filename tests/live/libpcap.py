#!/usr/bin/python3
"""The libpcap source: devices that afpacket does not have, the same promises where the device can keep them."""
import fcntl, os, re, signal, socket, struct, subprocess, time

import frames as f
import weirtest as t
from frames import counter, finish, node, started

ROUNDS = int(os.environ.get("WEIR_ROUNDS", "20"))
RAW, SLL, NFLOG, SLL2 = 101, 113, 239, 276
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 1, 0x1000


def numbered(n, size=60):
    return [f.ether(f.IP, f.ipv4(17, f.udp(b"%08d" % i, sport=1000 + i % 977))).ljust(size, b"\0") for i in range(n)]


def linktype_of(path):
    with open(path, "rb") as file:
        return struct.unpack_from("<I", file.read(24), 20)[0]


def capture(ns, tap, sender, stages=""):
    """Link type, records, report and ledger file of a capture while sender() sends."""
    path, ledger = (os.path.join(t.tempdir(), name) for name in ("out.pcap", "ledger"))
    run = started(ns, f"tap = libpcap {tap}; tap {stages} -> pcap {path}", "--ledger", ledger)
    sender()
    report = finish(run)
    with open(ledger) as file:
        return linktype_of(path), f.read_pcap(path), report, file.read()


def test_any_sees_both_ends_of_a_pair():
    t.need_root()
    sent = numbered(200)
    with t.Namespace() as ns:
        a, b = ns.veth()
        for option, linktype, head, kind_at in (("", SLL, 16, 1), ("link-type=LINUX_SLL2", SLL2, 20, 10)):
            found, records, report, _ = capture(ns, f"any {option}", lambda: f.send(ns, a, sent))
            assert found == linktype
            out = [data for _, _, data in records if data[kind_at] == 4]
            into = [data for _, _, data in records if data[kind_at] != 4]
            for end in (out, into):
                assert [data[head:] for data in end] == [frame[14:] for frame in sent]
            assert counter(report, "kernel-packets") == 400 and report["lost"] == 0
            if linktype == SLL2:
                numbers = {int(re.match(r"\d+", ns.run("ip", "-o", "link", "show", end).stdout).group()) for end in (a, b)}
                assert {struct.unpack_from(">I", data, 4)[0] for _, _, data in records} == numbers


def test_any_keeps_tags_and_shows_lo_once():
    t.need_root()
    tagged = f.ether(f.IP, f.ipv4(17, f.udp(b"tagged")), (0x8100, 29))
    with t.Namespace() as ns:
        a, _ = ns.veth()

        def send():
            f.send(ns, a, [tagged])
            ns.run("ping", "-q", "-c", "2", "-i", "0.2", "127.0.0.1")
        _, records, report, _ = capture(ns, "any", send)
        tags = [data for data in f.bytes_of(records) if data[14:16] == b"\x81\x00"]
        pings = [data for data in f.bytes_of(records) if data[14:16] == f.IP and data[16 + 9] == 1]
        assert len(tags) == 2 and all(data[16:] == tagged[14:] for data in tags), tags
        assert len(pings) == 4, "two requests and two replies"
        assert counter(report, "kernel-packets") == len(records)


def test_any_is_filtered_after_the_kernel():
    t.need_root()
    with t.Namespace() as ns:
        a, _ = ns.veth()
        _, records, report, ledger = capture(ns, "any", lambda: f.send(ns, a, numbered(50)), '-> bpf "udp src port 1007"')
        assert len(records) == 2
        assert counter(report, "kernel-packets") == 100
        assert "nothing, since libpcap makes the link-layer header" in ledger, ledger


class Tun:
    """A tun device of the namespace: what is written to it, its interface receives."""

    def __init__(self, ns, name="tun0"):
        with f.inside(ns):
            self.fd = os.open("/dev/net/tun", os.O_RDWR)
            fcntl.ioctl(self.fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
        ns.run("ip", "link", "set", name, "up")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)


def test_tun_device():
    t.need_root()
    if not os.path.exists("/dev/net/tun"):
        raise t.Skip("there is no /dev/net/tun here")
    sent = [f.ipv4(17, f.udp((b"%08d" % i).ljust(400), dport=2000 + i % 2)) for i in range(100)]
    with t.Namespace() as ns, Tun(ns) as tun:
        def send():
            for packet in sent:
                os.write(tun.fd, packet)
        linktype, records, report, _ = capture(ns, "tun0", send)
        assert linktype == RAW and f.bytes_of(records) == sent and report["lost"] == 0

        linktype, records, report, ledger = capture(ns, "tun0", send, '-> bpf "udp dst port 2001" -> snaplen 24')
        assert f.bytes_of(records) == [packet[:24] for packet in sent[1::2]]
        assert counter(report, "kernel-packets") == 50, "the kernel was to keep out the others"
        assert counter(report, "cut") == 50 and "bpf:1, snaplen:1" in ledger, ledger


def test_filter_in_the_kernel_leaves_tagged_frames_to_the_stage():
    t.need_root()
    plain, tagged = numbered(20), [f.ether(f.IP, f.ipv4(17, f.udp(b"x", sport=1007)), (0x8100, 5))] * 3
    with t.Namespace() as ns:
        a, b = ns.veth()
        for filter, expect, passed in (("udp src port 1007", plain[7:8], 4), ("vlan and udp src port 1007", tagged, 3)):
            _, records, report, _ = capture(ns, b, lambda: f.send(ns, a, plain + tagged), f'-> bpf "{filter}"')
            assert f.bytes_of(records) == expect, filter
            assert counter(report, "kernel-packets") == passed, filter


def test_directions():
    t.need_root()
    with t.Namespace() as ns:
        a, b = ns.veth()

        def send():
            f.send(ns, a, numbered(3))
            f.send(ns, b, numbered(5))
        for direction, expect in (("in", 3), ("out", 5), ("both", 8)):
            _, records, report, _ = capture(ns, f"{b} direction={direction}", send)
            assert len(records) == counter(report, "kernel-packets") == expect, direction


def test_nflog():
    t.need_root()
    t.need_program("nft")
    with t.Namespace() as ns:
        rules = "table inet weir { chain out { type filter hook output priority 0; udp dport 4000 log group 5; }; }"
        try:
            ns.run("nft", rules)
        except AssertionError as why:
            raise t.Skip(f"no nflog in this kernel: {str(why).splitlines()[-1]}")

        def send():
            with f.inside(ns):
                sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            for i in range(100):
                sock.sendto(b"%08d" % i, ("127.0.0.1", 4000))
        linktype, records, report, _ = capture(ns, "nflog:5", send)
        assert linktype == NFLOG
        for i, data in enumerate(f.bytes_of(records)):
            assert b"%08d" % i in data, i
        assert len(records) == counter(report, "unwitnessed") == 100
        assert_refused(ns, "libpcap nflog:5 direction=in", "direction=both would work")


def test_packets_just_before_the_stop_are_in_the_file():
    t.need_root()
    sent = numbered(10)
    with t.Namespace() as ns:
        a, b = ns.veth()
        for turn in range(ROUNDS):
            retire = ("20ms", "1ms", "200ms")[turn % 3]
            path = os.path.join(t.tempdir(), "out.pcap")
            run = started(ns, f"tap = libpcap {b} retire={retire}; tap -> pcap {path}")
            f.send(ns, a, sent)
            before = time.monotonic()
            report = finish(run)
            assert time.monotonic() - before < (5 if t.SANITIZED else 1), "the stop took a second"
            assert f.bytes_of(f.read_pcap(path)) == sent, f"round {turn}, retire={retire}"
            assert counter(report, "kernel-packets") == 10


def test_what_came_before_the_start_is_left_out():
    """Also under traffic: nothing foreign gets in, and the numbers agree."""
    t.need_root()
    t.need_program("tcpreplay")
    trace = os.path.join(t.tempdir(), "trace.pcap")
    f.write_pcap(trace, numbered(1000))
    with t.Namespace() as ns:
        a, b = ns.veth()
        sender = ns.popen("tcpreplay", "-q", "-i", a, "--preload-pcap", "--topspeed", "--loop=0", trace,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        t.bound_to_test(sender)
        try:
            for _ in range(ROUNDS // 4):
                folder = t.tempdir()
                path = os.path.join(folder, "out.pcap")
                run = started(ns, f'tap = libpcap {b}; tap -> bpf "src port 1007" -> pcap {path}')
                t.wait_until(lambda: any(os.path.getsize(os.path.join(folder, name)) > 24 for name in os.listdir(folder)))
                report = finish(run)
                counters = node(report)["counters"]
                assert len(f.read_pcap(path)) == counters["kernel-packets"] - counters["kernel-drops"] > 0
                assert node(report, "bpf:1")["outputs"]["rest"]["packets"] == 0, "packets from before the filter"
        finally:
            sender.terminate()
            sender.wait()


def test_read_is_packets_less_drops_when_the_ring_overflows():
    t.need_root()
    sent = numbered(20000, 400)
    with t.Namespace() as ns:
        a, b = ns.veth()
        path = os.path.join(t.tempdir(), "out.pcap")
        run = started(ns, f"tap = libpcap {b} ring=1MiB; tap -> pcap {path}")
        f.send(ns, a, sent[:1000])
        run.process.send_signal(signal.SIGSTOP)
        f.send(ns, a, sent[1000:])
        run.process.send_signal(signal.SIGCONT)
        report = finish(run)
        dropped = counter(report, "kernel-drops")
        assert counter(report, "kernel-packets") == 20000 and dropped > 0
        assert len(f.read_pcap(path)) == 20000 - dropped and report["lost"] == dropped


def test_link_down_up_removed_and_made_anew():
    t.need_root()
    sent = numbered(30)
    with t.Namespace() as ns:
        a, b = ns.veth()
        path, ledger = os.path.join(t.tempdir(), "out.pcap"), os.path.join(t.tempdir(), "ledger")
        run = started(ns, f"tap = libpcap {b}; tap -> pcap {path}", "--ledger", ledger)
        f.send(ns, a, sent[:10])
        ns.run("ip", "link", "set", b, "down")
        run.wait_for(f"{b} went down")
        ns.run("ip", "link", "set", b, "up")
        run.wait_for(f"{b} is up again")
        f.send(ns, a, sent[10:20])
        ns.run("ip", "link", "del", a)
        run.wait_for(f"{b} was removed")
        t.assert_idle(run, 1)
        a, b = ns.veth()
        t.wait_until(lambda: run.stderr.count(f"{b} is up again") == 2, what="no word that it came back")
        f.send(ns, a, sent[20:])
        finish(run)
        assert f.bytes_of(f.read_pcap(path)) == sent
        with open(ledger) as file:
            assert file.read().count("link-up") == 2


def test_link_that_gets_another_name_is_one_that_was_removed():
    t.need_root()
    sent = numbered(20)
    with t.Namespace() as ns:
        a, b = ns.veth()
        path, ledger = os.path.join(t.tempdir(), "out.pcap"), os.path.join(t.tempdir(), "ledger")
        run = started(ns, f"tap = libpcap {b}; tap -> pcap {path}", "--ledger", ledger)
        f.send(ns, a, sent[:10])
        with f.flow(ns, a, sent[0]):
            ns.run("sh", "-c", f"ip link set {b} down; ip link set {b} name other; ip link set other up")
            run.wait_for(f"{b} was removed")
            t.assert_idle(run, 1)
        ns.run("sh", "-c", f"ip link set other down; ip link set other name {b}; ip link set {b} up")
        run.wait_for(f"{b} is up again")
        f.send(ns, a, sent[10:])
        finish(run)
        frames = f.bytes_of(f.read_pcap(path))
        assert frames[:10] == sent[:10] and frames[-10:] == sent[10:]
        with open(ledger) as file:
            assert file.read().count("link-down") <= 2


def test_idle_is_idle():
    t.need_root()
    with t.Namespace() as ns:
        _, b = ns.veth()
        for device in ("any", b):
            run = started(ns, f"tap = libpcap {device}; tap -> pcap {t.tempdir()}/out.pcap")
            t.assert_idle(run, 3)
            finish(run)


def assert_refused(ns, tap, *expected, **more):
    run = t.Run("-e", f"tap = {tap}; tap -> pcap {t.tempdir()}/out.pcap", netns=ns, **more).wait()
    assert run.status in (1, 2), f"{tap}: status {run.status}: {run.stderr}"
    for part in expected:
        assert re.search(part, run.stderr), f"{tap}: no {part!r} in: {run.stderr}"


def test_refusals_say_what_would_work():
    t.need_root()
    with t.Namespace() as ns:
        _, b = ns.veth()
        ns.run("ip", "link", "add", "gone0", "type", "veth", "peer", "name", "gone1")
        assert_refused(ns, "libpcap nosuch0", r"^-e:1:\d+: tap: .*no device 'nosuch0'.*it finds .*any")
        assert_refused(ns, "libpcap gone0", "gone0 is down; 'ip link set gone0 up' would help")
        assert_refused(ns, f"libpcap {b} link-type=LINUX_SLL", "veth1 cannot have that; it has EN10MB")
        assert_refused(ns, f"libpcap {b} link-type=ETHERNET", "link-type=ETHERNET is no name that libpcap knows")
        assert_refused(ns, "libpcap rpcap://host/eth0", "without remote capture")
        assert_refused(ns, "libpcap lo direction=out", "afpacket lo direction=out")


def setpriv(capabilities):
    return ["setpriv", f"--bounding-set={capabilities}", f"--inh-caps={capabilities}", "--"]


def test_the_named_capability_suffices_and_its_lack_is_named():
    t.need_root()
    t.need_program("setpriv")
    with t.Namespace() as ns:
        a, b = ns.veth()
        for device, expect in ((b, 10), ("any", 20)):
            run = started(ns, f"tap = libpcap {device}; tap -> pcap {t.tempdir()}/out.pcap", prefix=setpriv("-all,+net_raw"))
            f.send(ns, a, numbered(10))
            assert node(finish(run))["outputs"]["out"]["packets"] == expect
            assert_refused(ns, f"libpcap {device}", f"interface={device} needs the capability CAP_NET_RAW",
                           prefix=setpriv("-all"))


if __name__ == "__main__":
    t.main()
