/*
 * options.h: the options, outcomes and counters of the pcap sink, in the order of its tables.
 */
#ifndef PCAP_OPTIONS_H
#define PCAP_OPTIONS_H

#include <weir/plugin.h>

enum { FORMAT_AUTO, FORMAT_PCAP, FORMAT_PCAPNG };
enum { DIRECT_AUTO, DIRECT_YES, DIRECT_NO };
enum { CLOCK_UTC, CLOCK_LOCAL };
enum { EMPTY_ONCE, EMPTY_NEVER, EMPTY_ALWAYS };

struct config {
	const char *path, *owner, *group, *mode, *on_close, *tls_keys;
	uint32_t format, precision, clock, direct, empty;
	uint64_t rotate_bytes, stop_bytes, keep_bytes, buffer_bytes; /* limits: 0 is none */
	int64_t rotate_ns, rotate_packets, stop_ns, stop_packets, keep_ns, keep_files;
	int64_t on_close_jobs, on_close_wait_ns;
	struct weir_amount keep_free;
	bool overwrite, extras;
};

extern const struct weir_option options[];

enum outcome {
	WRITTEN,
	DISK_FULL,
	WRITE_ERROR,
	NO_BUFFER,
	OTHER_LINKTYPE,
	TOO_LONG,
	STOPPED,
};

extern const struct weir_output outcomes[];

enum counter {
	FILE_BYTES,
	HEADER_BYTES,
	RECORD_BYTES,
	FILES,
	VANISHED,
	REMOVED,
	REMOVED_EARLY,
	RECOVERED,
	COMMANDS,
	COMMANDS_FAILED,
	TLS_KEYS,
};

extern const struct weir_counter counters[];

#endif
