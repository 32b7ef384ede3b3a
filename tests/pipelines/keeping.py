#!/usr/bin/python3
"""The pcap sink: which files are kept, whose they are, and what is run for them."""
import contextlib, ctypes, glob, json, os, signal, stat, struct, threading, time
from weirtest import Run, Skip, main, need_root, tempdir, wait_until, weir
from capfiles import MiB, PLUGINS, Feed, counter, header, outcomes, packets_of, record, refused, tmpfs, visible


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
        assert least[0] >= 12 * MiB - 100_000, f"only {least[0]} bytes were free"  # the state file takes some
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


def test_a_damaged_state_file_is_said_and_removes_nothing():
    folder = tempdir()
    with open(f"{folder}/foreign.pcap", "wb") as file:
        file.write(header())
    with open(f"{folder}/.weir-disk", "w") as file:
        file.write("+ 0 1 2 foreign.pcap\n\x01\x02\n+ 0\n")
    run = weir(*PLUGINS, "-e", f"disk = pcap {folder}/%{{seq}}.pcap rotate-packets=1 keep-files=2; numbers count=10 -> disk")
    assert ".weir-disk: 3 damaged lines" in run.stderr
    assert visible(folder) == ["00009.pcap", "00010.pcap", "foreign.pcap"]


def test_a_state_file_that_cannot_be_written_leaves_nothing():
    folder = tempdir()
    os.mkdir(f"{folder}/.weir-disk")
    refused(f"disk = pcap {folder}/%{{seq}}.pcap keep-files=2; numbers -> disk", ".weir-disk: ")
    assert os.listdir(folder) == [".weir-disk"]


def total_bytes(folder):
    """Of the files there; 0 if one came or went while they were looked at."""
    names = visible(folder)
    sizes = {}
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(f"{folder}/{name}")
            sizes[status.st_ino] = status.st_size
    return sum(sizes.values()) if names == visible(folder) else 0


def watched(run, look):
    """The largest that look() has returned while the run went on."""
    most = 0
    while run.process.poll() is None:
        most = max(most, look())
    run.wait()
    assert run.status == 0 and run.report["balanced"] and run.report["lost"] == 0, run.stderr
    return most


def test_size_is_kept_at_full_speed():
    folder = tempdir()
    with open(f"{folder}/foreign.pcap", "wb") as file:
        file.write(b"x" * 1000)
    run = Run(*PLUGINS, "-e", f"disk = pcap {folder}/%{{seq}}.pcap rotate-size=10MiB keep-size=64MiB; "
              "numbers count=800000 bytes=1000 -> disk")
    most = watched(run, lambda: total_bytes(folder))
    assert 40 * MiB < most <= 64 * MiB + 1000, most
    assert total_bytes(folder) <= 64 * MiB + 1000 and "foreign.pcap" in visible(folder)
    assert counter(run, "removed") == counter(run, "files") - len(visible(folder)) + 1 > 60


def test_a_number_of_files_is_kept():
    folder = tempdir()
    run = Run(*PLUGINS, "-e", f"disk = pcap {folder}/%{{seq}}.pcap rotate-size=100KB keep-files=7 keep-age=1h; "
              "numbers count=50000 bytes=1000 -> disk")
    most = watched(run, lambda: len(glob.glob(f"{folder}/*.pcap")))
    files = counter(run, "files")
    assert most <= 7 and visible(folder) == [f"{i:05d}.pcap" for i in range(files - 6, files + 1)]
    assert counter(run, "removed") == counter(run, "removed-early") == files - 7


def test_files_that_somebody_has_taken_away_do_not_count():
    folder = tempdir()
    text = f"disk = pcap {folder}/%{{seq}}.pcap rotate-packets=1 keep-files=4; in -> disk"
    feed = Feed(text)
    feed.write(header() + b"".join(record(i) for i in range(5)))
    wait_until(lambda: "00004.pcap" in visible(folder), 20, "four files")
    os.unlink(f"{folder}/00002.pcap")
    os.unlink(f"{folder}/00003.pcap")
    feed.write(record(5) + record(6))
    run = feed.end()
    assert visible(folder) == ["00004.pcap", "00005.pcap", "00006.pcap", "00007.pcap"] and counter(run, "removed") == 1


