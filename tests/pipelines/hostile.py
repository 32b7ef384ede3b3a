#!/usr/bin/python3
"""What careless users and attackers do: closed and full streams, odd files, too few descriptors, odd moments."""
import json, os, signal, socket, struct, subprocess, time
from streamtest import free_port
from weirtest import BUILD, SANITIZED, WEIR, Run, main, processor_seconds, tempdir, wait_until, weir

PLUGINS = ["--plugin-path", os.path.join(BUILD, "tests", "plugins")]
MANY = 1000000000
PACKETS = "numbers count=100 -> {}"


def shell(command, *arguments):
    """Runs "$@" as a shell does that `command` is given to."""
    return subprocess.run(["sh", "-c", command, "sh", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True, timeout=60)


# ---- Standard streams ----

def test_no_file_is_opened_in_the_place_of_a_closed_stream():
    for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
        folder = tempdir()
        path, ledger = (os.path.join(folder, name) for name in ("out.pcap", "ledger"))
        done = shell(f'exec "$@" {closed}', WEIR, "run", *PLUGINS, "-e", PACKETS.format(f"pcap {path}"), "--ledger", ledger)
        assert done.returncode == 0, (closed, done.stderr)
        assert os.path.getsize(path) == 24 + 100 * (16 + 64), closed
        with open(ledger) as file:
            assert [json.loads(line)["event"] for line in file][-1] == "run-ended", closed


def test_nothing_is_said_to_be_written_to_a_closed_stream():
    done = shell('exec "$@" 1>&-', WEIR, "run", "--strict", *PLUGINS, "-e", PACKETS.format("pipe -"))
    assert done.returncode == 3 and "Bad file descriptor" in done.stderr and "lost 100 packets" in done.stderr, done.stderr
    done = shell('exec "$@" 0<&-', WEIR, "run", "-e", "pcap-replay - -> null")
    assert done.returncode == 2 and "Bad file descriptor" in done.stderr, done.stderr


def test_standard_output_that_is_full_is_an_error():
    for arguments in (["plugins"], ["help"], ["--version"], ["plan", "-e", "pcap-replay x -> null"],
                      ["graph", "-e", "pcap-replay x -> null"]):
        done = shell('exec "$@" >/dev/full', WEIR, *arguments)
        assert done.returncode == 1 and "standard output cannot be written: No space left" in done.stderr, arguments


def test_a_ledger_file_without_its_end_is_an_error():
    run = Run(*PLUGINS, "-e", PACKETS.format("check-order"), "--ledger", "/dev/full").wait()
    assert run.status == 1 and "the end of the ledger file /dev/full cannot be written" in run.stderr, run.stderr


# ---- Files that are none ----

def test_what_is_no_regular_file_is_not_replaced_by_one():
    fifo = os.path.join(tempdir(), "fifo")
    os.mkfifo(fifo)
    for options in ("", "overwrite=yes"):
        run = weir(*PLUGINS, "-e", PACKETS.format(f"pcap {fifo} {options}"), expect=2, balanced=None)
        assert "is no regular file" in run.stderr, run.stderr


def test_no_files_are_not_read_as_if_they_were():
    run = weir("-e", "pcap-replay '' -> null", expect=2, balanced=None)
    assert "-e:1:13: pcap-replay" in run.stderr and "expected a list of files" in run.stderr, run.stderr


def test_names_may_have_any_characters():
    folder = os.path.join(tempdir(), "odd dir")
    os.mkdir(folder)
    name, report, ledger, metrics = (os.path.join(folder, name) for name in (
        'a b\n"c\\d$é%%x.pcap', "r\n\t.json", "l \x01é.json", 'm".prom'))
    weir(*PLUGINS, "--set", f"n={name}", "-e", "numbers count=10 -> pcap ${n}", "--ledger", ledger, "--metrics", metrics,
         "--report", report, report=False)
    assert os.path.getsize(name.replace("%%", "%")) == 24 + 10 * (16 + 64)
    with open(report) as file:
        assert json.load(file)["balanced"] is True
    with open(ledger) as file:
        assert [json.loads(line)["event"] for line in file][-1] == "run-ended"
    weir("-e", f"pcap-replay '{name.replace('%%', '%')}' -> pcap {tempdir()}/é.pcap")


def test_a_name_that_is_too_long_is_refused_before_the_run():
    for length, status in ((250, 0), (251, 2), (300, 2)):
        run = Run(*PLUGINS, "-e", PACKETS.format(f"pcap {tempdir()}/{'x' * (length - 5)}.pcap")).wait()
        assert run.status == status and ("File name too long" in run.stderr) == (status != 0), run.stderr


# ---- Captures ----

def block(kind, body):
    size = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + size + body + size


def pcapng(path, interfaces, times_ns):
    """A section of Ethernet interfaces that count nanoseconds; packets of 60 bytes go round among them."""
    with open(path, "wb") as file:
        file.write(block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)))
        for number in range(interfaces):
            file.write(block(1, struct.pack("<HHIHHI", 1, 0, 0, 2, 4, 0x30303030 + number) +
                             struct.pack("<HHBxxxI", 9, 1, 9, 0)))
        for number, ns in enumerate(times_ns):
            file.write(block(6, struct.pack("<IIIII", number % interfaces, ns >> 32, ns & 0xffffffff, 60, 60) + bytes(60)))
    return path


def test_a_file_of_very_many_interfaces_is_read_at_once():
    path = pcapng(os.path.join(tempdir(), "in.pcapng"), 65_000, range(1000))
    started = time.monotonic()
    weir("-e", f"pcap-replay {path} -> null")
    assert time.monotonic() - started < (30 if SANITIZED else 5)


