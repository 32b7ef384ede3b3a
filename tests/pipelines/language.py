#!/usr/bin/python3
"""The language as the command speaks it: errors, exit status, variables, and what plugins say of themselves."""
import os, re, subprocess
from weirtest import WEIR, main, need_root, tempdir, weir

WRONG = 'tap = pcap-replay x lane=2\ntap -> bpf host 10.0.0.5 -> pcap -\n'
# What the examples of plugins mean by these names.
NAMES = {"tap": "pcap-replay x.pcap", "span": "pcap-replay x.pcap", "disk": "null"}


def command(*args, stdin="", env=None):
    return subprocess.run([WEIR, *args], input=stdin, capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(env or {})})


def check(*args, expect=2, **more):
    result = command("check", *args, **more)
    assert result.returncode == expect, f"exit status {result.returncode}: {result.stderr}"
    return result.stderr


def places(errors):
    return re.findall(r"^(\S+?:\d+:\d+): ", errors, re.M)


def test_all_errors_with_the_name_of_the_text():
    path = os.path.join(tempdir(), "office.weir")
    with open(path, "w") as file:
        file.write(WRONG)
    for args, stdin, name in (([path], "", path), (["-"], WRONG, "-"), (["-e", WRONG], "", "-e")):
        errors = check(*args, stdin=stdin)
        assert places(errors) == [f"{name}:{at}" for at in ("1:21", "2:17", "2:34")], errors


def test_run_refuses_before_anything_is_opened():
    folder = tempdir()
    out = os.path.join(folder, "out.pcap")
    run = weir("-e", f"pcap-replay /dev/null -> pcap {out}; nix -> null", expect=2)
    assert "-e:1:" in run.stderr and "there is no plugin or name 'nix'" in run.stderr, run.stderr
    assert os.listdir(folder) == [], os.listdir(folder)


def test_what_is_not_found_says_where_was_looked():
    folder = tempdir()
    for said in (check("--plugin-path", folder, "-e", "pcap-replay x -> xyzzy"),
                 command("plugins", "--plugin-path", folder, "xyzzy").stderr):
        assert re.search(rf"'xyzzy'; plugins are looked for in {folder}, /\S+/plugins: see weir plugins\n", said), said
    for missing, words in ((folder + "/none", ""), (WEIR, ""), (f"{folder}:{folder}", "; several are given one by one")):
        for args in (["check", "-e", "pcap-replay x -> null"], ["plugins"]):
            done = command(*args, "--plugin-path", missing)
            assert done.returncode == 2 and f"--plugin-path {missing}: there is no such folder{words}\n" in done.stderr, done.stderr
    check("-e", "pcap-replay x -> null", env={"WEIR_PLUGIN_PATH": folder + "/none"}, expect=0)


def test_usual_slips_of_the_command_line():
    folder = tempdir()
    capture = os.path.join(folder, "in.pcap")
    with open(capture, "wb") as file:
        file.write(b"\x4d\x3c\xb2\xa1\2\0\4\0")
    text = "pcap-replay x -> null"
    for args, words in (
            (["rnu", "x"], "there is no command 'rnu'; did you mean 'run'?"),
            (["plugin"], "there is no command 'plugin'; did you mean 'plugins'?"),
            (["help", "chek"], "there is no command 'chek'; did you mean 'check'?"),
            (["check"], "check: a pipeline is wanted: FILE, - or -e TEXT"),
            (["check", "-e", text, "more"], "check: there is a pipeline already, by -e: 'more' is one too many"),
            (["check", "pcap-replay", "x", "-"], "check: 'x' is one word too many: a text of several is put in quotes"),
            (["check", text], f"check: cannot read {text}: No such file or directory; a text is given by -e"),
            (["check", folder], f"check: cannot read {folder}: Is a directory\n"),
            (["check", capture], f"{capture} is no text; if it is a capture file, it is read by -e 'pcap-replay {capture} -> …'"),
            (["plugins", "bpf", "null"], "plugins: it takes one NAME at most"),
            (["check", "--duration", "1s", "-e", text], "check: Unknown option --duration"),
            (["run", "--duration", "10", "-e", text], "run: --duration takes a time such as 10s or 5m, not '10'"),
            (["run", "--stats", "0s", "-e", text], "run: --stats takes a time such as 10s or 5m, not '0s'"),
            (["run", "--report", "-", "-e", text], "run: --report -: standard output is for sinks; /dev/stderr would do"),
            (["run", "--report", "r", "--metrics", "r", "-e", text], "run: --report and --metrics have the same file r"),
            (["run", "--ledger", "r", "--report", "r", "-e", text], "run: --report and --ledger have the same file r")):
        done = command(*args)
        assert done.returncode == 2 and words in done.stderr and done.stdout == "", f"{args}: {done.stderr}"
        assert done.stderr.endswith("Try 'weir help'.\n"), done.stderr
    with open(capture, "rb") as file:
        done = subprocess.run([WEIR, "check", "-"], stdin=file, capture_output=True, text=True)
    assert done.returncode == 2 and "- is no text" in done.stderr, done.stderr


