#!/usr/bin/python3
"""The pipe sink with programs of its own: what they get, what is lost when they die, and how they end."""
import glob, json, os, re, signal, subprocess, time

import frames as f
from weirtest import BUILD, SANITIZED, Run, bound_to_test, main, need_root, tempdir, wait_until, weir

PLUGINS = ["--plugin-path", os.path.join(BUILD, "tests", "plugins")]

# Reads record by record, never more than one ahead, and notes each that it has whole.
READER = '''
import os, sys, time
folder, pause, most = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
log = os.open(f"{folder}/{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def read(n):
    data = b""
    while len(data) < n:
        more = os.read(0, n - len(data))
        if not more:
            sys.exit(3 if data else 0)
        data += more
    return data
assert read(24)[:4] == b"\\xd4\\xc3\\xb2\\xa1"
while most:
    most -= 1
    head = read(16)
    body = read(int.from_bytes(head[8:12], "little"))
    os.write(log, b".")
    if pause:
        time.sleep(pause)
'''


def reader(folder, pause=0, most=-1):
    path = os.path.join(folder, "reader.py")
    with open(path, "w") as file:
        file.write(READER)
    return f"/usr/bin/python3 {path} {folder} {pause} {most}"


def counts(folder):
    """By process: how many whole packets it had."""
    return {int(os.path.basename(path)): os.path.getsize(path) for path in glob.glob(f"{folder}/[0-9]*")}


def outcomes(run, name="out"):
    node = next(n for n in run.report["nodes"] if n["name"] == name)
    return {o: v["packets"] for o, v in node["outputs"].items() if v["packets"]}


def done(run, status=0):
    run.wait()
    assert run.status == status and run.report["balanced"] is True, run.stderr
    return run


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def test_a_program_for_each_lane():
    folder = tempdir()
    lanes = [os.path.join(folder, str(lane)) for lane in range(3)]
    ledger = f"{folder}/ledger"
    run = done(Run("--ledger", ledger, *PLUGINS, "-e", f'out = pipe exec="/bin/sh -c \'exec cat >{folder}/%{{lane}}\'" precision=ns; numbers count=30000 -> queue 8MiB lanes=3 -> out'))
    parts = [f.bytes_of(f.read_pcap(path)) for path in lanes]
    assert all(parts) and sum(map(len, parts)) == 30000 == len({packet for part in parts for packet in part})
    assert outcomes(run) == {"written": 30000} and run.report["lost"] == 0
    ends = [line for line in lines(ledger) if line["event"] == "consumer-went"]
    assert sorted(line["lane"] for line in ends) == [0, 1, 2] and all("ended with status 0" in line["detail"] for line in ends)


def test_killed_programs_lose_what_the_ledger_says():
    folder, ledger, kills = tempdir(), os.path.join(tempdir(), "ledger"), 1 if SANITIZED else 3
    run = Run("--ledger", ledger, *PLUGINS, "-e", f'out = pipe exec="{reader(folder, 0.0005)}" buffer=2MiB grace=60s; numbers-live count=6000 bytes=500 pps=1500 -> out')
    killed = set()
    while len(killed) < kills:
        wait_until(lambda: any(n > 100 for pid, n in counts(folder).items() if pid not in killed), 60, "a new process that reads")
        pid = next(pid for pid, n in counts(folder).items() if n > 100 and pid not in killed)
        killed.add(pid)
        os.kill(pid, signal.SIGKILL)
    done(run)
    got, parts = counts(folder), outcomes(run)
    assert len(got) == kills + 1, got
    # A process that is killed may have read a packet that it had no time to note.
    assert 0 <= parts["written"] - sum(got.values()) <= kills, (parts, got)
    assert sum(parts.values()) == 6000 and run.report["lost"] == 6000 - parts["written"] > 0
    assert not set(parts) - {"written", "reader-gone", "no-reader", "reader-slow"}
    events = [line["event"] + line.get("detail", "")[-9:] for line in lines(ledger)]
    assert sum(event.startswith("consumer-came") for event in events) == kills + 1, events
    assert events.count("consumer-went signal 9") == kills and events.count("consumer-went status 0") == 1, events


