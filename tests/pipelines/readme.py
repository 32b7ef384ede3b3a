#!/usr/bin/python3
"""What the README and the pages of docs/ tell a newcomer to type does what they say.

In order, in one folder, with an installed Weir: ```c blocks are saved under the plugin's name, ```sh blocks are run, and
the lines of a ```text block must be in what the last of these printed.  ```weir blocks are checked wherever they stand.
"""
import glob, os, re, shlex, signal, socket, struct, subprocess, time

import frames as f
import weirtest as t

PLUGINS = ["--plugin-path", os.path.join(t.BUILD, "tests", "plugins")]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks(path, *kinds):
    with open(path) as file:
        return [(kind, text) for kind, text in BLOCK.findall(file.read()) if kind in kinds]


def pages():
    return [os.path.join(t.TOP, "README.md"), *sorted(glob.glob(os.path.join(t.TOP, "docs", "**", "*.md"), recursive=True))]


def installed():
    """The environment of a shell on a machine where Weir is installed, though it is below a folder of the test's."""
    destdir = t.tempdir()
    variant = os.path.basename(t.BUILD).partition("-")[2] or "release"
    subprocess.run(["make", "-s", "install", f"VARIANT={variant}", f"DESTDIR={destdir}"], cwd=t.TOP, check=True,
                   stdout=subprocess.DEVNULL, timeout=600)
    prefix = os.path.join(destdir, "usr", "local")
    return {**os.environ, "PATH": os.path.join(prefix, "bin") + ":" + os.environ["PATH"],
            "PKG_CONFIG_SYSROOT_DIR": destdir, "PKG_CONFIG_PATH": os.path.join(prefix, "lib", "pkgconfig")}


def page(name):
    return os.path.join(t.TOP, "docs", name)


def follow(path, folder=None):
    """Does what the page says; returns the folder in which that was, and how many blocks were run."""
    t.need_root()
    t.need_program("make", "cc", "pkg-config", "ping", "tcpdump", "jq")
    environment, folder, said, ran = installed(), folder or t.tempdir(), "", 0
    os.chmod(folder, 0o777)  # tcpdump gives up being root
    with t.Namespace() as ns:
        for kind, text in blocks(path, "c", "sh", "text"):
            if kind == "c":
                save_plugin(folder, text)
            elif kind == "sh":
                done = subprocess.run(["ip", "netns", "exec", str(ns), "bash", "-euc", text], cwd=folder, text=True,
                                      env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, timeout=120)
                said, ran = done.stdout, ran + 1
                assert done.returncode == 0, f"{text}\n{said}"
            else:
                wanted = text.splitlines()
                assert [line for line in said.splitlines() if line in wanted] == wanted, f"{text}\n{said}"
    return folder, ran


def save_plugin(folder, text):
    name = re.search(r'\.name = "([\w-]+)", \.version', text).group(1)
    with open(os.path.join(folder, name + ".c"), "w") as file:
        file.write(text)
    return name


def test_the_readme_from_top_to_bottom():
    assert follow(os.path.join(t.TOP, "README.md"))[1] >= 4


def test_the_page_on_plugins():
    folder, ran = follow(page("writing-a-plugin.md"))
    assert ran >= 1 and os.path.getsize(os.path.join(folder, "out.frames")) == 3 * (16 + 60)


def test_the_other_pages():
    """What they tell to type, in a folder that has what they mean by these names."""
    folder = t.tempdir()
    t.weir(*PLUGINS, "-e", f"numbers-live count=2000 -> queue 640KiB -> check-order delay=5ms", "--ledger", f"{folder}/ledger",
           "--report", f"{folder}/report.json", report=False)
    ran = sum(follow(path, folder)[1] for path in pages() if os.path.basename(path) not in ("README.md", "writing-a-plugin.md"))
    assert ran >= 3, ran


def plain(path):
    with open(path) as file:
        text = file.read()
    return text.replace("\\(aq", "'").replace("\\-", "-") if path.endswith((".1", ".7")) else text


