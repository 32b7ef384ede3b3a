#!/usr/bin/python3
"""The pcap sink: what its files hold, their names, and what is refused."""
import calendar, glob, os, random, re, shutil, signal, struct, subprocess
from weirtest import SANITIZED, Run, main, need_root, need_shared, tempdir, wait_until, weir
from capfiles import (MiB, PLUGINS, Feed, canonical, counter, header, numbers_of, outcomes, packets_of, record, refused,
                      tcpdump_count, tmpfs, visible)


# ---- What files hold ----

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


def test_names_and_times_that_a_file_cannot_have():
    refused(f"numbers -> pcap {tempdir()}/x.pcap.part", "not complete yet")
    refused(f"numbers -> pcap {tempdir()}/x.pcapng precision=us", "for classic pcap")


main()
