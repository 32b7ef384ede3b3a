#!/usr/bin/python3
"""The pcap sink: what its files hold, their names, full disks, kills, retention, and what is refused."""
import calendar, contextlib, glob, os, random, re, shutil, signal, struct, subprocess, sys, threading, time
from weirtest import (BUILD, SANITIZED, Run, Skip, main, need_program, need_root, need_shared, open_fifo, tempdir, wait_until,
                      weir)

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


# ---- What files hold ----

def canonical(path):
    tool = need_shared("captures/tools/canon.py")
    done = subprocess.run([sys.executable, tool, "-s", path], stdout=subprocess.PIPE, text=True)
    fields = done.stdout.split("\t")
    return fields[0], fields[1], fields[8]


def test_real_captures_come_out_as_they_went_in():
    for name in ("joy__firefox58.pcap", "nDPI__alexa-app.pcapng", "wireshark__many_interfaces.pcapng.1.pcapng",
                 "hadrielk__be-test018.pcapng", "tcpdump__802_15_4_beacon.pcap"):
        source = need_shared(f"captures/{name}")
        for ending in ("pcapng",) if "interfaces" in name or "alexa" in name else ("pcapng", "pcap"):
            out = os.path.join(tempdir(), f"out.{ending}")
            weir("-e", f"pcap-replay {source} -> pcap {out}")
            assert canonical(out) == canonical(source), f"{name} as {ending}"


def test_direct_and_cached_files_are_equal():
    folder = tempdir()
    for direct in ("yes", "no"):
        weir(*PLUGINS, "-e", f"numbers count=20000 bytes=1514 -> pcap {folder}/{direct}.pcap direct={direct}")
    with open(f"{folder}/yes.pcap", "rb") as a, open(f"{folder}/no.pcap", "rb") as b:
        assert a.read() == b.read()
    assert tcpdump_count(f"{folder}/yes.pcap") == 20000


def test_records_of_any_length_span_blocks():
    folder = tempdir()
    sizes = [random.Random(7).choice((60, 1514, 9000, 65000, 262144)) for _ in range(300)]
    with open(f"{folder}/in.pcap", "wb") as file:
        file.write(header() + b"".join(record(i, size) for i, size in enumerate(sizes)))
    for out in ("out.pcap", "out.pcapng"):
        weir("-e", f"pcap-replay {folder}/in.pcap -> pcap {folder}/{out} buffer=1MiB")
    weir("-e", f"pcap-replay {folder}/out.pcapng -> pcap {folder}/back.pcap buffer=1MiB")
    for out in ("out.pcap", "back.pcap"):
        assert packets_of(f"{folder}/{out}") == packets_of(f"{folder}/in.pcap"), out


def test_precision_us_for_old_readers():
    folder = tempdir()
    weir(*PLUGINS, "-e", f"numbers count=10 gap=1234567ns -> pcap {folder}/a.pcap precision=us")
    with open(f"{folder}/a.pcap", "rb") as file:
        data = file.read()
    assert data[:4] == b"\xd4\xc3\xb2\xa1"
    assert struct.unpack_from("<II", data, 24 + 80) == (0, 1234)


def test_a_run_without_packets_leaves_a_file():
    folder = tempdir()
    with open(f"{folder}/none.pcap", "wb") as file:
        file.write(header(linktype=113))
    run = weir("-e", f"disk = pcap {folder}/a.pcap; pcap-replay {folder}/none.pcap -> disk")
    with open(f"{folder}/a.pcap", "rb") as file:
        assert file.read()[:4] == header()[:4]
    assert counter(run, "files") == 1
    weir("-e", f"pcap-replay {folder}/none.pcap -> pcap {folder}/a.pcapng")
    assert tcpdump_count(f"{folder}/a.pcap") == 0