def test_the_ends_of_time_are_times_like_others():
    times = [2**63 - 1, 2**63 - 2, 0, 1, 2**63, 2**64 - 1, 5, 2**62]
    folder = tempdir()
    path = pcapng(os.path.join(folder, "in.pcapng"), 3, times * 50)
    for number, sink in enumerate(("pcap {}.pcapng", "pcap {}-%Y-%{{seq}}.pcap rotate-time=1h", "dedup -> pcap {}.pcap",
                                   "queue 4MiB lanes=2 -> pcap {}-%{{lane}}.pcapng",
                                   "pcap {}-%{{seq}}.pcapng stop-time=1d rotate-time=7d")):
        run = weir("-e", f"pcap-replay {path} -> {sink.format(f'{folder}/out{number}')}", env={"TZ": "Asia/Tokyo"})
        assert "runtime error" not in run.stderr, run.stderr


# ---- Sizes ----

def seen(run):
    return sum(n["outputs"]["seen"]["packets"] for n in run.report["nodes"] if n["plugin"] == "check-order")


def test_a_thousand_nodes_in_a_row_and_beside_each_other():
    chain = " -> ".join(f"snaplen {60000 - i}" for i in range(1000))
    assert seen(weir(*PLUGINS, "-e", f"numbers count=1000 -> {chain} -> check-order")) == 1000
    fan = "\n".join(f"a -> snaplen {60000 - i} -> check-order" for i in range(500))
    assert seen(weir(*PLUGINS, "-e", f"a = numbers count=1000\n{fan}")) == 500_000


def test_many_lanes_and_queues():
    assert seen(weir(*PLUGINS, "-e", "numbers count=500 lanes=64 -> queue 256MiB lanes=4 -> check-order")) == 32_000
    chain = " -> ".join(["queue 1MiB"] * 100)
    assert seen(weir(*PLUGINS, "-e", f"numbers count=1000 -> {chain} -> check-order")) == 1000


def test_texts_of_any_size_are_read_or_refused_at_once():
    for text, words in ((";" * 1_000_000, "the text is empty"),
                        ("numbers -> null '" + "x" * 1_000_000, "this quote is not closed"),
                        ("".join(f"n{i} -> n{i + 1}\n" for i in range(2000)), "there is no plugin or name 'n0'"),
                        ("numbers -> c0\n" + "".join(f"c{i} = snaplen 9\nc{i} -> c{(i + 1) % 1000}\n" for i in range(1000)),
                         "a cycle")):
        done = subprocess.run([WEIR, "check", *PLUGINS, "-"], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=60)
        assert done.returncode == 2 and words in done.stderr, done.stderr[:1000]


# ---- The end ----

def kill_until_it_ends(run):
    """Two signals at once are one, so it gets them until one came after another."""
    def ended():
        if run.process.poll() is None:
            run.process.send_signal(signal.SIGTERM)
        return run.process.poll() is not None

    wait_until(ended, 60, "the end of the run")
    run.wait()


def has_lanes(run):
    """Their threads bear the names of their nodes."""
    return "numbers" in subprocess.run(["ps", "-Lo", "comm", "-p", str(run.process.pid)], stdout=subprocess.PIPE, text=True).stdout


def is_stuck(run):
    before = processor_seconds(run.process)
    time.sleep(0.2)
    return processor_seconds(run.process) - before < 0.01


def test_a_second_signal_abandons_what_peers_have_not_taken():
    folder = tempdir()
    stubborn, stuck = os.path.join(folder, "stubborn"), socket.socket()
    with open(stubborn, "w") as file:
        file.write("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n")
    os.chmod(stubborn, 0o755)
    port = free_port()
    for held, sink in ((1000, f"zmq ipc://{folder}/socket mode=push linger=1h"),
                       (None, f"pcap-over-ip 127.0.0.1:{port} stall=1h linger=1h"),
                       (None, "pipe - linger=1h"),
                       (500, f"pipe exec={stubborn} grace=1h linger=1h")):
        for count in {held or MANY, MANY}:  # what the sink holds when the source has ended, and what it never does
            run = Run(*PLUGINS, "-e", f"out = {sink}; numbers count={count} bytes=1000 -> out")
            run.wait_for("running")
            if "pcap-over-ip" in sink:
                stuck = socket.create_connection(("127.0.0.1", port))
            wait_until(lambda: is_stuck(run) if count == MANY else not has_lanes(run), 20, f"{sink} with {count} packets")
            kill_until_it_ends(run)
            assert run.status == 0 and run.report["balanced"] is True, run.stderr
            assert run.report["lost"] > 0, run.stderr
    stuck.close()


def test_a_second_signal_leaves_the_command_of_a_file_alone():
    folder = tempdir()
    command = os.path.join(folder, "command")
    with open(command, "w") as file:
        file.write(f"#!/bin/sh\necho $$ > {folder}/pid\nexec sleep 1000\n")
    os.chmod(command, 0o755)
    run = Run(*PLUGINS, "-e", f"numbers count=1 -> pcap {folder}/out.pcap on-close={command} on-close-wait=1h")
    wait_until(lambda: os.path.exists(f"{folder}/pid") and os.path.getsize(f"{folder}/pid"))
    kill_until_it_ends(run)
    assert run.status == 0 and "still runs, and is left alone" in run.stderr, run.stderr
    with open(f"{folder}/pid") as file:
        os.kill(int(file.read()), signal.SIGKILL)


# ---- Limits ----

def test_the_limit_of_descriptors_is_the_higher_one():
    text = PACKETS.format(f"zmq ipc://{tempdir()}/socket linger=0s")
    weir(*PLUGINS, "-e", text, prefix=["prlimit", "--nofile=40:4096"])


main()
