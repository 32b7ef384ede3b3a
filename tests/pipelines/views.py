#!/usr/bin/python3
"""The views of the ledger in whole runs: report, terminal, ledger file, metrics, statistics; --user, plan."""
import glob, json, os, pty, re, signal, subprocess
from weirtest import BUILD, TOP, WEIR, Run, main, need_root, tempdir, wait_until, weir

PLUGINS = ["--plugin-path", os.path.join(BUILD, "tests", "plugins")]
ENDLESS = "numbers-live count=1000000000 -> snaplen 50 -> check-order delay=1ms"
LOSSY = "numbers-live count=200000 -> queue 640KiB -> check-order delay=1ms"


def node(report, name):
    return next(n for n in report["nodes"] if n["name"] == name)


def read_ledger(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def file_in_tempdir(name):
    return os.path.join(tempdir(), name)


# ---- The report ----

def test_lanes_of_the_report_add_up():
    report = weir(*PLUGINS, "-e", "numbers count=3000 lanes=3 -> snaplen 50 -> check-order").report
    for entry in report["nodes"]:
        assert len(entry["lanes"]) == 3, entry
        for output, total in entry["outputs"].items():
            for unit in ("packets", "captured_bytes"):
                assert sum(lane["outputs"][output][unit] for lane in entry["lanes"]) == total[unit], entry
    assert node(report, "snaplen:1")["in"] == {"packets": 9000, "captured_bytes": 9000 * 64, "wire_bytes": 9000 * 64}
    assert node(report, "snaplen:1")["outputs"]["out"]["captured_bytes"] == 9000 * 50
    assert [thread["name"] for thread in report["threads"]] == [*(f"numbers:1/{i}" for i in range(3)), "main"]
    assert 0 < sum(thread["cpu_seconds"] for thread in report["threads"]) <= report["cpu_seconds"] + 0.01
    assert node(report, "numbers:1")["options"] == {"count": "3000", "lanes": "3", "gap": "1us", "start": "0s", "pps": "0",
                                                    "bytes": "64"}


def test_empty_objects_of_the_report_hold_no_blanks():
    run = weir(*PLUGINS, "-e", "numbers count=10 -> pcap ${p}; # {   } \\ \"{  }", "--set", f"p={tempdir()}/{{  }}\"{{ }}")
    with open(run.report_path) as file:
        text = file.read()
    assert node(run.report, "pcap:1")["options"]["path"].endswith('/{  }"{ }'), text
    assert run.report["pipeline"].endswith('# {   } \\ "{  }'), text
    run = weir(*PLUGINS, "-e", "numbers count=10 -> null")
    with open(run.report_path) as file:
        text = file.read()
    assert '"options" : {}' in text and not re.search(r"{\s+}", text), text


def test_report_and_terminal_say_the_same():
    run = weir(*PLUGINS, "-e", LOSSY)
    lost = run.report["lost"]
    full = node(run.report, "queue:1")["outputs"]["full"]
    assert lost == full["packets"] > 0 and full["means"] == "loss"
    assert f"  lost {lost:,} packets: queue:1 full {lost:,}; lost by the NIC: unknown\n" in run.stderr, run.stderr
    assert "\n  balanced\n" in run.stderr
    assert run.stdout == b""


def test_usr1_prints_the_ledger_so_far():
    run = Run(*PLUGINS, "-e", ENDLESS)
    run.wait_for("running")
    run.process.send_signal(signal.SIGUSR1)
    run.wait_for("running for")
    run.stop()
    assert run.status == 0 and run.report["balanced"] is True, run.stderr


def test_a_report_that_cannot_be_written_is_refused_before_the_run():
    run = Run(*PLUGINS, "-e", ENDLESS, "--report", "/nowhere/report.json", report=False).wait()
    assert run.status == 2 and "/nowhere/report.json cannot be written" in run.stderr, run.stderr
    for view in ("--report", "--metrics"):
        run = Run(*PLUGINS, "-e", ENDLESS, view, tempdir(), report=False).wait()
        assert run.status == 2 and " cannot be written: Is a directory" in run.stderr, run.stderr


def test_docs_describe_every_field():
    with open(os.path.join(TOP, "docs", "report.md")) as file:
        words = set(re.findall(r"`([a-z_-]+)`", file.read()))
    for golden in ("report-fields", "ledger-fields", "metrics-names"):
        with open(os.path.join(TOP, "tests", "golden", golden)) as file:
            fields = {line.strip().rsplit(".", 1)[-1].removesuffix("[]") for line in file} - {"*"}
        assert fields <= words, f"{golden}: {fields - words} are not in docs/report.md"


def test_docs_name_every_event_of_the_plugins():
    with open(os.path.join(TOP, "docs", "report.md")) as file:
        words = set(re.findall(r"`([a-z_-]+)`", file.read()))
    events = set()
    for source in glob.glob(os.path.join(TOP, "plugins", "**", "*.c"), recursive=True):
        with open(source) as file:
            for call in re.findall(r"weir_event\(([^;]*);", file.read()):
                events |= set(re.findall(r'"([a-z]+(?:-[a-z]+)*)"', call))
    assert events and events <= words, f"{events - words} are not in docs/report.md"


# ---- The ledger file ----

def test_intervals_add_up_to_the_report():
    path = file_in_tempdir("ledger")
    run = Run(*PLUGINS, "-e", ENDLESS, "--ledger", path, "--stats", "50ms")
    wait_until(lambda: os.path.exists(path) and sum(line["event"] == "interval" for line in read_ledger(path)) >= 4)
    run.stop()
    lines = read_ledger(path)
    intervals = [line for line in lines if line["event"] == "interval"]
    assert lines[0]["event"] == "run-started" and lines[0]["pipeline"] == ENDLESS
    assert lines[-1]["event"] == "run-ended" and lines[-1]["balanced"] is True
    assert intervals[0]["start"] == run.report["start"] and intervals[-1]["end"] == run.report["end"]
    assert all(a["end"] == b["start"] for a, b in zip(intervals, intervals[1:]))
    written = sum(i["nodes"]["check-order:1"]["in"]["captured_bytes"] for i in intervals
                  if "check-order:1" in i.get("nodes", {}))
    assert written == node(run.report, "check-order:1")["in"]["captured_bytes"] > 0


def test_a_loss_has_a_time():
    path = file_in_tempdir("ledger")
    run = weir(*PLUGINS, "-e", LOSSY, "--ledger", path, "--stats", "10ms")
    lines = read_ledger(path)
    began = next(line for line in lines if line["event"] == "loss-began")
    assert (began["node"], began["what"]) == ("queue:1", "full") and began["packets"] > 0
    assert began["after"] < began["time"]
    assert sum(line.get("lost", 0) for line in lines if line["event"] == "interval") == run.report["lost"] > 0


def test_a_killed_run_has_no_last_line():
    path = file_in_tempdir("ledger")
    run = Run(*PLUGINS, "-e", ENDLESS, "--ledger", path, "--stats", "10ms")
    wait_until(lambda: os.path.exists(path) and len(read_ledger(path)) >= 3)
    run.process.kill()
    run.wait()
    weir(*PLUGINS, "-e", "numbers count=10 -> check-order", "--ledger", path)
    lines = read_ledger(path)
    runs = list(dict.fromkeys(line["run"] for line in lines))
    ended = {line["run"] for line in lines if line["event"] == "run-ended"}
    assert len(runs) == 2 and ended == {runs[1]}


def test_hup_goes_on_in_a_new_ledger_file():
    path = file_in_tempdir("ledger")
    run = Run(*PLUGINS, "-e", ENDLESS, "--ledger", path, "--stats", "10ms")
    wait_until(lambda: os.path.exists(path) and len(read_ledger(path)) >= 3)
    os.rename(path, path + ".1")
    run.process.send_signal(signal.SIGHUP)
    wait_until(lambda: os.path.exists(path))
    run.stop()
    lines = read_ledger(path + ".1") + read_ledger(path)
    intervals = [line for line in lines if line["event"] == "interval"]
    assert all(a["end"] == b["start"] for a, b in zip(intervals, intervals[1:]))
    assert lines[0]["event"] == "run-started" and lines[-1]["event"] == "run-ended"


def test_a_refused_run_says_why():
    path = file_in_tempdir("ledger")
    run = Run(*PLUGINS, "-e", ENDLESS, "--ledger", path, "--user", "no-such-user").wait()
    assert run.status == 2
    last = read_ledger(path)[-1]
    assert last["event"] == "run-refused" and "no such user" in last["detail"]


# ---- Metrics ----

SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\} ([0-9.]+)')


