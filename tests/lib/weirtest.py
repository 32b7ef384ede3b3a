"""What the pipeline, corpus and live tests share: running weir, reading its report, namespaces, TAP.

A test file is a program: functions named test_*, and main() at its end, which runs those whose names
contain one of the arguments (all without), and prints TAP.
"""
import atexit, errno, json, os, select, shutil, signal, subprocess, sys, tempfile, time, traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("BUILD", "build"))
WEIR = os.path.join(BUILD, "weir")
SHARED = os.environ.get("WEIR_SHARED", os.path.join(os.path.dirname(TOP), "shared"))
SANITIZED = any(kind in BUILD for kind in ("asan", "tsan"))


class Skip(Exception):
    """Raised by a test that cannot run here; its text says why."""


def need_shared(path):
    """The path of a file in the folder of shared captures; skips the test where there is none."""
    full = os.path.join(SHARED, path)
    if not os.path.exists(full):
        raise Skip(f"{path} is not there (WEIR_SHARED={SHARED})")
    return full


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root for network namespaces")


def need_program(*names):
    for name in names:
        if not shutil.which(name):
            raise Skip(f"{name} is not installed")


class Run:
    """A weir process: args as on the command line; .report is its JSON report after .wait()."""

    def __init__(self, *args, netns=None, stdin=None, stdout=subprocess.PIPE, report=True, env=None, prefix=()):
        self.dir = tempdir()
        self.report_path = os.path.join(self.dir, "report.json")
        command = list(prefix) + [WEIR, "run", *args]
        if report:
            command += ["--report", self.report_path]
        if netns:
            command = ["ip", "netns", "exec", str(netns), *command]
        self.err_path = os.path.join(self.dir, "stderr")
        with open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(command, stdin=stdin or subprocess.DEVNULL, stdout=stdout,
                                            stderr=err, env={**os.environ, **(env or {})})
        bound_to_test(self.process)
        self.report = None
        self.stdout = b""

    @property
    def stderr(self):
        with open(self.err_path, errors="replace") as file:
            return file.read()

    def wait_for(self, text, timeout=60):
        """Until standard error holds the text: `running` says that sources are open and lanes run."""
        wait_until(lambda: text in self.stderr or self.process.poll() is not None, timeout,
                   f"no {text!r} on standard error")
        assert text in self.stderr, f"weir ended before {text!r}: {self.stderr}"

    def stop(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.wait()

    def wait(self, timeout=300):
        try:
            self.stdout, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.communicate()
            raise AssertionError(f"weir did not end within {timeout} s: {self.stderr}")
        if os.path.exists(self.report_path):
            with open(self.report_path) as file:
                self.report = json.load(file)
        return self

    @property
    def status(self):
        return self.process.returncode


def weir(*args, expect=0, balanced=True, **more):
    """Runs to the end; asserts the exit status, and that the ledger closes."""
    run = Run(*args, **more).wait()
    assert run.status == expect, f"exit status {run.status}, not {expect}: {run.stderr}"
    if run.report is not None and balanced is not None:
        assert run.report["balanced"] is balanced, f"balanced is {run.report['balanced']}: {run.stderr}"
    return run


def wait_until(condition, timeout=60, what="condition"):
    """Waits for an event: polls the condition, since most of these have no descriptor to wait on."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s: {what}")
        time.sleep(0.01)


def processor_seconds(process):
    """Of all its threads so far: its clock, see clock_getcpuclockid(3)."""
    return time.clock_gettime(~process.pid << 3 | 2)


def assert_idle(run, seconds=2):
    """It uses at most a hundredth of a processor, in the best of five times: on a busy machine waking up is dearer."""
    for _ in range(5):
        before = processor_seconds(run.process)
        time.sleep(seconds)
        used = processor_seconds(run.process) - before
        if used <= seconds * 0.01 * (10 if SANITIZED else 1):
            return
    raise AssertionError(f"{used} s of processor time in {seconds} s")


def open_fifo(path, mode, run, timeout=60):
    """A FIFO of which `run` has, or will have, the other end: unlike open() does not wait longer than the run lives."""
    found = []

    def opened():
        try:
            found.append(os.open(path, os.O_NONBLOCK | (os.O_RDONLY if "r" in mode else os.O_WRONLY)))
        except OSError as error:
            if error.errno != errno.ENXIO:  # nobody reads it yet
                raise
        return found or run.process.poll() is not None

    wait_until(opened, timeout, f"nobody reads {path}")
    assert found, f"weir ended before it opened {path}: {run.stderr}"
    if "r" in mode:
        def written():
            return select.select(found, [], [], 0)[0]  # false before the first writer

        wait_until(lambda: written() or run.process.poll() is not None, timeout, f"nobody writes to {path}")
        assert written(), f"weir ended before it wrote to {path}: {run.stderr}"
    os.set_blocking(found[0], True)
    return os.fdopen(found[0], mode, buffering=0)


_processes, _dirs = [], []


def bound_to_test(process):
    """The process, which does not outlive the test."""
    _processes.append(process)
    return process


def kill_processes():
    """Those that a failed test has left behind."""
    while _processes:
        process = _processes.pop()
        if process.poll() is None:
            process.kill()
            process.wait()


def tempdir(where=None):
    """A folder that goes away at the end of the test; on disk unless `where` says, since some need O_DIRECT."""
    path = tempfile.mkdtemp(prefix="weir-test-", dir=where or os.environ.get("WEIR_TMP", "/var/tmp"))
    _dirs.append(path)
    return path


def ip(*args, check=True):
    return subprocess.run(["ip", *args], check=check, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Namespace:
    """A network namespace of our own: with Namespace() as ns: ns.run("tcpreplay", …)."""
    count = 0

    def __init__(self):
        Namespace.count += 1
        self.name = f"weir-{os.getpid()}-{Namespace.count}"

    def __enter__(self):
        ip("netns", "add", self.name)
        self.run("ip", "link", "set", "lo", "up")
        self.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        return self

    def __exit__(self, *_):
        ip("netns", "del", self.name, check=False)

    def __str__(self):
        return self.name

    def run(self, *command, check=True, **more):
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        done = subprocess.run(["ip", "netns", "exec", self.name, *command], text=True, **more)
        assert not check or done.returncode == 0, f"{command}: {done.stdout} {done.stderr}"
        return done

    def popen(self, *command, **more):
        return subprocess.Popen(["ip", "netns", "exec", self.name, *command], **more)

    def veth(self, a="veth0", b="veth1", queues=1):
        """A pair whose both ends are here and up, with no traffic of the kernel's own on it."""
        self.run("ip", "link", "add", a, "numtxqueues", str(queues), "numrxqueues", str(queues), "type", "veth",
                 "peer", "name", b, "numtxqueues", str(queues), "numrxqueues", str(queues))
        for end in (a, b):
            self.run("ip", "link", "set", end, "up", "arp", "off")
        return a, b


def main():
    module = sys.modules["__main__"]
    wanted = sys.argv[1:]
    tests = [(n, f) for n, f in vars(module).items() if n.startswith("test_") and callable(f)
             and (not wanted or any(w in n for w in wanted))]
    print(f"1..{len(tests)}", flush=True)
    failed = 0
    for number, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {name[5:]}", flush=True)
        except Skip as why:
            print(f"ok {number} - {name[5:]} # SKIP {why}", flush=True)
        except Exception:
            failed += 1
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), end="")
            print(f"not ok {number} - {name[5:]}", flush=True)
        kill_processes()
        while _dirs:
            shutil.rmtree(_dirs.pop(), ignore_errors=True)
    sys.exit(1 if failed else 0)


atexit.register(lambda: [shutil.rmtree(d, ignore_errors=True) for d in _dirs])
