#!/usr/bin/python3
"""The pcap sink: which files are kept, whose they are, and what is run for them."""
import os, threading
from weirtest import Run, main, tempdir, wait_until, weir
from capfiles import MiB, PLUGINS, Feed, counter, header, record, refused, tmpfs, visible


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


main()
