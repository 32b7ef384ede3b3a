#!/usr/bin/python3
"""The pcap sink on disks that are full, slow, or taken away, and what a kill leaves behind."""
import contextlib, errno, glob, os, random, shutil, signal, struct, subprocess, time
from weirtest import SANITIZED, Run, Skip, main, tempdir, wait_until, weir
from capfiles import (DSB, EPB, IDB, SHB, MiB, PLUGINS, Feed, blocks_of, captured, counter, header, numbers_of, outcomes,
                      packets_of, parse, record, small_ext4, tcpdump_count, tmpfs, visible)


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


def test_interfaces_and_keys_survive_a_full_disk():
    keys = f"{tempdir()}/keys"
    with open(keys, "w") as file:
        file.write("CLIENT_RANDOM ab cd\n")
    with tmpfs("4m") as folder:
        with open(f"{folder}/filler", "wb") as file:
            with contextlib.suppress(OSError):
                file.write(b"x" * 8 * MiB)
        feed = Feed(f"disk = pcap {folder}/x.pcapng tls-keys={keys}; in -> disk")
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
        kinds = [kind for kind, _ in blocks_of(f"{folder}/x.pcapng")]
        assert kinds[0] == SHB and kinds.index(IDB) < kinds.index(EPB) and DSB in kinds, kinds


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


def resumes(feed, number, written, seconds=5):
    """Sends packets until written() says that they are on disk again; returns the next number."""
    since = time.monotonic()
    while not written():
        feed.write(b"".join(record(number + i, 1000) for i in range(10)))
        number += 10
        time.sleep(0.1)
        assert time.monotonic() - since < seconds, f"writing did not resume: {feed.run.stderr}"
    return number


def check_parts(run, number, *losses):
    """All packets went to the other sink, and to `disk` or one of those losses."""
    parts = outcomes(run)
    assert set(parts) <= {"written", *losses} and sum(parts.values()) == number, (parts, number)
    assert outcomes(run, "null:1") == {"discarded": number} and run.report["balanced"]
    return parts["written"]


def test_a_folder_that_is_removed_and_comes_back():
    top = tempdir()
    folder = f"{top}/captures"
    os.mkdir(folder)
    feed = Feed(f"disk = pcap {folder}/x.pcapng; in -> disk; in -> null", "--ledger", f"{top}/ledger")
    feed.write(header() + b"".join(record(i, 1000) for i in range(20)))
    wait_until(lambda: os.path.exists(f"{folder}/x.pcapng.part") and os.path.getsize(f"{folder}/x.pcapng.part") > 20000, 20,
               "the first packets")
    shutil.rmtree(folder)
    number = resumes(feed, 20, lambda: "No such file" in feed.run.stderr)
    os.mkdir(folder)
    number = resumes(feed, number, lambda: os.path.exists(f"{folder}/x.pcapng.part"))
    run = feed.end()
    written = check_parts(run, number, "write-error")
    assert counter(run, "vanished") == 20 and run.report["lost"] == 20 + outcomes(run)["write-error"]
    assert tcpdump_count(f"{folder}/x.pcapng") == written - 20 > 0
    with open(f"{top}/ledger") as file:
        assert "file-vanished" in file.read()


def test_a_file_that_is_removed_while_it_is_written():
    folder = tempdir()
    feed = Feed(f"disk = pcap {folder}/x.pcap; in -> disk; in -> null")
    feed.write(header() + b"".join(record(i, 1000) for i in range(30)))
    part = f"{folder}/x.pcap.part"
    wait_until(lambda: os.path.exists(part) and len(parse(open(part, "rb").read())[0]) == 30, 20, "the first packets")
    os.unlink(part)
    number = resumes(feed, 30, lambda: os.path.exists(part))
    run = feed.end()
    assert check_parts(run, number) == number and counter(run, "vanished") == run.report["lost"] == 30
    assert numbers_of(f"{folder}/x.pcap") == list(range(30, number))


