#!/usr/bin/python3
"""Other programs on the stream: each must report what there is in the capture, however it comes to them."""
import collections, json, os, re, socket, struct, subprocess, sys

import frames as f
import weirtest as t

FOLDER = "consumers"


def capture(*options):
    """(path, what a consumer must report)."""
    path = os.path.join(t.tempdir(), "lab.pcap")
    done = subprocess.run([sys.executable, t.need_shared(f"{FOLDER}/gen_pcap.py"), path, *options], check=True,
                          stdout=subprocess.PIPE)
    return path, json.loads(done.stdout)


def done(run):
    run.wait()
    assert run.status == 0 and run.report["balanced"] is True and run.report["lost"] == 0, run.stderr
    return run


# ---- Suricata ----

def suricata_command(folder, *source):
    t.need_program("suricata")
    return ["suricata", "-c", t.need_shared(f"{FOLDER}/suricata.yaml"), "-S", t.need_shared(f"{FOLDER}/lab.rules"),
            "-l", folder, "-k", "none", *source]


def suricata(*source, prefix=(), **more):
    """Started; its logs are in .folder."""
    folder = t.tempdir()
    process = t.bound_to_test(subprocess.Popen([*prefix, *suricata_command(folder, *source)], stdout=subprocess.PIPE,
                                               stderr=subprocess.STDOUT, text=True, **more))
    process.folder = folder
    return process


def events_of(folder):
    with open(os.path.join(folder, "eve.json")) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def seen_by_suricata(folder):
    """(alerts, packets)"""
    events = events_of(folder)
    stats = [event["stats"] for event in events if event["event_type"] == "stats"]
    return sum(event["event_type"] == "alert" for event in events), stats[-1]["decoder"]["pkts"]


def check(process, expected):
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 0 and "\nE: " not in said, said
    assert seen_by_suricata(process.folder) == (expected["alerts"], expected["packets"])


def test_suricata_at_the_end_of_a_pipe():
    t.need_program("suricata")
    path, expected = capture()
    run = t.Run("-e", f"pcap-replay {path} -> pipe -")
    process = suricata("-r", "/dev/stdin", stdin=run.process.stdout)
    run.process.stdout.close()
    run.process.stdout = None
    check(process, expected)
    done(run)


def test_suricata_at_a_fifo():
    path, expected = capture()
    fifo = os.path.join(t.tempdir(), "fifo")
    os.mkfifo(fifo)
    process = suricata("-r", fifo)
    t.weir("-e", f"pcap-replay {path} -> pipe {fifo}")
    check(process, expected)


def test_suricata_at_a_fifo_behind_zeromq():
    t.need_program("suricata")
    path, expected = capture()
    folder = t.tempdir()
    fifo, stream = os.path.join(folder, "fifo"), f"ipc://{folder}/stream"
    os.mkfifo(fifo)
    process = suricata("-r", fifo)
    reader = t.Run("-e", f"zmq-source {stream} until-end=yes -> pipe {fifo}")
    t.weir("-e", f"pcap-replay {path} -> zmq {stream} wait-for=1")
    done(reader)
    check(process, expected)


