#!/usr/bin/python3
"""pcap over TCP: what clients get, slow ones, those that come and go, nonsense, and the source that reads it."""
import os, re, resource, socket, struct, subprocess, threading, time

from weirtest import BUILD, SANITIZED, Run, Skip, assert_idle, main, need_program, processor_seconds, tempdir, wait_until, weir

PLUGINS = ["--plugin-path", os.path.join(BUILD, "tests", "plugins")]
COUNT = 20_000 if SANITIZED else 200_000


def node(run, name="out"):
    return next(n for n in run.report["nodes"] if n["name"] == name)


def outcomes(run, name="out"):
    return {o: v["packets"] for o, v in node(run, name)["outputs"].items() if v["packets"]}


def counters(run, name="out"):
    return node(run, name)["counters"]


def started(text, *args, **more):
    """A run that listens, and its port."""
    run = Run(*PLUGINS, *args, "-e", text, **more)
    run.wait_for("listens on ")
    wait_until(lambda: port_of(run))
    return run, int(port_of(run).group(1))


def port_of(run):
    return re.search(r"listens on \S+:(\d+)\n", run.stderr)


def ended(run):
    run.wait()
    assert run.status == 0 and run.report["balanced"] is True, run.stderr
    return run


def free_port(n=1):
    """The first of n ports that nobody listens on."""
    for port in range(20000 + os.getpid() % 20000, 65000, n):
        try:
            for i in range(n):
                with socket.socket() as sock:
                    sock.bind(("127.0.0.1", port + i))
            return port
        except OSError:
            pass
    raise Skip("no free port")


class Client:
    """A client that reads to the end in a thread of its own."""

    def __init__(self, port, start=True):
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.data = bytearray()
        self.thread = threading.Thread(target=self.read, daemon=True)
        if start:
            self.thread.start()

    def read(self):
        try:
            while chunk := self.sock.recv(1 << 20):
                self.data += chunk
        except OSError:
            pass

    def all(self):
        if not self.thread.is_alive() and not self.thread.ident:
            self.thread.start()
        self.thread.join(120)
        assert not self.thread.is_alive(), "the stream has no end"
        self.sock.close()
        return bytes(self.data)


def records_of(data, magic=0xa1b2c3d4):
    assert struct.unpack_from("<I", data)[0] == magic, data[:24].hex()
    at, records = 24, []
    while at + 16 <= len(data):
        sec, fraction, caplen, wirelen = struct.unpack_from("<IIII", data, at)
        records.append((sec, fraction, data[at + 16:at + 16 + caplen]))
        at += 16 + caplen
    assert at == len(data), f"torn at {at} of {len(data)}"
    return records


def number_of(frame):
    return struct.unpack_from("<I", frame, 42)[0]


def numbers_of(data, **more):
    return [number_of(frame) for _, _, frame in records_of(data, **more)]


def test_each_client_gets_a_capture_of_its_own():
    run, port = started(f"out = pcap-over-ip 127.0.0.1:0 wait-for=3; numbers count={COUNT} -> out")
    clients = [Client(port) for _ in range(3)]
    streams = [client.all() for client in clients]
    ended(run)
    for data in streams:
        assert numbers_of(data) == list(range(COUNT))
    assert outcomes(run) == {"sent": COUNT}
    assert counters(run)["client-sent"] == 3 * COUNT and run.report["lost"] == 0
    assert counters(run)["tcp-bytes"] == sum(map(len, streams))


def test_precision():
    for option, magic, fraction in (("", 0xa1b2c3d4, 7), ("precision=ns", 0xa1b23c4d, 7000)):
        run, port = started(f"numbers count=2 start=7us -> pcap-over-ip 127.0.0.1:0 {option}")
        (_, found, _), _ = records_of(Client(port).all(), magic)
        ended(run)
        assert found == fraction


