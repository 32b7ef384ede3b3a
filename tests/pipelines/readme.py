#!/usr/bin/python3
"""What the README and the pages of docs/ tell a newcomer to type does what they say.

In order, in one folder, with an installed Weir: ```c blocks are saved, ```sh blocks are run, and the lines of a
```text block must be in what the last of these printed.  ```weir blocks are checked wherever they stand.
"""
import glob, os, re, subprocess

import weirtest as t

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks(path, *kinds):
    with open(path) as file:
        return [(kind, text) for kind, text in BLOCK.findall(file.read()) if kind in kinds]


def pages():
    return [os.path.join(t.TOP, "README.md"), *sorted(glob.glob(os.path.join(t.TOP, "docs", "*.md")))]


def installed():
    """The environment of a shell on a machine where Weir is installed, though it is below a folder of the test's."""
    destdir = t.tempdir()
    variant = os.path.basename(t.BUILD).partition("-")[2] or "release"
    subprocess.run(["make", "-s", "install", f"VARIANT={variant}", f"DESTDIR={destdir}"], cwd=t.TOP, check=True,
                   stdout=subprocess.DEVNULL, timeout=600)
    prefix = os.path.join(destdir, "usr", "local")
    return {**os.environ, "PATH": os.path.join(prefix, "bin") + ":" + os.environ["PATH"],
            "PKG_CONFIG_SYSROOT_DIR": destdir, "PKG_CONFIG_PATH": os.path.join(prefix, "lib", "pkgconfig")}


def test_the_readme_from_top_to_bottom():
    t.need_root()
    t.need_program("make", "cc", "pkg-config", "ping", "tcpdump", "jq")
    environment, folder, said, ran = installed(), t.tempdir(), "", 0
    os.chmod(folder, 0o777)  # tcpdump gives up being root
    with t.Namespace() as ns:
        for kind, text in blocks(os.path.join(t.TOP, "README.md"), "c", "sh", "text"):
            if kind == "c":
                with open(os.path.join(folder, "sample.c"), "w") as file:
                    file.write(text)
            elif kind == "sh":
                done = subprocess.run(["ip", "netns", "exec", str(ns), "bash", "-euc", text], cwd=folder, text=True,
                                      env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, timeout=120)
                said, ran = done.stdout, ran + 1
                assert done.returncode == 0, f"{text}\n{said}"
            else:
                wanted = text.splitlines()
                assert [line for line in said.splitlines() if line in wanted] == wanted, f"{text}\n{said}"
    assert ran >= 4, ran


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
    """All of them, with their kinds."""
    listed = subprocess.run([t.WEIR, "plugins"], check=True, stdout=subprocess.PIPE, text=True).stdout
    kinds = {}
    for kind, lines in re.findall(r"^(\w+)s\n((?:  .*\n)+)", listed, re.M):
        kinds.update({line.split()[0]: kind.lower() for line in lines.splitlines()})
    with open(os.path.join(t.TOP, "README.md")) as file:
        written = dict(re.findall(r"^\| `([\w-]+)` \| (source|stage|sink) \|", file.read(), re.M))
    assert written == kinds, (written, kinds)


def test_defaults_that_capacity_reckons_with():
    with open(os.path.join(t.TOP, "docs", "capacity.md")) as file:
        page = file.read()
    for plugin, option in (("afpacket", "ring"), ("pcap", "buffer"), ("zmq", "hwm"), ("zmq", "batch"), ("zmq", "max-delay"),
                           ("dedup", "memory")):
        said = subprocess.run([t.WEIR, "plugins", plugin], check=True, stdout=subprocess.PIPE, text=True).stdout
        default = re.search(rf"^  {option}=\S+ .*default (\S+)\]", said, re.M).group(1)
        assert f"{option}={default}" in page, f"{plugin} {option}={default}"


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
