"""Runs commands beside each other, and puts medians into one table."""
import os, statistics, subprocess, sys, time
from dataclasses import dataclass, field

import weirtest as t

RUNS = int(os.environ.get("BENCH_RUNS", "5"))
PROGRAMS = os.path.join(t.BUILD, "tests", "bench")


@dataclass
class Sample:
    wall_s: float
    cpu_s: float  # user and system, of the process and those that it waited for
    lost: float = 0.0  # share of packets


@dataclass
class Row:
    """One tool at one task.  aims: what Weir wants of a ratio to this one: [("cpu", "<=", 0.6)]."""
    task: str
    tool: str
    samples: list = field(default_factory=list)
    aims: list = field(default_factory=list)
    packets: int = 0  # sent to a live capture; 0: it is none

    def median(self, what):
        return statistics.median(getattr(sample, what) for sample in self.samples)

    def cpu_s_per_million(self):
        """Of the packets that it captured: who loses some shall not look cheaper for it."""
        return statistics.median(sample.cpu_s / max(self.packets * (1 - sample.lost), 1) * 1e6 for sample in self.samples)

    def costs(self):
        return {"cpu": self.cpu_s_per_million() if self.packets else self.median("cpu_s"), "wall": self.median("wall_s")}


def start(command, log, netns=None):
    if netns:
        command = ["ip", "netns", "exec", str(netns), *command]
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    return t.bound_to_test(process)


def reap(process):
    """Processor seconds of a process that ends."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def run(command, log):
    started = time.monotonic()
    process = start(command, log)
    cpu_s = reap(process)
    sample = Sample(time.monotonic() - started, cpu_s)
    expect_success(process, command, log)
    return sample


def expect_success(process, command, log):
    if process.returncode != 0:
        with open(log, errors="replace") as file:
            sys.exit(f"bench: {' '.join(command)}: status {process.returncode}\n{file.read()}")


def show(what):
    """A line that is drawn over itself."""
    if sys.stderr.isatty():
        print(f"\r{what[:78].ljust(78)}\r", end="", file=sys.stderr, flush=True)


def interleave(rows, measure):
    """A B C A B C …: what disturbs the machine for a while disturbs all of them."""
    for number in range(RUNS):
        for row in rows:
            show(f"{number + 1} of {RUNS}: {row.tool}: {row.task}")
            row.samples.append(measure(row))
    show("")
    return rows


# ---- The table ----

def ratios(row, weir):
    costs = row.costs()
    return {what: cost / max(costs[what], 1e-9) for what, cost in weir.costs().items()}


def aim_text(row, found):
    words = []
    for what, limit in row.aims:
        words.append(f"{what} <= {limit:.3f}{'' if found[what] <= limit else '  MISSED'}")
    return ", ".join(words)


def cells(row, weir):
    per_million = f"{row.cpu_s_per_million():.3f}" if row.packets else ""
    lost = f"{row.median('lost'):.1%}" if row.packets else ""
    found = ratios(row, weir)
    beside = ["", "", ""] if row is weir else [f"{found['cpu']:.3f}", f"{found['wall']:.3f}", aim_text(row, found)]
    return [row.tool, f"{row.median('cpu_s'):.3f}", f"{row.median('wall_s'):.3f}", per_million, lost, *beside]


HEADER = ["", "cpu s", "wall s", "cpu s/Mpkt", "lost", "Weir/it cpu", "wall", "aim"]


def print_table(groups):
    """Each group is the rows of one task, Weir's first."""
    table = [(rows[0].task, [cells(row, rows[0]) for row in rows]) for rows in groups]
    every = [HEADER] + [line for _, lines in table for line in lines]
    widths = [max(len(line[column]) for line in every) for column in range(len(HEADER))]

    def text(line):
        first = line[0].ljust(widths[0])
        return "  " + "  ".join([first] + [c.rjust(w) for c, w in zip(line[1:7], widths[1:7])] + [line[7]]).rstrip()
    print(text(HEADER))
    for task, lines in table:
        print(f"\n{task}")
        print("\n".join(map(text, lines)))