def test_files_wait_for_a_client_and_for_a_slow_one():
    ledger = os.path.join(tempdir(), "ledger")
    run, port = started(f"out = pcap-over-ip 127.0.0.1:0 buffer=1MiB; numbers count={COUNT} bytes=200 -> out",
                           "--ledger", ledger)
    time.sleep(0.2)
    first = Client(port, start=False)
    assert first.sock.recv(24, socket.MSG_WAITALL)[:4] == b"\xd4\xc3\xb2\xa1"
    time.sleep(0.3)
    first.data += b"\xd4\xc3\xb2\xa1" + bytes(20)
    assert numbers_of(first.all()) == list(range(COUNT))
    ended(run)
    assert outcomes(run) == {"sent": COUNT}
    with open(ledger) as file:
        text = file.read()
    assert text.count("consumer-came") == 1 and f"packets sent {COUNT}, lost 0" in text, text


def test_a_lane_has_a_port_of_its_own():
    port = free_port(2)
    run = Run(*PLUGINS, "-e", f"out = pcap-over-ip 127.0.0.1:{port}; numbers count={COUNT} -> queue 8MiB lanes=2 -> out")
    run.wait_for("running")
    streams = [client.all() for client in [Client(port), Client(port + 1)]]
    ended(run)
    found = [numbers_of(data) for data in streams]
    assert all(found) and sorted(found[0] + found[1]) == list(range(COUNT))
    assert outcomes(run) == {"sent": COUNT}


HEADER = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1)


def record(number, size=1000):
    frame = bytes(42) + struct.pack("<I", number)
    return struct.pack("<IIII", 1, number % 1000000, size, size) + frame.ljust(size, b"x")


class Live:
    """A run behind a live source, which the test feeds with 20 MB a second until it is told to stop."""

    def __init__(self, options, *args, **more):
        self.listening = socket.socket()
        self.listening.bind(("127.0.0.1", 0))
        self.listening.listen()
        source = f"pcap-over-ip-source 127.0.0.1:{self.listening.getsockname()[1]} retry=20ms until-end=yes"
        self.run, self.port = started(f"out = pcap-over-ip 127.0.0.1:0 {options}; {source} -> out", *args, **more)
        self.count, self.stopping = 0, False
        self.peer, _ = self.listening.accept()
        self.thread = threading.Thread(target=self.feed, daemon=True)

    def begin(self):
        self.thread.start()
        return self

    def feed(self):
        self.peer.sendall(HEADER)
        while not self.stopping:
            self.peer.sendall(b"".join(record(self.count + i) for i in range(200)))
            self.count += 200
            time.sleep(0.01)
        self.peer.close()

    def end(self):
        """The run, which has ended with its source."""
        self.stopping = True
        self.thread.join()
        self.listening.close()
        return ended(self.run)


def test_a_stalled_client_loses_and_is_disconnected_and_a_fast_one_gets_all():
    ledger = os.path.join(tempdir(), "ledger")
    live = Live("buffer=8MiB stall=500ms", "--ledger", ledger)
    stalled, fast = Client(live.port, start=False), Client(live.port)
    wait_until(lambda: open_descriptors(live.run) >= 10)
    live.begin()
    live.run.wait_for("took nothing for too long")
    memory = resident_bytes(live.run)
    run = live.end()
    assert numbers_of(fast.all()) == list(range(live.count))
    with open(ledger) as file:
        (sent, lost), = re.findall(r"took nothing for too long; packets sent (\d+), lost (\d+)", file.read())
    assert outcomes(run) == {"sent": live.count} and run.report["lost"] == 0
    assert counters(run)["stalled"] == 1 and counters(run)["client-lost"] == int(lost) > 0
    assert counters(run)["client-sent"] == live.count + int(sent)
    assert memory < 100e6 or SANITIZED, memory
    assert stalled.all()[:4] == b"\xd4\xc3\xb2\xa1"


def ended_while_one_is_too_slow(live):
    """The run, whose end has not waited for longer than linger=300ms."""
    live.begin()
    live.run.wait_for("is too slow")
    live.stopping = True
    live.thread.join()
    before = time.monotonic()
    run = live.end()
    assert time.monotonic() - before < 0.3 + (5 if SANITIZED else 1), "the end waits for a client that takes nothing"
    return run


