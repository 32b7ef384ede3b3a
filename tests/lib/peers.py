"""Captures of live traffic to a file by Weir and by the tools beside it, each with a ring of the same size."""
import re, subprocess, time

import weirtest as t

WEIR = "weir: afpacket -> pcap"


def commands(interface, path, ring_mib):
    """Of each tool: its command, and what it says once it listens."""
    return {
        WEIR: ([t.WEIR, "run", "-e", f"afpacket {interface} ring={ring_mib}MiB -> pcap {path}"], "running"),
        "tcpdump": (["tcpdump", "-Z", "root", "-i", interface, "-B", str(ring_mib * 1024), "-w", path], "listening on"),
        "dumpcap": (["dumpcap", "-q", "-i", interface, "-B", str(ring_mib), "-w", path], "File:"),
        "netsniff-ng": (["netsniff-ng", "-i", interface, "-S", f"{ring_mib}MiB", "-s", "-o", path], "Running!"),
    }


def start(ns, command, ready, log):
    """The process, once it listens."""
    with open(log, "wb") as out:
        process = t.bound_to_test(ns.popen(*command, stdin=subprocess.DEVNULL, stdout=out, stderr=out))

    def said():
        with open(log, errors="replace") as file:
            return ready in file.read()
    t.wait_until(lambda: said() or process.poll() is not None, 30, ready)
    return process


def wait_until_idle(process):
    """Until it has read what the kernel holds for it: it uses no processor for a quarter of a second."""
    last = [None, 0.0]

    def idle():
        now = int(t.processor_seconds(process) * 100)  # whoever ticks now and then is idle
        if now != last[0]:
            last[:] = [now, time.monotonic()]
        return time.monotonic() - last[1] > 0.25
    t.wait_until(idle, 60, f"{process.args} to have read everything")


def replay_command(interface, trace, loops):
    """As fast as one tcpreplay can."""
    return ["tcpreplay", "-q", "-i", interface, "--preload-pcap", "--topspeed", f"--loop={loops}", trace]


def replay(ns, interface, trace, loops):
    """How many packets it has sent."""
    return int(re.search(r"Actual: (\d+) packets", ns.run(*replay_command(interface, trace, loops)).stdout).group(1))


def packets_in(path):
    """What tcpdump says; 0 if there is no such file."""
    done = subprocess.run(["tcpdump", "--count", "-r", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    count = re.search(r"(\d+) packet", done.stdout)
    return int(count.group(1)) if count else 0
