#!/usr/bin/python3
"""The pipe sink: what readers get, slow ones, those that go, and FIFOs."""
import json, os, signal, struct, subprocess, time
from weirtest import BUILD, SANITIZED, WEIR, Run, main, need_program, need_shared, open_fifo, tempdir, wait_until, weir

PLUGINS = ["--plugin-path", os.path.join(BUILD, "tests", "plugins")]
COUNT = 20_000 if SANITIZED else 200_000


def outcomes(run, name="out"):
    node = next(n for n in run.report["nodes"] if n["name"] == name)
    return {o: v["packets"] for o, v in node["outputs"].items() if v["packets"]}


def count_records(data):
    """Whole records of a classic stream of microseconds, and what is left at its end."""
    assert data[:4] == b"\xd4\xc3\xb2\xa1", data[:24]
    at, count = 24, 0
    while at + 16 <= len(data):
        caplen = struct.unpack_from("<I", data, at + 8)[0]
        if at + 16 + caplen > len(data):
            break
        at += 16 + caplen
        count += 1
    return count, len(data) - at


class Piped:
    """weir with its standard output in a pipe that the test reads."""

    def __init__(self, text, *args):
        self.reading, writing = os.pipe()
        self.run = Run(*PLUGINS, *args, "-e", text, stdout=writing)
        os.close(writing)

    def read_all(self):
        data = bytearray()
        while chunk := os.read(self.reading, 1 << 20):
            data += chunk
        return data

    def end(self, balanced=True):
        self.run.wait()
        assert self.run.status == 0, self.run.stderr
        assert self.run.report["balanced"] is balanced, self.run.stderr
        return self.run


