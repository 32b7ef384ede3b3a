#!/usr/bin/python3
"""Streams over ZeroMQ: the zmq sink, zmq-source, and the subscriber that docs/ shows.

Subscribers in this file are written against docs/stream.md with libzmq's own binding, so they check the format
from outside.
"""
import glob, os, re, resource, signal, socket, struct, time
import zmq
from streamtest import (END, HEARTBEAT, PLUGINS, PUSHED, SLACK, Peer, collect, counter, finish, finish_after, free_port,
                        ipc, keygen, make_capture, node, out, subscribe, tcpdump, tshark, verdict_of)
from weirtest import Run, Skip, assert_idle, main, need_program, tempdir, wait_until, weir


# ---- The packets and the format ----

def test_the_same_packets_arrive_everywhere():
    need_program("tcpdump", "tshark")
    capture, endpoint = make_capture(5000), f"tcp://127.0.0.1:{free_port()}"
    copy = os.path.join(tempdir(), "copy.pcap")
    process, written = subscribe(endpoint)
    second = Run("-e", f"zmq-source {endpoint} until-end=yes -> pcap {copy}")
    first = weir("-e", f"pcap-replay {capture} -> zmq {endpoint} wait-for=2 batch=64KiB")
    finish(second)
    assert verdict_of(process) == (5000, 0)
    assert out(first, "zmq:1", "sent") == counter(first, "zmq:1", "announced") == 5000
    assert out(second, "zmq-source:1", "out") == counter(second, "zmq-source:1", "announced") == 5000
    assert second.report["lost"] == 0
    right = tcpdump(capture)
    assert right.count("\n") > 5000 and tcpdump(copy) == right and tcpdump(written) == right
    assert tshark(capture) == tshark(copy) == tshark(written)


def test_bodies_after_one_another_are_a_capture_file_heartbeats_too():
    need_program("tcpdump", "tshark")
    capture, endpoint, path = make_capture(400), ipc(), os.path.join(tempdir(), "all.pcapng")
    peer = Peer(endpoint)
    run = Run("-e", f"pcap-replay {capture} pace=300pps -> zmq {endpoint} wait-for=1 batch=16KiB")
    peer.receive_to_end()
    finish(run)
    with open(path, "wb") as file:
        file.write(b"".join(m.body for m in peer.messages))
    assert any(m.count == 0 for m in peer.messages)
    assert tcpdump(path) == tcpdump(capture)
    assert tshark(path) == tshark(capture)
    for m in peer.messages:
        if m.count:
            with open(path, "wb") as file:
                file.write(m.body)
            assert tcpdump(path).count("ethertype") == m.count
    peer.close()


def test_a_message_goes_when_max_delay_says_and_not_at_the_next_tick_of_its_lane():
    endpoint, small = ipc(), 0
    peer = Peer(endpoint)
    run = Run(*PLUGINS, "-e", f"numbers-live pps=1000 count=100000 -> zmq {endpoint} max-delay=2ms")
    while small < 50:  # what a tick every 10 ms sends has 10 packets
        small += 0 < peer.receive().count <= 5
    run.process.send_signal(signal.SIGTERM)
    finish(run)
    peer.close()


def test_every_number_of_the_header():
    capture, endpoint = make_capture(3000), ipc()
    peer, started_ns = Peer(endpoint), time.time_ns()
    run = Run("-e", f"pcap-replay {capture} -> zmq {endpoint} name=tap wait-for=1 batch=32KiB max-delay=1m")
    peer.receive_to_end()
    finish(run)
    assert {m.topic for m in peer.messages} == {b"tap/00/"}
    assert len({m.publisher for m in peer.messages}) == 1 and peer.messages[0].publisher != 0
    assert [m.number for m in peer.messages] == list(range(len(peer.messages)))
    sent = 0
    for m in peer.messages:
        assert m.before == sent
        sent += m.count
    assert sent == 3000 and peer.lost == 0
    assert [bool(m.flags & END) for m in peer.messages] == [False] * (len(peer.messages) - 1) + [True]
    assert all(bool(m.flags & HEARTBEAT) == (m.count == 0 and not m.flags & END) for m in peer.messages)
    assert not any(m.flags & PUSHED or m.unsent for m in peer.messages)
    assert all(started_ns <= m.sent_ns <= time.time_ns() for m in peer.messages)
    assert sorted(m.sent_ns for m in peer.messages) == [m.sent_ns for m in peer.messages]
    full = [len(m.body) for m in peer.messages if m.count][:-1]
    assert full and all(32768 <= size < 32768 + 600 for size in full), full
    peer.close()


