"""The shared captures, their tables, and the canonical dump as an independent reader gives it."""
import csv, hashlib, importlib.util, os, sys
from weirtest import Run, need_shared

FOLDER = "captures"


def table(name):
    """Rows of a table as dictionaries; skips the test where there is none."""
    with open(need_shared(os.path.join(FOLDER, name)), newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def path_of(name):
    return need_shared(os.path.join(FOLDER, name))


def by_file(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row["file"], []).append(row)
    return groups


def _reader():
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("canon", path_of("tools/canon.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def packets(path):
    """(nanoseconds, caplen, wirelen, bytes) of each packet, up to the first error."""
    reader = _reader()
    with open(path, "rb") as file:
        data = file.read()
    found = []
    try:
        for ns, caplen, wirelen, captured, _ in (reader.ng if data[:4] == b"\n\r\r\n" else reader.pcap)(data):
            found.append((ns, caplen, wirelen, captured))
    except reader.Bad:
        pass
    return found


def checksum(found):
    """Of the canonical dump, with normalised time stamps."""
    sha = hashlib.sha256()
    for ns, caplen, wirelen, captured in found:
        sha.update(f"{ns // 10**9}.{ns % 10**9:09d} {caplen} {wirelen} {captured.hex()}\n".encode())
    return sha.hexdigest()


def quoted(text):
    """One word of the pipeline language."""
    return "'" + text.replace("'", "'\\''") + "'"


def run_over(text):
    """A run whose file may be damaged: then the packets before that count, and the status is 1."""
    run = Run("-e", text).wait()
    assert run.report and run.report["balanced"], run.stderr
    assert run.status == 0 or (run.status == 1 and "at byte" in run.stderr), run.stderr
    return run
