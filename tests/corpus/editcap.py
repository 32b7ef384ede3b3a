#!/usr/bin/python3
"""snaplen and dedup mode=exact leave of every capture what editcap -s, -d, -D and -w leave of it."""
import os
from captures import by_file, checksum, packets, path_of, quoted, run_over, table
from weirtest import main, tempdir

STAGES = {
    "-s 64": "snaplen 64",
    "-s 128": "snaplen 128",
    "-d": "dedup mode=exact packets=5",
    "-D 100": "dedup mode=exact packets=100",
    "-w 0.1": "dedup mode=exact window=100ms",
}

# Damaged; Wireshark reads its fractions of a second and captured lengths in a way of its own.
READ_OTHERWISE = {"PcapPlusPlus__igmplayer.pcap"}


def compare(name, rows):
    """One run for all the rows of a file; returns the rows that differ."""
    folder = tempdir()
    outputs = [os.path.join(folder, f"{i}.pcapng") for i in range(len(rows))]
    branches = [f"file -> {STAGES[row['editcap_options']]} -> pcap {quoted(output)}" for row, output in zip(rows, outputs)]
    run_over("; ".join([f"file = pcap-replay {quoted(path_of(name))}"] + branches))
    differ = []
    for row, output in zip(rows, outputs):
        found = packets(output)
        if len(found) != int(row["packets"]) or checksum(found) != row["canon_sha256"] and name not in READ_OTHERWISE:
            differ.append(f"{name} {row['editcap_options']}: {len(found)} packets, editcap {row['packets']}")
    return differ


def test_editcap_table():
    known = [row for row in table("editcap.tsv") if row["editcap_options"] in STAGES and row["canon_sha256"] != "-"]
    assert len(known) > 300, "the table has changed"
    differ = [line for name, rows in by_file(known).items() for line in compare(name, rows)]
    assert not differ, "\n".join(differ)


main()