def test_a_file_that_is_removed_in_the_middle_of_a_record():
    folder = tempdir()
    feed = Feed(f"disk = pcap {folder}/x.pcapng buffer=8MiB; in -> disk; in -> null")
    part = f"{folder}/x.pcapng.part"
    feed.write(header() + b"".join(record(i, 1000) for i in range(1500)))  # more than a block, less than two
    wait_until(lambda: os.path.exists(part) and os.path.getsize(part) >= MiB, 20, "the first block")
    gone = os.path.getsize(part)
    os.unlink(part)
    number = resumes(feed, 1500, lambda: os.path.exists(part))
    run = feed.end()
    parts = outcomes(run)
    check_parts(run, number, "write-error")
    assert counter(run, "vanished") > 1000 and parts.get("write-error", 0) == (gone == MiB)
    assert tcpdump_count(f"{folder}/x.pcapng") == parts["written"] - counter(run, "vanished")


def test_a_tmpfs_that_is_read_only_for_a_while():
    with tmpfs("32m") as folder:
        feed = Feed(f"disk = pcap {folder}/x.pcap; in -> disk; in -> null")
        feed.write(header() + record(0, 1000))
        wait_until(lambda: os.path.exists(f"{folder}/x.pcap.part"), 20, "the first file")
        feed.run.process.send_signal(signal.SIGHUP)
        wait_until(lambda: os.path.exists(f"{folder}/x.pcap"), 20, "its end")
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        number = resumes(feed, 1, lambda: "Read-only file system" in feed.run.stderr)
        subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
        number = resumes(feed, number, lambda: os.path.exists(f"{folder}/x-1.pcap.part"))
        run = feed.end()
        written = check_parts(run, number, "write-error")
        assert numbers_of(f"{folder}/x.pcap", f"{folder}/x-1.pcap")[0] == 0
        assert len(numbers_of(f"{folder}/x.pcap", f"{folder}/x-1.pcap")) == written < number


