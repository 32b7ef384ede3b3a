#!/usr/bin/python3
"""Every file of the shared captures through pcap-replay: what comes out is what the tables there say.

The README of that folder says which reading is right where readers disagree; law() and the sets below are that.
"""
import hashlib, os, re, struct, subprocess
from weirtest import BUILD, SHARED, main, need_shared, tempdir, weir

G = 1_000_000_000
UNREADABLE_BY_LIBPCAP = {"0,1", "0,1,12", "2", "1240"}  # link types: several, or none of libpcap's

# Of the malformed ones: refused before the run begins. The rest of what the specification's reader stops at is
# a record that cannot be, or a torn tail.
REFUSED = {"mut_n_bom_garbage.pcapng", "mut_n_bom_zero.pcapng", "mut_n_shb_cut16.pcapng", "mut_n_shb_cut4.pcapng",
           "mut_n_shb_len10.pcapng", "mut_n_shb_len7ffffffc.pcapng", "mut_n_shb_lenc.pcapng", "mut_n_ver0.0.pcapng",
           "mut_p_3bytes.pcap", "mut_p_gzip.pcap", "real_libpcap__pcapng-invalid-vers-1.pcapng",
           "real_libpcap__shb-option-too-long.pcapng"}
TORN = {"mut_n_epb_cut.pcapng"}  # and what the table calls truncated
# Their clock cannot be read: their one interface is refused with a message, and the run goes on.
NO_CLOCK = {"mut_n_tsresol_13.pcapng", "mut_n_tsresol_7f.pcapng", "mut_n_tsresol_ff.pcapng"}


def table(path):
    with open(need_shared(path), newline="") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    folder = os.path.dirname(os.path.join(SHARED, path))
    rows = [dict(zip(lines[0], line)) for line in lines[1:]]
    pairs = [(row, os.path.join(folder, row["file"])) for row in rows]
    return [(row, file) for row, file in pairs if os.path.exists(file)]


def sha(data):
    return hashlib.sha256(data).hexdigest()


def by_specification(path):
    """The canonical dump by the reader that was written from the specifications."""
    return subprocess.run(["/usr/bin/python3", need_shared("captures/tools/canon.py"), path],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def canon():
    """The same by libpcap."""
    program = os.path.join(tempdir(), "canon")
    subprocess.run(["cc", "-O2", "-o", program, need_shared("captures/tools/canon.c"), "-lpcap"], check=True)
    return program


def law(dump):
    """A wirelen below caplen is raised; seconds that 64 bits of nanoseconds cannot hold are taken modulo 2^32."""
    lines = []
    for line in dump.decode().splitlines(keepends=True):
        ts, caplen, wirelen, data = line.split(" ", 3)
        seconds, fraction = ts.split(".")
        if int(seconds) >= 9223372036:
            seconds = int(seconds) % 2**32
        lines.append(f"{seconds}.{fraction} {caplen} {max(int(caplen), int(wirelen))} {data}")
    return "".join(lines).encode()


def right_dump(path):
    """What Weir is to read of a malformed file."""
    if os.path.basename(path) in NO_CLOCK:
        return b""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">"}.get(bytes(data[:4]))
    if order and len(data) >= 24 and struct.unpack_from(order + "H", data, 4)[0] != 2:
        # A version that is not 2.x is read all the same: as 2.4.
        struct.pack_into(order + "HH", data, 4, 2, 4)
        path = os.path.join(tempdir(), "version.pcap")
        with open(path, "wb") as file:
            file.write(data)
    return law(by_specification(path))


def capdump(path, piece):
    run = subprocess.run([os.path.join(BUILD, "tests", "capdump"), path, str(piece)], capture_output=True)
    assert run.returncode in (0, 1), f"{path}: status {run.returncode}: {run.stderr.decode()}"
    return run.stdout, run.stderr.decode()


