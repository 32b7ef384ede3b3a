#!/usr/bin/python3
"""What careless users and attackers do: closed and full streams, odd files, too few descriptors, odd moments."""
import json, os, subprocess
from weirtest import BUILD, WEIR, Run, main, tempdir, weir

PLUGINS = ["--plugin-path", os.path.join(BUILD, "tests", "plugins")]
PACKETS = "numbers count=100 -> {}"


def shell(command, *arguments):
    """Runs "$@" as a shell does that `command` is given to."""
    return subprocess.run(["sh", "-c", command, "sh", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True, timeout=60)


# ---- Standard streams ----

def test_no_file_is_opened_in_the_place_of_a_closed_stream():
    for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
        folder = tempdir()
        path, ledger = (os.path.join(folder, name) for name in ("out.pcap", "ledger"))
        done = shell(f'exec "$@" {closed}', WEIR, "run", *PLUGINS, "-e", PACKETS.format(f"pcap {path}"), "--ledger", ledger)
        assert done.returncode == 0, (closed, done.stderr)
        assert os.path.getsize(path) == 24 + 100 * (16 + 64), closed
        with open(ledger) as file:
            assert [json.loads(line)["event"] for line in file][-1] == "run-ended", closed


def test_standard_output_that_is_full_is_an_error():
    for arguments in (["plugins"], ["help"], ["--version"], ["plan", "-e", "pcap-replay x -> null"],
                      ["graph", "-e", "pcap-replay x -> null"]):
        done = shell('exec "$@" >/dev/full', WEIR, *arguments)
        assert done.returncode == 1 and "standard output cannot be written: No space left" in done.stderr, arguments


def test_a_ledger_file_without_its_end_is_an_error():
    run = Run(*PLUGINS, "-e", PACKETS.format("check-order"), "--ledger", "/dev/full").wait()
    assert run.status == 1 and "the end of the ledger file /dev/full cannot be written" in run.stderr, run.stderr


# ---- Files that are none ----

def test_what_is_no_regular_file_is_not_replaced_by_one():
    fifo = os.path.join(tempdir(), "fifo")
    os.mkfifo(fifo)
    for options in ("", "overwrite=yes"):
        run = weir(*PLUGINS, "-e", PACKETS.format(f"pcap {fifo} {options}"), expect=2, balanced=None)
        assert "is no regular file" in run.stderr, run.stderr


def test_no_files_are_not_read_as_if_they_were():
    run = weir("-e", "pcap-replay '' -> null", expect=2, balanced=None)
    assert "-e:1:13: pcap-replay" in run.stderr and "expected a list of files" in run.stderr, run.stderr


main()
