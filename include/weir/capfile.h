/*
 * weir/capfile.h: classic pcap and pcapng, written into and read from memory.
 *
 * Formats: draft-ietf-opsawg-pcap (classic) and draft-ietf-opsawg-pcapng.  Everything is written in
 * little-endian byte order, so that bodies from different machines can be joined.  No system calls
 * here: files, pipes and messages are the caller's.
 */
#ifndef WEIR_CAPFILE_H
#define WEIR_CAPFILE_H

#include <weir/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a record may hold; also the snaplen written into headers. */
#define WEIR_MAX_CAPLEN 262144u

/*
 * ---- Writing ----
 *
 * Each returns the bytes stored at `to`, of which the caller has made room for enough.
 */

enum weir_precision { WEIR_PRECISION_NS = 0, WEIR_PRECISION_US };

#define WEIR_PCAP_HEADER 24u
#define WEIR_PCAP_RECORD 16u /* and the packet's caplen */

size_t weir_pcap_header(uint8_t *to, uint32_t linktype, enum weir_precision precision);
/* Seconds are unsigned 32 bits: times outside 1970 to 2106 are clamped. */
size_t weir_pcap_record(uint8_t *to, const struct weir_packet *packet,
			enum weir_precision precision);

/* Strings may be NULL or empty: that option is left out.  A comment over 61,440 bytes is cut, and
 * so are other strings over 4,096. */
struct weir_section {
	const char *hardware, *os, *application, *comment;
};

/* Room for a section header and for an interface block with the longest strings. */
#define WEIR_PCAPNG_COMMENT_MAX   61440u
#define WEIR_PCAPNG_SECTION_MAX   (64u + 3u * (4096u + 8u) + WEIR_PCAPNG_COMMENT_MAX + 8u)
#define WEIR_PCAPNG_INTERFACE_MAX (96u + 5u * (4096u + 8u))
/* Room for a packet block without its data, with every option that can be written. */
#define WEIR_PCAPNG_PACKET_MAX 128u

size_t weir_pcapng_section(uint8_t *to, const struct weir_section *section);
/* Nanosecond resolution, snaplen 262,144.  filter, os: written as if_filter and if_os; may be NULL.
 */
size_t weir_pcapng_interface(uint8_t *to, const struct weir_interface *interface,
			     const char *filter, const char *os);
/* An enhanced packet block.  file_iface: the index of its interface block in this section.  extras:
 * with direction, queue, dropcount and mark where the packet has them, else the bare block. Times
 * before 1970 are clamped. */
size_t weir_pcapng_packet(uint8_t *to, const struct weir_packet *packet, uint32_t file_iface,
			  bool extras);
/* The exact size of what weir_pcapng_packet() will store for this packet. */
size_t weir_pcapng_packet_size(const struct weir_packet *packet, bool extras);

/* What is known of an interface's packets by now.  UINT64_MAX: not known, and left out. */
struct weir_statistics {
	int64_t start_ns, end_ns; /* of the capture */
	uint64_t received;        /* by the interface, as the kernel counts */
	uint64_t missed;          /* lost by the NIC */
	uint64_t dropped;         /* lost by the kernel */
	uint64_t accepted;        /* by the filters before whoever writes this */
	uint64_t delivered;       /* of these, what was taken */
};

/* Room for an interface statistics block. */
#define WEIR_PCAPNG_STATISTICS_MAX 112u
size_t weir_pcapng_statistics(uint8_t *to, uint32_t file_iface, int64_t ts_ns,
			      const struct weir_statistics *statistics);

/* A decryption secrets block with lines of a TLS key log, and its size; len below 2^31. */
size_t weir_pcapng_tls_keys(uint8_t *to, const uint8_t *lines, size_t len);
size_t weir_pcapng_tls_keys_size(size_t len);

/* What a stretch of a file holds. */
struct weir_extent {
	uint64_t packets;
	uint64_t packet_bytes; /* captured */
	uint64_t record_bytes; /* these with their headers and padding */
	uint64_t header_bytes; /* all blocks that are no packet */
};

/*
 * Steps over records, or blocks, that the functions above have stored: from `at`, where one starts,
 * as long as they end at or before `end`.  Adds what was stepped over to *extent; returns where the
 * first one starts that is not whole, or end.  The header of a classic file is no record.
 */
size_t weir_capfile_walk(const uint8_t *bytes, size_t at, size_t end, bool pcapng,
			 struct weir_extent *extent);

/*
 * ---- Reading ----
 *
 * Foreign bytes are never trusted: a record whose lengths cannot be ends the stream with an error,
 * a length that contradicts another is put right (a wirelen below caplen is raised to it).
 */

struct weir_reader;

/*
 * Called for each interface that the file describes, before its first packet; returns the id to
 * store in packets (weir_interface_add() in a plugin).  Strings are valid during the call; the name
 * is "" where the file has none.
 */
typedef uint16_t (*weir_reader_interface)(void *user, const struct weir_interface *interface);
/* Called for each peculiarity, with its byte offset in the stream. */
typedef void (*weir_reader_warning)(void *user, uint64_t offset, const char *message);

/* on_interface, on_warning: may be NULL, then ids are 0 and nothing is said. NULL: out of memory.
 */
struct weir_reader *weir_reader_new(weir_reader_interface on_interface,
				    weir_reader_warning on_warning, void *user);
void weir_reader_free(struct weir_reader *reader); /* takes NULL */

enum weir_reader_status {
	WEIR_READER_OK,   /* max packets were stored, or all bytes are used */
	WEIR_READER_MORE, /* what comes next needs at least *ret_need bytes at this place */
	WEIR_READER_BAD,  /* the stream cannot go on: weir_reader_error() says what and where */
};

/* Sums over all calls: what was used = header + record + skipped at every moment. */
struct weir_reader_totals {
	uint64_t header_bytes;  /* file and section headers, interface blocks */
	uint64_t record_bytes;  /* packet records with their headers and padding */
	uint64_t skipped_bytes; /* blocks that hold no packet, and packets that were skipped */
	uint64_t packets;
	uint64_t skipped_packets; /* packets that were there and could not be delivered */
};

/*
 * Parses from `bytes`, which must start where the last call's *ret_used ended, up to max packets
 * (0: up to the first packet).  Descriptors are written whole and point into bytes.  *ret_used is
 * how much of it is done with; *ret_need is set with WEIR_READER_MORE (0 otherwise) and is never
 * above 17 MiB.  Packets stored before an error are counted in *ret_n too; an error is final.
 */
enum weir_reader_status weir_reader_read(struct weir_reader *reader, const uint8_t *bytes,
					 size_t len, struct weir_packet *packets, unsigned max,
					 unsigned *ret_n, size_t *ret_used, size_t *ret_need);

/*
 * The stream has ended with `left` bytes that were not used; they belong to none of the totals.
 * True if that cut a record (a torn tail), which is no error; false if left is 0, or if there is an
 * error now: the stream ended within its first header, or within a block that cannot be so long.
 */
bool weir_reader_end(struct weir_reader *reader, size_t left);

/* NULL: none; owned by the reader. */
const char *weir_reader_error(const struct weir_reader *reader);
const struct weir_reader_totals *weir_reader_totals(const struct weir_reader *reader);
/* What the stream is: "pcap", "pcapng", or what else it seems to be, such as "gzip"; NULL before
 * its first bytes. */
const char *weir_reader_format(const struct weir_reader *reader);
/* The file's header is behind us: what goes wrong now is in its records. */
bool weir_reader_is_open(const struct weir_reader *reader);

#ifdef __cplusplus
}
#endif
#endif