def test_each_lane_has_a_topic():
    endpoint = ipc()
    peer, process = Peer(endpoint), subscribe(endpoint)[0]
    some = Peer(endpoint, topic="tap/01/")
    second = Run("-e", f"zmq-source {endpoint} topic=tap/01/ until-end=yes -> null")
    run = Run(*PLUGINS, "-e", f"numbers count=30000 -> queue 8MiB lanes=3 -> zmq {endpoint} name=tap wait-for=4")
    peer.receive_to_end(topics=3)
    some.receive_to_end()
    finish(run)
    finish(second)
    assert {m.topic for m in peer.messages} == {b"tap/00/", b"tap/01/", b"tap/02/"}
    assert peer.received == 30000 and peer.lost == 0
    assert {m.topic for m in some.messages} == {b"tap/01/"}
    assert some.received == sum(m.count for m in peer.messages if m.topic == b"tap/01/") > 0
    assert out(second, "zmq-source:1", "out") == some.received and second.report["lost"] == 0
    assert verdict_of(process) == (30000, 0)
    for lane in node(run, "zmq:1")["lanes"]:
        assert lane["outputs"]["sent"]["packets"] == lane["counters"]["announced"] > 0
    peer.close()
    some.close()


def test_one_link_type_a_topic():
    ethernet, raw, endpoint = make_capture(50), make_capture(30, linktype=101), ipc()
    peer = Peer(endpoint)
    run = Run("-e", f"pcap-replay {ethernet},{raw} -> zmq {endpoint} wait-for=1")
    peer.receive_to_end()
    finish(run)
    assert out(run, "zmq:1", "sent") == peer.received == 50
    assert out(run, "zmq:1", "other-linktype") == run.report["lost"] == peer.messages[-1].unsent == 30
    assert run.stderr.count("link type 101") == 1, run.stderr
    peer.close()


def test_heartbeats_while_idle_and_no_long_wait_for_a_single_packet():
    here, there = ipc(), ipc()
    message = collect(make_capture(1))
    sender = zmq.Context().socket(zmq.XPUB)
    sender.linger = 0
    sender.bind(here)
    peer = Peer(there)
    run = Run("-e", f"zmq-source {here} -> zmq {there} wait-for=1")
    sender.recv()  # its subscription
    beats = [peer.receive() for _ in range(3)]
    assert all(m.flags == HEARTBEAT and m.count == 0 for m in beats)
    gaps = [b.sent_ns - a.sent_ns for a, b in zip(beats, beats[1:])]
    assert all(0.9e9 < gap < 1.2e9 * SLACK for gap in gaps), gaps
    started = time.monotonic()
    sender.send_multipart(message)
    while not peer.receive().count:
        pass
    waited = time.monotonic() - started
    assert waited < 0.2 * SLACK, waited
    finish_after(run, signal.SIGTERM, 1)
    peer.receive_to_end()
    sender.close()
    peer.close()


