/*
 * capfile_write.c: classic pcap and pcapng, written into memory (weir/capfile.h).
 *
 * The three that run once a packet store fixed fields in a row and copy the data once; options are
 * written only where a packet has something to say.
 */
#include <weir/capfile.h>

#include <endian.h>
#include <string.h>

#define NS_PER_S    1000000000
#define PCAP_NS     0xa1b23c4du
#define PCAP_US     0xa1b2c3d4u
#define BLOCK_SHB   0x0a0d0d0au
#define BLOCK_IDB   1u
#define BLOCK_ISB   5u
#define BLOCK_EPB   6u
#define BLOCK_DSB   10u
#define DSB_FIXED   20u         /* the block without its secrets */
#define DSB_TLS     0x544c534bu /* "TLSK" */
#define SHB_MAGIC   0x1a2b3c4du
#define EPB_FIXED   32u /* the block without data and options */
#define STRING_MAX  4096u
#define MARK_DIGITS 8u
#define MARK_PREFIX "mark 0x"
#define MARK_LENGTH (sizeof(MARK_PREFIX) - 1 + MARK_DIGITS)

enum { OPT_END = 0, OPT_COMMENT = 1 };
enum { SHB_HARDWARE = 2, SHB_OS = 3, SHB_APPLICATION = 4 };
enum { IF_NAME = 2, IF_DESCRIPTION = 3, IF_TSRESOL = 9, IF_FILTER = 11, IF_OS = 12 };
enum { ISB_START = 2, ISB_END = 3, ISB_RECEIVED = 4, ISB_MISSED = 5 };
enum { ISB_ACCEPTED = 6, ISB_DROPPED = 7, ISB_DELIVERED = 8 };
enum { EPB_FLAGS = 2, EPB_DROPCOUNT = 4, EPB_QUEUE = 6 };

static uint8_t *put16(uint8_t *to, uint16_t value)
{
	value = htole16(value);
	memcpy(to, &value, sizeof(value));
	return to + sizeof(value);
}

static uint8_t *put32(uint8_t *to, uint32_t value)
{
	value = htole32(value);
	memcpy(to, &value, sizeof(value));
	return to + sizeof(value);
}

static uint8_t *put64(uint8_t *to, uint64_t value)
{
	value = htole64(value);
	memcpy(to, &value, sizeof(value));
	return to + sizeof(value);
}

static size_t padded(size_t len)
{
	return (len + 3) & ~(size_t)3;
}

/* Bytes, and zeros up to a multiple of four. */
static uint8_t *put_bytes(uint8_t *to, const void *bytes, size_t len)
{
	if (len & 3)
		put32(to + (len & ~(size_t)3), 0);
	if (len > 0)
		memcpy(to, bytes, len);
	return to + padded(len);
}

static uint8_t *put_option(uint8_t *to, uint16_t code, const void *value, uint16_t len)
{
	to = put16(put16(to, code), len);
	return put_bytes(to, value, len);
}

/* The length of a string, at most max, and never ending inside a UTF-8 character. */
static uint16_t text_length(const char *text, size_t max)
{
	size_t len = strnlen(text, max + 1);
	if (len <= max)
		return (uint16_t)len;
	len = max;
	while (len > 0 && ((uint8_t)text[len] & 0xc0) == 0x80)
		len--;
	return (uint16_t)len;
}

static uint16_t string_length(const char *text)
{
	return text_length(text, STRING_MAX);
}

static uint8_t *put_string(uint8_t *to, uint16_t code, const char *text)
{
	return text && *text ? put_option(to, code, text, string_length(text)) : to;
}

static uint8_t *put_comment(uint8_t *to, const char *text)
{
	return text && *text ? put_option(to, OPT_COMMENT, text,
					  text_length(text, WEIR_PCAPNG_COMMENT_MAX))
			     : to;
}