def test_a_program_that_ends_by_itself_has_read_what_was_written():
    """After 1,000 packets, again and again: exactly these are written, and what it left in the pipe is lost by name."""
    folder = tempdir()
    run = done(Run(*PLUGINS, "-e", f'out = pipe exec="{reader(folder, most=1000)}" buffer=2MiB; numbers count=20000 bytes=1000 -> out'))
    parts, got = outcomes(run), counts(folder)
    assert len(got) > 2 and parts["written"] == sum(got.values()), (parts, got)
    assert parts == {"written": parts["written"], "reader-gone": 20000 - parts["written"]}
    assert run.report["lost"] == parts["reader-gone"]


def test_the_delay_doubles():
    ledger = os.path.join(tempdir(), "ledger")
    run = Run("--ledger", ledger, *PLUGINS, "-e", "out = pipe exec=false; numbers-live count=1000000000 pps=100 -> out")
    wait_until(lambda: os.path.exists(ledger) and sum(line["event"] == "consumer-went" for line in lines(ledger)) >= 4, 30, "four ends")
    run.stop()
    done(run)
    times = [line["time"] for line in lines(ledger) if line["event"] == "consumer-came"]
    seconds = [int(t[11:13]) * 3600 + int(t[14:16]) * 60 + float(t[17:-1]) for t in times]
    gaps = [b - a for a, b in zip(seconds, seconds[1:])][:3]
    assert all(gap >= 0.095 * 2 ** i for i, gap in enumerate(gaps)), gaps
    assert "has ended with status 1" in run.stderr