def test_time_goes_on_without_packets():
    """A file by the second is complete though nothing but heartbeats follows its only packet."""
    here, there, folder = ipc(), ipc(), tempdir()
    message = collect(make_capture(1))
    sender = zmq.Context().socket(zmq.XPUB)
    sender.linger = 0
    sender.bind(here)
    watch = Peer(there)
    relay = Run("-e", f"zmq-source {here} -> zmq {there} wait-for=2")
    reader = Run("-e", f"zmq-source {there} -> pcap {folder}/%Y%m%d-%H%M%S.pcap rotate-time=1s")
    sender.recv()  # the relay's subscription
    watch.receive()
    sender.send_multipart(message)
    wait_until(lambda: glob.glob(f"{folder}/*.pcap"), what="a complete file")
    assert reader.process.poll() is None
    finish_after(reader, signal.SIGTERM, 1)
    finish_after(relay, signal.SIGTERM, 2)
    assert out(reader, "pcap:1", "written") == 1
    sender.close()
    watch.close()


def test_wait_for_makes_the_stream_complete_from_its_first_message():
    capture = make_capture(2000)
    for _ in range(5):
        endpoint = ipc()
        run = Run("-e", f"pcap-replay {capture} -> zmq {endpoint} wait-for=1")
        run.wait_for("running")
        peer = Peer(endpoint).receive_to_end()
        finish(run)
        assert peer.messages[0].number == peer.messages[0].before == 0
        assert (peer.received, peer.lost) == (2000, 0)
        peer.close()


def test_a_stream_that_nobody_heard_is_said_to_be_one():
    run = weir("-e", f"pcap-replay {make_capture(100)} -> zmq {ipc()}")
    assert "nobody had subscribed to zmq:1/00/: 100 packets were sent to no one" in run.stderr, run.stderr


def test_what_no_worker_takes_is_counted_and_no_subscription_is_missed():
    run = weir("-e", f"pcap-replay {make_capture(100)} -> zmq {ipc()} connect=yes mode=push linger=0s")
    assert out(run, "zmq:1", "abandoned") == run.report["lost"] == 100 and "subscribed" not in run.stderr, run.stderr


def test_waiting_for_subscribers_does_not_hold_up_a_stop():
    run = Run("-e", f"pcap-replay {make_capture(10)} -> zmq {ipc()} wait-for=1")
    run.wait_for("running")
    finish_after(run, signal.SIGTERM, 2)
    assert out(run, "zmq:1", "no-peer") == run.report["lost"] == node(run, "zmq:1")["in"]["packets"]
    live = weir(*PLUGINS, "-e", f"numbers-live count=1000 -> zmq {ipc()} wait-for=1")
    assert out(live, "zmq:1", "no-peer") == live.report["lost"] == 1000


# ---- Loss ----

def test_a_stuck_subscriber_computes_its_loss_and_a_fast_one_has_none():
    capture, endpoint = make_capture(4000, size=3000), ipc()
    stuck, (fast, _) = Peer(endpoint, hwm=1), subscribe(endpoint)
    run = Run("-e", f"pcap-replay {capture} loop=10 pace=80Mbps -> zmq {endpoint} wait-for=3 hwm=16MiB")
    watch = Peer(endpoint)
    while watch.receive().before < 20000:
        pass
    stuck.receive_to_end()
    watch.close()
    finish(run)
    assert verdict_of(fast) == (40000, 0)
    assert counter(run, "zmq:1", "announced") == out(run, "zmq:1", "sent") == 40000
    assert stuck.lost > 5000, "it was not stuck"
    assert stuck.received + stuck.lost == 40000
    stuck.close()


def test_a_killed_subscriber_changes_nothing_for_another():
    capture, endpoint = make_capture(4000, size=3000), ipc()
    (one, _), (other, _) = subscribe(endpoint), subscribe(endpoint)
    ledger = os.path.join(tempdir(), "ledger")
    run = Run("--ledger", ledger, "-e", f"pcap-replay {capture} loop=5 pace=80Mbps -> zmq {endpoint} wait-for=3")
    watch = Peer(endpoint)
    watch.receive()
    one.kill()
    one.communicate()
    finish(run)
    assert verdict_of(other) == (20000, 0)
    assert run.report["lost"] == 0 and out(run, "zmq:1", "sent") == 20000
    with open(ledger) as file:
        events = file.read()
    assert events.count("consumer-came") == 3 and "consumer-went" in events, events
    watch.close()


