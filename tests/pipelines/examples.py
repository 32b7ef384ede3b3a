#!/usr/bin/python3
"""Every pipeline of pipelines/ at work, with interfaces, folders and endpoints of the test's own."""
import glob, json, os, socket, struct, subprocess
from datetime import datetime

import frames as f
import weirtest as t

FOLDER = os.path.join(t.TOP, "pipelines")
KEY, OTHER, THIRD = "10.0.0.5", "10.0.0.6", "10.0.0.7"
SERVER = "10.0.0.100"


def segment(host, number, sport, dport, payload_bytes=600, ttl=64, mac=f.MACS):
    frame = f.ether(f.IP, f.ipv4(6, f.tcp(bytes(payload_bytes), sport, dport), host, SERVER, ident=number))
    head = bytearray(frame[14:34])
    head[8], head[10:12] = ttl, b"\0\0"
    head[10:12] = struct.pack(">H", f.checksum(bytes(head)))
    return mac + frame[12:14] + bytes(head) + frame[34:]


def datagram(host, number, sport, dport, payload_bytes=60):
    return f.ether(f.IP, f.ipv4(17, f.udp(bytes(payload_bytes), sport, dport), host, SERVER, ident=number))


def mixed(n=600):
    """Of each kind n / 6: the key host's web traffic, others' web, ssh, DNS, rsync, and something odd."""
    kinds = [lambda i: segment(KEY, i, 1000 + i % 20, 80), lambda i: segment(OTHER, i, 1000 + i % 20, 443),
             lambda i: segment(THIRD, i, 1000 + i % 20, 22), lambda i: datagram(OTHER, i, 1000 + i % 20, 53),
             lambda i: segment(OTHER, i, 1000 + i % 20, 873), lambda i: segment(THIRD, i, 1000 + i % 20, 31337)]
    return [kinds[i % 6](i) for i in range(n)]


def text(name):
    return os.path.join(FOLDER, name + ".weir")


def options(**values):
    return [word for name, value in values.items() for word in ("--set", f"{name.replace('_', '-')}={value}")]


def example(name, netns=None, more=(), stdout=subprocess.PIPE, **values):
    return t.Run(text(name), *options(**values), *more, netns=netns, stdout=stdout)


def records(path, expression=""):
    """What tcpdump reads from a capture file: (ts_ns, wirelen, bytes)."""
    t.need_program("tcpdump")
    out = os.path.join(t.tempdir(), "out.pcap")
    subprocess.run(["tcpdump", "-Z", "root", "--nano", "-nr", path, "-w", out, expression], check=True,
                   stderr=subprocess.PIPE)
    return f.read_pcap(out)


def bytes_in(folder, expression=""):
    """Of all files there, in order of their names."""
    return [frame for path in sorted(glob.glob(os.path.join(folder, "*.pcap*"))) for _, _, frame in records(path, expression)]


def done(run):
    run.wait()
    assert run.status == 0 and run.report["balanced"] is True and run.report["lost"] == 0, f"{run.status}: {run.stderr}"
    return run.report


def stopped(run):
    run.stop()
    return done(run)


class Subscriber:
    """A run of zmq-source that hears its publisher already."""

    def __init__(self, name, **values):
        self.ledger = os.path.join(t.tempdir(), "ledger")
        self.run = example(name, more=["--ledger", self.ledger, "--stats", "100ms", "--quiet"], **values)

    def heard(self):
        t.wait_until(lambda: self.run.process.poll() is not None or
                     (os.path.exists(self.ledger) and '"publishers"' in open(self.ledger).read()), 60, "nothing heard")
        return self


def needs():
    t.need_root()
    t.need_program("ip")


def endpoint():
    return f"ipc://{t.tempdir()}/stream"


def test_heads_and_keys():
    needs()
    sent, folder, stream, copies = mixed(), t.tempdir(), endpoint(), t.tempdir()
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = example("heads-and-keys", ns, iface=b, folder=folder, stream=stream, free="0%", queue="16MiB")
        run.wait_for("running")
        subscriber = Subscriber("collector", sensors=stream, folder=copies, until_end="yes", free="0%").heard()
        f.send(ns, a, sent)
        report = stopped(run)
        done(subscriber.run)
    keys = [frame for frame in sent if socket.inet_aton(KEY) in frame]
    assert 0 < len(keys) < len(sent)
    assert sorted(bytes_in(folder)) == sorted(frame if frame in keys else frame[:128] for frame in sent)
    assert f.node(report, "keys")["outputs"]["match"]["packets"] == len(keys)
    assert sorted(bytes_in(copies)) == sorted(sent)