/* The block that starts at `block` and whose body ends at `end`: sets both of its lengths. */
static size_t finish_block(uint8_t *block, uint8_t *end)
{
	size_t size = (size_t)(end - block) + 4;
	put32(block + 4, (uint32_t)size);
	put32(end, (uint32_t)size);
	return size;
}

/* ---- Classic pcap ---- */

size_t weir_pcap_header(uint8_t *to, uint32_t linktype, enum weir_precision precision)
{
	to = put32(to, precision == WEIR_PRECISION_US ? PCAP_US : PCAP_NS);
	to = put16(put16(to, 2), 4); /* version 2.4 */
	to = put64(to, 0);           /* time zone and accuracy, which nobody uses */
	put32(put32(to, WEIR_MAX_CAPLEN), linktype);
	return WEIR_PCAP_HEADER;
}

size_t weir_pcap_record(uint8_t *to, const struct weir_packet *packet,
			enum weir_precision precision)
{
	int64_t ts_ns = packet->ts_ns;
	if (ts_ns < 0)
		ts_ns = 0;
	if (ts_ns > UINT32_MAX * (int64_t)NS_PER_S + NS_PER_S - 1)
		ts_ns = UINT32_MAX * (int64_t)NS_PER_S + NS_PER_S - 1;
	uint32_t fraction = (uint32_t)(ts_ns % NS_PER_S);
	to = put32(to, (uint32_t)(ts_ns / NS_PER_S));
	to = put32(to, precision == WEIR_PRECISION_US ? fraction / 1000 : fraction);
	to = put32(put32(to, packet->caplen), packet->wirelen);
	if (packet->caplen > 0)
		memcpy(to, packet->data, packet->caplen);
	return WEIR_PCAP_RECORD + packet->caplen;
}

/* ---- pcapng ---- */

size_t weir_pcapng_section(uint8_t *to, const struct weir_section *section)
{
	uint8_t *block = to;
	to = put64(to, BLOCK_SHB); /* the length follows in finish_block() */
	to = put32(to, SHB_MAGIC);
	to = put16(put16(to, 1), 0);
	to = put64(to, UINT64_MAX); /* section length: not said */
	const uint8_t *options = to;
	to = put_string(to, SHB_HARDWARE, section->hardware);
	to = put_string(to, SHB_OS, section->os);
	to = put_string(to, SHB_APPLICATION, section->application);
	to = put_comment(to, section->comment);
	if (to != options)
		to = put32(to, OPT_END);
	return finish_block(block, to);
}

/* An if_filter option is a byte that says of what kind the filter is, and the filter. */
static uint8_t *put_filter(uint8_t *to, const char *filter)
{
	if (!filter || !*filter)
		return to;
	uint8_t value[1 + STRING_MAX] = {0}; /* 0: a string in libpcap's language */
	uint16_t len = string_length(filter);
	memcpy(value + 1, filter, len);
	return put_option(to, IF_FILTER, value, (uint16_t)(len + 1));
}

size_t weir_pcapng_interface(uint8_t *to, const struct weir_interface *interface,
			     const char *filter, const char *os)
{
	const uint8_t nanoseconds = 9;
	uint8_t *block = to;
	to = put64(to, BLOCK_IDB);
	to = put16(put16(to, (uint16_t)interface->linktype), 0);
	to = put32(to, WEIR_MAX_CAPLEN);
	to = put_string(to, IF_NAME, interface->name);
	to = put_string(to, IF_DESCRIPTION, interface->description);
	to = put_option(to, IF_TSRESOL, &nanoseconds, 1);
	to = put_filter(to, filter);
	to = put_string(to, IF_OS, os);
	return finish_block(block, put32(to, OPT_END));
}

/* A time as it stands in blocks: the upper half first. */
static uint8_t *put_time(uint8_t *to, int64_t ts_ns)
{
	uint64_t ns = ts_ns < 0 ? 0 : (uint64_t)ts_ns;
	return put32(put32(to, (uint32_t)(ns >> 32)), (uint32_t)ns);
}