def test_a_stream_with_gaps_into_zmq_source_loses_by_name():
    """zmq-source learns of what it was never sent: the message before the last is left out."""
    capture, endpoint, there = make_capture(3000), ipc(), ipc()
    peer = Peer(endpoint)
    run = Run("-e", f"pcap-replay {capture} -> zmq {endpoint} name=tap wait-for=1 batch=64KiB")
    peer.receive_to_end()
    finish(run)
    left_out = [m for m in peer.messages if m.count][-2]
    path = os.path.join(tempdir(), "copy.pcapng")
    reader = send_to_source(there, [m.frames for m in peer.messages if m is not left_out],
                            f"until-end=yes -> pcap {path}")
    assert counter(reader, "zmq-source:1", "lost-upstream") == reader.report["lost"] == left_out.count > 0
    assert out(reader, "zmq-source:1", "out") == 3000 - left_out.count
    assert drop_counts(path) == {left_out.before: left_out.count}, "the packet after the gap tells it"
    peer.close()


def drop_counts(path):
    """What a pcapng file says was dropped just before a packet, by the packet's place in the file."""
    with open(path, "rb") as file:
        data = file.read()
    at, n, found = 0, 0, {}
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 6:
            option = at + 28 + (struct.unpack_from("<I", data, at + 20)[0] + 3 & ~3)
            while option < at + size - 4:
                code, length = struct.unpack_from("<HH", data, option)
                if code == 4:
                    found[n] = struct.unpack_from("<Q", data, option + 4)[0]
                option += 4 + (length + 3 & ~3)
            n += 1
        at += size
    return found


def send_to_source(endpoint, messages, rest, *more):
    """Runs zmq-source ENDPOINT rest, publishes the messages to it, and waits for its end."""
    context = zmq.Context()
    sender = context.socket(zmq.XPUB)
    sender.sndhwm = 0
    sender.bind(endpoint)
    run = Run(*more, "-e", f"zmq-source {endpoint} {rest}")
    sender.recv()
    for frames in messages:
        sender.send_multipart(frames)
    finish(run)
    sender.close(linger=0)
    context.term()
    return run


def written_bytes(path):
    return sum(os.path.getsize(name) for name in glob.glob(path + "*"))


def test_neither_a_restart_nor_a_second_publisher_is_loss():
    one, other = make_capture(2000), make_capture(2000, first=2000)
    endpoints, path = [ipc(), ipc()], os.path.join(tempdir(), "all.pcap")
    reader = Run("-e", f"zmq-source {','.join(endpoints)} -> pcap {path}")
    for capture, endpoint in ((one, endpoints[0]), (other, endpoints[0]), (one, endpoints[1])):
        run = weir("-e", f"pcap-replay {capture} -> zmq {endpoint} name=tap wait-for=1 linger=10s")
        assert out(run, "zmq:1", "sent") == 2000
    size = 2 * os.path.getsize(one) + os.path.getsize(other) - 48
    wait_until(lambda: written_bytes(path) >= size, what="all packets in the file")
    finish_after(reader, signal.SIGTERM, 1)
    assert counter(reader, "zmq-source:1", "publishers") == 3
    assert out(reader, "zmq-source:1", "out") == 6000 and reader.report["lost"] == 0
    assert counter(reader, "zmq-source:1", "missed-before-joining") == 0


def test_joining_late_is_missed_and_not_lost():
    capture, endpoint = make_capture(4000, size=3000), ipc()
    run = Run("-e", f"pcap-replay {capture} loop=5 pace=80Mbps -> zmq {endpoint} wait-for=1")
    watch = Peer(endpoint)
    while watch.receive().before < 4000:
        pass
    reader = Run("-e", f"zmq-source {endpoint} until-end=yes -> null")
    finish(run)
    finish(reader)
    missed = counter(reader, "zmq-source:1", "missed-before-joining")
    assert missed >= 4000 and reader.report["lost"] == 0
    assert missed + out(reader, "zmq-source:1", "out") == 20000
    watch.close()