def test_pipelines_of_commands_anywhere():
    """In consoles, tables, manual pages and the comments of pipelines: they check."""
    found = 0
    for path in [*pages(), *glob.glob(f"{t.TOP}/docs/man/*"), *glob.glob(f"{t.TOP}/pipelines/*.weir")]:
        for command in re.findall(r"weir run ((?:-e '[^']*'|[\w/-]+\.weir)[^|`&\n]*)", plain(path)):
            words = shlex.split(command)
            if "…" in command or "--plugin-path" in words or words[0] == "first.weir":  # no commands, or run elsewhere
                continue
            source = words[:2] if words[0] == "-e" else [os.path.join(t.TOP, "pipelines", os.path.basename(words[0]))]
            sets = [word for i, option in enumerate(words) if option == "--set" for word in words[i:i + 2]]
            done = subprocess.run([t.WEIR, "check", *source, *sets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            assert done.returncode == 0, f"{path}: {command}\n{done.stdout}"
            found += 1
    assert found >= 15, found


def test_what_flags_of_other_tools_become():
    """Each element in these tables is one."""
    section = plain(os.path.join(t.TOP, "README.md")).partition("## From tcpdump")[2].partition("\n## ")[0]
    cells = [line.split(" | ", 1)[1] for line in section.splitlines() if line.startswith("| `-")]
    folder, found = t.tempdir(), 0
    with open(os.path.join(folder, "file"), "w") as file:
        file.write("ip")
    mains = {"pcap": "x.pcap", "pcap-replay": "x", "afpacket": "lo"}
    for plugin, words in re.findall(r"`(?:-> )?(afpacket|pcap-replay|pcap|bpf|snaplen|pipe|libpcap) ([^`]*)`", "\n".join(cells)):
        element = f"{plugin} {words.replace('…', mains.get(plugin, ''))}"
        text = f"{element} -> null" if plugin in ("afpacket", "pcap-replay", "libpcap") else \
            f"pcap-replay x -> {element}" + ("" if plugin in ("pcap", "pipe") else " -> null")
        done = subprocess.run([t.WEIR, "check", "-e", text], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, f"{text}: {done.stdout}"
        found += 1
    assert found >= 30, found


def test_live_streams_of_the_page_on_consumers():
    t.need_root()
    t.need_program("tcpdump", "tshark")
    with open(page("consumers/tcpdump-wireshark.md")) as file:
        commands = [line[2:] for line in file.read().splitlines() if re.match(r"# weir run .*\| t(cpdump|shark) ", line)]
    assert len(commands) == 2, commands
    frame = f.ether(f.IP, f.ipv4(17, f.udp(bytes(30), 1000, 53), "10.11.12.13"))
    with t.Namespace() as ns:
        ns.veth("eth1", "peer")
        for command in commands:
            see_live(ns, command, frame)


def see_live(ns, command, frame):
    """The reader shows frames while they come; both ends end at an interrupt, as from the keyboard."""
    said = os.path.join(t.tempdir(), "said")
    with open(said, "wb") as out:
        process = t.bound_to_test(subprocess.Popen(
            ["ip", "netns", "exec", str(ns), "bash", "-c", command], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True, env={**os.environ, "PATH": t.BUILD + ":" + os.environ["PATH"]}))

    def seen():
        f.send(ns, "peer", [frame] * 20)
        with open(said, errors="replace") as file:
            return "10.11.12.13" in file.read()

    t.wait_until(seen, 30, command)
    os.killpg(process.pid, signal.SIGINT)
    process.wait(30)
    with open(said, errors="replace") as file:
        assert "\n  balanced\n" in file.read(), open(said, errors="replace").read()


def built_examples():
    """A folder with the plugins of that page, built as strictly as headers allow."""
    t.need_program("cc")
    folder = t.tempdir()
    for _, text in blocks(page("writing-a-plugin.md"), "c"):
        name = save_plugin(folder, text)
        done = subprocess.run(["cc", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "-shared", "-fPIC",
                               f"-I{t.TOP}/include", "-o", f"{folder}/{name}.so", f"{folder}/{name}.c"],
                              stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stderr
    return folder


def frames_of(path):
    """(time, length on the wire, bytes) of each record of the example sink."""
    with open(path, "rb") as file:
        data = file.read()
    at, found = 0, []
    while at < len(data):
        ts_ns, caplen, wirelen = struct.unpack_from("<qII", data, at)
        found.append((ts_ns, wirelen, data[at + 16:at + 16 + caplen]))
        at += 16 + caplen
    assert at == len(data)
    return found


def test_the_example_sink():
    """It writes what the sink pcap does, refuses what it cannot do, and loses by name where the disk is full."""
    folder, examples = t.tempdir(), [*PLUGINS, "--plugin-path", built_examples()]
    t.weir(*examples, "-e", f"in = numbers count=5000 bytes=1000; in -> frames {folder}/out; in -> pcap {folder}/out.pcap")
    assert frames_of(f"{folder}/out") == f.read_pcap(f"{folder}/out.pcap")
    t.weir(*examples, "-e", f"numbers count=50 lanes=2 -> frames {folder}/%{{lane}}")
    assert len(frames_of(f"{folder}/0") + frames_of(f"{folder}/1")) == 100
    for path, lanes, words in (("out", 1, "File exists"), ("%H", 1, "only %{lane} and %{node} vary"),
                               ("new", 2, "is written by 2 lanes: put %{lane} in its name")):
        run = t.weir(*examples, "-e", f"numbers lanes={lanes} -> frames {folder}/{path}", expect=2)
        assert words in run.stderr, run.stderr
    full = t.Run(*examples, "-e", f"numbers count=5000 bytes=1000 -> frames {folder}/cut",
                 prefix=["prlimit", "--fsize=2000000"]).wait()
    outcomes = full.report["nodes"][1]["outputs"]
    kept = frames_of(f"{folder}/cut")
    assert full.status == 0 and full.report["balanced"] is True, full.stderr
    assert outcomes["written"]["packets"] == len(kept) > 0 and "cannot write: File too large" in full.stderr
    assert full.report["lost"] == outcomes["failed"]["packets"] == 5000 - len(kept) > 0


def test_the_example_source():
    """All that was sent before the stop, cut where it has no room."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = os.path.join(t.tempdir(), "out.pcap")
    examples = ["--plugin-path", built_examples()]
    run = t.Run(*examples, "-e", f"datagrams {port} -> pcap {path}")
    run.wait_for("running")
    taken = t.Run(*examples, "-e", f"datagrams {port} -> null").wait()
    assert taken.status == 2 and f"cannot listen on port {port}: Address already in use" in taken.stderr, taken.stderr
    sent = [bytes([i % 256]) * (60 + i) for i in range(300)] + [bytes(3000)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for frame in sent:
            sock.sendto(frame, ("127.0.0.1", port))
            time.sleep(0.0002)  # the socket has room for a few hundred
    run.stop()
    assert run.status == 0 and run.report["balanced"] is True and run.report["lost"] == 0, run.stderr
    assert [(wirelen, data) for _, wirelen, data in f.read_pcap(path)] == [(len(frame), frame[:2048]) for frame in sent]


def test_the_first_plugin_is_short():
    (_, text), = blocks(os.path.join(t.TOP, "README.md"), "c")
    assert len([line for line in text.splitlines() if line]) <= 25


def test_pipelines_in_pages():
    found = [(path, text) for path in pages() for _, text in blocks(path, "weir")]
    assert len(found) >= 2
    for path, text in found:
        done = subprocess.run([t.WEIR, "check", "-e", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, f"{path}:\n{text}\n{done.stdout}"


def test_links_lead_somewhere():
    for path in pages():
        with open(path) as file:
            links = re.findall(r"\]\(([^)#:]+)\)", file.read())
        for link in links:
            assert os.path.exists(os.path.join(os.path.dirname(path), link)), f"{path}: {link}"


def test_the_table_of_plugins():
    """All of them, with their kinds, there and in the manual."""
    listed = subprocess.run([t.WEIR, "plugins"], check=True, stdout=subprocess.PIPE, text=True).stdout
    kinds = {}
    for kind, lines in re.findall(r"^(\w+)s\n((?:  .*\n)+)", listed, re.M):
        kinds.update({line.split()[0]: kind.lower() for line in lines.splitlines()})
    with open(os.path.join(t.TOP, "README.md")) as file:
        written = dict(re.findall(r"^\| `([\w-]+)` \| (source|stage|sink) \|", file.read(), re.M))
    assert written == kinds, (written, kinds)
    manual = re.search(r"^\.SH PLUGINS\n(.*?)^\.SH", plain(page("man/weir.1")), re.M | re.S).group(1)
    described = {name: kind[:-1].lower() for kind, lines in re.findall(r"^\.SS (\w+)\n((?:(?!\.SS).*\n)*)", manual, re.M)
                 for name in re.findall(r"^\.B ([\w-]+)$", lines, re.M)}
    assert described == kinds, (described, kinds)


def test_defaults_that_capacity_reckons_with():
    with open(page("capacity.md")) as file:
        text = file.read()
    for plugin, option in (("afpacket", "ring"), ("pcap", "buffer"), ("zmq", "hwm"), ("zmq", "batch"), ("zmq", "max-delay"),
                           ("dedup", "memory"), ("pcap-over-ip", "buffer"), ("pcap-over-ip", "max-clients"), ("inject", "ring")):
        said = subprocess.run([t.WEIR, "plugins", plugin], check=True, stdout=subprocess.PIPE, text=True).stdout
        default = re.search(rf"^  {option}=\S+ .*default (\S+)\]", said, re.M).group(1)
        assert f"{option}={default}" in text, f"{plugin} {option}={default}"


def test_the_arithmetic_of_line_rate():
    """Each row of the page's tables, out of sizes, rates and what a frame takes on the wire."""
    with open(page("line-rate.md")) as file:
        text = file.read()
    sizes = {"60 bytes": 60, "IMIX": (7 * 60 + 4 * 590 + 1514) / 12, "1,514 bytes": 1514}

    def per_second(gbit, size):
        return gbit * 1e9 / 8 / (size + 24)
    rates = re.findall(r"^\| (\d+) Gbit/s \|((?: [\d,]+ \| [\d,]+\.\d \|){3})$", text, re.M)
    assert len(rates) == 5
    for gbit, row in rates:
        expect = [f"{n:,}" for size in sizes.values() for rate in [per_second(int(gbit), size)]
                  for n in (round(rate), round(1e9 / rate, 1))]
        assert row.replace("|", "").split() == expect, (gbit, row, expect)
    rings = re.findall(r"^\| (\d+) Gbit/s \| ([\w, ]+) \| ([\d.]+) GB/s \| (.*) \|$", text, re.M)
    assert len(rings) == 5
    for gbit, packets, filled, times in rings:
        rate = per_second(int(gbit), sizes[packets]) * (sizes[packets] + 100)
        expect = [f"{n * 2**20 / rate * 1000:,.0f} ms" for n in (64, 1024, 4096)]
        assert (filled, times.split(" | ")) == (f"{rate / 1e9:.2f}", expect), (gbit, packets, expect)
    busy = re.findall(r"^\| (\d+) Gbit/s \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.M)
    assert len(busy) == 2
    for gbit, *row in busy:
        assert row == [f"{per_second(int(gbit), size) * 700 / 1e9:.1f}" for size in sizes.values()], (gbit, row)


def test_manual_pages():
    """Without a complaint of groff, and with every command, option and signal."""
    t.need_program("groff")
    manuals = sorted(glob.glob(os.path.join(t.TOP, "docs", "man", "*.[1-8]")))
    assert [os.path.basename(path) for path in manuals] == ["weir-language.7", "weir.1"]
    for path in manuals:
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", path], stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
    with open(manuals[1]) as file:
        text = file.read().replace("\\-", "-")
    help_text = subprocess.run([t.WEIR, "run", "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    options = set(re.findall(r"--[\w-]+", help_text)) - {"--help", "--execute"}
    assert len(options) >= 10 and all(option in text for option in options), options
    commands = set(re.findall(r"^weir (\S+)", subprocess.run([t.WEIR, "help"], stdout=subprocess.PIPE, text=True).stdout, re.M))
    assert len(commands) >= 6 and all(f"weir {command}" in text for command in commands), commands
    signals = re.search(r"^\.SH SIGNALS\n(.*?)^\.SH", text, re.M | re.S).group(1)
    for signal in ("INT", "TERM", "HUP", "USR1", "USR2"):
        assert re.search(rf"\b{signal}\b", signals), signal


t.main()
