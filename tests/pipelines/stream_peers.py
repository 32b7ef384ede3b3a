#!/usr/bin/python3
"""Who may be on a stream, and what those do to it who may not, or do not read: keys, junk, floods, stuck peers."""
import json, os, re, shutil, signal, socket, stat, subprocess
import zmq
from streamtest import (PLUGINS, Peer, counter, finish, finish_after, free_port, ipc, keygen, make_capture, node, out, subscribe,
                        verdict_of)
from weirtest import SANITIZED, WEIR, Run, main, tempdir, wait_until, weir


def events(ledger, *kinds):
    """The lines of a ledger file that are of these kinds."""
    with open(ledger) as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if line["event"] in kinds]


# ---- Keys ----

def test_keygen_writes_a_pair_that_only_the_owner_reads():
    secret, = keygen("key")
    assert stat.S_IMODE(os.stat(secret).st_mode) == 0o600
    with open(secret, "rb") as one, open(secret + ".pub", "rb") as other:
        assert zmq.curve_public(one.read().strip()) == other.read().strip()
    again = subprocess.run([WEIR, "keygen", secret], stderr=subprocess.PIPE, text=True)
    assert again.returncode == 1 and "never overwritten" in again.stderr, again.stderr
    os.unlink(secret)
    again = subprocess.run([WEIR, "keygen", secret], stderr=subprocess.PIPE, text=True)
    assert again.returncode == 1 and secret + ".pub" in again.stderr and not os.path.exists(secret), "half a pair"


def test_the_allowed_read_and_the_others_are_refused_and_counted():
    server, friend, stranger = keygen("server", "friend", "stranger")
    endpoint, capture = f"tcp://127.0.0.1:{free_port()}", make_capture(3000)
    run = Run("-e", f"pcap-replay {capture} -> zmq {endpoint} curve-secret={server} curve-allow={friend}.pub wait-for=2")
    run.wait_for("running")
    unknown = Peer(endpoint, keys=(stranger, server + ".pub"))
    plain = Peer(endpoint)
    wrong = Peer(endpoint, keys=(friend, stranger + ".pub"))
    wait_until(lambda: stranger_is_named(run, stranger), 30, "a refusal")
    good = Peer(endpoint, keys=(friend, server + ".pub"))
    second = Run("-e", f"zmq-source {endpoint} curve-secret={friend} curve-server={server}.pub until-end=yes -> null")
    good.receive_to_end()
    finish(run)
    finish(second)
    assert (good.received, good.lost) == (3000, 0) and out(second, "zmq-source:1", "out") == 3000
    assert counter(run, "zmq:1", "refused-keys") >= 1 and counter(run, "zmq:1", "failed-handshakes") >= 3
    assert run.report["lost"] == 0
    for peer in (unknown, plain, wrong):
        assert not peer.socket.poll(0), "it got a message"
        peer.close()
    good.close()


def stranger_is_named(run, stranger):
    with open(stranger + ".pub") as file:
        return f"whose key {file.read().strip()} is not allowed" in run.stderr


def test_each_publisher_has_its_own_key():
    one, other, reader = keygen("one", "other", "reader")
    endpoints, capture = [ipc(), ipc()], make_capture(1000)
    runs = [Run("-e", f"pcap-replay {capture} -> zmq {e} name={os.path.basename(k)} curve-secret={k} curve-allow={reader}.pub wait-for=1")
            for e, k in zip(endpoints, (one, other))]
    ledger = os.path.join(tempdir(), "ledger")
    sink = Run("--ledger", ledger, "-e", f"zmq-source {','.join(endpoints)} curve-secret={reader} curve-server={one}.pub,{other}.pub -> null")
    for run in runs:
        finish(run)
    wait_until(lambda: len(events(ledger, "stream-ended")) == 2, 30, "two ends")
    finish_after(sink, signal.SIGTERM, 1)
    assert out(sink, "zmq-source:1", "out") == 2000 and sink.report["lost"] == 0
    told = sorted(line["detail"] for line in events(ledger, "stream-ended"))
    assert [re.sub(r"publisher \w{16}", "publisher", words) for words in told] == \
        [f"{name}/00/ of publisher: 1000 packets, 0 lost, 0 unsent, 0 missed before joining" for name in ("one", "other")], told