# ---- PUSH ----

def test_push_divides_packets_among_workers_and_waits_behind_files():
    endpoint = ipc()
    workers = [Run("-e", f"zmq-source {endpoint} mode=pull -> null") for _ in range(2)]
    run = Run(*PLUGINS, "-e", f"numbers count=200000 -> zmq {endpoint} mode=push wait-for=2 batch=64KiB linger=10s")
    finish(run)
    for worker in workers:
        finish_after(worker, signal.SIGTERM, 1)
    shares = [out(worker, "zmq-source:1", "out") for worker in workers]
    assert sum(shares) == out(run, "zmq:1", "sent") == 200000 and min(shares) > 0, shares
    assert run.report["lost"] == 0 and all(worker.report["lost"] == 0 for worker in workers)
    assert all(counter(worker, "zmq-source:1", "other-workers") > 0 for worker in workers)


def test_push_counts_what_a_slow_worker_does_not_take():
    endpoint = ipc()
    worker = Peer(endpoint, zmq.PULL, hwm=1)
    run = Run(*PLUGINS, "-e", f"numbers-live count=1000000000 bytes=1000 -> "
              f"zmq {endpoint} mode=push wait-for=1 hwm=1MiB linger=20s")
    wait_until(lambda: worker.socket.poll(0), what="a message")
    time.sleep(0.2)  # millions of packets, of which two thousand fit
    run.process.send_signal(signal.SIGTERM)
    worker.receive_to_end()
    finish(run)
    total = node(run, "zmq:1")["in"]["packets"]
    full, waited = out(run, "zmq:1", "full"), out(run, "zmq:1", "no-peer")  # before the worker was there
    assert full > 0 and run.report["lost"] == full + waited
    assert worker.received == out(run, "zmq:1", "sent") == counter(run, "zmq:1", "announced")
    assert worker.received + full + waited == total
    assert worker.messages[-1].unsent == full + waited
    assert all(m.flags & PUSHED for m in worker.messages)
    worker.close()


def test_push_without_a_worker_says_so():
    run = weir(*PLUGINS, "-e", f"numbers-live count=100000 bytes=1000 -> zmq {ipc()} mode=push linger=100ms")
    assert out(run, "zmq:1", "no-peer") > 0 and out(run, "zmq:1", "abandoned") > 0
    assert out(run, "zmq:1", "sent") == 0 and run.report["lost"] == 100000


def test_a_peer_that_never_reads_holds_up_the_end_no_longer_than_linger():
    for mode, kind in (("pub", zmq.SUB), ("push", zmq.PULL)):
        endpoint = ipc()
        peer = Peer(endpoint, kind, hwm=1)
        run = Run(*PLUGINS, "-e", f"numbers count=1000000000 bytes=1000 -> "
                                  f"zmq {endpoint} mode={mode} wait-for=1 linger=1s")
        wait_until(lambda: peer.socket.poll(0), what="a message that waits to be read")
        finish_after(run, signal.SIGTERM, 2)
        announced, undelivered = (counter(run, "zmq:1", what) for what in ("announced", "undelivered"))
        assert out(run, "zmq:1", "sent") == announced - undelivered
        if mode == "push":
            assert undelivered > 0 and out(run, "zmq:1", "abandoned") >= undelivered
            peer.socket.setsockopt(zmq.RCVTIMEO, 1000)
        peer.close()


# ---- Foreign messages, and what is refused ----

