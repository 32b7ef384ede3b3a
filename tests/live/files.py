#!/usr/bin/python3
"""Files of a live capture: rotation on the clock, and what an idle capture costs."""
import os, time
from weirtest import SANITIZED, Namespace, Run, main, need_program, need_root, tempdir, wait_until


def visible(folder):
    return sorted(os.listdir(folder))


def send_one(ns, interface):
    """One frame of a type that nobody answers, from a raw socket."""
    ns.run("/usr/bin/python3", "-c", "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); "
           f"s.bind(('{interface}', 0)); s.send(b'\\xff' * 6 + b'\\2' + bytes(5) + b'\\x88\\xb5' + bytes(50))")


def test_time_rotation_without_traffic():
    need_root()
    folder = tempdir()
    with Namespace() as ns:
        a, b = ns.veth()
        run = Run("-e", f"disk = pcap {folder}/%s.pcap rotate-time=2s; afpacket {b} -> disk", netns=ns)
        run.wait_for("running")
        for number in range(2):
            send_one(ns, a)
            wait_until(lambda: len([n for n in visible(folder) if n.endswith(".pcap")]) == number + 1, 10,
                       "the file of an interval that is over")
            behind = time.time() % 2
            assert behind < 0.5 or behind > 1.9, f"published {behind} s after the even second"
        run.stop()
    assert run.status == 0 and run.report["balanced"], run.stderr
    assert len(visible(folder)) == 2, visible(folder)


def test_the_last_packets_before_a_stop_are_in_the_file():
    need_root()
    need_program("tcpdump")
    folder = tempdir()
    with Namespace() as ns:
        a, b = ns.veth()
        for number in range(10):
            run = Run("-e", f"afpacket {b} -> pcap {folder}/{number}.pcapng", netns=ns)
            run.wait_for("running")
            send_one(ns, a)
            run.stop()
            node = run.report["nodes"][-1]
            assert run.report["balanced"] and node["outputs"]["written"]["packets"] == 1, run.stderr


def test_idle_is_idle():
    need_root()
    folder = tempdir()
    with Namespace() as ns:
        _, b = ns.veth()
        run = Run("-e", f"afpacket {b} -> pcap {folder}/x.pcap keep-age=1h rotate-time=1s", netns=ns)
        run.wait_for("running")
        before = cpu_seconds(run.process.pid)
        time.sleep(3)  # an idle capture is the case under test
        used = cpu_seconds(run.process.pid) - before
        run.stop()
    assert used <= (0.3 if SANITIZED else 0.03), f"{used} s of 3 s"


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


main()
