"""Streams over ZeroMQ in tests: peers that are written against docs/stream.md with libzmq's own binding, so that they
check the format from outside.
"""
import os, re, socket, struct, subprocess, time
import zmq
from weirtest import BUILD, SANITIZED, TOP, WEIR, Run, bound_to_test, tempdir

PLUGINS = ["--plugin-path", os.path.join(BUILD, "tests", "plugins")]
SUBSCRIBER = os.path.join(TOP, "docs", "examples", "subscriber.py")
END, HEARTBEAT, PUSHED = 1, 2, 4
SLACK = 5 if SANITIZED else 1


# ---- What a run says, and captures of our own ----

def node(run, name):
    return next(n for n in run.report["nodes"] if n["name"] == name)


def out(run, name, output):
    return node(run, name)["outputs"][output]["packets"]


def counter(run, name, what):
    return node(run, name)["counters"].get(what, 0)


def finish(run, timeout=60):
    run.wait(timeout)
    assert run.status == 0, f"exit status {run.status}: {run.stderr}"
    assert run.report["balanced"] is True, run.stderr
    return run


def make_capture(n, size=500, linktype=1, first=0):
    """A pcap file of numbered packets; small ones between large ones."""
    path = os.path.join(tempdir(), "in.pcap")
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 262144, linktype))
        for i in range(first, first + n):
            data = bytes(12) + b"\x88\xb5" + struct.pack(">I", i) + bytes((i * 7) % size)
            file.write(struct.pack("<IIII", 1_700_000_000 + i // 1000, i % 1000 * 1_000_001, len(data), len(data)))
            file.write(data)
    return path


def tcpdump(path):
    """The packets as tcpdump prints them, with all their bytes."""
    done = subprocess.run(["tcpdump", "-nn", "-tt", "--nano", "-XX", "-r", path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tshark(path):
    done = subprocess.run(["tshark", "-n", "-r", path, "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len",
                           "-e", "eth.type"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- Peers ----

class Message:
    def __init__(self, frames):
        self.frames = frames
        self.topic, header, self.body = frames
        assert len(header) == 56
        (magic, version, length, self.publisher, self.number, self.before, self.count, self.flags, self.unsent,
         self.sent_ns) = struct.unpack("<4sHHQQQIIQq", header)
        assert (magic, version, length) == (b"WEIR", 1, 56)


def read_key(path):
    with open(path, "rb") as file:
        return file.read().split()[0]


def keygen(*names):
    """The paths of new secret keys; the public ones are beside them, with ".pub"."""
    paths = [os.path.join(tempdir(), name) for name in names]
    for path in paths:
        subprocess.run([WEIR, "keygen", path], check=True)
    return paths


class Peer:
    """A subscriber or worker in this process that reads when it is told to."""

    def __init__(self, endpoint, kind=zmq.SUB, topic="", hwm=1000, bind=False, keys=None):
        self.context = zmq.Context()
        self.socket = self.context.socket(kind)
        self.socket.linger = 0
        self.socket.rcvhwm = hwm
        if keys:  # (own secret, the server's public), as in the files of weir keygen
            secret, self.socket.curve_serverkey = (read_key(path) for path in keys)
            self.socket.curve_publickey, self.socket.curve_secretkey = zmq.curve_public(secret), secret
        if kind == zmq.SUB:
            self.socket.subscribe(topic)
        (self.socket.bind if bind else self.socket.connect)(endpoint)
        self.messages = []

    def receive(self, timeout=30):
        assert self.socket.poll(timeout * 1000), "no message came"
        self.messages.append(Message(self.socket.recv_multipart()))
        return self.messages[-1]

    def receive_to_end(self, topics=1):
        ends = sum(bool(m.flags & END) for m in self.messages)
        while ends < topics:
            ends += bool(self.receive().flags & END)
        return self

    @property
    def received(self):
        return sum(m.count for m in self.messages)

    @property
    def lost(self):
        """The formula of the documentation, for one publisher."""
        last, lost = {}, 0
        for m in self.messages:
            sent, unsent = last.get(m.topic, (m.before, m.unsent))
            lost += m.before - sent + m.unsent - unsent
            last[m.topic] = m.before + m.count, m.unsent
        return lost

    def close(self):
        self.socket.close()
        self.context.term()


def subscribe(endpoint, *more, name="got"):
    """The documented subscriber as a process; (process, path of what it writes)."""
    path = os.path.join(tempdir(), name + ".pcapng")
    with open(path, "wb") as file:
        process = subprocess.Popen([SUBSCRIBER, endpoint, *more], stdout=file, stderr=subprocess.PIPE, text=True)
    return bound_to_test(process), path


def verdict_of(process, timeout=30):
    """(received, lost) as that process says at its end."""
    _, err = process.communicate(timeout=timeout)
    assert process.returncode == 0, err
    return tuple(int(number) for number in re.match(r"received (\d+), lost (\d+)", err).groups())


def ipc():
    return "ipc://" + os.path.join(tempdir(), "stream")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# ---- Runs ----

def finish_after(run, sig, seconds):
    """Signals, and asserts that the run has ended within so many seconds."""
    started = time.monotonic()
    run.process.send_signal(sig)
    finish(run)
    waited = time.monotonic() - started
    assert waited < seconds + SLACK - 0.5, f"the end took {waited} s"


def collect(capture):
    """The one message with packets that a small capture makes, as frames."""
    endpoint = ipc()
    peer = Peer(endpoint)
    run = Run("-e", f"pcap-replay {capture} -> zmq {endpoint} name=tap wait-for=1 linger=10s")
    peer.receive_to_end()
    finish(run)
    peer.close()
    return next(m.frames for m in peer.messages if m.count)