def test_what_a_program_inherits():
    need_root()
    folder = tempdir()
    script = f"{folder}/script"
    with open(script, "w") as file:
        file.write(f"#!/bin/sh\nls /proc/self/fd >{folder}/fds\ncat /proc/self/status >{folder}/status\ncat >/dev/null\n")
    os.chmod(script, 0o755)
    done(Run(*PLUGINS, "-e", f"in = numbers count=10; in -> pipe exec={script}; in -> pcap {folder}/x.pcap"))
    with open(f"{folder}/fds") as file:
        assert file.read().split() == ["0", "1", "2", "3"], "3 is the folder that ls reads"
    with open(f"{folder}/status") as file:
        status = dict(re.findall(r"^(\w+):\t(.*)$", file.read(), re.M))
    assert all(int(status[kind], 16) == 0 for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")), status
    assert status["NoNewPrivs"] == "1" and int(status["SigBlk"], 16) == 0
    assert int(status["SigIgn"], 16) & 0x7fffffff == 0, "but for two of the C library's own"


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        mine = file.read().split()
    return mine + [c for task in os.listdir(f"/proc/{pid}/task") if task != str(pid)
                   for c in open(f"/proc/{pid}/task/{task}/children").read().split()]


def test_a_program_that_does_not_end_gets_term_then_kill():
    for trap, words in (("", "was ended by signal 15"), ("trap '' TERM; ", "was ended by signal 9")):
        folder = tempdir()
        script = f"{folder}/script"
        with open(script, "w") as file:
            file.write(f"#!/bin/sh\n{trap}touch {folder}/ready\nwhile :; do sleep 1; done\n")
        os.chmod(script, 0o755)
        run = Run(*PLUGINS, "-e", f"out = pipe exec={script} grace=300ms linger=100ms; numbers-live count=1000000000 pps=100 -> out")
        wait_until(lambda: os.path.exists(f"{folder}/ready"))
        mine = children(run.process.pid)
        assert mine
        started = time.monotonic()
        run.stop()
        done(run)
        assert time.monotonic() - started < (15 if SANITIZED else 4)
        assert words in run.stderr, run.stderr
        assert outcomes(run).get("written", 0) == 0, "it read nothing"
        assert not any(os.path.exists(f"/proc/{pid}") for pid in mine)


def test_no_zombies_and_stderr_is_passed_on():
    run = Run(*PLUGINS, "-e", "out = pipe exec=\"/bin/sh -c 'echo hello from $$ >&2; echo and out; exit 7'\"; numbers-live count=1000000000 pps=100 -> out")
    wait_until(lambda: run.stderr.count("hello from") >= 3 and run.stderr.count("status 7") >= 2, 30, "three processes")
    wait_until(lambda: not children(run.process.pid), 10, "no zombie, while the next one is waited for")
    run.stop()
    done(run)
    assert run.stdout == b"" and "and out" in run.stderr


def test_what_a_program_has_left_is_ended_before_it_starts_again():
    folder = tempdir()
    pids, script = f"{folder}/pids", f"{folder}/script"
    with open(script, "w") as file:
        file.write(f"#!/bin/sh\ntrap '' TERM\nsleep 1000 &\necho $! >> {pids}\n")
    os.chmod(script, 0o755)
    run = Run(*PLUGINS, "-e", f"out = pipe exec={script}; numbers-live count=1000000000 pps=100 -> out")

    def alive():
        with open(pids) as file:
            return [pid for pid in file.read().split() if os.path.exists(f"/proc/{pid}")]

    wait_until(lambda: run.stderr.count("has ended with status") >= 4, 30, "four processes")
    assert len(alive()) <= 2, "of the last one, and of the next"
    run.stop()
    done(run)
    for pid in alive():
        os.kill(int(pid), signal.SIGKILL)


def test_commands_that_cannot_be_are_refused():
    for text, words in (("pipe", "one reader is wanted"), ("pipe - exec=cat", "one reader is wanted"),
                        ("pipe exec=no-such-program", "there is no program 'no-such-program'"),
                        ("pipe exec=/etc", "there is no program '/etc'"), ("pipe exec=\"'cat\"", "a quote is not closed"), ("pipe exec=' '", "no program is named"),
                        ("pipe exec='cat %Q'", "is no pattern"),
                        ("queue 16MiB lanes=8 -> pipe exec=cat buffer=4MiB", "divided among 8 lanes")):
        run = weir(*PLUGINS, "-e", f"numbers -> {text}", expect=2, balanced=None)
        assert words in run.stderr, (text, run.stderr)


def test_words_are_split_like_the_language():
    folder = tempdir()
    with open(f"{folder}/args", "w") as file:
        file.write(f"import sys\nsys.stdin.buffer.read()\nopen('{folder}/out', 'w').write(repr(sys.argv[1:]))\n")
    done(Run(*PLUGINS, "-e", r"""numbers count=1 -> pipe exec='/usr/bin/python3 FOLDER/args a\ b "c \" $d" %% %{lane}x "" ; *'""".replace("FOLDER", folder)))
    with open(f"{folder}/out") as file:
        assert eval(file.read()) == ["a b", 'c " $d', "%", "0x", "", ";", "*"]


def test_a_fifo_for_each_lane():
    folder = tempdir()
    for lane in range(2):
        os.mkfifo(f"{folder}/{lane}")
    run = Run(*PLUGINS, "-e", f"out = pipe {folder}/%{{lane}} precision=ns; numbers count=1000 -> queue 8MiB lanes=2 -> out")
    readers = [bound_to_test(subprocess.Popen(f"cat {folder}/{lane} >{folder}/copy{lane}", shell=True)) for lane in range(2)]
    for process in readers:
        process.wait(60)
    got = [len(f.read_pcap(f"{folder}/copy{lane}")) for lane in range(2)]
    done(run)
    assert sum(got) == 1000 and all(got) and outcomes(run) == {"written": 1000}


main()