def test_a_sink_that_connects_checks_keys_too():
    server, reader, stranger = keygen("server", "reader", "stranger")
    for key, wanted in ((reader, 500), (stranger, 0)):
        endpoint = ipc()
        sink = Run("-e", f"zmq-source {endpoint} connect=no curve-secret={key} curve-server={server}.pub until-end=yes -> null")
        run = Run("-e", f"pcap-replay {make_capture(500)} -> zmq {endpoint} connect=yes curve-secret={server} "
                        f"curve-allow={reader}.pub wait-for=1")
        if not wanted:
            wait_until(lambda: "is not allowed" in run.stderr and "running" in run.stderr, 30, "a refusal")
            run.process.send_signal(signal.SIGTERM)
        finish(run)
        if not wanted:
            sink.process.send_signal(signal.SIGTERM)
        finish(sink)
        assert out(sink, "zmq-source:1", "out") == out(run, "zmq:1", "sent") == wanted


def test_a_source_that_was_refused_is_let_in_once_the_list_is_right():
    server, reader = keygen("server", "reader")
    endpoint, allowed = f"tcp://127.0.0.1:{free_port()}", os.path.join(tempdir(), "allowed")
    text = f"numbers-live pps=10 count=1000000 -> zmq {endpoint} curve-secret={server} curve-allow={allowed}"
    shutil.copy(server + ".pub", allowed)
    sink = Run(*PLUGINS, "-e", text)
    source = Run("-e", f"zmq-source {endpoint} curve-secret={reader} curve-server={server}.pub -> null")
    source.wait_for(f"no handshake with {endpoint}")
    finish_after(sink, signal.SIGTERM, 1)
    shutil.copy(reader + ".pub", allowed)
    sink = Run(*PLUGINS, "-e", text)
    source.wait_for(f"connected to {endpoint}")
    finish_after(sink, signal.SIGTERM, 1)
    source.wait_for(f"the connection to {endpoint} has ended")
    finish_after(source, signal.SIGTERM, 1)


def test_what_would_let_anybody_in_is_refused():
    key, reader = keygen("key", "reader")
    readable = os.path.join(tempdir(), "readable")
    with open(key) as one, open(readable, "w") as other:
        other.write(one.read())
    os.chmod(readable, 0o644)
    empty, broken = (os.path.join(tempdir(), name) for name in ("empty", "broken"))
    with open(empty, "w") as file:
        file.write("# nobody yet\n")
    with open(broken, "w") as file:
        file.write("not a key\n")
    source = "numbers count=1"
    for text, words in (
            (f"{source} -> zmq ipc:///tmp/x curve-secret={key}", "curve-allow=FILE"),
            (f"{source} -> zmq ipc:///tmp/x curve-allow={reader}.pub", "curve-secret=FILE"),
            (f"{source} -> zmq {ipc()} curve-secret={readable} curve-allow={reader}.pub", "chmod 600"),
            (f"{source} -> zmq {ipc()} curve-secret={key} curve-allow={empty}", "nobody could connect"),
            (f"{source} -> zmq {ipc()} curve-secret={key} curve-allow={broken}", f"{broken}:1: no key"),
            (f"{source} -> zmq {ipc()} curve-secret={os.path.dirname(key)} curve-allow={reader}.pub", "Is a directory"),
            (f"{source} -> zmq {ipc()} curve-secret={key}.none curve-allow={reader}.pub", "No such file"),
            (f"{source} -> zmq tcp://*:5555", "insecure=yes"),
            (f"zmq-source {ipc()} curve-secret={key} -> null", "belong together"),
            (f"zmq-source {ipc()},{ipc()},{ipc()} curve-secret={key} curve-server={key}.pub,{key}.pub -> null", "one for each"),
            ("zmq-source tcp://192.0.2.1:5555 -> null", "insecure=yes")):
        run = weir(*PLUGINS, "-e", text, expect=2, balanced=None)
        assert words in run.stderr, (text, run.stderr)
    weir(*PLUGINS, "-e", f"{source} -> zmq tcp://*:{free_port()} curve-secret={key} curve-allow={reader}.pub linger=0s")


# ---- Peers that break the protocol ----