def test_ids_feed_to_two_workers():
    needs()
    sent, stream = mixed(), endpoint()
    wanted = [frame for frame in sent if frame[36:38] != struct.pack(">H", 873)]
    assert 0 < len(wanted) < len(sent)
    with t.Namespace() as ns:
        a, b = ns.veth()
        feed = example("ids-feed", ns, iface=b, stream=stream, ring="16MiB", queue="16MiB")
        feed.wait_for("running")
        paths = [os.path.join(t.tempdir(), "out.pcap") for _ in range(2)]
        workers = []
        for lane, path in enumerate(paths):
            with open(path, "wb") as out:
                workers.append(Subscriber("ids-worker", stream=stream, lane=f"{lane:02}", until_end="yes", stdout=out))
        for worker in workers:
            worker.heard()
        f.send(ns, a, sent)
        report = stopped(feed)
        for worker in workers:
            done(worker.run)
    got = [f.bytes_of(records(path)) for path in paths]
    assert all(got) and sorted(got[0] + got[1]) == sorted(wanted)
    flows = [{frame[23:24] + frame[26:38] for frame in part} for part in got]
    assert not flows[0] & flows[1], "a flow went to both workers"
    assert f.node(report, "tap")["outputs"]["out"]["packets"] == len(wanted), "the kernel kept out too little or too much"


