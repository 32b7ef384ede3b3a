"""What tests of the pcap sink share: packets that they make and read themselves, feeds, small file systems."""
import contextlib, os, re, struct, subprocess, sys
from weirtest import BUILD, Run, Skip, need_program, need_root, need_shared, open_fifo, tempdir

PLUGINS = ["--plugin-path", os.path.join(BUILD, "tests", "plugins")]
MiB = 1 << 20


# ---- Packets, made and read here ----

def header(linktype=1, magic=0xa1b23c4d):
    return struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 262144, linktype)


def record(number, size=100, ts_ns=None):
    """A packet that is told from all others, and whose bytes are never zero."""
    ts_ns = number * 1000 if ts_ns is None else ts_ns
    data = struct.pack("<I", number | 0x80000000) + b"\xa5" * (size - 4)
    return struct.pack("<IIII", ts_ns // 10**9, ts_ns % 10**9, size, size) + data


def parse(data):
    """The packets of a classic file as (time in ns, bytes), and how many bytes are not whole at its end."""
    assert data[:4] == b"\x4d\x3c\xb2\xa1", data[:24]
    at, packets = 24, []
    while at + 16 <= len(data):
        seconds, fraction, caplen, _ = struct.unpack_from("<IIII", data, at)
        if at + 16 + caplen > len(data):
            break
        packets.append((seconds * 10**9 + fraction, data[at + 16:at + 16 + caplen]))
        at += 16 + caplen
    return packets, len(data) - at


def packets_of(path):
    with open(path, "rb") as file:
        packets, torn = parse(file.read())
    assert torn == 0, f"{path}: {torn} bytes at its end are no packet"
    return packets


def numbers_of(*paths):
    """Of the packets that record() makes."""
    return [struct.unpack_from("<I", data)[0] & 0x7fffffff for path in paths for _, data in packets_of(path)]


def tcpdump_count(path):
    done = subprocess.run(["tcpdump", "-nr", path, "--count"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = re.search(r"^(\d+) packet", done.stdout, re.M)
    assert done.returncode == 0 and found, f"tcpdump on {path}: {done.stderr}"
    return int(found.group(1))


def outcomes(run, name="disk"):
    node = next(n for n in run.report["nodes"] if n["name"] == name)
    return {o: v["packets"] for o, v in node["outputs"].items() if v["packets"]}


def counter(run, what, name="disk"):
    return next(n for n in run.report["nodes"] if n["name"] == name)["counters"].get(what, 0)


def visible(folder):
    return sorted(n for n in os.listdir(folder) if not n.startswith("."))


class Feed:
    """A FIFO that pcap-replay reads, and this test writes: so that the run lives as long as the test wants."""

    def __init__(self, text, *args, **more):
        self.path = os.path.join(tempdir(), "feed")
        os.mkfifo(self.path)
        self.run = Run("-e", f"in = pcap-replay {self.path}\n{text}", *args, **more)
        self.file = None

    def write(self, data):
        if not self.file:
            self.file = open_fifo(self.path, "wb", self.run)
        view = memoryview(data)
        while view:
            view = view[self.file.write(view):]

    def end(self, expect=0):
        self.file.close()
        self.run.wait()
        assert self.run.status == expect, f"exit status {self.run.status}: {self.run.stderr}"
        if self.run.report:
            assert self.run.report["balanced"] is True, self.run.stderr
        return self.run


@contextlib.contextmanager
def tmpfs(size):
    need_root()
    path = tempdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "weir-test", path], stderr=subprocess.PIPE)
    if done.returncode:
        raise Skip("cannot mount a tmpfs")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=False)


@contextlib.contextmanager
def small_ext4(size):
    """A file system that takes O_DIRECT, and is soon full."""
    need_root()
    need_program("mkfs.ext4")
    image, path = os.path.join(tempdir(), "image"), tempdir()
    with open(image, "wb") as file:
        file.truncate(size)
    subprocess.run(["mkfs.ext4", "-qF", "-m0", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, path], stderr=subprocess.PIPE).returncode:
        raise Skip("cannot mount a loop device")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=False)


def canonical(path):
    tool = need_shared("captures/tools/canon.py")
    done = subprocess.run([sys.executable, tool, "-s", path], stdout=subprocess.PIPE, text=True)
    fields = done.stdout.split("\t")
    return fields[0], fields[1], fields[8]


def refused(text, *words, prefix=(), report=True):
    run = Run(*PLUGINS, "-e", text, prefix=prefix, report=report).wait()
    assert run.status in (1, 2), f"exit status {run.status}: {run.stderr}"
    for word in words:
        assert word in run.stderr, f"no {word!r} in {run.stderr}"


# ---- pcapng, read here ----

SHB, IDB, ISB, EPB, DSB = 0x0a0d0d0a, 1, 5, 6, 10


def blocks_of(path):
    """The blocks of a file of one section as (type, body)."""
    with open(path, "rb") as file:
        data = file.read()
    at, blocks = 0, []
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        assert size >= 12 and size % 4 == 0 and data[at + size - 4:at + size] == data[at + 4:at + 8], f"{path}: at {at}"
        blocks.append((kind, data[at + 8:at + size - 4]))
        at += size
    return blocks


def options_of(body, fixed):
    """The options behind the fixed part of a block: code to value."""
    options, at = {}, fixed
    while at < len(body):
        code, size = struct.unpack_from("<HH", body, at)
        if code:
            options[code] = body[at + 4:at + 4 + size]
        at += 4 + (size + 3) // 4 * 4
    return options


def statistics_of(path):
    """Of each interface statistics block: the interface, and received, missed, accepted, dropped, delivered."""
    names = {4: "received", 5: "missed", 6: "accepted", 7: "dropped", 8: "delivered"}
    return [(struct.unpack_from("<I", body)[0],
             {names[code]: struct.unpack("<Q", value)[0] for code, value in options_of(body, 12).items() if code in names})
            for kind, body in blocks_of(path) if kind == ISB]


def captured(body):
    """The bytes of an enhanced packet block's packet."""
    return body[20:20 + struct.unpack_from("<I", body, 12)[0]]