static uint8_t *put_count(uint8_t *to, uint16_t code, uint64_t count)
{
	return count == UINT64_MAX ? to : put64(put16(put16(to, code), 8), count);
}

size_t weir_pcapng_statistics(uint8_t *to, uint32_t file_iface, int64_t ts_ns,
			      const struct weir_statistics *statistics)
{
	uint8_t *block = to;
	to = put64(to, BLOCK_ISB);
	to = put_time(put32(to, file_iface), ts_ns);
	to = put_time(put16(put16(to, ISB_START), 8), statistics->start_ns);
	to = put_time(put16(put16(to, ISB_END), 8), statistics->end_ns);
	to = put_count(to, ISB_RECEIVED, statistics->received);
	to = put_count(to, ISB_MISSED, statistics->missed);
	to = put_count(to, ISB_ACCEPTED, statistics->accepted);
	to = put_count(to, ISB_DROPPED, statistics->dropped);
	to = put_count(to, ISB_DELIVERED, statistics->delivered);
	return finish_block(block, put32(to, OPT_END));
}

size_t weir_pcapng_tls_keys_size(size_t len)
{
	return DSB_FIXED + padded(len);
}

size_t weir_pcapng_tls_keys(uint8_t *to, const uint8_t *lines, size_t len)
{
	uint8_t *block = to;
	to = put64(to, BLOCK_DSB);
	to = put32(put32(to, DSB_TLS), (uint32_t)len);
	return finish_block(block, put_bytes(to, lines, len));
}

static uint32_t direction(const struct weir_packet *packet)
{
	uint32_t flags = packet->flags & (WEIR_F_IN | WEIR_F_OUT);
	return flags == WEIR_F_IN ? 1 : flags == WEIR_F_OUT ? 2 : 0;
}

static size_t extras_size(const struct weir_packet *packet)
{
	size_t size = 0;
	if (direction(packet))
		size += 8;
	if (packet->dropped)
		size += 12;
	if (packet->queue != UINT16_MAX)
		size += 8;
	if (packet->mark)
		size += 4 + padded(MARK_LENGTH);
	return size ? size + 4 : 0;
}

static uint8_t *put_mark(uint8_t *to, uint32_t mark)
{
	char text[MARK_LENGTH] = MARK_PREFIX;
	for (size_t i = MARK_LENGTH; i > MARK_LENGTH - MARK_DIGITS; mark >>= 4)
		text[--i] = "0123456789abcdef"[mark & 15];
	return put_option(to, OPT_COMMENT, text, MARK_LENGTH);
}

static uint8_t *put_extras(uint8_t *to, const struct weir_packet *packet)
{
	const uint8_t *options = to;
	if (direction(packet))
		to = put32(put16(put16(to, EPB_FLAGS), 4), direction(packet));
	if (packet->dropped)
		to = put64(put16(put16(to, EPB_DROPCOUNT), 8), packet->dropped);
	if (packet->queue != UINT16_MAX)
		to = put32(put16(put16(to, EPB_QUEUE), 4), packet->queue);
	if (packet->mark)
		to = put_mark(to, packet->mark);
	return to == options ? to : put32(to, OPT_END);
}

size_t weir_pcapng_packet_size(const struct weir_packet *packet, bool extras)
{
	return EPB_FIXED + padded(packet->caplen) + (extras ? extras_size(packet) : 0);
}

size_t weir_pcapng_packet(uint8_t *to, const struct weir_packet *packet, uint32_t file_iface,
			  bool extras)
{
	uint8_t *block = to;
	to = put64(to, BLOCK_EPB);
	to = put_time(put32(to, file_iface), packet->ts_ns);
	to = put32(put32(to, packet->caplen), packet->wirelen);
	to = put_bytes(to, packet->data, packet->caplen);
	if (extras)
		to = put_extras(to, packet);
	return finish_block(block, to);
}