def test_what_is_refused():
    """Each refusal that docs/language.md names, of plugins that are there, with file, line and column."""
    path = os.path.join(tempdir(), "office.weir")
    for text, at, words in (
            ("a -> nulll", "1:1", "there is no plugin or name 'a'"),
            ("pcap-replay x -> nulll", "1:18", "there is no plugin or name 'nulll'; did you mean 'null'?"),
            ("\npcap-replay x limt=5 -> null", "2:15", "pcap-replay has no option 'limt'; did you mean 'limit'?"),
            ("k = bpf ip\npcap-replay x -> k.rset -> null", "2:20", "bpf has no output 'rset'; did you mean 'rest'?"),
            ("k = bpf ip\npcap-replay x -> kk.rest -> null", "2:18", "there is no name 'kk'; did you mean 'k'?"),
            ("k = bpf ip; k = bpf tcp\npcap-replay x -> k -> null", "1:13", "the name 'k' is given twice"),
            ("bpf ip -> null", "1:1", "nothing feeds 'bpf:1'"),
            ("pcap-replay x -> bpf ip", "1:18", "'bpf:1' leads nowhere"),
            ("k = bpf ip\npcap-replay x -> null", "1:1", "no flow uses 'k'"),
            ("a = bpf ip; b = bpf tcp; pcap-replay x -> a -> b -> a; b.rest -> null", "1:53", "a cycle: a -> b -> a"),
            ("a = pcap-replay x; n = null; a -> n; a -> n", "1:43", "'a.out -> n' is there twice"),
            ("pcap-replay x -> pcap-replay y -> null", "1:18", "'pcap-replay:2' is a source, and cannot be fed"),
            ("pcap-replay x -> null -> null", "1:18", "'null:1' is a sink, and cannot be read"),
            ("n = null; pcap-replay x -> n.discarded -> null", "1:30", "the outcomes of sink 'n' are counted"),
            ("pcap-replay x limit=many -> null", "1:15", "pcap-replay limit=many: expected a number"),
            ("pcap-replay x -> snaplen 262145 -> null", "1:26", "snaplen 262145: expected a size"),
            ("pcap-replay x -> snaplen 1K -> null", "1:26", "'1K' could be 1KB (decimal) or 1KiB (binary)"),
            ("pcap-replay x limit=1 limit=2 -> null", "1:23", "option 'limit' is given twice"),
            ("pcap-replay x files=y -> null", "1:15", "option 'files' is given twice"),
            ("pcap-replay ${x} -> null", "1:13", "variable 'x' is not set: use --set x=VALUE, or write ${x:-VALUE}"),
            ("a = pcap-replay x; a -> pcap y.pcap; a -> pcap ./y.pcap", "1:48", "'pcap:1' and 'pcap:2' have the same file"),
            ("a = pcap-replay x; a -> zmq ipc:///e; a -> zmq ipc:///e", "1:48", "'zmq:1' and 'zmq:2' have the same endpoint"),
            ("pcap-replay - -> null; pcap-replay x,- -> null", "1:36", "'pcap-replay:2' reads standard input, which "
             "'pcap-replay:1' reads already"),
            ("pcap-replay -,- -> null", "1:13", "'pcap-replay:1' reads standard input, which 'pcap-replay:1' reads already"),
            ("a = pcap-replay x; a -> pipe -; a -> pipe -", "1:43", "'pipe:1' and 'pipe:2' have the same endpoint -"),
            ("k = bpf ip; pcap-replay x -> k.rest", "1:30", "an output cannot end a flow: expected '->' after 'k.rest'"),
            ("# nothing\n", "1:1", "the text is empty"),
            ("k = null", "1:1", "there is no flow")):
        with open(path, "w") as file:
            file.write(text)
        for args, name in ((["-e", text], "-e"), ([path], path)):
            errors = check(*args)
            assert any(line.startswith(f"{name}:{at}: ") and words in line for line in errors.splitlines()), f"{text}: {errors}"
    for text, words in (("afpacket lo lanes=2 -> pcap x.pcap", "is written by 2 lanes: put %{lane} in its name, or 'queue lanes=1' before it"),
                        ("afpacket lo lanes=2 fanout=rnd -> dedup -> null", "needs whole flows, and fanout=rnd splits them: "
                         "fanout=hash, or 'queue lanes=2' before it")):
        assert words in check("-e", text)


