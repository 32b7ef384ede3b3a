/* options.c: the tables of the pcap sink. */
#include "options.h"

#define AT(field) offsetof(struct config, field)

const struct weir_option options[] = {
	{"path", WEIR_OUTFILE, AT(path), NULL, NULL,
	 "Name of the files; strftime's letters, %{iface}, %{lane}, %{node}, %{seq} are filled "
	 "in."},
	{"format", WEIR_CHOICE, AT(format), "auto", "auto|pcap|pcapng",
	 "What files are written; auto: pcapng if the name ends in .pcapng, else pcap."},
	{"precision", WEIR_CHOICE, AT(precision), "ns", "ns|us",
	 "Times in classic pcap; us for readers that do not know ns."},
	{"extras", WEIR_BOOL, AT(extras), "yes", NULL,
	 "Write direction, queue, drops and mark of each packet into pcapng."},
	{"tls-keys", WEIR_INFILE, AT(tls_keys), "", NULL,
	 "A key log (SSLKEYLOGFILE) whose lines are written into pcapng as they come, so that "
	 "analyzers can decrypt."},
	{"rotate-size", WEIR_SIZE, AT(rotate_bytes), "", "4KiB..1PiB",
	 "Start a new file before this one would be larger."},
	{"rotate-time", WEIR_TIME, AT(rotate_ns), "", "1s..366d",
	 "Start a new file at each multiple of this time on the clock."},
	{"rotate-packets", WEIR_NUMBER, AT(rotate_packets), "", "1..1000000000000",
	 "Start a new file after so many packets."},
	{"stop-size", WEIR_SIZE, AT(stop_bytes), "", "4KiB..1EiB",
	 "Finish before all files together would be larger."},
	{"stop-time", WEIR_TIME, AT(stop_ns), "", "1ms..36500d",
	 "Finish that long after the first packet, or live after the start."},
	{"stop-packets", WEIR_NUMBER, AT(stop_packets), "", "1..1000000000000000",
	 "Finish after so many packets."},
	{"clock", WEIR_CHOICE, AT(clock), "utc", "utc|local",
	 "The clock of names and of rotate-time."},
	{"empty", WEIR_CHOICE, AT(empty), "once", "once|never|always",
	 "Files without packets; once: if there was none at all; always: one for each interval of "
	 "rotate-time too."},
	{"overwrite", WEIR_BOOL, AT(overwrite), "no", NULL,
	 "Replace older files of the same name; no: a taken name gets -1, -2 and so on."},
	{"owner", WEIR_STRING, AT(owner), "", NULL,
	 "User, by name or number, whom files and folders are given to."},
	{"group", WEIR_STRING, AT(group), "", NULL,
	 "Group, by name or number, which files and folders are given to."},
	{"mode", WEIR_STRING, AT(mode), "", NULL,
	 "Permissions of files, octal, such as 0640, whatever the umask; folders can be entered by "
	 "those who may read."},
	{"on-close", WEIR_STRING, AT(on_close), "", NULL,
	 "A command, parted by blanks, that is run for each complete file with its path as the "
	 "last "
	 "argument; no shell."},
	{"on-close-jobs", WEIR_NUMBER, AT(on_close_jobs), "4", "1..1000",
	 "How many of these commands may run at a time; others wait for their turn."},
	{"on-close-wait", WEIR_TIME, AT(on_close_wait_ns), "30s", "0s..7d",
	 "At the end, wait for commands as long as one ends within this time."},
	{"keep-size", WEIR_SIZE, AT(keep_bytes), "", "4KiB..1EiB",
	 "Remove the oldest files of this node before all of them would be larger."},
	{"keep-files", WEIR_NUMBER, AT(keep_files), "", "1..1000000000",
	 "Remove the oldest files of this node when there are more complete ones."},
	{"keep-age", WEIR_TIME, AT(keep_ns), "", "1s..36500d",
	 "Remove files of this node that were closed longer ago."},
	{"keep-free", WEIR_AMOUNT, AT(keep_free), "", NULL,
	 "Remove the oldest files of this node before the file system has less room than this."},
	{"buffer", WEIR_SIZE, AT(buffer_bytes), "128MiB", "1MiB..64GiB",
	 "Memory for packets that wait for the disk, divided among the lanes."},
	{"direct", WEIR_CHOICE, AT(direct), "auto", "auto|yes|no",
	 "Write past the page cache; auto: where the file system can; yes: or refuse to start."},
	{NULL, 0, 0, NULL, NULL, NULL},
};

const struct weir_output outcomes[] = {
	[WRITTEN] = {"written", WEIR_PASS, WEIR_PACKETS, "on disk, or in the system's hands"},
	[DISK_FULL] = {"disk-full", WEIR_LOSS, WEIR_PACKETS, "the file system had no room"},
	[WRITE_ERROR] = {"write-error", WEIR_LOSS, WEIR_PACKETS, "the file system refused"},
	[NO_BUFFER] = {"no-buffer", WEIR_LOSS, WEIR_PACKETS, "the disk was too slow: see buffer"},
	[OTHER_LINKTYPE] = {"other-linktype", WEIR_LOSS, WEIR_PACKETS,
			    "of a second link type, which classic pcap cannot hold"},
	[TOO_LONG] = {"too-long", WEIR_LOSS, WEIR_PACKETS, "alone larger than rotate-size"},
	[STOPPED] = {"stopped", WEIR_DISCARD, WEIR_PACKETS,
		     "came after stop-size, stop-time or stop-packets"},
	{NULL, 0, 0, NULL},
};

const struct weir_counter counters[] = {
	[FILE_BYTES] = {"file-bytes", WEIR_PLUS_BYTES, "sizes of the files, from the file system"},
	[HEADER_BYTES] = {"header-bytes", WEIR_MINUS_BYTES,
			  "of file headers and all blocks that hold no packet"},
	[RECORD_BYTES] = {"record-bytes", WEIR_MINUS_BYTES, "of packets' records"},
	[FILES] = {"files", WEIR_INFO, "that were completed"},
	[VANISHED] = {"vanished", WEIR_INFO | WEIR_IS_LOSS,
		      "packets written to files that somebody removed before they were complete"},
	[REMOVED] = {"removed", WEIR_INFO, "files, by keep-size, -files, -age or -free"},
	[REMOVED_EARLY] = {"removed-early", WEIR_INFO, "of these before their keep-age"},
	[RECOVERED] = {"recovered", WEIR_INFO, "files that a killed run had left as .part"},
	[COMMANDS] = {"commands", WEIR_INFO, "that on-close has started"},
	[COMMANDS_FAILED] = {"commands-failed", WEIR_INFO,
			     "of these that ended with another status than 0, and any that could "
			     "not be run or were not waited for"},
	[TLS_KEYS] = {"tls-keys", WEIR_INFO, "lines of tls-keys that were written into files"},
	{NULL, 0, NULL},
};
