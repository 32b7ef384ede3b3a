/*
 * capfile_read.h: what the readers of the two capture file formats share.
 *
 * capfile_read.c tells the formats apart and keeps the sums; pcap_read.c and pcapng_read.c parse.
 */
#ifndef WEIR_CAPFILE_READ_H
#define WEIR_CAPFILE_READ_H

#include <weir/capfile.h>

#include <byteswap.h>
#include <endian.h>
#include <string.h>

/* An interface of the current pcapng section. */
struct weir_reader_clock {
	uint64_t ticks_per_s;
	uint64_t ns_per_tick;  /* 0: that is no whole number */
	uint64_t direct_ticks; /* below this, ticks * ns_per_tick is the time */
	int64_t offset_s;
	uint32_t snaplen;
	uint16_t iface;
	bool refused; /* its packets are skipped */
};

struct weir_reader {
	weir_reader_interface on_interface;
	weir_reader_warning on_warning;
	void *user;
	enum { WEIR_READER_UNKNOWN, WEIR_READER_PCAP, WEIR_READER_PCAPNG } kind;
	const char *format;
	char error[256];
	uint64_t offset; /* in the stream, of the bytes that the current call was given */
	struct weir_reader_totals totals;
	bool is_open;
	bool swapped; /* the byte order is not this machine's */
	struct {
		uint32_t record_header; /* bytes */
		uint32_t ns_per_fraction;
		uint16_t minor; /* 2.0 to 2.2 have the two lengths the other way round, 2.3 some of
				   them; 4: they are in order */
		uint16_t iface;
	} pcap;
	struct {
		struct weir_reader_clock *clocks;
		unsigned n, room;
		uint64_t pass_over; /* bytes of a block that is too long to be held */
		bool warned_length, warned_time;
	} ng;
};

/* One call of weir_reader_read(). */
struct weir_reader_call {
	const uint8_t *start, *at, *end;
	struct weir_packet *packets;
	unsigned n, max;
	size_t need;
};

static inline uint16_t weir_reader_u16(const uint8_t *at, bool swapped)
{
	uint16_t value;
	memcpy(&value, at, sizeof(value));
	return swapped ? bswap_16(value) : value;
}

static inline uint32_t weir_reader_u32(const uint8_t *at, bool swapped)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return swapped ? bswap_32(value) : value;
}

static inline uint64_t weir_reader_u64(const uint8_t *at, bool swapped)
{
	uint64_t value;
	memcpy(&value, at, sizeof(value));
	return swapped ? bswap_64(value) : value;
}

static inline enum weir_reader_status weir_reader_more(struct weir_reader_call *call, size_t need)
{
	call->need = need;
	return WEIR_READER_MORE;
}

/* Sets the error, with the offset of call->at; returns WEIR_READER_BAD. */
enum weir_reader_status weir_reader_fail(struct weir_reader *reader,
					 const struct weir_reader_call *call, const char *format,
					 ...) WEIR_PRINTF(3, 4);
void weir_reader_warn(struct weir_reader *reader, const struct weir_reader_call *call,
		      const char *format, ...) WEIR_PRINTF(3, 4);
/* Declares an interface; the name may be NULL. */
uint16_t weir_reader_declare(struct weir_reader *reader, const char *name, const char *description,
			     uint32_t linktype, uint32_t snaplen);

/* Whether these bytes begin a file of that format; at least 4 of them. */
bool weir_pcap_is(const uint8_t *bytes);
bool weir_pcapng_is(const uint8_t *bytes);

/* At the start of the stream: the file header. */
enum weir_reader_status weir_pcap_open(struct weir_reader *reader, struct weir_reader_call *call);
/* Records and blocks, until the packets are max or the bytes run out. */
enum weir_reader_status weir_pcap_read(struct weir_reader *reader, struct weir_reader_call *call);
enum weir_reader_status weir_pcapng_read(struct weir_reader *reader, struct weir_reader_call *call);

/* pcapng_interface.c: reads the body of an interface block, after its 8 fixed bytes were checked to
 * be there; false: there are too many interfaces. */
bool weir_pcapng_add_interface(struct weir_reader *reader, const struct weir_reader_call *call,
			       const uint8_t *body, const uint8_t *end);
/* The time of a packet, in nanoseconds since 1970. */
int64_t weir_pcapng_time(struct weir_reader *reader, const struct weir_reader_call *call,
			 const struct weir_reader_clock *clock, uint64_t ticks);

struct weir_pcapng_option {
	const uint8_t *value;
	uint16_t code, len;
};
/* The next option, and moves *at behind it; false at the end of the list, or where it is damaged.
 */
bool weir_pcapng_next_option(const struct weir_reader *reader, const uint8_t **at,
			     const uint8_t *end, struct weir_pcapng_option *ret);

#endif