FAILING_WRITES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t at)
{
	static ssize_t (*real)(int, const void *, size_t, off_t);

	if (access(getenv("FAIL_WHILE"), F_OK) == 0) {
		errno = atoi(getenv("FAIL_WITH"));
		return -1;
	}
	if (!real)
		real = (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
	return real(fd, bytes, len, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	return pwrite64(fd, bytes, len, at);
}
"""


def in_between(text):
    """A library, made of that C text, whose calls take the place of the system's."""
    if SANITIZED:
        raise Skip("a sanitizer's library must be loaded first")
    path = f"{tempdir()}/between"
    with open(f"{path}.c", "w") as file:
        file.write(text)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", f"{path}.so", f"{path}.c", "-ldl"], check=True)
    return f"{path}.so"


def check_failing_writes(error, outcome, *words):
    """Faults that few file systems can be brought to."""
    folder, failing = tempdir(), f"{tempdir()}/failing"
    feed = Feed(f"disk = pcap {folder}/x.pcap; in -> disk; in -> null",
                env={"LD_PRELOAD": in_between(FAILING_WRITES), "FAIL_WHILE": failing, "FAIL_WITH": str(error)})
    part = f"{folder}/x.pcap.part"
    feed.write(header() + b"".join(record(i, 1000) for i in range(10000)))
    wait_until(lambda: os.path.exists(part) and len(parse(open(part, "rb").read())[0]) == 10000, 20, "the first packets")
    with open(failing, "w"):
        pass
    number = resumes(feed, 10000, lambda: any(word in feed.run.stderr for word in words))
    before = os.path.getsize(part)
    os.unlink(failing)
    number = resumes(feed, number, lambda: os.path.getsize(part) > before)
    run = feed.end()
    written = check_parts(run, number, outcome)
    assert 10000 < len(numbers_of(f"{folder}/x.pcap")) == written < number


def test_an_error_of_the_device():
    check_failing_writes(errno.EIO, "write-error", "Input/output error")


def test_a_quota():
    check_failing_writes(errno.EDQUOT, "disk-full", "the disk is full")


WHO_CALLS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void tell(const char *call)
{
	char thread[16] = "", line[64];
	int fd = ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open"))(getenv("WHO"), O_WRONLY | O_APPEND | O_CREAT, 0644);

	prctl(PR_GET_NAME, thread);
	snprintf(line, sizeof(line), "%s %s\n", call, thread);
	(void)!write(fd, line, strlen(line));
	close(fd);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int open(const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	int mode = va_arg(args, int);
	va_end(args);
	if (strstr(path, ".part"))
		tell("open");
	return REAL(open)(path, flags, mode);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	tell("write");
	return REAL(pwrite)(fd, bytes, len, at);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	tell("rename");
	return REAL(renameat2)(from_fd, from, to_fd, to, flags);
}

int unlinkat(int fd, const char *path, int flags)
{
	tell("unlink");
	return REAL(unlinkat)(fd, path, flags);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attributes, char *const words[], char *const environment[])
{
	tell("exec");
	return REAL(posix_spawnp)(pid, file, actions, attributes, words, environment);
}
"""


def test_one_thread_does_all_that_touches_the_disk():
    folder, who = tempdir(), f"{tempdir()}/who"
    weir(*PLUGINS, "-e", f"disk = pcap {folder}/%{{lane}}-%{{seq}}.pcapng rotate-size=1MiB keep-files=5 on-close=true; "
         "numbers lanes=3 count=10000 bytes=1000 -> disk", env={"LD_PRELOAD": in_between(WHO_CALLS), "WHO": who})
    with open(who) as file:
        calls = set(file.read().splitlines())
    assert calls == {f"{call} weir-writer" for call in ("open", "write", "rename", "unlink", "exec")}, calls


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


def input_file(folder):
    path = f"{folder}/in"
    with open(path, "wb") as file:
        file.write(header() + b"".join(record(i, 1000) for i in range(100_000)))
    return path


def slow_capture(source, path):
    """At a pace that mixes whole blocks with parts that are flushed."""
    return Run("-e", f"pcap-replay {source} pace=150Mbps -> pcap {path}", report=False)


def test_readers_never_see_zeros():
    folder = tempdir()
    run, seen = slow_capture(input_file(folder), f"{folder}/x.pcap"), []
    wait_until(lambda: os.path.exists(f"{folder}/x.pcap.part"), 10, "the file")
    while run.process.poll() is None and os.path.exists(f"{folder}/x.pcap.part"):
        with contextlib.suppress(FileNotFoundError):
            look(f"{folder}/x.pcap.part", seen)
    run.wait()
    look(f"{folder}/x.pcap", seen)
    assert seen == sorted(seen) and seen[-1] == 100_000 and len(set(seen)) > 5, seen


def test_killed_at_any_moment():
    """Fifty times: what is there is whole, and each run makes a file of what the last one has left."""
    rng = random.Random(3)
    folder, source, sizes = tempdir(), input_file(tempdir()), []
    for number in range(50):
        ending = rng.choice(("pcap", "pcapng"))
        run = slow_capture(source, f"{folder}/%s.{ending}")
        wait_until(lambda: glob.glob(f"{folder}/*.{ending}.part"), 30, "the file")
        time.sleep(rng.uniform(0, 1) ** 2)
        run.process.kill()
        run.wait()
        for path in glob.glob(f"{folder}/*.pcap.part"):
            look(path, sizes)
    for ending in ("pcap", "pcapng"):
        weir("-e", f"pcap-replay {source} limit=1 -> pcap {folder}/%s.{ending}")
    assert not glob.glob(f"{folder}/*.part") and len(visible(folder)) <= 52, visible(folder)
    for path in glob.glob(f"{folder}/*.pcap"):
        look(path, sizes)
        assert parse(open(path, "rb").read())[1] == 0, path
    for path in glob.glob(f"{folder}/*.pcapng"):
        packets = [captured(body) for kind, body in blocks_of(path) if kind == EPB]
        assert packets == [record(i, 1000)[16:] for i in range(len(packets))], path
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
