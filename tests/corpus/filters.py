#!/usr/bin/python3
"""bpf lets through of every capture what tcpdump -r lets through, and refuses what libpcap refuses."""
import os
from captures import by_file, checksum, packets, path_of, quoted, run_over, table
from weirtest import Run, main, tempdir


def read_otherwise():
    """Files of whose packets libpcap makes other ones than the specification says, which is right: it cuts to
    the file's snaplen, reads seconds as signed and does not carry fractions."""
    return {row["file"] for row in table("expected.tsv") if row["canon_sha256"] != row["spec_canon_n_sha256"]}


def text_of(name, branches):
    return "; ".join([f"file = pcap-replay {quoted(path_of(name))}"] + branches)


def compare(name, rows, checksums):
    """One run for all the filters of a file; returns the rows that differ."""
    folder = tempdir()
    outputs = [os.path.join(folder, f"{i}.pcapng") for i in range(len(rows))]
    run_over(text_of(name, [f"file -> bpf {quoted(row['filter'])} -> pcap {quoted(output)}"
                            for row, output in zip(rows, outputs)]))
    differ = []
    for row, output in zip(rows, outputs):
        found = packets(output)
        if len(found) != int(row["matched"]) or checksums and checksum(found) != row["canon_sha256"]:
            differ.append(f"{name} {row['filter']}: {len(found)} packets, tcpdump {row['matched']}")
    return differ


def test_filters_table():
    known = [row for row in table("filters.tsv") if row["tcpdump_rc"] == "0"]
    assert len(known) > 1200, "the table has changed"
    counts_only = read_otherwise()
    differ = [line for name, rows in by_file(known).items() for line in compare(name, rows, name not in counts_only)]
    assert not differ, "\n".join(differ)


def libpcap_words(row):
    """What libpcap says of the filter; None where tcpdump failed for another reason, a broken file."""
    words = row["message"].rsplit("tcpdump: ", 1)[-1]
    return None if words.startswith("pcap_loop") else words


def test_refused_filters():
    refused = [row for row in table("filters.tsv") if row["tcpdump_rc"] != "0" and libpcap_words(row)]
    assert len(refused) > 50, "the table has changed"
    for row in refused:
        run = Run("-e", text_of(row["file"], [f"file -> bpf {quoted(row['filter'])} -> null"]), report=False).wait()
        assert run.status == 2 and libpcap_words(row) in run.stderr, f"{row}: {run.status} {run.stderr}"


main()