def test_suricata_on_rotated_files():
    t.need_program("suricata")
    path, expected = capture()
    folder = t.tempdir()
    t.weir("-e", f"pcap-replay {path} -> pcap {folder}/%{{seq}}.pcap rotate-packets=200 precision=us")
    assert len(os.listdir(folder)) == -(-expected["packets"] // 200)
    check(suricata("-r", folder), expected)


def test_suricata_behind_a_tcp_port():
    t.need_program("suricata")
    path, expected = capture()
    sender = t.Run("-e", f"pcap-replay {path} -> pcap-over-ip 127.0.0.1:0")
    sender.wait_for("listens on 127.0.0.1:")
    port = re.search(r"listens on 127.0.0.1:(\d+)", sender.stderr).group(1)
    reader = t.Run("-e", f"pcap-over-ip-source 127.0.0.1:{port} until-end=yes -> pipe -")
    process = suricata("-r", "/dev/stdin", stdin=reader.process.stdout)
    reader.process.stdout.close()
    reader.process.stdout = None
    check(process, expected)
    done(sender)
    done(reader)


def test_suricata_that_sniffs_an_interface():
    t.need_root()
    t.need_program("suricata")
    path, expected = capture()
    with t.Namespace() as ns:
        out, into = ns.veth()
        process = suricata(f"--af-packet={into}", "--runmode", "workers", prefix=["ip", "netns", "exec", str(ns)])
        for line in process.stdout:
            if "Engine started" in line:
                break
        t.weir("-e", f"pcap-replay {path} -> inject {out} pace=20kpps dst-mac=02:00:00:00:00:01", netns=ns)
        t.wait_until(lambda: sum(event["event_type"] == "alert" for event in events_of(process.folder)) >= expected["alerts"],
                     what="too few alerts")
        process.terminate()
        check(process, expected)


def four_suricatas(text, path):
    """The folders of four that a pipeline starts, each for a lane."""
    folder = t.tempdir()
    folders = [os.path.join(folder, str(lane)) for lane in range(4)]
    for each in folders:
        os.mkdir(each)
    command = " ".join(suricata_command(f"{folder}/%{{lane}}", "-r", "/dev/stdin"))
    done(text(path, command))
    return folders


def test_four_suricatas_that_weir_starts():
    path, expected = capture()
    folders = four_suricatas(lambda path, command: t.Run(
        "-e", f'pcap-replay {path} -> queue 16MiB lanes=4 -> pipe exec="{command}" grace=2m'), path)
    seen = [seen_by_suricata(folder) for folder in folders]
    assert all(packets > 0 for _, packets in seen), seen
    assert tuple(map(sum, zip(*seen))) == (expected["alerts"], expected["packets"]), seen


# ---- tcpdump, tshark ----

def conversation(frame):
    """Both ends of a TCP segment, in any order; None if it is none."""
    if frame[12:14] != b"\x08\0" or frame[23] != 6:
        return None
    at = 14 + (frame[14] & 15) * 4
    ends = [frame[26:30] + frame[at:at + 2], frame[30:34] + frame[at + 2:at + 4]]
    return tuple(sorted(ends)), frame[26:30]


def test_lanes_have_whole_flows_and_together_everything():
    path, expected = capture("--nsec")
    folder = t.tempdir()
    done(t.Run("-e", f'pcap-replay {path} -> queue 16MiB lanes=4 -> pipe precision=ns exec="/bin/sh -c \'exec cat >{folder}/%{{lane}}\'"'))
    lanes = [f.bytes_of(f.read_pcap(os.path.join(folder, str(lane)))) for lane in range(4)]
    assert sorted(sum(lanes, [])) == sorted(f.bytes_of(f.read_pcap(path)))
    sides = [{conversation(frame) for frame in lane} - {None} for lane in lanes]
    flows = [{flow for flow, _ in lane} for lane in sides]
    assert sum(map(len, flows)) == len(set().union(*flows)) > 20, "a flow is in two lanes"
    # Whoever has one direction of a conversation has the other one.
    every = set().union(*sides)
    assert all((flow, side) in lane for lane, mine in zip(sides, flows) for flow, side in every if flow in mine)


def fields(*command, **more):
    ran = subprocess.run([*command, "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len", "-e", "_ws.col.Info"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    return ran.stdout.splitlines()


def test_tshark_that_weir_starts_sees_what_tcpdump_sees_in_the_file():
    t.need_program("tshark", "tcpdump")
    path = t.need_shared("captures/joy__firefox58.pcap")
    said = os.path.join(t.tempdir(), "said")
    done(t.Run("-e", f'pcap-replay {path} -> pipe exec="/bin/sh -c \'exec tshark -n -r - -T fields -e frame.time_epoch '
                     f'-e frame.len >{said}\'" grace=2m'))
    with open(said) as file:
        ours = [tuple(line.split()) for line in file]
    words = subprocess.run(["tcpdump", "-nn", "-tt", "-e", "-r", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    theirs = re.findall(r"^(\d+\.\d+) .*? length (\d+):", words, re.M)
    assert [(f"{float(a):.6f}", b) for a, b in ours] == [(f"{float(a):.6f}", b) for a, b in theirs] and len(theirs) > 100


# ---- Argus ----

def ip_packets(path):
    count = subprocess.run(["tcpdump", "-nr", path, "--count", "ip"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return int(count.stdout.split()[0])


def test_argus_counts_every_packet():
    t.need_program("argus", "ra", "tcpdump")
    path, _ = capture()
    flows = os.path.join(t.tempdir(), "flows")
    done(t.Run("-e", f'pcap-replay {path} -> pipe exec="argus -r - -w {flows}" grace=1m'))
    said = subprocess.run(["ra", "-n", "-r", flows, "-s", "pkts", "-", "ip"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert sum(int(word) for word in said.stdout.split() if word.isdigit()) == ip_packets(path), said


# ---- softflowd ----

class Collector:
    """Where NetFlow 5 goes: a port of loopback."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]

    def records(self):
        """What has come: (flow, packets) of each."""
        found = []
        while True:
            try:
                datagram = self.socket.recv(65535)
            except BlockingIOError:
                return found
            found += [self.record(datagram[at:at + 48]) for at in range(24, len(datagram), 48)]

    @staticmethod
    def record(data):
        source, to, packets, source_port, port, protocol = struct.unpack("!4s4s8xI12xHHxxB9x", data)
        ends = (port >> 8,) if protocol == socket.IPPROTO_ICMP else (source_port, port)
        return tuple(map(str, (socket.inet_ntoa(source), socket.inet_ntoa(to), protocol, *ends))), packets


def check_flows(path, records):
    """One record for each flow and direction that tshark sees in the file, with its number of packets."""
    names = ["ip.src", "ip.dst", "ip.proto", "tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport", "icmp.type"]
    said = subprocess.run(["tshark", "-n", "-r", path, "-Y", "ip", "-T", "fields", *(word for name in names for word in ("-e", name))],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    flows = collections.Counter(tuple(filter(None, line.split("\t"))) for line in said.stdout.splitlines())
    assert len(flows) > 100 and sorted(records) == sorted(flows.items()), (len(records), len(flows))


def test_softflowd_at_the_end_of_a_pipe_exports_every_flow():
    t.need_program("softflowd", "tshark")
    path, _ = capture()
    collector = Collector()
    done(t.Run("-e", f'pcap-replay {path} -> pipe exec="softflowd -r - -n {collector.address}" grace=1m'))
    check_flows(path, collector.records())


def test_softflowd_on_a_finished_file_exports_every_flow():
    t.need_program("softflowd", "tshark")
    path, _ = capture()
    collector = Collector()
    copy = os.path.join(t.tempdir(), "day.pcap")
    t.weir("-e", f"pcap-replay {path} -> pcap {copy}")
    subprocess.run(["softflowd", "-r", copy, "-n", collector.address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                   timeout=60)
    check_flows(path, collector.records())


def test_softflowd_that_sniffs_an_interface():
    t.need_root()
    t.need_program("softflowd", "softflowctl")
    path, expected = capture()
    control = os.path.join(t.tempdir(), "control")
    with t.Namespace() as ns:
        def statistics():
            said = ns.run("softflowctl", "-c", control, "statistics").stdout
            return dict(re.findall(r"^(.+?): +(\d+)", said, re.M))

        out, into = ns.veth()
        process = t.bound_to_test(ns.popen("softflowd", "-d", "-i", into, "-c", control, stderr=subprocess.PIPE, text=True))
        assert any("starting data collection" in line for line in process.stderr)
        for _ in range(2):  # it sees a packet once later ones have filled the rest of the block
            t.weir("-e", f"pcap-replay {path} -> inject {out} pace=20kpps dst-mac=02:00:00:00:00:01", netns=ns)
        t.wait_until(lambda: int(statistics()["Packets processed"]) >= expected["packets"], what="too few packets")
        counts = statistics()
        assert counts["Packets received by libpcap"] == str(2 * expected["packets"]), counts
        assert counts["Packets dropped by libpcap"] == "0", counts
        assert "gracefully" in ns.run("softflowctl", "-c", control, "shutdown").stdout
        process.communicate(timeout=60)


t.main()