def test_the_only_client_is_too_slow():
    live = Live("buffer=1MiB linger=300ms")
    client = Client(live.port, start=False)
    wait_until(lambda: open_descriptors(live.run) >= 9)
    run = ended_while_one_is_too_slow(live)
    found = outcomes(run)
    assert found["client-slow"] > 0 and found["client-gone"] > 0 and sum(found.values()) == live.count, found
    assert run.report["lost"] == live.count - found["sent"]
    client.sock.close()


def test_a_client_that_has_everything_does_not_prolong_the_end():
    live = Live("buffer=1MiB stall=1h linger=300ms")
    fast, stuck = Client(live.port), Client(live.port, start=False)
    wait_until(lambda: open_descriptors(live.run) >= 10)
    run = ended_while_one_is_too_slow(live)
    assert outcomes(run) == {"sent": live.count} and numbers_of(fast.all()) == list(range(live.count))
    stuck.sock.close()


def resident_bytes(run):
    with open(f"/proc/{run.process.pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def open_descriptors(run):
    return len(os.listdir(f"/proc/{run.process.pid}/fd"))


def test_without_a_client_packets_are_lost_by_name():
    live = Live("").begin()
    wait_until(lambda: live.count >= 1000)
    run = live.end()
    assert outcomes(run) == {"no-client": live.count} and run.report["lost"] == live.count


def test_clients_come_and_go():
    live = Live("").begin()
    keeper = Client(live.port)
    got = 0
    for turn in range(20):
        with socket.create_connection(("127.0.0.1", live.port)) as sock:
            assert sock.recv(24, socket.MSG_WAITALL)[:4] == b"\xd4\xc3\xb2\xa1"
            for _ in range(turn):
                got += len(sock.recv(100_000))
    wait_until(lambda: open_descriptors(live.run) < 20)
    run = live.end()
    numbers = numbers_of(keeper.all())
    assert numbers == list(range(numbers[0], live.count)), "the one that stays gets all from when it came"
    assert counters(run)["accepted"] == 21 and counters(run)["clients"] == 0
    assert counters(run)["tcp-bytes"] >= got > 0


def test_nonsense_and_many_connections_change_nothing():
    many = 1000 if SANITIZED else 10_000
    live = Live("max-clients=20")
    keeper = Client(live.port)
    wait_until(lambda: open_descriptors(live.run) >= 9)
    live.begin()
    wait_until(lambda: keeper.data)
    before = resident_bytes(live.run)
    noisy = [socket.create_connection(("127.0.0.1", live.port)) for _ in range(3)]
    for sock in noisy:
        sock.setblocking(False)
        sock.send(os.urandom(50_000))
    for _ in range(many):
        socket.create_connection(("127.0.0.1", live.port)).close()
    kept = [socket.create_connection(("127.0.0.1", live.port)) for _ in range(30)]
    wait_until(lambda: "is turned away" in live.run.stderr)
    assert open_descriptors(live.run) < 40
    for sock in noisy + kept:
        sock.close()
    wait_until(lambda: open_descriptors(live.run) < 20)
    print(f"# resident: {before / 1e6:.1f} MB, then {resident_bytes(live.run) / 1e6:.1f} MB")
    assert resident_bytes(live.run) < before + 50e6 or SANITIZED
    run = live.end()
    missing = live.count - len(set(numbers_of(keeper.all())))
    assert missing == 0 or (SANITIZED and missing <= counters(run)["client-lost"])  # its server may be too slow then
    assert live.count - missing <= outcomes(run)["sent"] <= live.count
    assert counters(run)["accepted"] + counters(run)["turned-away"] == many + 34
    assert counters(run)["turned-away"] > 0 and counters(run)["ignored-bytes"] > 0


def test_no_descriptors_are_left():
    """Who connects then waits until there are some again, and nothing spins."""
    need_program("prlimit")
    limit = 24
    live = Live("", prefix=["prlimit", f"--nofile={limit}:{limit}", "--"])
    keeper = Client(live.port)
    wait_until(lambda: open_descriptors(live.run) >= 9)
    waiting = [Client(live.port) for _ in range(30)]
    live.run.wait_for("cannot take a connection now")
    before = processor_seconds(live.run.process)
    time.sleep(1)
    used = processor_seconds(live.run.process) - before
    assert used < 0.1 or SANITIZED, f"{used} s in a second"
    live.begin()
    for client in waiting[:25]:
        client.sock.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: all(client.data for client in waiting[25:]), what="not taken later")
    run = live.end()
    assert numbers_of(keeper.all()) == list(range(live.count))
    for client in waiting:
        client.all()
    assert counters(run)["accepted"] == 31