def test_junk_is_refused_and_counted_and_the_run_goes_on():
    topic, header, body = collect(make_capture(20))
    end = header[:16] + struct.pack("<QQII", 50, 20, 0, END) + header[40:]
    section = body[:struct.unpack_from("<I", body, 4)[0]]
    junk = [
        [b""], [b"tap/00/"], [topic, header], [topic, header, body, b""], [topic, header, body] * 2,
        [b"tap", header, body], [b"", header, body], [topic, b"", body], [topic, header[:55], body],
        [topic, b"WEIR" + bytes(52), body], [topic, b"weir" + header[4:], body], [topic, header, b""],
        [topic, header, b"\0" * 64], [topic, header, section], [topic, header[:32] + b"\xff" * 4 + header[36:], body],
        [b"x" * 300 + b"/00/", header, body], [topic, os.urandom(56), os.urandom(1000)],
        [topic, header[:24] + b"\xff" * 8 + header[32:], body],
    ]
    good = [topic, header, body]
    run = send_to_source(ipc(), junk + [good] + junk + [good] + [[topic, end, section]], "until-end=yes -> null")
    assert out(run, "zmq-source:1", "out") == 20
    assert counter(run, "zmq-source:1", "bad-messages") == 2 * len(junk) + 1, "good ones cannot come twice"
    assert run.report["lost"] == 0
    assert "a message is refused" in run.stderr


def test_streams_are_forgotten_with_a_word():
    topic, header, body = collect(make_capture(1))
    end = header[:16] + struct.pack("<QQII", 1, 1, 0, END) + header[40:]
    section = body[:struct.unpack_from("<I", body, 4)[0]]
    many = [[topic, header[:8] + struct.pack("<Q", publisher) + header[16:], body] for publisher in range(1100)]
    ends = [[topic, end[:8] + struct.pack("<Q", publisher) + end[16:], section] for publisher in range(76, 1100)]
    run = send_to_source(ipc(), many + ends, "until-end=yes -> null")
    assert out(run, "zmq-source:1", "out") == 1100 and run.report["lost"] == 0
    assert counter(run, "zmq-source:1", "publishers") == 1024
    assert run.stderr.count("1024 streams were heard") == 1, run.stderr


def test_packets_of_a_damaged_body_are_counted():
    topic, header, body = collect(make_capture(20))
    end = header[:16] + struct.pack("<QQII", 50, 20, 0, END) + header[40:]
    section = body[:struct.unpack_from("<I", body, 4)[0]]
    run = send_to_source(ipc(), [[topic, header, body[:-4]], [topic, end, section]], "until-end=yes -> null")
    assert out(run, "zmq-source:1", "out") == 19
    assert counter(run, "zmq-source:1", "undecoded") == run.report["lost"] == 1
    assert counter(run, "zmq-source:1", "bad-messages") == 1


def test_endpoints_that_others_can_reach_must_be_asked_for():
    for text in ("numbers count=1 -> zmq tcp://*:5555", "numbers count=1 -> zmq tcp://192.0.2.1:5555 connect=yes",
                 "zmq-source tcp://192.0.2.1:5555 -> null", "zmq-source 'ipc:///tmp/x,tcp://[2001:db8::1]:5555' -> null"):
        run = weir(*PLUGINS, "-e", text, expect=2)
        assert "neither encrypted nor authenticated" in run.stderr and "insecure=yes" in run.stderr, run.stderr
    for text in ("numbers count=1 -> zmq inproc://x", "numbers count=1 -> zmq tcp://5555", "zmq-source udp://x:1 -> null"):
        run = weir(*PLUGINS, "-e", text, expect=2)
        assert "is no tcp://HOST:PORT or ipc://PATH" in run.stderr, run.stderr
    weir(*PLUGINS, "-e", f"numbers count=1 -> zmq tcp://*:{free_port()} insecure=yes linger=0s")
    weir(*PLUGINS, "-e", f"numbers count=1 -> zmq tcp://[::1]:{free_port()} linger=0s")


def test_an_endpoint_that_is_taken_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        run = weir(*PLUGINS, "-e", f"numbers count=1 -> zmq tcp://127.0.0.1:{port}", expect=2, balanced=None)
        assert f"cannot listen on tcp://127.0.0.1:{port}: Address already in use" in run.stderr, run.stderr


