#!/usr/bin/python3
"""An intrusion detection on the stream: it must raise as many alerts as there are in the capture."""
import json, os, re, subprocess, sys

import weirtest as t

FOLDER = "consumers"


def capture():
    """(path, what a consumer must report)."""
    path = os.path.join(t.tempdir(), "lab.pcap")
    done = subprocess.run([sys.executable, t.need_shared(f"{FOLDER}/gen_pcap.py"), path], check=True, stdout=subprocess.PIPE)
    return path, json.loads(done.stdout)


def suricata(*source, prefix=(), **more):
    """Started; its logs are in .folder."""
    folder = t.tempdir()
    command = [*prefix, "suricata", "-c", t.need_shared(f"{FOLDER}/suricata.yaml"), "-S",
               t.need_shared(f"{FOLDER}/lab.rules"), "-l", folder, "-k", "none", *source]
    process = t.bound_to_test(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more))
    process.folder = folder
    return process


def events_of(process):
    with open(os.path.join(process.folder, "eve.json")) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def check(process, expected):
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 0 and "\nE: " not in said, said
    events = events_of(process)
    assert sum(event["event_type"] == "alert" for event in events) == expected["alerts"]
    stats = [event["stats"] for event in events if event["event_type"] == "stats"]
    assert stats[-1]["decoder"]["pkts"] == expected["packets"]


def test_suricata_at_the_end_of_a_pipe():
    t.need_program("suricata")
    path, expected = capture()
    run = t.Run("-e", f"pcap-replay {path} -> pipe -")
    process = suricata("-r", "/dev/stdin", stdin=run.process.stdout)
    run.process.stdout.close()
    run.process.stdout = None
    check(process, expected)
    run.wait()
    assert run.status == 0 and run.report["balanced"] is True, run.stderr


def test_suricata_at_a_fifo_behind_zeromq():
    t.need_program("suricata")
    path, expected = capture()
    folder = t.tempdir()
    fifo, stream = os.path.join(folder, "fifo"), f"ipc://{folder}/stream"
    os.mkfifo(fifo)
    process = suricata("-r", fifo)
    reader = t.Run("-e", f"zmq-source {stream} until-end=yes -> pipe {fifo}")
    t.weir("-e", f"pcap-replay {path} -> zmq {stream} wait-for=1")
    reader.wait()
    assert reader.status == 0 and reader.report["lost"] == 0, reader.stderr
    check(process, expected)


def test_suricata_behind_a_tcp_port():
    t.need_program("suricata")
    path, expected = capture()
    sender = t.Run("-e", f"pcap-replay {path} -> pcap-over-ip 127.0.0.1:0")
    sender.wait_for("listens on 127.0.0.1:")
    port = re.search(r"listens on 127.0.0.1:(\d+)", sender.stderr).group(1)
    reader = t.Run("-e", f"pcap-over-ip-source 127.0.0.1:{port} until-end=yes -> pipe -")
    process = suricata("-r", "/dev/stdin", stdin=reader.process.stdout)
    reader.process.stdout.close()
    reader.process.stdout = None
    check(process, expected)
    for run in (sender, reader):
        run.wait()
        assert run.status == 0 and run.report["balanced"] is True and run.report["lost"] == 0, run.stderr


def test_suricata_that_sniffs_an_interface():
    t.need_root()
    t.need_program("suricata")
    path, expected = capture()
    with t.Namespace() as ns:
        out, into = ns.veth()
        process = suricata(f"--af-packet={into}", "--runmode", "workers", prefix=["ip", "netns", "exec", str(ns)])
        for line in process.stdout:
            if "Engine started" in line:
                break
        t.weir("-e", f"pcap-replay {path} -> inject {out} pace=20kpps dst-mac=02:00:00:00:00:01", netns=ns)
        t.wait_until(lambda: sum(event["event_type"] == "alert" for event in events_of(process)) >= expected["alerts"],
                     what="too few alerts")
        process.terminate()
        check(process, expected)


t.main()