def reader(command, text):
    """weir | command: what the command printed."""
    with open(os.devnull) as null:
        source = subprocess.Popen([WEIR, "run", *PLUGINS, "-e", text], stdin=null, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        done = subprocess.run(command, stdin=source.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        source.stdout.close()
        _, words = source.communicate()
    assert source.returncode == 0, words
    return done.stdout, done.stderr


def test_tcpdump_and_tshark_read_the_stream():
    need_program("tcpdump", "tshark")
    for form in ("pcap", "pcap precision=ns", "pcapng"):
        text = f"numbers count=5000 bytes=200 -> pipe - format={form}"
        printed, words = reader(["tcpdump", "-nr", "-"], text)
        assert len(printed.splitlines()) == 5000, words
        printed, words = reader(["tshark", "-n", "-r", "-", "-T", "fields", "-e", "ip.src"], text)
        sources = printed.split()
        assert len(sources) == 5000 and sources[4660] == "10.0.18.52", words


def test_wireshark_reads_while_it_runs():
    need_program("dumpcap", "tshark")
    printed, words = reader(["tshark", "-n", "-i", "-", "-c", "1000"], "numbers count=1000 -> pipe -")
    assert len(printed.splitlines()) == 1000, words


def test_a_real_capture_through_a_pipe():
    capture = need_shared("captures/joy__firefox58.pcap")
    ours, _ = reader(["tcpdump", "-nXX", "-r", "-"], f"pcap-replay {capture} -> pipe -")
    theirs = subprocess.run(["tcpdump", "-nXX", "-r", capture], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert ours == theirs.stdout


def test_standard_output_in_a_file():
    path = os.path.join(tempdir(), "x.pcap")
    with open(path, "wb") as file:
        run = weir(*PLUGINS, "-e", "numbers count=1000 -> pipe -", stdout=file)
    assert run.report["nodes"][-1]["counters"]["stream-bytes"] == os.path.getsize(path)
    with open(path, "rb") as file:
        assert count_records(file.read()) == (1000, 0)


def test_files_wait_for_a_slow_reader():
    piped = Piped(f"out = pipe - buffer=2MiB; numbers count={COUNT} bytes=1000 -> out")
    time.sleep(1)  # the reader is slow: that is the case under test
    assert piped.run.process.poll() is None
    assert count_records(piped.read_all()) == (COUNT, 0)
    assert outcomes(piped.end()) == {"written": COUNT}


def test_files_wait_for_a_reader_at_the_end():
    piped = Piped("out = pipe -; numbers count=2000 bytes=1000 -> out")
    time.sleep(1.5)  # longer than any linger; more than a pipe holds is unread
    assert piped.run.process.poll() is None
    assert count_records(piped.read_all()) == (2000, 0)
    piped.end()


def test_a_slow_reader_of_a_live_source_loses_by_name():
    piped = Piped(f"out = pipe - buffer=2MiB linger=10s; live = numbers-live count={COUNT} bytes=1000; live -> out; live -> null")
    null_done = time.monotonic()
    wait_until(lambda: "ledger" in piped.run.stderr or time.monotonic() > null_done + 1, 10)
    count, left = count_records(piped.read_all())
    parts = outcomes(piped.end())
    assert left == 0 and parts["written"] == count and parts["reader-slow"] > 0
    assert sum(parts.values()) == COUNT and piped.run.report["lost"] == parts["reader-slow"], (parts, piped.run.stderr)
    assert outcomes(piped.run, "null:1") == {"discarded": COUNT}


def test_a_stuck_reader_does_not_hold_up_the_exit():
    piped = Piped(f"out = pipe - linger=200ms; numbers-live count={COUNT} bytes=1000 -> out")
    started = time.monotonic()
    parts = outcomes(piped.end())
    assert time.monotonic() - started < (10 if SANITIZED else 3)
    count, _ = count_records(piped.read_all())
    assert count == parts["written"] and sum(parts.values()) == COUNT


def test_a_stop_with_a_stuck_reader():
    piped = Piped("out = pipe -; numbers count=1000000000 bytes=1000 -> out")
    time.sleep(0.5)  # until everything is full
    started = time.monotonic()
    piped.run.process.send_signal(signal.SIGTERM)
    run = piped.end()
    assert time.monotonic() - started < 4, run.stderr
    count, _ = count_records(piped.read_all())
    assert outcomes(run)["written"] == count


def test_a_reader_that_goes_ends_its_sink_only():
    piped = Piped(f"out = pipe -; in = numbers count={COUNT} bytes=1000; in -> out; in -> null")
    got = os.read(piped.reading, 100_000)
    os.close(piped.reading)
    parts = outcomes(piped.end())
    assert len(got) > 0 and sum(parts.values()) == COUNT and parts["reader-gone"] > COUNT // 2
    assert piped.run.report["lost"] == parts["reader-gone"]
    assert outcomes(piped.run, "null:1") == {"discarded": COUNT}
    assert "the reader has gone" in piped.run.stderr


def test_the_run_ends_when_the_only_reader_goes():
    piped = Piped("out = pipe -; numbers count=1000000000 bytes=1000 -> out")
    os.read(piped.reading, 100_000)
    os.close(piped.reading)
    piped.end()


def test_packets_arrive_soon():
    folder = tempdir()
    feed = os.path.join(folder, "feed")
    os.mkfifo(feed)
    piped = Piped(f"pcap-replay {feed} -> pipe -")
    with open_fifo(feed, "wb", piped.run) as file:
        file.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 262144, 1))
        assert len(os.read(piped.reading, 24)) == 24
        for number in range(5):
            file.write(struct.pack("<IIII", number, 0, 60, 60) + bytes(60))
            sent = time.monotonic()
            assert len(os.read(piped.reading, 76)) == 76
            assert time.monotonic() - sent < 0.3  # 100 ms at the source, 100 ms here, and a busy machine
    piped.end()


def test_a_fifo_waits_for_its_reader():
    fifo = os.path.join(tempdir(), "fifo")
    os.mkfifo(fifo)
    run = Run(*PLUGINS, "-e", f"out = pipe {fifo} buffer=2MiB; numbers count={COUNT} bytes=1000 -> out")
    time.sleep(0.3)  # nobody reads yet
    assert run.process.poll() is None
    with open_fifo(fifo, "rb", run) as file:
        assert count_records(file.read()) == (COUNT, 0)
    run.wait()
    assert run.status == 0 and run.report["balanced"] and outcomes(run) == {"written": COUNT}, run.stderr


def test_what_has_replaced_a_fifo_is_not_written_to():
    folder = tempdir()
    fifo, precious = f"{folder}/fifo", f"{folder}/precious"
    os.mkfifo(fifo)
    with open(precious, "w") as file:
        file.write("precious")
    run = Run(*PLUGINS, "-e", f"out = pipe {fifo} buffer=2MiB; numbers count={COUNT} bytes=1000 -> out")
    run.wait_for("running")
    os.unlink(fifo)
    run.wait_for(f"{fifo}: No such file or directory; waiting")
    os.mkfifo(fifo)
    time.sleep(1.1)  # one line of a kind a second
    os.symlink(precious, f"{folder}/link")
    os.rename(f"{folder}/link", fifo)
    run.wait_for(f"{fifo}: it is no FIFO any more; waiting")
    os.unlink(fifo)
    os.mkfifo(fifo)
    with open_fifo(fifo, "rb", run) as file:
        assert count_records(file.read()) == (COUNT, 0)
    run.wait()
    assert run.status == 0 and outcomes(run) == {"written": COUNT}, run.stderr
    with open(precious) as file:
        assert file.read() == "precious"


def test_a_pipe_of_another_user():
    """It cannot be opened anew, and so has a description that blocks."""
    for linger in "linger=200ms", "linger=1h":
        for reads in True, False:
            count = COUNT if reads else 1000000000
            run = Run(*PLUGINS, "-e", f"out = pipe - {linger}; numbers count={count} bytes=1000 -> out", report=False,
                      prefix=["setpriv", "--reuid", "65534", "--clear-groups"])
            if reads:
                assert count_records(run.process.stdout.read()) == (COUNT, 0)
                run.wait()
            else:
                run.wait_for("running")
                time.sleep(0.3)  # so that the pipe is full
                run.process.send_signal(signal.SIGTERM)
                if linger == "linger=1h":
                    time.sleep(0.3)  # two at once are one
                    run.process.send_signal(signal.SIGTERM)
                run.process.wait(60)
                run.wait()
            assert run.status == 0 and "balanced" in run.stderr, run.stderr


def test_readers_that_come_and_go_are_in_the_ledger_file():
    folder = tempdir()
    os.mkfifo(f"{folder}/fifo")
    run = Run(*PLUGINS, "-e", f"numbers count=1000000000 bytes=1000 -> pipe {folder}/fifo", "--ledger", f"{folder}/ledger")
    with open_fifo(f"{folder}/fifo", "rb", run) as file:
        file.read(100_000)
    run.wait()
    with open(f"{folder}/ledger") as file:
        events = [(line["event"], line["detail"]) for line in map(json.loads, file) if line["event"].startswith("consumer")]
    assert events == [("consumer-came", f"{folder}/fifo"), ("consumer-went", f"{folder}/fifo")], events


def test_a_fifo_that_nobody_reads():
    fifo = os.path.join(tempdir(), "fifo")
    os.mkfifo(fifo)
    run = weir(*PLUGINS, "-e", f"out = pipe {fifo} linger=0ms; numbers-live count={COUNT} bytes=1000 -> out")
    assert outcomes(run) == {"no-reader": COUNT} and run.report["lost"] == COUNT


def test_what_is_no_fifo_is_refused():
    folder = tempdir()
    with open(f"{folder}/file", "w"):
        pass
    for path, word in ((f"{folder}/none", "mkfifo"), (f"{folder}/file", "no FIFO")):
        run = Run(*PLUGINS, "-e", f"numbers -> pipe {path}").wait()
        assert run.status != 0 and word in run.stderr and path in run.stderr, run.stderr


def test_one_standard_output():
    run = Run(*PLUGINS, "-e", "in = numbers; in -> pipe -; in -> pipe -").wait()
    assert run.status == 2 and run.stdout == b"", run.stderr


def test_no_stream_to_a_terminal():
    need_program("script")
    done = subprocess.run(["script", "-qec", f"{WEIR} run {' '.join(PLUGINS)} -e 'numbers -> pipe -'", os.devnull],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode != 0 and b"is a terminal" in done.stdout, done.stdout


main()