def write_timed(path, frames, gap_ns):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 262144, 1))
        for i, frame in enumerate(frames):
            at = 1_700_000_000 * 10**9 + i * gap_ns
            file.write(struct.pack("<IIII", at // 10**9, at % 10**9, len(frame), len(frame)) + frame)


def test_replay_to_an_analyzer():
    t.need_program("tcpdump")
    path = os.path.join(t.tempdir(), "in.pcap")
    write_timed(path, mixed(60) + [f.ether(f.ARP, bytes(28))], 50_000_000)
    run = example("replay-to-analyzer", file=path, pace="x10")
    analyzer = t.bound_to_test(subprocess.Popen(["tcpdump", "-Z", "root", "-nttr", "-"], stdin=run.process.stdout,
                                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
    run.process.stdout.close()
    run.process.stdout = None
    lines = analyzer.communicate(timeout=60)[0].splitlines()
    report = done(run)
    assert len(lines) == 60 and not any("ARP" in line for line in lines), lines
    # 61 packets 50 ms apart are 3 s of traffic, at ten times the speed 0.3 s.
    seconds = float(lines[-1].split()[0]) - float(lines[0].split()[0])
    assert abs(seconds - 2.95) < 1e-3, seconds
    took = (datetime.fromisoformat(report["end"]) - datetime.fromisoformat(report["start"])).total_seconds()
    assert 0.29 < took < 20, took


def test_sensors_and_collector():
    needs()
    sent, streams, folder = mixed(), [endpoint(), endpoint()], t.tempdir()
    with t.Namespace() as ns:
        a, b = ns.veth()
        sensors = [example("sensor", ns, iface=interface, stream=stream, sensor=name, queue="8MiB")
                   for interface, stream, name in ((b, streams[0], "paris"), (a, streams[1], "oslo"))]
        for sensor in sensors:
            sensor.wait_for("running")
        collector = example("collector", sensors=",".join(streams), folder=folder, free="0%",
                            more=["--ledger", os.path.join(folder, "ledger"), "--stats", "100ms"], until_end="yes")
        t.wait_until(lambda: publishers(os.path.join(folder, "ledger")) == 2, 60, "two publishers heard")
        f.send(ns, a, sent)
        for sensor in sensors:
            stopped(sensor)
        report = done(collector)
    assert sorted(bytes_in(folder)) == sorted(frame[:256] for frame in sent + sent)
    assert report["nodes"][0]["counters"]["lost-upstream"] == 0


def publishers(ledger):
    """How many have been heard: the ledger has differences, of which this is the sum."""
    if not os.path.exists(ledger):
        return 0
    found = [json.loads(line) for line in open(ledger) if line.endswith("\n")]
    return sum(node.get("counters", {}).get("publishers", 0) for line in found if line["event"] == "interval"
               for node in line.get("nodes", {}).values())


def test_three_sites_and_their_collector():
    needs()
    sent, folder, keys = mixed(60), t.tempdir(), t.tempdir()
    names = ["paris", "oslo", "rome"]
    for name in names + ["collector"]:
        subprocess.run([t.WEIR, "keygen", f"{keys}/{name}"], check=True)
    streams = [endpoint() for _ in names]
    with t.Namespace() as ns:
        (a, b), (c, d) = ns.veth(), ns.veth("veth2", "veth3")
        sites = [example("site", ns, iface=interface, stream=stream, site=name, queue="8MiB", key=f"{keys}/{name}",
                         allow=f"{keys}/collector.pub") for interface, stream, name in zip((b, d, c), streams, names)]
        for site in sites:
            site.wait_for("running")
        collector = example("three-sites", sites=",".join(streams), key=f"{keys}/collector", folder=folder, free="0%",
                            keys=",".join(f"{keys}/{name}.pub" for name in names), stream=endpoint(),
                            more=["--ledger", os.path.join(folder, "ledger"), "--stats", "100ms"], until_end="yes")
        t.wait_until(lambda: publishers(os.path.join(folder, "ledger")) == 3, 60, "three publishers heard")
        f.send(ns, a, sent)
        f.send(ns, c, sent)
        for site in sites:
            stopped(site)
        done(collector)
    assert sorted(bytes_in(folder)) == sorted(frame[:256] for frame in sent * 3)
    with open(os.path.join(folder, "ledger")) as file:
        ends = [line["detail"] for line in map(json.loads, file) if line["event"] == "stream-ended"]
    assert sorted(end.split("/")[0] for end in ends) == sorted(names) and all(": 60 packets, 0 lost" in end for end in ends), ends


def test_ids_node_with_four_programs():
    needs()
    sent, folder, logs = mixed(), t.tempdir(), t.tempdir()
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = example("ids-node", ns, iface=b, ring="16MiB", queue="16MiB", folder=folder, free="0%",
                      ids=f"/bin/sh -c 'exec cat >{logs}/%{{lane}}'")
        run.wait_for("running")
        f.send(ns, a, sent)
        stopped(run)
    got = [f.bytes_of(records(os.path.join(logs, lane))) for lane in sorted(os.listdir(logs))]
    assert len(got) == 4 and all(got) and sorted(sum(got, [])) == sorted(sent) == sorted(bytes_in(folder))
    flows = [{frame[23:24] + frame[26:38] for frame in part} for part in got]
    assert sum(map(len, flows)) == len(set().union(*flows)), "a flow went to two programs"


def test_span_archive():
    needs()
    originals = [segment(KEY, i, 1000, 80) for i in range(300)]
    copies = [segment(KEY, i, 1000, 80, ttl=63, mac=bytes.fromhex("020000000003" "020000000004")) for i in range(300)]
    folder = t.tempdir()
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = example("span-archive", ns, iface=b, folder=folder, free="0%", ring="16MiB", window="1s")
        run.wait_for("running")
        f.send(ns, a, [frame for pair in zip(originals, copies) for frame in pair])
        report = stopped(run)
    assert bytes_in(folder) == originals
    assert f.node(report, "once")["outputs"]["duplicate"]["packets"] == len(copies)


def test_triage():
    sent, folder = mixed(), t.tempdir()
    path = os.path.join(folder, "in.pcap")
    f.write_pcap(path, sent)
    out = t.tempdir()
    done(example("triage", file=path, folder=out))
    # mixed() makes six kinds in turn: two of them are web, and the last two are nobody's.
    expected = {"names": sent[3::6], "people": sent[2::6],
                "web-heads": [frame[:200] for i, frame in enumerate(sent) if i % 6 < 2],
                "rest": [frame for i, frame in enumerate(sent) if i % 6 > 3]}
    assert sorted(os.listdir(out)) == sorted(name + ".pcapng" for name in expected)
    for name, wanted in expected.items():
        assert f.bytes_of(records(os.path.join(out, name + ".pcapng"))) == wanted, name


def test_look():
    needs()
    sent = mixed()
    wanted = sent[3::6]
    with t.Namespace() as ns:
        a, b = ns.veth()
        run = example("look", netns=ns, iface=b, filter="udp port 53", port=57112)
        run.wait_for("running")
        with f.inside(ns):
            client = socket.create_connection(("127.0.0.1", 57112))
        header = client.recv(24, socket.MSG_WAITALL)
        assert header[:4] == b"\xd4\xc3\xb2\xa1" and header[20:] == b"\1\0\0\0"
        f.send(ns, a, sent)
        seen = []
        while len(seen) < len(wanted):
            caplen = struct.unpack("<I", client.recv(16, socket.MSG_WAITALL)[8:12])[0]
            seen.append(client.recv(caplen, socket.MSG_WAITALL))
        assert seen == wanted and seen
        client.close()
        stopped(run)


def test_replay_to_interface():
    needs()
    sent = mixed()
    path, seen = (os.path.join(t.tempdir(), name) for name in ("day.pcap", "seen.pcap"))
    f.write_pcap(path, sent)
    with t.Namespace() as ns:
        a, b = ns.veth()
        analyzer = f.started(ns, f"tap = afpacket {b} direction=in; tap -> pcap {seen}")
        done(example("replay-to-interface", netns=ns, file=path, iface=a))
        stopped(analyzer)
    assert f.bytes_of(f.read_pcap(seen)) == [bytes.fromhex("020000000001") + frame[6:] for frame in sent]


def test_every_example_is_run_and_says_for_whom():
    with open(__file__) as file:
        source = file.read()
    names = [os.path.basename(path)[:-5] for path in sorted(glob.glob(os.path.join(FOLDER, "*.weir")))]
    assert len(names) >= 6
    for name in names:
        assert f'"{name}"' in source, f"{name} is not run by any test"
        with open(text(name)) as file:
            assert file.readline().startswith("# For "), name
        subprocess.run([t.WEIR, "check", text(name)], check=True, stderr=subprocess.PIPE)


t.main()