def parse_metrics(text):
    samples = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        key = (match[1], match[2])
        assert key not in samples, f"{key} twice"
        samples[key] = float(match[3])
    return samples


def test_metrics_are_replaced_every_interval():
    path = file_in_tempdir("weir.prom")
    run = Run(*PLUGINS, "-e", ENDLESS, "--metrics", path, "--stats", "50ms")
    wait_until(lambda: os.path.exists(path))
    first = os.stat(path).st_ino
    wait_until(lambda: os.stat(path).st_ino != first)
    with open(path) as file:
        assert "weir_balanced" not in file.read()
    run.stop()
    with open(path) as file:
        samples = parse_metrics(file.read())
    assert samples["weir_balanced", 'pipeline="-e"'] == 1
    assert samples["weir_node_in_packets_total", 'pipeline="-e",node="check-order:1",lane="0"'] == \
        node(run.report, "check-order:1")["in"]["packets"]
    assert os.listdir(os.path.dirname(path)) == ["weir.prom"]


# ---- Statistics ----

def test_stats_are_lines_where_there_is_no_terminal():
    run = Run(*PLUGINS, "-e", ENDLESS, "--stats", "20ms", "--quiet")
    line = re.compile(r"^weir: \d+\.\d\d s: numbers-live:1 .*pps .*bps; check-order:1 .*; lost 0$", re.M)
    wait_until(lambda: len(line.findall(run.stderr)) >= 3)
    run.stop()
    assert "\033" not in run.stderr