def test_what_cannot_be():
    run = check("numbers -> pcap-over-ip 127.0.0.1:5000 wait-for=3 max-clients=2")
    assert run.returncode == 2 and "no 3 clients with max-clients=2" in run.stderr, run.stderr
    for port, why in ((0, "a port to count from"), (65535, "no port 65536 for lane 1")):
        run = Run(*PLUGINS, "-e", f"numbers -> queue 8MiB lanes=2 -> pcap-over-ip 127.0.0.1:{port}").wait()
        assert run.status in (1, 2) and why in run.stderr, run.stderr


def test_what_other_machines_can_reach_is_refused_unless_asked_for():
    for plugin in ("numbers -> pcap-over-ip {}", "pcap-over-ip-source {} -> null"):
        for endpoint in ("0.0.0.0:5000", "192.0.2.1:5000", "[::]:5000", "example.org:5000"):
            run = check(plugin.format(endpoint))
            assert run.returncode == 2 and "insecure=yes" in run.stderr and "ssh -L" in run.stderr, run.stderr
            assert check(plugin.format(endpoint + " insecure=yes")).returncode == 0
        for endpoint in ("localhost:5000", "127.1.2.3:5000", "[::1]:5000"):
            assert check(plugin.format(endpoint)).returncode == 0, endpoint
        for endpoint in ("5000", "localhost", "::1:5000", "localhost:70000", "localhost:", ":5000"):
            run = check(plugin.format(endpoint))
            assert run.returncode == 2 and "is no HOST:PORT" in run.stderr, run.stderr


def check(text):
    return subprocess.run([os.path.join(BUILD, "weir"), "check", *PLUGINS, "-e", text], capture_output=True, text=True)


def test_a_port_that_is_taken():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        run = Run(*PLUGINS, "-e", f"numbers -> pcap-over-ip 127.0.0.1:{sock.getsockname()[1]}").wait()
        assert run.status in (1, 2) and "Address already in use" in run.stderr, run.stderr


def test_tshark_sees_what_tcpdump_sees_in_the_file():
    need_program("tshark", "tcpdump")
    path = os.path.join(tempdir(), "numbers.pcap")
    weir(*PLUGINS, "-e", f"numbers count=2000 bytes=300 -> pcap {path} precision=us")
    run, port = started(f"out = pcap-over-ip 127.0.0.1:0; pcap-replay {path} -> out")
    heard = subprocess.run(["tshark", "-n", "-i", f"TCP@127.0.0.1:{port}", "-w", path + ".heard"], capture_output=True,
                           text=True, timeout=120)
    ended(run)
    assert dumped(path + ".heard") == dumped(path), heard.stderr
    assert outcomes(run) == {"sent": 2000}


def dumped(path):
    done = subprocess.run(["tcpdump", "-r", path, "-n", "-tt", "-xx"], capture_output=True, text=True)
    assert done.stdout, done.stderr
    return done.stdout


def reader_of(port, rest, *args):
    run = Run(*PLUGINS, *args, "-e", f"in = pcap-over-ip-source 127.0.0.1:{port} retry=20ms {rest}")
    return run


