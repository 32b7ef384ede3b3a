#!/usr/bin/python3
"""What pcapng files say besides packets: who made them, out of what, what was lost, and keys of TLS."""
import hashlib, os, platform, re, struct, subprocess
from weirtest import main, need_shared, tempdir, wait_until, weir
from capfiles import (DSB, EPB, IDB, ISB, PLUGINS, SHB, Feed, blocks_of, counter, header, options_of,
                      outcomes, record, refused, statistics_of, tcpdump_count, tmpfs, visible)

KEY = "CLIENT_RANDOM " + "ab" * 32 + " " + "cd" * 48


def kinds(path):
    return [kind for kind, _ in blocks_of(path)]


def tool(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


# ---- Where a file comes from ----

def test_the_section_says_what_has_made_it():
    folder = tempdir()
    text = f"# why\nnumbers count=3 -> pcap {folder}/x.pcapng"
    weir(*PLUGINS, "-e", text)
    section = options_of(blocks_of(f"{folder}/x.pcapng")[0][1], 16)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    assert section[1].decode() == f"pipeline sha256:{checksum}\n{text}"
    assert section[2].decode() == platform.machine()
    assert section[3].decode() == f"{platform.system()} {platform.release()}" and section[4].startswith(b"Weir ")
    shown = tool("capinfos", f"{folder}/x.pcapng")
    assert checksum in shown and "numbers count=3" in shown, shown


def test_a_long_pipeline_leaves_room_for_packets():
    folder = tempdir()
    text = f"# {'x' * 3000}\nnumbers count=30 bytes=1000 -> pcap {folder}/%{{seq}}.pcapng rotate-size=4KiB"
    run = weir(*PLUGINS, "-e", text)
    first = f"{folder}/00001.pcapng"
    assert run.report["lost"] == 0 and max(os.path.getsize(f"{folder}/{n}") for n in visible(folder)) <= 4096
    comment = options_of(blocks_of(first)[0][1], 16)[1].decode()
    assert comment == f"pipeline sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    weir(*PLUGINS, "-e", text.replace("%{seq}", "whole").replace("rotate-size=4KiB", ""))
    assert text.split("\n")[0] in options_of(blocks_of(f"{folder}/whole.pcapng")[0][1], 16)[1].decode()


def test_interfaces_say_their_name_resolution_and_filter():
    folder = tempdir()
    weir(*PLUGINS, "-e", f"""in = numbers count=10; a = bpf "udp port 53"; b = bpf "ip"
         in -> a -> b -> pcap {folder}/both.pcapng
         a.rest -> pcap {folder}/rest.pcapng
         in -> queue 2MiB -> pcap {folder}/all.pcapng
         either = pcap {folder}/either.pcapng; a -> either; b.rest -> either""")
    wanted = {"both": "(udp port 53) and (ip)", "rest": "not (udp port 53)", "all": None,
              "either": "((udp port 53)) or ((udp port 53) and not (ip))"}
    for name, text in wanted.items():
        interfaces = [options_of(body, 8) for kind, body in blocks_of(f"{folder}/{name}.pcapng") if kind == IDB]
        assert len(interfaces) == 1 and interfaces[0][2] == b"numbers0" and interfaces[0][9] == b"\x09", interfaces
        assert interfaces[0][12].decode() == f"{platform.system()} {platform.release()}"
        assert interfaces[0].get(11) == (b"\0" + text.encode() if text else None), interfaces[0]
        assert struct.unpack_from("<I", next(b for k, b in blocks_of(f"{folder}/{name}.pcapng") if k == IDB), 4) == (262144,)


# ---- What was lost ----

def test_statistics_are_those_of_the_ledger():
    folder = tempdir()
    run = weir(*PLUGINS, "-e", f"disk = pcap {folder}/x.pcapng rotate-packets=400; numbers count=900 -> disk")
    node = next(n for n in run.report["nodes"] if n["name"] == "disk")
    assert statistics_of(f"{folder}/x-2.pcapng")[-1] == (0, {
        "received": run.report["nodes"][0]["counters"]["made"], "accepted": node["in"]["packets"],
        "delivered": node["outputs"]["written"]["packets"]})
    for name in visible(folder):
        assert kinds(f"{folder}/{name}")[-1] == ISB and tcpdump_count(f"{folder}/{name}") in (100, 400), name
    assert statistics_of(f"{folder}/x.pcapng")[-1][1]["delivered"] == 400


def test_statistics_of_each_lane_add_up():
    folder = tempdir()
    run = weir(*PLUGINS, "-e", f"disk = pcap {folder}/%{{lane}}.pcapng; numbers lanes=3 count=1000 -> disk")
    found = [statistics_of(f"{folder}/{lane}.pcapng")[-1][1] for lane in range(3)]
    assert sum(f["accepted"] for f in found) == 3000 and {f["received"] for f in found} == {3000}, found
    assert run.report["nodes"][0]["counters"]["made"] == 3000


def test_statistics_every_minute():
    folder = tempdir()
    weir(*PLUGINS, "-e", f"numbers count=25600 gap=10ms -> pcap {folder}/x.pcapng")
    found = statistics_of(f"{folder}/x.pcapng")
    assert len(found) == 4 + 1, found  # 256 s
    assert [f["delivered"] for _, f in found] == sorted(f["delivered"] for _, f in found) and found[-1][1]["delivered"] == 25600
    stamps = [struct.unpack_from("<II", body, 4) for kind, body in blocks_of(f"{folder}/x.pcapng") if kind == ISB]
    assert stamps == sorted(stamps), stamps
    shown = tool("tshark", "-r", f"{folder}/x.pcapng", "-T", "fields", "-e", "frame.number")
    assert len(shown.split()) == 25600


def test_statistics_keep_within_the_limits():
    folder = tempdir()
    weir(*PLUGINS, "-e", f"numbers count=3000 gap=100ms bytes=200 -> pcap {folder}/%{{seq}}.pcapng rotate-size=10KB")
    assert max(os.path.getsize(f"{folder}/{n}") for n in visible(folder)) <= 10000
    assert all(kinds(f"{folder}/{n}")[-1] == ISB for n in visible(folder))
    weir(*PLUGINS, "-e", f"numbers count=1000000 gap=100ms bytes=200 -> pcap {folder}/stop.pcapng stop-size=100KB")
    assert 99_000 < os.path.getsize(f"{folder}/stop.pcapng") <= 100_000


def test_a_second_interface_has_its_own_statistics():
    folder = tempdir()
    source = need_shared("captures/wireshark__many_interfaces.pcapng.1.pcapng")
    run = weir("-e", f"disk = pcap {folder}/x.pcapng; pcap-replay {source} -> disk")
    found = statistics_of(f"{folder}/x.pcapng")
    per_interface = {}
    for kind, body in blocks_of(f"{folder}/x.pcapng"):
        if kind == EPB:
            number = struct.unpack_from("<I", body)[0]
            per_interface[number] = per_interface.get(number, 0) + 1
    assert {n: f["delivered"] for n, f in found} == per_interface and len(per_interface) > 1
    assert sum(per_interface.values()) == outcomes(run)["written"]


def test_an_empty_capture_names_its_interfaces():
    folder = tempdir()
    weir(*PLUGINS, "-e", f"numbers count=0 -> pcap {folder}/x.pcapng")
    assert kinds(f"{folder}/x.pcapng") == [SHB, IDB, ISB]
    assert statistics_of(f"{folder}/x.pcapng") == [(0, {"received": 0, "accepted": 0, "delivered": 0})]


def test_the_end_of_a_file_has_no_room():
    with tmpfs("1m") as folder:
        run = weir(*PLUGINS, "-e", f"disk = pcap {folder}/x.pcapng; numbers count=3000 bytes=1000 -> disk")
        parts = outcomes(run)
        assert parts["written"] + parts["disk-full"] == 3000 and tcpdump_count(f"{folder}/x.pcapng") == parts["written"]


# ---- Keys ----

def keys_in(path):
    found = b""
    for kind, body in blocks_of(path):
        if kind == DSB:
            secret, size = struct.unpack_from("<II", body)
            assert secret == 0x544c534b
            found += body[8:8 + size]
    return found.decode()


def test_keys_are_written_as_they_come():
    folder = tempdir()
    log = f"{tempdir()}/keys"
    feed = Feed(f"disk = pcap {folder}/x.pcapng tls-keys={log}; in -> disk")
    feed.write(header() + record(1))
    feed.run.wait_for("running")
    lines = [KEY.replace("ab", f"{i:02x}") for i in range(3)]
    with open(log, "w") as file:  # appears only now, with a line that is none, and one that is not whole yet
        file.write(f"# a comment\n-----BEGIN PRIVATE KEY-----\n{lines[0]}\n{lines[1][:50]}")
    part = f"{folder}/x.pcapng.part"
    wait_until(lambda: os.path.exists(part) and lines[0] in keys_in(part), 20, "the first key")
    with open(log, "a") as file:
        file.write(f"{lines[1][50:]}\n")
    wait_until(lambda: lines[1] in keys_in(part), 20, "the second key")
    os.rename(log, log + ".old")
    with open(log, "w") as file:
        file.write(f"{lines[2]}\n")
    wait_until(lambda: lines[2] in keys_in(part), 20, "the key in the new log")
    feed.write(record(2))
    run = feed.end()
    assert keys_in(f"{folder}/x.pcapng").split("\n") == [*lines, ""] and counter(run, "tls-keys") == 3
    assert tcpdump_count(f"{folder}/x.pcapng") == 2


def order_of_keys_and_packets():
    """Of a packet that is written, and of a key and two packets that come together."""
    folder = tempdir()
    log = f"{tempdir()}/keys"
    feed = Feed(f"in -> pcap {folder}/x.pcapng tls-keys={log}")
    feed.write(header() + record(1))
    part = f"{folder}/x.pcapng.part"
    wait_until(lambda: os.path.exists(part) and EPB in kinds(part), 20, "the first packet")
    feed.write(record(2) + record(3))
    with open(log, "w") as file:
        file.write(f"{KEY}\n")
    wait_until(lambda: DSB in kinds(part), 20, "the key")
    feed.end()
    return [kind for kind in kinds(f"{folder}/x.pcapng") if kind in (EPB, DSB)]


def test_keys_come_before_packets_that_are_not_written_yet():
    """Packets wait for a second: a machine that stalls for so long writes them before the key is there."""
    orders = []
    while len(orders) < 5 and [EPB, DSB, EPB, EPB] not in orders:
        orders.append(order_of_keys_and_packets())
    assert orders[-1] == [EPB, DSB, EPB, EPB], orders


def test_every_file_has_the_keys_so_far():
    folder = tempdir()
    log = f"{tempdir()}/keys"
    with open(log, "w") as file:
        file.write("".join(KEY.replace("ab", f"{i:02x}") + "\n" for i in range(200)))
    feed = Feed(f"in -> pcap {folder}/%{{seq}}.pcapng tls-keys={log} rotate-size=8KiB")
    feed.write(header() + record(0))
    part, last = f"{folder}/00001.pcapng.part", KEY.replace("ab", "c7")
    wait_until(lambda: os.path.exists(part) and last in keys_in(part), 20, "keys")
    feed.write(b"".join(record(i, 1000) for i in range(1, 50)))
    feed.end()
    for name in visible(folder):
        keys = keys_in(f"{folder}/{name}").splitlines()
        assert keys and keys[-1] == last and all(re.fullmatch(r"CLIENT_RANDOM \w{64} \w{96}", k) for k in keys)
        # A first file that was there before the keys were read has got all of them.
        assert len(keys) == 200 or os.path.getsize(f"{folder}/{name}") <= 8192, name


def test_keys_in_classic_pcap():
    refused(f"numbers -> pcap {tempdir()}/x.pcap tls-keys=/tmp/keys", "classic pcap cannot hold keys", ".pcapng")


main()