def test_a_source_connects_again_to_a_publisher_that_sent_too_much():
    endpoint, peer = f"tcp://localhost:{free_port()}", zmq.Context.instance().socket(zmq.XPUB)
    peer.bind(endpoint.replace("localhost", "127.0.0.1"))
    source = Run("-e", f"zmq-source {endpoint} -> null")
    assert peer.recv() == b"\x01", "its subscription"
    peer.send_multipart([b"tap/00/", bytes(56), bytes(40 << 20)])
    assert peer.recv() == b"\x00", "it hangs up"
    assert peer.poll(30_000) and peer.recv() == b"\x01", "it does not come back"
    finish_after(source, signal.SIGTERM, 1)
    peer.close(0)


def test_a_sink_connects_again_to_a_subscriber_that_sent_too_much():
    endpoint, ledger = f"tcp://localhost:{free_port()}", os.path.join(tempdir(), "ledger")
    bad = Peer(endpoint.replace("localhost", "127.0.0.1"), topic="x" * 3000, bind=True)
    sink = Run(*PLUGINS, "--ledger", ledger, "-e", f"numbers-live pps=10 count=1000000 -> zmq {endpoint} connect=yes")
    sink.wait_for("running")
    wait_until(lambda: events(ledger, "consumer-came"), 30, "a connection")
    bad.close()
    wait_until(lambda: events(ledger, "consumer-went"), 30, "its end")
    good = Peer(endpoint.replace("localhost", "127.0.0.1"), bind=True)
    good.receive()
    finish_after(sink, signal.SIGTERM, 1)
    good.close()


# ---- Endpoints ----

def test_an_endpoint_for_each_lane():
    stem = ipc()
    peers = [Peer(f"{stem}{lane}") for lane in range(3)]
    run = Run(*PLUGINS, "-e", f"numbers count=30000 -> queue 8MiB lanes=3 -> zmq {stem}%{{lane}} name=tap wait-for=1 batch=64KiB")
    for peer in peers:
        peer.receive_to_end()
    finish(run)
    assert sum(peer.received for peer in peers) == 30000 and not any(peer.lost for peer in peers)
    for lane, peer in enumerate(peers):
        assert {m.topic for m in peer.messages} == {f"tap/{lane:02}/".encode()}
        assert peer.received == node(run, "zmq:1")["lanes"][lane]["outputs"]["sent"]["packets"] > 0
        assert peer.messages[0].number == 0
        peer.close()


def test_several_endpoints_carry_the_same():
    ends = [ipc(), f"tcp://127.0.0.1:{free_port()}"]
    peers = [Peer(endpoint) for endpoint in ends]
    run = Run("-e", f"pcap-replay {make_capture(2000)} -> zmq {','.join(ends)} wait-for=2")
    for peer in peers:
        peer.receive_to_end()
    finish(run)
    assert [(peer.received, peer.lost) for peer in peers] == [(2000, 0)] * 2
    assert {m.publisher for m in peers[0].messages} == {m.publisher for m in peers[1].messages}
    for peer in peers:
        peer.close()


def test_endpoints_that_do_not_fit_are_refused():
    for text, words in (("numbers -> zmq ipc:///tmp/a%{lane},ipc:///tmp/b", "in all endpoints or in none"),
                        ("numbers -> zmq tcp://127.0.0.1:65536", "has no port from 1 to 65535"),
                        ("numbers -> zmq tcp://127.0.0.1:0", "has no port from 1 to 65535"),
                        ("zmq-source tcp://127.0.0.1:5555x -> null", "has no port from 1 to 65535"),
                        ("numbers lanes=7 -> zmq tcp://127.0.0.1:6553%{lane}", "127.0.0.1:65536 has no port from 1 to 65535"),
                        ("numbers -> zmq tcp://no.such.host.invalid:5555 insecure=yes", "no address or interface of this machine"),
                        ("in = numbers; in -> zmq ipc:///tmp/a,ipc:///tmp/b; in -> zmq ipc:///tmp/b", "the same endpoint ipc:///tmp/b")):
        run = weir(*PLUGINS, "-e", text, expect=2, balanced=None)
        assert words in run.stderr, run.stderr


