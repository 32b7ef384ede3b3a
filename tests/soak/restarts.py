#!/usr/bin/python3
"""Consumers that are restarted every second under full traffic: WEIR_SOAK seconds of it, ten if that is not set."""
import json, os, re, signal, subprocess, time

from streamtest import PLUGINS, SUBSCRIBER, counter, finish, ipc, out
from weirtest import SANITIZED, Run, bound_to_test, main, tempdir, wait_until

SECONDS = int(os.environ.get("WEIR_SOAK", "10"))


def resources(pid):
    """(open descriptors, resident KiB)"""
    with open(f"/proc/{pid}/status") as file:
        return len(os.listdir(f"/proc/{pid}/fd")), int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
        except FileNotFoundError:
            pass  # it has just ended
    return found


def kill_programs(pid):
    for child in children(pid):
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has just ended


def test_consumers_restarted_every_second():
    endpoint, ledger = ipc(), os.path.join(tempdir(), "ledger")
    rate = 5000 if SANITIZED else 50000
    run = Run("--ledger", ledger, "--stats", "1s", "--quiet", *PLUGINS, "-e",
              f"in = numbers-live count=1000000000 pps={rate} bytes=500; stream = zmq {endpoint} name=in; files = null; "
              f"in -> queue 32MiB -> stream; in -> queue 32MiB lanes=2 -> pipe exec='cat' ; in -> files")
    wait_until(lambda: os.path.exists(ledger), what="a start")
    measured, readers, until = [], [], time.monotonic() + SECONDS
    while time.monotonic() < until:
        reader = Run("-e", f"zmq-source {endpoint} -> null", report=True)
        script = bound_to_test(subprocess.Popen([SUBSCRIBER, endpoint], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(1)  # that is how often
        script.kill()
        script.wait()
        kill_programs(run.process.pid)
        readers.append(finish(stopped(reader)))
        measured.append(resources(run.process.pid))
    assert run.process.poll() is None, run.stderr
    run.process.send_signal(signal.SIGTERM)
    finish(run)
    half = len(measured) // 2
    assert max(fds for fds, _ in measured[half:]) <= max(fds for fds, _ in measured[:half]) + 8, measured
    assert max(kib for _, kib in measured[half:]) <= max(kib for _, kib in measured[:half]) * 1.3 + 70_000, measured
    assert all(out(reader, "zmq-source:1", "out") > 0 and counter(reader, "zmq-source:1", "bad-messages") == 0 for reader in readers)
    assert out(run, "stream", "sent") == counter(run, "stream", "announced") > 0
    with open(ledger) as file:
        events = [json.loads(line)["event"] for line in file]
    assert events.count("consumer-came") >= 2 * len(readers) and events[-1] == "run-ended"


def stopped(run):
    run.process.send_signal(signal.SIGTERM)
    return run


main()
