"""For the live tests: Ethernet frames that are made, sent from a namespace, captured, and read back from a file."""
import ctypes, fcntl, os, select, socket, struct, threading, time
from contextlib import contextmanager, suppress

import weirtest as t

SOL_PACKET, PACKET_VNET_HDR = 263, 15
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 1, 0x1000
MACS = bytes.fromhex("020000000001" "020000000002")
IP, IP6, ARP = b"\x08\x00", b"\x86\xdd", b"\x08\x06"

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def inside(ns):
    """This thread is in the namespace meanwhile; sockets that it makes stay there."""
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{ns}") as there:
        if _libc.setns(there.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            _libc.setns(home.fileno(), CLONE_NEWNET)


def raw_socket(ns, interface):
    """Sends whole frames; protocol 0, so that it receives none."""
    with inside(ns):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        sock.bind((interface, 0))
    return sock


@contextmanager
def flow(ns, interface, frame):
    """Sends the frame all the time, also out of an interface that is made anew meanwhile."""
    done = threading.Event()

    def run():
        while not done.wait(0.001):
            with suppress(OSError), raw_socket(ns, interface) as sock:
                while not done.wait(0.0002):
                    sock.send(frame)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def move_away_and_back(ns, interface, run):
    """Into another network namespace; back it has the index that it had, but not its sockets."""
    with t.Namespace() as other:
        ns.run("ip", "link", "set", interface, "netns", str(other))
        run.wait_for(f"{interface} was removed")
        other.run("ip", "link", "set", interface, "netns", str(ns))
    ns.run("ip", "link", "set", interface, "up", "arp", "off")
    run.wait_for(f"{interface} is up again")


def tun(ns, name):
    """The descriptor of a new tun device, up: what is written there is received by the interface."""
    with inside(ns):
        fd = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    ns.run("ip", "link", "set", name, "up")
    return fd


def send(ns, interface, frames):
    with raw_socket(ns, interface) as sock:
        for frame in frames:
            sock.send(frame)


def send_unsegmented(ns, interface, frame, header_bytes=54):
    """One TCP frame as an interface with segmentation offload sees it: far above the MTU, checksum left to do."""
    with raw_socket(ns, interface) as sock:
        sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        sock.send(struct.pack("<BBHHHH", 1, 1, header_bytes, 1448, 34, 16) + frame)


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ipv4(proto, payload, src="10.0.0.1", dst="10.0.0.2", ident=0, fragment=0):
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), ident, fragment, 64, proto, 0,
                       socket.inet_aton(src), socket.inet_aton(dst))
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload


def udp(payload, sport=1000, dport=2000):
    return struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload


def tcp(payload, sport=1000, dport=80):
    return struct.pack(">HHIIBBHHH", sport, dport, 0, 0, 0x50, 0x10, 1024, 0, 0) + payload


def ipv6(proto, payload):
    return struct.pack(">IHBB16s16s", 0x60000000, len(payload), proto, 64, b"\x20" * 16, b"\x21" * 16) + payload


def ether(ethertype, payload, *tags):
    """tags: (TPID, TCI), the outer one first."""
    frame = MACS + b"".join(struct.pack(">HH", *tag) for tag in tags) + ethertype + payload
    return frame.ljust(60, b"\0")


def write_pcap(path, frames, snaplen=262144):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, snaplen, 1))
        for i, frame in enumerate(frames):
            file.write(struct.pack("<IIII", 1, i, len(frame), len(frame)) + frame)


def read_pcap(path):
    """The records of a little-endian classic file of nanoseconds: (ts_ns, wirelen, bytes)."""
    with open(path, "rb") as file:
        data = file.read()
    assert struct.unpack_from("<I", data)[0] == 0xa1b23c4d, data[:4].hex()
    at, records = 24, []
    while at < len(data):
        sec, ns, caplen, wirelen = struct.unpack_from("<IIII", data, at)
        assert at + 16 + caplen <= len(data), f"{path} is torn at {at}"
        records.append((sec * 10**9 + ns, wirelen, data[at + 16:at + 16 + caplen]))
        at += 16 + caplen
    return records


def bytes_of(records):
    return [record[2] for record in records]


def wait_for_bytes(stream, send):
    """Seconds from before send() until the descriptor, emptied before, can be read."""
    while select.select([stream], [], [], 0)[0]:
        assert os.read(stream, 65536), "the stream has ended"
    before = time.monotonic()
    send()
    assert select.select([stream], [], [], 10)[0], "nothing came"
    return time.monotonic() - before


def node(report, name="tap"):
    return next(n for n in report["nodes"] if n["name"] == name)


def counter(report, name, of="tap"):
    return node(report, of)["counters"][name]


def started(ns, text, *options, **more):
    """A run whose sources are open."""
    run = t.Run("-e", text, *options, netns=ns, **more)
    run.wait_for("running")
    return run


def finish(run):
    """The report of a run that is stopped, has done everything right, and whose ledger closes."""
    run.stop()
    assert run.status == 0, f"{run.status}: {run.stderr}"
    assert run.report["balanced"] is True, run.stderr
    return run.report


def capture(ns, tap, sender, expect, stages=""):
    """Records and report of a capture while sender() sends; expect: how many packets, None: any number."""
    path = os.path.join(t.tempdir(), "out.pcap")
    run = started(ns, f"tap = afpacket {tap}; tap {stages} -> pcap {path}")
    sender()
    report = finish(run)
    records = read_pcap(path)
    assert expect is None or len(records) == expect, f"{len(records)} packets, not {expect}"
    return records, report
