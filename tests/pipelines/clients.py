#!/usr/bin/python3
"""The scripts of docs/examples, in Python and Node.js: a million packets, and what a slow one has lost, to the packet."""
import os, re, signal, subprocess, time

from streamtest import PLUGINS, SUBSCRIBER, finish, free_port, keygen, out
from weirtest import BUILD, SANITIZED, TOP, Run, Skip, bound_to_test, main, need_program, tempdir, wait_until

COUNT = 50_000 if SANITIZED else 1_000_000
SIZE = 8000 if SANITIZED else 1000  # bytes of each, where there have to be many
NODE_FOLDER = os.path.join(BUILD, "tests", "node")


def python():
    return [SUBSCRIBER]


def node():
    """With npm's zeromq in the build folder, installed once where npm can be reached."""
    need_program("node", "npm")
    if not os.path.exists(os.path.join(NODE_FOLDER, "node_modules", "zeromq")):
        os.makedirs(NODE_FOLDER, exist_ok=True)
        try:
            done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=0", "--prefix", NODE_FOLDER,
                                   "zeromq@6"], timeout=90, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired:
            raise Skip("npm did not install zeromq within 90 s")
        if done.returncode != 0:
            raise Skip("npm cannot install zeromq")
    return ["node", os.path.join(TOP, "docs", "examples", "subscriber.mjs")]


class Client:
    def __init__(self, command, endpoint, *more):
        self.path = os.path.join(tempdir(), "got.pcapng")
        with open(self.path, "wb") as file:
            self.process = bound_to_test(subprocess.Popen([*command, endpoint, *more], stdout=file, stderr=subprocess.PIPE, text=True,
                                                          cwd=NODE_FOLDER if command[0] == "node" else None))

    def verdict(self):
        """(received, lost) as it says at its end."""
        said = self.process.communicate(timeout=120)[1]
        assert self.process.returncode == 0, said
        return tuple(map(int, re.search(r"received (\d+), lost (\d+)", said).groups()))


def packets_in(path):
    done = subprocess.run(["tcpdump", "--count", "-nr", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return int(done.stdout.split()[0])


def read_a_million(command):
    need_program("tcpdump")
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    client = Client(command, endpoint)
    run = Run(*PLUGINS, "-e", f"numbers count={COUNT} -> zmq {endpoint} wait-for=1 hwm=2GiB linger=1m")
    assert client.verdict() == (COUNT, 0)
    finish(run)
    assert out(run, "zmq:1", "sent") == COUNT and run.report["lost"] == 0
    assert packets_in(client.path) == COUNT


def lose_some(command):
    """It sleeps until more than may wait for it has been sent."""
    need_program("tcpdump")
    endpoint, rate = f"tcp://127.0.0.1:{free_port()}", COUNT // 8
    client = Client(command, endpoint)
    run = Run(*PLUGINS, "-e", f"numbers count={COUNT} pps={rate} bytes={SIZE} -> zmq {endpoint} wait-for=1 hwm=16MiB batch=64KiB linger=10s name=in")
    wait_until(lambda: os.path.getsize(client.path) > 1 << 20, what="the first packets")
    client.process.send_signal(signal.SIGSTOP)
    time.sleep(2)  # a quarter of all, many times what the buffers between hold
    client.process.send_signal(signal.SIGCONT)
    received, lost = client.verdict()
    finish(run)
    unsent = run.report["lost"]  # if this machine was too busy to send
    assert out(run, "zmq:1", "sent") + unsent == COUNT, run.stderr
    assert lost > unsent and received + lost == COUNT, (received, lost, unsent)
    assert packets_in(client.path) == received


def read_with_keys(command):
    server, friend, stranger = keygen("server", "friend", "stranger")
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    refused = Client(command, endpoint, "", stranger, server + ".pub")
    run = Run(*PLUGINS, "-e", f"numbers count=1000 -> zmq {endpoint} wait-for=1 curve-secret={server} curve-allow={friend}.pub")
    run.wait_for("is not allowed")
    refused.process.send_signal(signal.SIGINT)
    assert refused.verdict() == (0, 0)
    client = Client(command, endpoint, "", friend, server + ".pub")
    assert client.verdict() == (1000, 0)
    finish(run)


def test_python_reads_with_keys():
    read_with_keys(python())


def test_node_reads_with_keys():
    read_with_keys(node())


def test_python_reads_a_million_packets():
    read_a_million(python())


def test_python_knows_what_it_has_lost():
    lose_some(python())


def test_node_reads_a_million_packets():
    read_a_million(node())


def test_node_knows_what_it_has_lost():
    lose_some(node())


def test_the_scripts_are_short():
    for name in ("subscriber.py", "subscriber.mjs"):
        with open(os.path.join(TOP, "docs", "examples", name)) as file:
            text = re.sub(r'""".*?"""', "", file.read(), flags=re.DOTALL)
        code = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "//"))]
        assert len(code) <= 30, f"{name} has {len(code)} lines"


main()
