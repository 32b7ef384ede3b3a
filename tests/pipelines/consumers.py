#!/usr/bin/python3
"""An intrusion detection on the stream: it must raise as many alerts as there are in the capture."""
import json, os, subprocess, sys

import weirtest as t

FOLDER = "consumers"


def capture():
    """(path, what a consumer must report)."""
    path = os.path.join(t.tempdir(), "lab.pcap")
    done = subprocess.run([sys.executable, t.need_shared(f"{FOLDER}/gen_pcap.py"), path], check=True, stdout=subprocess.PIPE)
    return path, json.loads(done.stdout)


def suricata(source, **more):
    """Started; its logs are in .folder."""
    folder = t.tempdir()
    command = ["suricata", "-c", t.need_shared(f"{FOLDER}/suricata.yaml"), "-S", t.need_shared(f"{FOLDER}/lab.rules"),
               "-l", folder, "-k", "none", "-r", source]
    process = t.bound_to_test(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more))
    process.folder = folder
    return process


def check(process, expected):
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 0 and "\nE: " not in said, said
    with open(os.path.join(process.folder, "eve.json")) as file:
        events = [json.loads(line) for line in file]
    assert sum(event["event_type"] == "alert" for event in events) == expected["alerts"]
    stats = [event["stats"] for event in events if event["event_type"] == "stats"]
    assert stats[-1]["decoder"]["pkts"] == expected["packets"]


def test_suricata_at_the_end_of_a_pipe():
    t.need_program("suricata")
    path, expected = capture()
    run = t.Run("-e", f"pcap-replay {path} -> pipe -")
    process = suricata("/dev/stdin", stdin=run.process.stdout)
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
    process = suricata(fifo)
    reader = t.Run("-e", f"zmq-source {stream} until-end=yes -> pipe {fifo}")
    t.weir("-e", f"pcap-replay {path} -> zmq {stream} wait-for=1")
    reader.wait()
    assert reader.status == 0 and reader.report["lost"] == 0, reader.stderr
    check(process, expected)


t.main()
