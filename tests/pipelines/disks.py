#!/usr/bin/python3
"""The pcap sink on disks that are full, slow, or taken away, and what a kill leaves behind."""
import contextlib, os, random, struct, subprocess, time
from weirtest import SANITIZED, Run, Skip, main, tempdir, wait_until, weir
from capfiles import (MiB, PLUGINS, Feed, counter, header, numbers_of, outcomes, packets_of, parse, record, small_ext4,
                      tcpdump_count, tmpfs, visible)


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