def test_standard_input_is_either_the_text_or_packets():
    assert "-:1:13: 'pcap-replay:1' reads standard input, from which this text comes" in check("-", stdin="pcap-replay - -> null")
    check("-e", "pcap-replay - -> pipe -", expect=0)


def test_usual_slips_of_the_text():
    for text, words in (
            ("afpacket lo port 53 -> null", "1:13: afpacket takes one bare word, its interface: several are written afpacket "
             "lo,port,53; a filter stands behind it: -> bpf \"port 53\""),
            ("afpacket lo filter='port 53' -> null", "1:13: afpacket has no option 'filter'; write -> bpf \"port 53\": it goes "
             "into the kernel, see weir plan"),
            ("pcap-replay a.pcap b.pcap -> null", "1:20: pcap-replay takes one bare word, its files: several are written "
             "pcap-replay a.pcap,b.pcap"),
            ("afpacket lo -> bpf port 53 -> null", "1:25: bpf takes one bare word, its filter: put several words in quotes: bpf "
             "\"port 53\""),
            ("afpacket lo -> pcap -", "1:21: pcap writes files, and '-' is none: for standard output use pipe -"),
            ("afpacket lo lanes = 2 -> null", "1:13: no blanks around '=': write lanes=2"),
            ("afpacket lo | null", "1:13: expected '->' instead of '|'"),
            ("tap: afpacket lo; tap -> null", "1:1: expected a name or a plugin instead of 'tap:'; a definition is written")):
        errors = check("-e", text)
        assert f"-e:{words}" in errors, f"{text}: {errors}"


def test_what_is_no_file_and_no_interface():
    folder = tempdir()
    for options in ("", " overwrite=yes"):
        run = weir("-e", f"zmq-source ipc://{folder}/none -> pcap {folder}{options}", expect=2)
        assert f"{folder} is a folder: the name of a file is wanted, such as {folder}/%Y%m%d-%H%M%S.pcap" in run.stderr, run.stderr
    need_root()
    run = weir("-e", "afpacket any -> null", expect=2)
    assert "interfaces are named, as in afpacket eth1,eth2; libpcap any has them all" in run.stderr, run.stderr


def test_help_of_a_command():
    for name in ("run", "check", "plan", "graph", "plugins"):
        said = [command(*args) for args in (["help", name], [name, "--help"], [name, "-h"])]
        assert len({done.stdout for done in said}) == 1 and not any(done.returncode for done in said), said
        assert said[0].stdout.startswith(f"Usage:\n  weir {name} [OPTION…] "), said[0].stdout
    assert command().stdout == command("help").stdout == command("--help").stdout


def test_versions_of_the_libraries():
    said = command("--version").stdout
    assert re.match(r"weir \d+\.\d+\.\d+, plugin interface \d+\nGLib \d+\.\d+\.\d+\nJSON-GLib \d+\.\d+\.\d+\nbuilt with ", said), said
    for library in ("libcap-ng", "libpcap", "libzmq", "libxxhash"):
        assert re.search(rf"[ ,]{library} \d+\.\d+", said), said


