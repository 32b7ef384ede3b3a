/*
 * options.h: the options, outcomes and counters of the pcap sink, in the order of its tables.
 */
#ifndef PCAP_OPTIONS_H
#define PCAP_OPTIONS_H

#include <weir/plugin.h>

enum { FORMAT_AUTO, FORMAT_PCAP, FORMAT_PCAPNG };
enum { DIRECT_AUTO, DIRECT_YES, DIRECT_NO };
enum { CLOCK_UTC, CLOCK_LOCAL };

struct config {
	const char *path;
	uint32_t format, precision, clock, direct;
	uint64_t rotate_bytes, stop_bytes, buffer_bytes; /* limits: 0 is none */
	int64_t rotate_ns, rotate_packets, stop_packets, keep_ns;
	struct weir_amount keep_free;
	bool overwrite, extras;
};

enum outcome {
	WRITTEN,
	DISK_FULL,
	WRITE_ERROR,
	NO_BUFFER,
	OTHER_LINKTYPE,
	TOO_LONG,
	STOPPED,
};

enum counter {
	FILE_BYTES,
	HEADER_BYTES,
	RECORD_BYTES,
	FILES,
	REMOVED,
	REMOVED_EARLY,
	RECOVERED,
};

#endif