def test_restart_in_a_folder_with_foreign_files():
    folder = tempdir()
    text = f"disk = pcap {folder}/%{{node}}-%{{seq}}{{}}.pcap rotate-packets=1 keep-files=3; in -> disk"

    def capture(ending, numbers):
        feed = Feed(text.replace("{}", ending, 1) if ending else text.replace("{}", "", 1))
        feed.write(header() + b"".join(record(i) for i in numbers))
        return feed.end()
    capture("a", range(3))
    ours = visible(folder)
    assert ours == [f"disk-0000{i}a.pcap" for i in (1, 2, 3)]
    # Another one in the place of the first, with its name, size and as far as can be its inode; the second was changed.
    with open(f"{folder}/{ours[0]}", "rb") as file:
        data = file.read()
    os.unlink(f"{folder}/{ours[0]}")
    with open(f"{folder}/{ours[0]}", "wb") as file:
        file.write(data)
    with open(f"{folder}/{ours[1]}", "ab") as file:
        file.write(record(9))
    for name in ("disk-00000a.pcap", "disk.pcap", "notes.txt", ".weir-other"):
        with open(f"{folder}/{name}", "w") as file:
            file.write(name)
        os.utime(f"{folder}/{name}", (0, 0))
    foreign = {*ours[:2], "disk-00000a.pcap", "disk.pcap", "notes.txt"}
    run = capture("b", range(10))
    assert set(visible(folder)) == foreign | {f"disk-000{i:02d}b.pcap" for i in (8, 9, 10)}, visible(folder)
    assert counter(run, "removed") == 8  # seven of its own, and the last one of the first run
    with open(f"{folder}/.weir-other") as file:
        assert file.read() == ".weir-other"


def test_files_closed_on_a_full_disk_are_known_after_a_restart():
    with tmpfs("4m") as folder:
        text = f"disk = pcap {folder}/%{{seq}}{{}}.pcap rotate-packets=1 keep-files=2; in -> disk"
        feed = Feed(text.replace("{}", "a"))
        feed.write(header() + record(1))
        wait_until(lambda: "00001a.pcap.part" in visible(folder), 20, "the first file")
        with open(f"{folder}/filler", "wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * 4096)
        feed.run.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "00001a.pcap" in visible(folder), 20, "its end")
        os.unlink(f"{folder}/filler")

        def written_down():
            with open(f"{folder}/.weir-disk") as file:
                return "00001a.pcap" in file.read()
        wait_until(written_down, 20, "the state file")
        feed.end()
        feed = Feed(text.replace("{}", "b"))
        feed.write(header() + record(2) + record(3))
        assert counter(feed.end(), "removed") == 1 and visible(folder) == ["00001b.pcap", "00002b.pcap"]


def test_limits_that_cannot_be_kept():
    refused(f"numbers -> pcap {tempdir()}/x.pcap rotate-size=2MiB keep-size=1MiB", "keep-size", "rotate-size")
    refused(f"numbers lanes=3 -> pcap {tempdir()}/%{{lane}}.pcap rotate-size=1MiB keep-size=2MiB", "3 times rotate-size")


# ---- Time ----

def test_stop_time_is_packet_time_behind_files():
    folder = tempdir()
    run = weir(*PLUGINS, "-e", f"disk = pcap {folder}/x.pcap stop-time=10s; numbers count=100000000 gap=1ms start=5s -> disk")
    assert outcomes(run)["written"] == len(packets_of(f"{folder}/x.pcap")) == 10000 and run.report["lost"] == 0
    assert packets_of(f"{folder}/x.pcap")[-1][0] == 14_999_000_000


def test_the_day_on_which_summer_time_begins_has_a_file_of_its_own():
    folder = tempdir()
    start = 1774652400  # 2026-03-28 00:00 in Berlin; summer time begins on the 29th
    weir(*PLUGINS, "-e", f"numbers count=96 gap=1h start={start}s -> pcap {folder}/%d-%H.pcap rotate-time=24h clock=local",
         env={"TZ": "CET-1CEST,M3.5.0,M10.5.0/3"})
    assert {n: len(packets_of(f"{folder}/{n}")) for n in visible(folder)} == {
        "28-00.pcap": 24, "29-00.pcap": 23, "30-00.pcap": 24, "31-00.pcap": 24, "01-00.pcap": 1}