def test_vlan_is_explained():
    said = command("plugins", "bpf").stdout
    assert re.search(r"^  vlan=exact\|skip .*skip: .* without their VLAN tags; exact: .* behind a tag", said, re.M), said


def test_variables():
    text = "pcap-replay ${file:-x} -> bpf ${filter} -> null"
    assert "variable 'filter' is not set" in check("-e", text)
    check("-e", text, "--set", "filter=tcp port 5", expect=0)
    check("-e", text, "--set", "filter", env={"filter": "tcp port 5"}, expect=0)
    assert "--set nix: the text has no ${nix}" in check("-e", text, "--set", "filter=tcp", "--set", "nix=1")


def listed():
    """The names in `weir plugins`, which groups them by kind."""
    result = command("plugins")
    assert result.returncode == 0, result.stderr
    groups = dict(re.findall(r"^(\w+)\n((?:  .*\n)+)", result.stdout, re.M))
    assert "Refused" not in groups, groups["Refused"]
    return [line.split()[0] for group in groups.values() for line in group.splitlines()]


def test_every_plugin_describes_itself():
    names = listed()
    assert {"queue", "snaplen", "bpf", "pcap", "pcap-replay"} <= set(names), names
    for name in names:
        text = command("plugins", name).stdout
        for heading in ("Example", "Out"):
            assert re.search(f"^{heading}", text, re.M), text


def test_every_example_is_right():
    for name in listed():
        example = re.search(r"^Example\n  (.*)$", command("plugins", name).stdout, re.M).group(1)
        words = set(re.findall(r"[a-z][\w-]*", example))
        definitions = "\n".join(f"{word} = {NAMES[word]}" for word in sorted(words & set(NAMES)))
        assert name in words, f"{name}: {example}"
        errors = check("-e", f"{definitions}\n{example}", expect=0)
        assert not places(errors), errors


def test_words_of_plugins_read_alike():
    for line in command("plugins").stdout.splitlines():
        summary = re.match(r"  \S+ +(.*)", line)
        assert not summary or re.match(r"[a-z].*[^.]$", summary.group(1)), line
    for name in listed():
        outputs = re.findall(r"^(?:Outputs|Outcomes|Counters)\n((?:  .*\n)+)", command("plugins", name).stdout, re.M)
        for text in [line[28:] for lines in outputs for line in lines.splitlines()]:
            assert re.match(r"(?![A-Z][a-z])[^.].*[^.]$", text.partition(" [")[0]), f"{name}: {text}"
        options = re.search(r"^Options\n(.*?)\n\n", command("plugins", name).stdout, re.M | re.S)
        lines = options.group(1).splitlines() if options else []
        helps = [line[28:] for line in lines if line[26:28] == "  "]
        assert helps or not options, name
        for text in helps:
            assert re.match(r"([A-Z]|[a-z-]+[:,] ).*\.( \[.*\])?$", text), f"{name}: {text}"


def test_a_file_is_not_read_and_written_at_once():
    for text in ("pcap-replay /tmp/a.pcap,./x.pcap -> pcap x.pcap overwrite=yes",
                 "pcap-replay y.pcap -> bpf filter-file=/tmp/../tmp/x -> pcap /tmp/x"):
        assert "reads the file that 'pcap:1' writes" in check("-e", text)


def test_a_plugin_that_crashes_costs_a_line():
    folder = tempdir()
    source = os.path.join(folder, "crash.c")
    with open(source, "w") as file:
        file.write("#include <stdlib.h>\n__attribute__((constructor)) static void c(void) { abort(); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", os.path.join(folder, "crash.so"), source], check=True)
    text = command("plugins", "--plugin-path", folder).stdout
    assert "plugin 'crash' crashed when it was loaded" in text and "\n  snaplen " in text, text
    result = command("plugins", "--plugin-path", folder, "crash")
    assert result.returncode == 2 and "crashed" in result.stderr, result.stderr


main()