def test_a_second_link_type_needs_pcapng():
    folder = tempdir()
    for name, linktype in (("a", 1), ("b", 113)):
        with open(f"{folder}/{name}.pcap", "wb") as file:
            file.write(header(linktype) + record(1) + record(2))
    text = f"a = pcap-replay {folder}/a.pcap; b = pcap-replay {folder}/b.pcap; q = queue 2MiB; a -> q; b -> q; q ->"
    refused(f"{text} pcap {folder}/out.pcap", ".pcapng", "link types")
    weir("-e", f"{text} pcap {folder}/out.pcapng")
    done = subprocess.run(["tshark", "-nr", f"{folder}/out.pcapng"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert len(done.stdout.splitlines()) == 4, done.stderr


# ---- Rotation and names ----

def test_size_is_never_exceeded_and_names_never_collide():
    folder = tempdir()
    count = 20000 if SANITIZED else 100000
    ledger = os.path.join(tempdir(), "ledger")
    run = weir(*PLUGINS, "--ledger", ledger, "-e",
               f"disk = pcap {folder}/%s.pcap rotate-size=100KB; numbers count={count} bytes=1000 -> disk")
    names = sorted(visible(folder), key=lambda n: int(re.fullmatch(r"0(?:-(\d+))?\.pcap", n).group(1) or 0))
    assert len(names) == counter(run, "files") == -(-count // ((100_000 - 24) // 1016))
    assert max(os.path.getsize(f"{folder}/{n}") for n in names) <= 100_000
    times = [ts for n in names for ts, _ in packets_of(f"{folder}/{n}")]
    assert times == [i * 1000 for i in range(count)]
    with open(ledger) as file:
        closed = [line for line in file if "file-closed" in line]
    for name in names:
        assert len([line for line in closed if f"{folder}/{name} packets=" in line]) == 1, name
    assert len(closed) == len(names)


def test_size_is_never_exceeded_in_pcapng():
    folder = tempdir()
    weir(*PLUGINS, "-e", f"numbers count=5000 bytes=777 -> pcap {folder}/%{{seq}}.pcapng rotate-size=64KiB")
    sizes = [os.path.getsize(f"{folder}/{n}") for n in visible(folder)]
    assert max(sizes) <= 65536 and min(sizes[:-1]) > 65536 - 900, sizes
    assert sum(tcpdump_count(f"{folder}/{n}") for n in visible(folder)) == 5000


def test_a_packet_that_fits_no_file_is_counted():
    folder = tempdir()
    with open(f"{folder}/in.pcap", "wb") as file:
        file.write(header() + record(1) + record(2, 9000) + record(3))
    run = weir("-e", f"disk = pcap {folder}/out.pcap rotate-size=8KiB; pcap-replay {folder}/in.pcap -> disk")
    assert outcomes(run) == {"written": 2, "too-long": 1} and run.report["lost"] == 1
    assert numbers_of(f"{folder}/out.pcap") == [1, 3]


def test_time_rotation_is_aligned_by_packet_time():
    folder = tempdir()
    start = calendar.timegm((2026, 3, 1, 11, 59, 57))
    weir(*PLUGINS, "-e",
         f"numbers count=1000 gap=37ms start={start}s -> pcap {folder}/%Y%m%d-%H%M%S.pcap rotate-time=10s")
    names = visible(folder)
    assert names[:3] == ["20260301-115957.pcap", "20260301-120000.pcap", "20260301-120010.pcap"], names
    total = 0
    for name in names:
        periods = {ts // 10**10 for ts, _ in packets_of(f"{folder}/{name}")}
        assert len(periods) == 1, f"{name} holds {periods}"
        total += len(packets_of(f"{folder}/{name}"))
    assert total == 1000 and len(names) == 5, names


def test_time_rotation_by_the_local_clock():
    folder = tempdir()
    start = calendar.timegm((2026, 3, 1, 18, 0, 0))
    weir(*PLUGINS, "-e", f"numbers count=48 gap=1h start={start}s -> pcap {folder}/%d-%H.pcap rotate-time=24h clock=local",
         env={"TZ": "IST-5:30"})
    assert visible(folder) == ["01-23.pcap", "02-00.pcap", "03-00.pcap"], visible(folder)


def test_time_rotation_without_traffic():
    folder = tempdir()
    feed = Feed(f"in -> pcap {folder}/%s.pcap rotate-time=1s")
    feed.write(header() + record(1, ts_ns=1_500_000_000) + record(2, ts_ns=2_100_000_000))
    wait_until(lambda: "1.pcap" in visible(folder), 10, "the first second's file")
    feed.write(record(3, ts_ns=2_200_000_000))
    feed.end()
    assert visible(folder) == ["1.pcap", "2.pcap"] and numbers_of(f"{folder}/2.pcap") == [2, 3]


def test_rotation_by_packets():
    folder = tempdir()
    weir(*PLUGINS, "-e", f"numbers count=2500 -> pcap {folder}/x.pcap rotate-packets=1000")
    assert [len(packets_of(f"{folder}/{n}")) for n in ("x.pcap", "x-1.pcap", "x-2.pcap")] == [1000, 1000, 500]


def test_folders_of_letters_are_made():
    folder = tempdir()
    weir(*PLUGINS, "-e", f"numbers count=3 gap=24h -> pcap {folder}/%Y/%m/%d.pcap rotate-time=24h")
    assert len(packets_of(f"{folder}/1970/01/02.pcap")) == 1


def test_names_of_node_interface_and_lane():
    folder = tempdir()
    weir(*PLUGINS, "-e", f"disk = pcap {folder}/%{{node}}-%{{iface}}-%{{lane}}-%{{seq}}.pcap; numbers count=10 lanes=2 -> disk")
    assert visible(folder) == ["disk-numbers0-0-00001.pcap", "disk-numbers0-1-00001.pcap"], visible(folder)


def test_several_lanes_need_a_name_each():
    folder = tempdir()
    run = Run(*PLUGINS, "-e", f"numbers count=10 lanes=2 -> pcap {folder}/x.pcap").wait()
    assert run.status == 2 and "%{lane}" in run.stderr, run.stderr


def test_a_file_has_its_name_when_it_is_complete():
    folder = tempdir()
    feed = Feed(f"in -> pcap {folder}/x.pcap")
    feed.write(header() + b"".join(record(i) for i in range(10)))
    part = f"{folder}/x.pcap.part"
    wait_until(lambda: os.path.exists(part) and len(packets_of(part)) == 10, 10, "packets older than a second")
    assert visible(folder) == ["x.pcap.part"]
    feed.write(record(10))
    feed.end()
    assert visible(folder) == ["x.pcap"] and numbers_of(f"{folder}/x.pcap") == list(range(11))


def test_names_that_are_taken():
    folder = tempdir()
    for name in ("5.pcap", "5-1.pcap", "fixed.pcap"):
        with open(f"{folder}/{name}", "w") as file:
            file.write(name)
    weir(*PLUGINS, "-e", f"numbers count=10 start=5s -> pcap {folder}/%s.pcap")
    run = Run(*PLUGINS, "-e", f"numbers count=10 -> pcap {folder}/fixed.pcap").wait()
    assert run.status != 0 and "exists already" in run.stderr, run.stderr
    with open(f"{folder}/5-1.pcap") as five, open(f"{folder}/fixed.pcap") as fixed:
        assert five.read() == "5-1.pcap" and fixed.read() == "fixed.pcap"
    assert visible(folder) == ["5-1.pcap", "5-2.pcap", "5.pcap", "fixed.pcap"]
    weir(*PLUGINS, "-e", f"numbers count=10 -> pcap {folder}/fixed.pcap overwrite=yes")
    assert len(packets_of(f"{folder}/fixed.pcap")) == 10


def test_overwrite_spares_the_files_of_the_same_run():
    folder = tempdir()
    for _ in range(2):
        weir(*PLUGINS, "-e", f"numbers count=30 -> pcap {folder}/x.pcap rotate-packets=10 overwrite=yes")
    assert {n: len(packets_of(f"{folder}/{n}")) for n in ("x.pcap", "x-1.pcap", "x-2.pcap")} == \
        {"x.pcap": 10, "x-1.pcap": 10, "x-2.pcap": 10}


def test_hup_closes_and_reopens():
    folder = tempdir()
    feed = Feed(f"in -> pcap {folder}/x.pcap")
    feed.write(header() + record(0) + record(1))
    wait_until(lambda: "x.pcap.part" in visible(folder), 10, "the first packets")
    feed.run.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "x.pcap" in visible(folder), 10, "the file after HUP")
    feed.write(record(2))
    feed.end()
    assert numbers_of(f"{folder}/x.pcap") == [0, 1] and numbers_of(f"{folder}/x-1.pcap") == [2]


def test_stop_packets_and_stop_size():
    folder = tempdir()
    run = weir(*PLUGINS, "-e", f"disk = pcap {folder}/a.pcap stop-packets=1234; numbers count=100000000 -> disk")
    assert outcomes(run)["written"] == len(packets_of(f"{folder}/a.pcap")) == 1234 and run.report["lost"] == 0
    weir(*PLUGINS, "-e", f"numbers count=100000000 bytes=500 -> pcap {folder}/%{{seq}}.pcap stop-size=1MiB rotate-size=300KB")
    total = sum(os.path.getsize(p) for p in glob.glob(f"{folder}/0*.pcap"))
    assert MiB - 600 < total <= MiB, total


# ---- What is refused before capture ----

def refused(text, *words, prefix=(), report=True):
    run = Run(*PLUGINS, "-e", text, prefix=prefix, report=report).wait()
    assert run.status in (1, 2), f"exit status {run.status}: {run.stderr}"
    for word in words:
        assert word in run.stderr, f"no {word!r} in {run.stderr}"


def test_folders_that_cannot_be_written():
    folder = tempdir()
    refused(f"numbers -> pcap {folder}/no/x.pcap", f"{folder}/no", "No such file")
    refused("numbers -> pcap /proc/x.pcap", "/proc")
    with tmpfs("1m") as mount:
        subprocess.run(["mount", "-o", "remount,ro", mount], check=True)
        refused(f"numbers -> pcap {mount}/x.pcap", mount, "Read-only file system")
    os.chmod(folder, 0o755)
    refused(f"numbers -> pcap {folder}/x.pcap", folder, "Permission denied", report=False,
            prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])


def test_privileges_are_dropped_before_the_first_file():
    need_root()
    folder = tempdir()
    os.chmod(folder, 0o755)
    text = f"numbers count=20 -> pcap {folder}/x.pcap rotate-packets=10"
    run = Run("--user", "nobody", *PLUGINS, "-e", text, report=False).wait()
    assert run.status in (1, 2) and f"no file can be made in {folder}" in run.stderr, run.stderr
    shutil.chown(folder, "nobody")
    run = Run("--user", "nobody", *PLUGINS, "-e", text, report=False).wait()
    assert run.status == 0 and visible(folder) == ["x-1.pcap", "x.pcap"], run.stderr
    assert os.stat(f"{folder}/x-1.pcap").st_uid == os.stat(folder).st_uid


def test_keeping_everything_free():
    refused(f"numbers -> pcap {tempdir()}/x.pcap keep-free=100%", "keep-free")


def test_patterns_that_are_none():
    refused("numbers -> pcap /tmp/%!.pcap", "stands for nothing")
    refused("numbers -> pcap '/tmp/%{lanes}.pcap'", "stands for nothing")


def test_buffers_that_are_too_small():
    refused(f"numbers lanes=4 -> pcap {tempdir()}/%{{lane}}.pcap buffer=2MiB", "buffer", "1MiB")


# ---- Disks that are full ----

def check_full_disk(folder, room):
    """Fills the disk, frees it again, and goes on: all by name, and the other sink loses nothing."""
    other = tempdir()
    filler = f"{folder}/filler"
    with open(filler, "wb") as file:
        file.write(b"x" * room)
    feed = Feed(f"disk = pcap {folder}/x.pcap; in -> disk; in -> pcap {other}/y.pcap", "--ledger", f"{other}/ledger")
    feed.write(header() + b"".join(record(i, 1000) for i in range(2 * room // 1000 + 3000)))
    feed.run.wait_for("the disk is full")
    wait_until(lambda: parse(open(f"{folder}/x.pcap.part", "rb").read())[1] == 0, 10, "a file that is cut back")
    number = full_at = 2 * room // 1000 + 3000
    os.unlink(filler)
    freed = time.monotonic()
    while "room again" not in feed.run.stderr:
        feed.write(b"".join(record(number + i, 1000) for i in range(100)))
        number += 100
        time.sleep(0.1)
        assert time.monotonic() - freed < 5, "writing did not resume"
    feed.write(record(number, 1000))
    run = feed.end()
    written = numbers_of(f"{folder}/x.pcap")
    assert written == sorted(set(written)) and written[-1] == number and written[0] == 0
    assert outcomes(run) == {"written": len(written), "disk-full": number + 1 - len(written)}, outcomes(run)
    assert run.report["lost"] == number + 1 - len(written) and full_at < number
    assert numbers_of(f"{other}/y.pcap") == list(range(number + 1))
    assert tcpdump_count(f"{folder}/x.pcap") == len(written)
    with open(f"{other}/ledger") as file:
        text = file.read()
    assert "disk-full" in text and "disk-back" in text, text


def test_a_full_tmpfs():
    with tmpfs("16m") as folder:
        check_full_disk(folder, 10 * MiB)


def test_a_full_ext4():
    with small_ext4(64 * MiB) as folder:
        free = os.statvfs(folder)
        check_full_disk(folder, free.f_bavail * free.f_frsize - 6 * MiB)


def test_a_disk_that_is_full_from_the_start():
    with tmpfs("1m") as folder:
        with open(f"{folder}/filler", "wb") as file:
            with contextlib.suppress(OSError):
                file.write(b"x" * 2 * MiB)
        run = weir(*PLUGINS, "-e", f"disk = pcap {folder}/x.pcapng; numbers count=1000 -> disk")
        assert outcomes(run) == {"disk-full": 1000} and visible(folder) == ["filler"]


def test_interfaces_survive_a_full_disk():
    with tmpfs("4m") as folder:
        with open(f"{folder}/filler", "wb") as file:
            with contextlib.suppress(OSError):
                file.write(b"x" * 8 * MiB)
        feed = Feed(f"disk = pcap {folder}/x.pcapng; in -> disk")
        feed.write(header() + record(0))
        feed.run.wait_for("the disk is full")
        os.unlink(f"{folder}/filler")
        number = 1
        while "room again" not in feed.run.stderr:
            feed.write(record(number))
            number += 1
            time.sleep(0.1)
        run = feed.end()
        assert tcpdump_count(f"{folder}/x.pcapng") == outcomes(run)["written"] > 0


def test_a_write_that_is_refused():
    folder = tempdir()
    run = weir(*PLUGINS, "-e", f"disk = pcap {folder}/x.pcap; in = numbers count=5000 bytes=1000; in -> disk; in -> null",
               prefix=["prlimit", "--fsize=1000000"])
    parts = outcomes(run)
    assert set(parts) == {"written", "write-error"} and sum(parts.values()) == 5000
    assert outcomes(run, "null:1") == {"discarded": 5000} and run.report["lost"] == parts["write-error"]
    assert len(packets_of(f"{folder}/x.pcap")) == parts["written"] == (1_000_000 - 24) // 1016
    assert f"{folder}/x.pcap" in run.stderr and "too large" in run.stderr, run.stderr


def test_an_ext4_that_has_become_read_only():
    with small_ext4(64 * MiB) as folder:
        device = subprocess.run(["findmnt", "-no", "SOURCE", folder], stdout=subprocess.PIPE, text=True).stdout.strip()
        trigger = f"/sys/fs/ext4/{os.path.basename(device)}/trigger_fs_error"
        if not os.path.exists(trigger):
            raise Skip("this ext4 cannot be told to fail")
        subprocess.run(["mount", "-o", "remount,errors=remount-ro", folder], check=True)
        feed = Feed(f"disk = pcap {folder}/x.pcap; in -> disk; in -> null")
        feed.write(header() + b"".join(record(i, 1000) for i in range(10000)))
        wait_until(lambda: os.path.exists(f"{folder}/x.pcap.part") and os.path.getsize(f"{folder}/x.pcap.part") and
                   len(parse(open(f"{folder}/x.pcap.part", "rb").read())[0]) == 10000, 10, "the first packets")
        with open(trigger, "w") as file:
            file.write("test")
        feed.write(b"".join(record(i, 1000) for i in range(10000, 20000)))
        run = feed.end()
        parts = outcomes(run)
        assert set(parts) == {"written", "write-error"} and sum(parts.values()) == 20000 and parts["written"] >= 10000
        assert outcomes(run, "null:1") == {"discarded": 20000} and "Read-only" in run.stderr, run.stderr
        packets = parse(open(f"{folder}/x.pcap.part", "rb").read())[0]
        assert len(packets) >= parts["written"] >= 10000


# ---- Kills and readers ----

def look(path, seen):
    """One look of a reader: whole packets only, in order, never zeros."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 24:
        return
    packets, _ = parse(data)
    numbers = [struct.unpack_from("<I", packet)[0] for _, packet in packets]
    assert numbers == list(range(0x80000000, 0x80000000 + len(numbers))), "packets are missing or not as they were"
    seen.append(len(numbers))


def slow_capture(folder):
    """400,000 packets at a pace that mixes whole blocks with parts that are flushed."""
    path = f"{folder}/in.pcap"
    with open(path, "wb") as file:
        file.write(header() + b"".join(record(i, 1000) for i in range(100_000)))
    return Run("-e", f"pcap-replay {path} pace=150Mbps -> pcap {folder}/x.pcap", report=False)


def test_readers_never_see_zeros():
    folder = tempdir()
    run, seen = slow_capture(folder), []
    wait_until(lambda: os.path.exists(f"{folder}/x.pcap.part"), 10, "the file")
    while run.process.poll() is None and os.path.exists(f"{folder}/x.pcap.part"):
        with contextlib.suppress(FileNotFoundError):
            look(f"{folder}/x.pcap.part", seen)
    run.wait()
    look(f"{folder}/x.pcap", seen)
    assert seen == sorted(seen) and seen[-1] == 100_000 and len(set(seen)) > 5, seen


def test_killed_at_any_moment():
    rng = random.Random(3)
    sizes = []
    for _ in range(10):
        folder = tempdir()
        run = slow_capture(folder)
        wait_until(lambda: os.path.exists(f"{folder}/x.pcap.part"), 10, "the file")
        time.sleep(rng.uniform(0, 1.5))
        run.process.kill()
        run.wait()
        look(f"{folder}/x.pcap.part", sizes)
    assert max(sizes, default=0) > 1000, sizes


def test_what_a_killed_run_left_is_recovered():
    folder = tempdir()
    text = f"disk = pcap {folder}/%Y-x.pcap rotate-packets=60000; in -> disk"
    feed = Feed(text)
    feed.write(header() + b"".join(record(i, 1000) for i in range(70000)))
    wait_until(lambda: os.path.exists(f"{folder}/1970-x-1.pcap.part") or os.path.exists(f"{folder}/1970-x.pcap.part")
               and os.path.exists(f"{folder}/1970-x.pcap"), 10, "the second file")
    feed.run.process.kill()
    feed.run.wait()
    part = next(p for p in os.listdir(folder) if p.endswith(".part"))
    with open(f"{folder}/{part}", "ab") as file:
        file.write(record(1)[:-1])
    whole = parse(open(f"{folder}/{part}", "rb").read())[0]
    foreign = {"197-x.pcap.part": header(), "1970-y.pcap.part": header(), "1971-x.pcap.part": b"no capture"}
    for name, data in foreign.items():
        with open(f"{folder}/{name}", "wb") as file:
            file.write(data)

    again = Feed(text)
    again.write(header() + record(5))
    wait_until(lambda: "has been recovered" in again.run.stderr, 10, "recovery")
    assert packets_of(f"{folder}/1970-x-1.pcap") == whole, visible(folder)

    # A third run beside it leaves the second one's file alone.
    wait_until(lambda: any(n.startswith("1970-x") and n.endswith(".part") for n in visible(folder)), 10, "a new file")
    third = Feed(text)
    third.write(header())
    third.end()
    run = again.end()
    assert counter(run, "recovered") == 1 and counter(third.run, "recovered") == 0
    assert sorted(n for n in visible(folder) if n.endswith(".part")) == sorted(foreign)
    assert numbers_of(f"{folder}/1970-x-2.pcap") == [5], visible(folder)


def test_packets_reach_the_disk_in_a_second():
    folder = tempdir()
    feed = Feed(f"in -> pcap {folder}/x.pcap")
    feed.write(header() + record(0))
    wait_until(lambda: os.path.exists(f"{folder}/x.pcap.part"), 10, "the file")
    for number in range(1, 4):
        wait_until(lambda: len(packets_of(f"{folder}/x.pcap.part")) == number, 3, "the packet before")
        feed.write(record(number))
    feed.end()


# ---- Retention ----

def test_room_is_kept_by_removing_the_oldest():
    with tmpfs("32m") as folder:
        with open(f"{folder}/foreign.pcap", "wb") as file:
            file.write(b"x" * MiB)
        least = [1 << 60]
        text = f"disk = pcap {folder}/%{{seq}}.pcap rotate-size=1MiB keep-free=12MiB; numbers count=100000 bytes=1000 -> disk"
        run = Run(*PLUGINS, "-e", text)

        def watch():
            while run.process.poll() is None:
                fs = os.statvfs(folder)
                least[0] = min(least[0], fs.f_bavail * fs.f_frsize)
        watcher = threading.Thread(target=watch)
        watcher.start()
        run.wait()
        watcher.join()
        assert run.status == 0 and run.report["balanced"] and run.report["lost"] == 0, run.stderr
        assert least[0] >= 7 * MiB, f"only {least[0]} bytes were free"
        removed = counter(run, "removed")
        names = visible(folder)
        assert removed > 50 and "foreign.pcap" in names
        newest = [f"{i:05d}.pcap" for i in range(removed + 1, counter(run, "files") + 1)]
        assert names == newest + ["foreign.pcap"], (removed, names)

        # A second run knows the files of the first one, and spares one that only has a name of theirs.
        os.unlink(f"{folder}/{newest[0]}")
        with open(f"{folder}/{newest[0]}.new", "wb") as file:
            file.write(b"mine")
        os.rename(f"{folder}/{newest[0]}.new", f"{folder}/{newest[0]}")
        run = weir(*PLUGINS, "-e", text.replace("%{seq}", "b%{seq}").replace("count=100000", "count=14000"))
        assert counter(run, "removed") > 10
        assert newest[0] in visible(folder) and newest[1] not in visible(folder)


def test_old_files_go_and_foreign_ones_stay():
    folder = tempdir()
    with open(f"{folder}/old.pcap", "wb") as file:
        file.write(header())
    os.utime(f"{folder}/old.pcap", (0, 0))
    feed = Feed(f"disk = pcap {folder}/%{{seq}}.pcap rotate-packets=1 keep-age=1s; in -> disk", "--ledger", f"{folder}/.ledger")
    feed.write(header() + record(0) + record(1) + record(2))
    wait_until(lambda: "00003.pcap.part" in visible(folder), 10, "the third file")
    wait_until(lambda: "00001.pcap" not in visible(folder) and "00002.pcap" not in visible(folder), 10, "removal")
    run = feed.end()
    assert "old.pcap" in visible(folder) and counter(run, "removed") >= 2 and counter(run, "removed-early") == 0
    with open(f"{folder}/.ledger") as file:
        assert "file-removed" in file.read()


def test_two_runs_do_not_keep_each_others_files():
    folder = tempdir()
    feed = Feed(f"disk = pcap {folder}/a%{{seq}}.pcap keep-age=1h; in -> disk")
    feed.write(header())
    wait_until(lambda: os.path.exists(f"{folder}/.weir-disk"), 10, "the state file")
    refused(f"disk = pcap {folder}/b%{{seq}}.pcap keep-age=1h; numbers -> disk", "another run", "disk")
    feed.end()


# ---- More than the disk can take ----

def test_no_buffer_is_a_counted_loss_behind_live_sources():
    folder = tempdir()
    count = 20_000 if SANITIZED else 1_000_000
    run = weir(*PLUGINS, "-e",
               f"disk = pcap {folder}/x.pcap buffer=1MiB direct=no; numbers-live count={count} bytes=1000 -> disk")
    parts = outcomes(run)
    assert set(parts) <= {"written", "no-buffer"} and sum(parts.values()) == count
    assert run.report["lost"] == parts.get("no-buffer", 0) and (SANITIZED or run.report["lost"] > 0)
    assert len(packets_of(f"{folder}/x.pcap")) == parts["written"]


def test_files_wait_for_the_disk():
    folder = tempdir()
    run = weir(*PLUGINS, "-e", f"disk = pcap {folder}/x.pcap buffer=1MiB direct=no; numbers count=200000 bytes=1000 -> disk")
    assert outcomes(run) == {"written": 200000}


main()