def test_empty_files():
    folder = tempdir()
    for word in ("once", "never", "always"):
        weir(*PLUGINS, "-e", f"numbers count=0 -> pcap {folder}/{word}.pcap empty={word}")
    assert visible(folder) == ["always.pcap", "once.pcap"]


# ---- Whose they are ----

def test_owner_group_and_mode():
    need_root()
    folder = tempdir()
    weir(*PLUGINS, "-e", f"numbers count=3 -> pcap {folder}/%Y/x.pcap owner=nobody group=12345 mode=0640")
    made, inside = os.stat(f"{folder}/1970"), os.stat(f"{folder}/1970/x.pcap")
    assert inside.st_uid == made.st_uid == 65534 and inside.st_gid == made.st_gid == 12345
    assert stat.S_IMODE(inside.st_mode) == 0o640 and stat.S_IMODE(made.st_mode) == 0o750
    refused(f"numbers -> pcap {folder}/y.pcap owner=nosuchuser group=nosuchgroup mode=0999", "no user 'nosuchuser'",
            "no group 'nosuchgroup'", "'0999' is no octal mode")


def test_who_cannot_give_files_away_is_refused():
    need_root()
    folder = tempdir()
    os.chmod(folder, 0o777)
    refused(f"numbers -> pcap {folder}/x.pcap owner=root", "owner, group or mode", report=False,
            prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
    run = Run("--user", "nobody", *PLUGINS, "-e", f"numbers -> pcap {folder}/x.pcap owner=root", report=False).wait()
    assert run.status in (1, 2) and "owner, group or mode" in run.stderr and visible(folder) == [], run.stderr


# ---- Commands for closed files ----

def script(folder, text):
    path = f"{folder}/command"
    with open(path, "w") as file:
        file.write(f"#!/bin/sh\n{text}\n")
    os.chmod(path, 0o755)
    return path


def children_of(pid):
    """Of all its threads: the states of processes that it has started and that are still there."""
    states = []
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        with open(task) as file:
            for child in file.read().split():
                try:
                    with open(f"/proc/{child}/stat") as status:
                        states.append(status.read().rsplit(")", 1)[1].split()[0])
                except FileNotFoundError:
                    pass
    return states


def test_a_command_for_each_file():
    folder, log = tempdir(), f"{tempdir()}/log"
    command = script(tempdir(), f'for last; do :; done; test -s "$last" && echo "$@" >> {log}')
    run = weir(*PLUGINS, "-e", f"disk = pcap '{folder}/a b-%{{seq}}.pcap' rotate-packets=100 on-close='{command} -x $HOME;'; "
               "numbers count=2950 -> disk")
    with open(log) as file:
        lines = sorted(file.read().splitlines())
    assert lines == [f"-x $HOME; {folder}/a b-{i:05d}.pcap" for i in range(1, 31)], lines
    assert counter(run, "commands") == counter(run, "files") == 30 and counter(run, "commands-failed") == 0


def test_commands_are_few_at_a_time_and_leave_no_zombies():
    folder, held = tempdir(), tempdir()
    command = script(tempdir(), f'echo > "{held}/$(basename "$1")"; while [ -e {held}/hold ]; do sleep 0.05; done')
    with open(f"{held}/hold", "w"):
        pass
    feed = Feed(f"disk = pcap {folder}/%{{seq}}.pcap rotate-packets=1 on-close={command} on-close-jobs=2; in -> disk")
    feed.write(header() + b"".join(record(i) for i in range(6)))
    wait_until(lambda: len(os.listdir(held)) == 3 and len(visible(folder)) == 6, 20, "two commands")
    assert len(children_of(feed.run.process.pid)) == 2 and len(os.listdir(held)) == 3
    os.unlink(f"{held}/hold")
    wait_until(lambda: len(os.listdir(held)) == 5 and not children_of(feed.run.process.pid), 20, "all to end, and be reaped")
    run = feed.end()
    assert sorted(os.listdir(held)) == [f"{i:05d}.pcap" for i in range(1, 7)] and counter(run, "commands") == 6


def test_commands_that_fail_are_named():
    folder, ledger = tempdir(), f"{tempdir()}/ledger"
    command = script(tempdir(), 'case "$1" in */00001.pcap) exit 7;; */00002.pcap) kill -9 $$;; esac')
    run = weir(*PLUGINS, "--ledger", ledger, "-e",
               f"disk = pcap {folder}/%{{seq}}.pcap rotate-packets=10 on-close={command}; numbers count=30 -> disk")
    with open(ledger) as file:
        failed = [line["detail"] for line in map(json.loads, file) if line["event"] == "command-failed"]
    assert sorted(failed) == [f"{command} {folder}/00001.pcap ended with status 7",
                              f"{command} {folder}/00002.pcap was ended by signal 9"], failed
    assert counter(run, "commands") == 3 and counter(run, "commands-failed") == 2 and run.status == 0
    refused(f"numbers -> pcap {folder}/x.pcap on-close=no-such-program", "on-close", "no-such-program")
    refused(f"numbers -> pcap {folder}/x.pcap on-close={folder}/00001.pcap", "on-close", "may be run")


def test_the_end_waits_for_commands_but_not_for_ever():
    folder, ended = tempdir(), tempdir()
    slow = script(tempdir(), f'sleep 0.5; echo > "{ended}/$(basename "$1")"')
    weir(*PLUGINS, "-e", f"numbers count=30 -> pcap {folder}/%{{seq}}.pcap rotate-packets=10 on-close={slow} on-close-jobs=1")
    assert len(os.listdir(ended)) == 3
    stuck = script(tempdir(), f"echo $$ >> {ended}/pids; exec sleep 1000")
    started = time.monotonic()
    run = weir(*PLUGINS, "-e", f"disk = pcap {folder}/b%{{seq}}.pcap rotate-packets=10 on-close={stuck} on-close-jobs=1 "
               "on-close-wait=1s; numbers count=30 -> disk", balanced=True)
    took = time.monotonic() - started
    with open(f"{ended}/pids") as file:
        for pid in file.read().split():
            os.kill(int(pid), signal.SIGKILL)
    assert 1 <= took < 20 and counter(run, "commands") == 1 and counter(run, "commands-failed") == 3, run.stderr
    assert "left alone" in run.stderr and "not run" in run.stderr, run.stderr


def test_recovered_files_get_their_command():
    folder, log = tempdir(), f"{tempdir()}/log"
    command = script(tempdir(), f'echo "$1" >> {log}')
    text = f"disk = pcap {folder}/%s.pcap on-close={command}; in -> disk"
    feed = Feed(text)
    feed.write(header() + record(0))
    wait_until(lambda: os.path.exists(f"{folder}/0.pcap.part") and packets_of(f"{folder}/0.pcap.part"), 20, "the packet")
    feed.run.process.kill()
    feed.run.wait()
    assert not os.path.exists(log)
    again = Feed(text)
    again.write(header())
    again.end()
    with open(log) as file:
        lines = file.read().splitlines()
    assert sorted(lines) == [f"{folder}/0.pcap", *(f"{folder}/{n}" for n in visible(folder) if n != "0.pcap")], lines


# ---- Who watches the folder ----

IN_CREATE, IN_MOVED_TO, IN_NONBLOCK = 0x100, 0x80, 0o4000


def arrivals(fd):
    """Names that have come by inotify."""
    try:
        data = os.read(fd, 1 << 20)
    except BlockingIOError:
        return []
    names, at = [], 0
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 12)[0]
        names.append(data[at + 16:at + 16 + size].rstrip(b"\0").decode())
        at += 16 + size
    return names


def test_a_file_is_complete_when_its_name_appears():
    folder = tempdir()
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(IN_NONBLOCK)
    if fd < 0 or libc.inotify_add_watch(fd, folder.encode(), IN_CREATE | IN_MOVED_TO) < 0:
        raise Skip("inotify cannot be used")
    seen = {}

    def look():
        for name in arrivals(fd):
            if name.endswith(".pcap"):
                assert name not in seen, f"{name} appeared twice"
                seen[name] = len(packets_of(f"{folder}/{name}"))
    run = Run(*PLUGINS, "-e", f"disk = pcap {folder}/%s.pcap rotate-size=100KB; numbers count=20000 bytes=1000 -> disk")
    while run.process.poll() is None:
        look()
    look()
    os.close(fd)
    run.wait()
    assert run.status == 0 and set(seen) == set(visible(folder)) and sum(seen.values()) == 20000, run.stderr


main()