def test_the_reader_gives_the_canonical_dump_of_every_capture():
    for row, path in table("captures/expected.tsv"):
        dump, said = capdump(path, 1 << 18)
        right = row["spec_canon_n_sha256"]
        if "beyond the year 2262" in said:  # as Wireshark writes such times
            assert row["file"] == "nfstream__dhcp_big_endian.pcapng", said
            right = row["wiretap_canon_sha256"]
        assert sha(dump) == right, f"{path}: {said}"


def test_the_reader_gives_the_same_in_whatever_pieces():
    for name in ("captures/expected.tsv", "captures/malformed/expected.tsv"):
        for row, path in table(name):
            whole = capdump(path, 1 << 30)
            for piece in (4096, 65536) if os.path.getsize(path) > 20000 else (1, 7, 100, 4096):
                assert capdump(path, piece) == whole, f"{path}, {piece} bytes at a time"


def node(run, plugin):
    return next(n for n in run.report["nodes"] if n["plugin"] == plugin)


def test_replay_into_a_file_gives_the_canonical_dump_of_every_capture():
    program = canon()
    for row, path in table("captures/expected.tsv"):
        name = "out.pcapng" if "," in row["linktypes"] else "out.pcap"
        out = os.path.join(tempdir(), name)
        status = 1 if row["file"] == "PcapPlusPlus__igmplayer.pcap" else 0
        run = weir("-e", f"pcap-replay '{path}' -> pcap {out}", expect=status)
        right = law(by_specification(path))
        assert law(by_specification(out)) == right, f"{path}: {run.stderr}"
        assert node(run, "pcap")["outputs"]["written"]["packets"] == int(row["spec_packets"])
        if row["linktypes"] not in UNREADABLE_BY_LIBPCAP:
            dump = subprocess.run([program, "-n", out], stdout=subprocess.PIPE, check=True).stdout
            assert law(dump) == right, path
        if row["libpcap_readable"] == "yes" and row["canon_n_sha256"] == row["wiretap_canon_sha256"]:
            assert sha(right) == row["canon_n_sha256"], f"{path}: libpcap and Wireshark read it otherwise"


def right_status(row):
    """The exit status, and what standard error is to say."""
    name, message = row["file"], row["spec_msg"]
    if name in REFUSED:
        return 2, re.escape(name)
    if name in NO_CLOCK:
        return 0, "counts time in .* seconds, which is finer than can be read"
    if message.startswith("truncated") or name in TORN:
        return 0, "truncated"
    if message.startswith("version"):
        # Of the wrong byte order, read with the right magic, the first record is impossible.
        return (1 if "swapped" in name else 0), r"pcap version \d+\.\d+, read as if it were 2\.4"
    return (1, re.escape(name) + r": at byte \d+: ") if message else (0, "")


def test_malformed_files_give_their_whole_packets_and_a_clear_word():
    for row, path in table("captures/malformed/expected.tsv"):
        out = os.path.join(tempdir(), "out.pcapng")
        status, word = right_status(row)
        run = weir("-e", f"pcap-replay '{path}' -> pcap {out}", expect=status, balanced=None if status == 2 else True)
        assert re.search(word, run.stderr), f"{path}: {run.stderr}"
        if status == 2:
            assert not os.path.exists(out), path
            continue
        right = right_dump(path)
        assert law(by_specification(out)) == right, f"{path}: {run.stderr}"
        source = node(run, "pcap-replay")["counters"]
        assert source["truncated"] == (word == "truncated"), f"{path}: {source}"
        assert source["packets-skipped"] == (4 if row["file"] in NO_CLOCK else 0), f"{path}: {source}"
        if status == 0 and row["file"] not in NO_CLOCK and not row["spec_msg"].startswith("version"):
            assert right.count(b"\n") == int(row["spec_packets"]), path


def test_a_folder_instead_of_a_file_is_a_folder():
    folder = os.path.dirname(need_shared("captures/tools/canon.c"))
    run = weir("-e", f"pcap-replay {folder} -> null", expect=2, balanced=None)
    assert "no capture file is in this folder" in run.stderr, run.stderr


main()