def test_source_reads_what_the_sink_streams():
    path = os.path.join(tempdir(), "copy.pcap")
    port = free_port()
    reader = reader_of(port, f"until-end=yes; in -> pcap {path} precision=us")
    reader.wait_for("cannot connect")
    run = Run(*PLUGINS, "-e", f"out = pcap-over-ip 127.0.0.1:{port}; numbers count={COUNT} bytes=500 -> out")
    ended(run)
    ended(reader)
    with open(path, "rb") as file:
        assert numbers_of(file.read()) == list(range(COUNT))
    assert outcomes(run) == {"sent": COUNT} and outcomes(reader, "in") == {"out": COUNT}
    assert counters(reader, "in")["bytes-read"] == counters(run)["tcp-bytes"] == 24 + COUNT * 516


def test_source_connects_again():
    path = os.path.join(tempdir(), "copy.pcap")
    port = free_port()
    reader = reader_of(port, f"; in -> pcap {path}")
    for turn in range(1, 4):
        ended(Run(*PLUGINS, "-e", f"numbers count=1000 -> pcap-over-ip 127.0.0.1:{port}"))
        wait_until(lambda: reader.stderr.count("the other side closed it") >= 1)
    wait_until(lambda: os.path.exists(path + ".part") or os.path.exists(path))
    reader.stop()
    ended(reader)
    assert outcomes(reader, "in") == {"out": 3000} and counters(reader, "in")["connections"] == 3


def test_source_says_that_a_server_does_not_answer():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        full = [socket.socket() for _ in range(4)]
        for sock in full:
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
        reader = reader_of(port, "; in -> null")
        reader.wait_for(f"cannot connect to 127.0.0.1:{port}: Connection timed out; trying again")
        reader.stop()
        ended(reader)
        for sock in full:
            sock.close()


def test_source_tries_all_addresses_of_a_host():
    hosts = os.path.join(tempdir(), "hosts")
    with open(hosts, "w") as file:
        file.write("::1 localhost\n127.0.0.1 localhost\n")
    sock, port = served(HEADER + record(0))
    source = Run("-e", f"pcap-over-ip-source localhost:{port} until-end=yes -> null", report=False,
                 prefix=["unshare", "-m", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh"])
    source.wait()
    assert source.status == 0 and "cannot connect" not in source.stderr, source.stderr
    sock.close()


def served(*streams):
    """A port that sends each of the streams to one client, and closes."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen()

    def serve():
        for data in streams:
            peer, _ = sock.accept()
            peer.sendall(data)
            peer.close()
    threading.Thread(target=serve, daemon=True).start()
    return sock, sock.getsockname()[1]


def test_source_gives_up_streams_that_are_none():
    good = HEADER + record(0) + record(1)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        reader = reader_of(listening.getsockname()[1], "; out = null; in -> out")
        for data in (b"HTTP/1.1 200 OK\r\n\r\n" + bytes(100), good + b"\xff" * 400, good + record(2)[:30], good):
            peer, _ = listening.accept()
            peer.sendall(data)
            peer.close()
        peer, _ = listening.accept()
        reader.stop()
        peer.close()
    ended(reader)
    assert counters(reader, "in")["bad-streams"] == 2, reader.stderr
    assert outcomes(reader, "in") == {"out": 6} and counters(reader, "in")["left-bytes"] >= 430


def test_idle_is_idle():
    port = free_port()
    run = reader_of(port, "; in -> null")
    run.wait_for("cannot connect")
    server, other = started(f"pcap-over-ip-source 127.0.0.1:{port} -> pcap-over-ip 127.0.0.1:0")
    client = Client(other)
    assert_idle(run)
    assert_idle(server)
    for process in (run, server):
        started_at = time.monotonic()
        process.stop()
        assert time.monotonic() - started_at < (5 if SANITIZED else 1)
        ended(process)
    assert client.all() == b""


if __name__ == "__main__":
    main()