def test_too_few_descriptors_are_an_error_and_no_abort():
    need_program("prlimit")
    for text in (f"numbers count=1 -> zmq {ipc()}", f"zmq-source {ipc()} -> null"):
        run = weir(*PLUGINS, "-e", text, prefix=["prlimit", "--nofile=40"], expect=2, balanced=None)
        assert "limit of 40 open files" in run.stderr and "ulimit -n" in run.stderr, run.stderr


def test_a_sink_listens_on_localhost_by_name():
    endpoint = f"tcp://localhost:{free_port()}"
    reader = Run("-e", f"zmq-source {endpoint} until-end=yes -> null")
    finish(Run("-e", f"pcap-replay {make_capture(10)} -> zmq {endpoint} wait-for=1"))
    assert out(finish(reader), "zmq-source:1", "out") == 10


def test_the_other_side_can_listen():
    endpoint, path = ipc(), os.path.join(tempdir(), "copy.pcap")
    capture = make_capture(1000)
    reader = Run("-e", f"zmq-source {endpoint} connect=no until-end=yes -> pcap {path}")
    reader.wait_for("running")
    run = weir("-e", f"pcap-replay {capture} -> zmq {endpoint} connect=yes wait-for=1")
    finish(reader)
    assert out(run, "zmq:1", "sent") == out(reader, "zmq-source:1", "out") == 1000
    assert reader.report["lost"] == 0


def test_a_source_says_whom_it_does_not_reach_and_who_has_gone():
    capture, here, nowhere = make_capture(10), f"tcp://127.0.0.1:{free_port()}", "tcp://nowhere.invalid:5555"
    source = Run("-e", f"zmq-source {here},{nowhere} insecure=yes -> null")
    wait_until(lambda: re.search(r"no connection to .*: trying on", source.stderr))
    wait_until(lambda: all(endpoint in source.stderr for endpoint in (here, nowhere)))
    finish(Run("-e", f"pcap-replay {capture} -> zmq {here} wait-for=1"))
    source.wait_for(f"the connection to {here} has ended: trying on")
    source.process.send_signal(signal.SIGTERM)
    finish(source)
    assert out(source, "zmq-source:1", "out") == 10
    assert source.stderr.count(f"no connection to {nowhere}") + source.stderr.count(f", {nowhere}") == 1, source.stderr


def test_a_source_with_the_wrong_key_says_so():
    server, friend, stranger = keygen("server", "friend", "stranger")
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    sink = Run(*PLUGINS, "-e", f"numbers-live pps=10 count=1000000 -> zmq {endpoint} curve-secret={server} curve-allow={friend}.pub")
    source = Run("-e", f"zmq-source {endpoint} curve-secret={stranger} curve-server={server}.pub -> null")
    other = Run("-e", f"zmq-source {endpoint} curve-secret={friend} curve-server={stranger}.pub -> null")
    source.wait_for(f"no handshake with {endpoint}")
    other.wait_for(f"no handshake with {endpoint}")
    sink.wait_for("a connection became no peer")
    assert "no connection" not in source.stderr + other.stderr
    for run in source, other, sink:
        run.process.send_signal(signal.SIGTERM)
        finish(run)


def test_six_hundred_publishers_are_not_too_many():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most < 4096:
        raise Skip(f"only {most} open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, most))
    endpoints = [ipc() for _ in range(600)]
    source = Run("-e", f"zmq-source {','.join(endpoints)} -> null")
    for endpoint in endpoints[0], endpoints[-1]:
        finish(Run("-e", f"pcap-replay {make_capture(10)} -> zmq {endpoint} wait-for=1"))
    finish_after(source, signal.SIGTERM, 1)
    assert out(source, "zmq-source:1", "out") == 20


def test_idle_means_idle():
    endpoint = ipc()
    run = Run("-e", f"zmq-source {endpoint} -> zmq {ipc()}")
    run.wait_for("running")
    assert_idle(run)
    finish_after(run, signal.SIGTERM, 1)


main()