def test_only_the_socket_of_nobody_is_replaced():
    """libzmq would remove a file, and take over the socket of a process that listens."""
    folder = tempdir()
    precious, used, left = (f"{folder}/{name}" for name in ("precious", "used", "left"))
    with open(precious, "w") as file:
        file.write("precious")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as gone:
        listener.bind(used)
        listener.listen()
        gone.bind(left)
        for path, words in ((precious, "that is no socket"), (used, "another process listens there")):
            for text in (f"numbers -> zmq ipc://{path}", f"zmq-source ipc://{path} connect=no -> null"):
                run = weir(*PLUGINS, "-e", text, expect=2, balanced=None)
                assert f"cannot listen on ipc://{path}" in run.stderr and words in run.stderr, run.stderr
    with open(precious) as file:
        assert file.read() == "precious"
    weir(*PLUGINS, "-e", f"numbers count=1 -> zmq ipc://{left} linger=0s")


# ---- Peers that do harm ----

def resources(pid):
    """(open descriptors, resident KiB)"""
    with open(f"/proc/{pid}/status") as file:
        return len(os.listdir(f"/proc/{pid}/fd")), int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


def connect(port):
    peer = socket.create_connection(("127.0.0.1", port), 10)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # no port waits for its reuse
    return peer


def flood(port, connections):
    """Opened and dropped, of which some send junk."""
    for i in range(connections):
        with connect(port) as peer:
            if i % 10 == 0:
                peer.sendall(os.urandom(200))


def under_attack(more, peer):
    port, count = free_port(), 1000 if SANITIZED else 10000
    endpoint = f"tcp://127.0.0.1:{port}"
    run = Run("-e", f"pcap-replay {make_capture(3000)} loop=1000000 pace=2000pps -> zmq {endpoint} wait-for=1 {more}")
    run.wait_for("running")
    good = peer(endpoint)
    good.receive()
    flood(port, count // 10)  # what libzmq keeps for good
    before = resources(run.process.pid)
    flood(port, count)
    for _ in range(20):
        with connect(port) as junk:
            junk.sendall(b"\xff\0\0\0\0\0\0\0\1\x7f\3" + os.urandom(100))
    wait_until(lambda: resources(run.process.pid)[0] <= before[0] + 20, 30, "descriptors closed")
    after = resources(run.process.pid)
    assert after[1] < before[1] + (200_000 if SANITIZED else 20_000), (before, after)
    run.process.send_signal(signal.SIGTERM)
    good.receive_to_end()
    finish(run)
    assert good.lost == 0 and good.received == out(run, "zmq:1", "sent")
    assert counter(run, "zmq:1", "failed-handshakes") > 0
    good.close()


def test_floods_and_junk_change_nothing():
    under_attack("", lambda endpoint: Peer(endpoint, hwm=0))


def test_floods_and_junk_change_nothing_with_keys():
    server, friend = keygen("server", "friend")
    under_attack(f"curve-secret={server} curve-allow={friend}.pub", lambda endpoint: Peer(endpoint, hwm=0, keys=(friend, server + ".pub")))


def test_one_stuck_and_one_fast_subscriber_and_20000_messages():
    """Each packet is a message of its own."""
    capture, endpoint, count = make_capture(2000, size=6000), ipc(), 36000
    stuck, (fast, _), watch = Peer(endpoint, hwm=1), subscribe(endpoint), Peer(endpoint, hwm=0)
    run = Run("-e", f"pcap-replay {capture} loop={count // 2000} pace=5000pps -> zmq {endpoint} wait-for=3 batch=1KiB hwm=8MiB max-delay=1ms")
    while watch.receive().number < 18000:
        pass
    stuck.receive_to_end()
    finish(run)
    assert counter(run, "zmq:1", "messages") > 18000
    assert verdict_of(fast) == (count, 0)
    assert stuck.received + stuck.lost == count and stuck.lost > 1000, "it was not stuck"
    assert run.report["lost"] == 0 and out(run, "zmq:1", "sent") == count
    stuck.close()
    watch.close()


def test_fifty_starts_are_complete_from_number_0():
    capture = make_capture(300)
    for _ in range(50):
        endpoint = ipc()
        run = Run("-e", f"pcap-replay {capture} -> zmq {endpoint} wait-for=1", report=False)
        peer = Peer(endpoint).receive_to_end()
        run.wait()
        assert peer.messages[0].number == 0 and (peer.received, peer.lost) == (300, 0)
        peer.close()


main()