def test_stats_are_a_table_on_a_terminal():
    master, slave = pty.openpty()
    process = subprocess.Popen([WEIR, "run", *PLUGINS, "-e", ENDLESS, "--stats", "20ms", "--quiet"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    seen = b""
    while seen.count(b"\033[5A\r\033[J") < 3:
        seen += os.read(master, 4096)
    process.terminate()
    try:
        while os.read(master, 4096):
            pass
    except OSError:  # how Linux says that the other end is closed
        pass
    assert process.wait() == 0
    os.close(master)
    table = seen.split(b"\033[5A\r\033[J")[1].decode().splitlines()
    assert len(table) == 5 and table[1].split() == ["node", "output", "packets/s", "captured/s", "packets"], table


# ---- Privileges ----

def test_user_holds_for_every_thread():
    """Those too that plugins start while they open: of pcap and pipe one each, and of ZeroMQ's library several."""
    need_root()
    folder = tempdir()
    os.chmod(folder, 0o777)
    os.mkfifo(f"{folder}/fifo")
    os.chmod(f"{folder}/fifo", 0o666)
    text = f"a = snaplen 50\nnumbers-live count=1000000000 -> a -> check-order delay=1ms\na -> pcap {folder}/out.pcap " \
           f"stop-size=1MB\na -> zmq ipc://{folder}/socket\na -> pipe {folder}/fifo"
    run = Run(*PLUGINS, "-e", text, "--user", "nobody", report=False)
    run.wait_for("running")
    wait_until(lambda: len(os.listdir(f"/proc/{run.process.pid}/task")) >= 6)
    for task in os.listdir(f"/proc/{run.process.pid}/task"):
        with open(f"/proc/{run.process.pid}/task/{task}/status") as file:
            status = dict(line.split(":\t", 1) for line in file if ":\t" in line)
        assert "0" not in status["Uid"].split() + status["Gid"].split() + status["Groups"].split(), status
        assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0, status
        assert int(status["NoNewPrivs"]) == 1, status
    run.stop()
    assert run.status == 0, run.stderr


def test_what_the_user_may_not_write_is_refused_before_the_run():
    need_root()
    folder = tempdir()
    os.chmod(folder, 0o755)
    path = os.path.join(folder, "report.json")
    run = Run(*PLUGINS, "-e", ENDLESS, "--user", "nobody", "--report", path, report=False).wait()
    assert run.status == 2 and f"{path} cannot be written: Permission denied" in run.stderr, run.stderr


# ---- The plan ----

def plan(text):
    done = subprocess.run([WEIR, "plan", *PLUGINS, "-e", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_plan_tells_lanes_copies_buffers_and_capabilities():
    text = plan("tap = afpacket lo lanes=2 ring=64MiB; disk = pcap /tmp/%{lane}.pcap buffer=8MiB\n"
                "tap -> snaplen 96 -> disk\n"
                "tap -> queue 256MiB lanes=4 -> null")
    assert "threads: 6 lanes and the main thread, besides those of plugins; " in text, text
    assert "tap: afpacket, live; 2 lanes, whole flows in each\n" in text, text
    assert "  when a sink or queue is full packets are dropped and counted\n" in text, text
    assert "queue:1: queue, live; 4 lanes, whole flows in each\n" in text, text
    assert re.search(r"  disk +each packet, into its buffer\n", text), text
    assert re.search(r"  queue:1 +each packet, into a ring\n", text), text
    assert "null:1 " not in text, text
    assert re.search(r"  tap +ring +64 MiB  32 MiB a lane\n", text), text
    assert re.search(r"  disk +buffer +8 MiB  4 MiB a lane\n", text), text
    assert re.search(r"  queue:1 +size +256 MiB  32 MiB for each of 8 rings\n", text), text
    assert "capabilities needed: CAP_NET_RAW (tap)\n" in text, text


def test_plan_of_one_lane_and_one_ring():
    text = plan("afpacket lo -> queue 64MiB -> null")
    assert re.search(r"  queue:1 +size +64 MiB  in one ring\n", text), text
    text = plan("numbers -> check-order")
    assert "threads: 1 lane and the main thread, besides those of plugins; " in text, text
    assert re.search(r"  tap +ring +64 MiB  in one lane\n", plan("tap = afpacket lo; tap -> null")), text


def test_plan_of_files_waits():
    text = plan("numbers -> snaplen 96 -> check-order")
    assert "numbers:1: numbers, files; 1 lane, which has all packets\n" in text, text
    assert "  each runs numbers:1, snaplen:1, check-order:1\n" in text, text
    assert "  when a sink or queue is full they wait\n" in text, text
    assert "buffers: none\n" in text and "capabilities needed: none\n" in text, text


main()
