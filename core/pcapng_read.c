/*
 * pcapng_read.c: the blocks of pcapng.
 *
 * Packets are taken from enhanced, simple and the obsolete packet blocks; blocks of other types are
 * skipped.  A block whose length is no multiple of four is taken as if it were padded, provided
 * that both of its lengths say so.
 */
#include "capfile_read.h"

#define BLOCK_SHB     0x0a0d0d0au
#define BLOCK_IDB     1u
#define BLOCK_PB      2u
#define BLOCK_SPB     3u
#define BLOCK_EPB     6u
#define SHB_MAGIC     0x1a2b3c4du
#define BLOCK_MIN     12u         /* type, and the length before and after the body */
#define BLOCK_MAX     (16u << 20) /* of a block with a packet, or a header */
#define HELD_MAX      (1u << 20)  /* a longer block of another type is passed over unseen */
#define DROPS_UNKNOWN UINT16_MAX

enum { EPB_FLAGS = 2, EPB_DROPCOUNT = 4, EPB_QUEUE = 6 };

struct block {
	uint32_t type, length; /* length as it is written */
	size_t size;           /* all of it, padded */
	const uint8_t *body, *end;
};

/* A packet, whatever kind of block it is in. */
struct record {
	const uint8_t *data;
	uint64_t ticks;
	uint32_t iface, caplen, wirelen, dropped;
	bool timed;
};

bool weir_pcapng_is(const uint8_t *bytes)
{
	return weir_reader_u32(bytes, false) == BLOCK_SHB;
}

static bool is_packet(uint32_t type)
{
	return type == BLOCK_EPB || type == BLOCK_SPB || type == BLOCK_PB;
}

static bool is_needed(uint32_t type)
{
	return is_packet(type) || type == BLOCK_IDB || type == BLOCK_SHB;
}

static size_t least_size(uint32_t type)
{
	switch (type) {
	case BLOCK_SHB:
		return BLOCK_MIN + 16;
	case BLOCK_IDB:
		return BLOCK_MIN + 8;
	case BLOCK_EPB:
	case BLOCK_PB:
		return BLOCK_MIN + 20;
	case BLOCK_SPB:
		return BLOCK_MIN + 4;
	default:
		return BLOCK_MIN;
	}
}

/* ---- Where a block is ---- */

/* A section header's type reads the same in both orders: its magic tells which one it is. */
static bool set_order(struct weir_reader *reader, const struct weir_reader_call *call)
{
	reader->swapped = weir_reader_u32(call->at + 8, false) != SHB_MAGIC;
	return weir_reader_u32(call->at + 8, reader->swapped) == SHB_MAGIC;
}

static void warn_length(struct weir_reader *reader, const struct weir_reader_call *call,
			uint32_t length)
{
	if (!reader->ng.warned_length)
		weir_reader_warn(reader, call, "a block of %u bytes, which is no multiple of 4",
				 length);
	reader->ng.warned_length = true;
}

static enum weir_reader_status peek_block(struct weir_reader *reader, struct weir_reader_call *call,
					  struct block *ret)
{
	if (call->end - call->at < BLOCK_MIN)
		return weir_reader_more(call, BLOCK_MIN);
	ret->type = weir_reader_u32(call->at, reader->swapped);
	if (ret->type == BLOCK_SHB && !set_order(reader, call))
		return weir_reader_fail(reader, call, "a section of no known byte order");
	ret->length = weir_reader_u32(call->at + 4, reader->swapped);
	ret->size = ((size_t)ret->length + 3) & ~(size_t)3;
	if (ret->size < least_size(ret->type) || (ret->size > BLOCK_MAX && is_needed(ret->type)))
		return weir_reader_fail(reader, call, "a block of type %u claims to have %u bytes",
					ret->type, ret->length);
	return WEIR_READER_OK;
}

/* After peek_block(): that all of it is there, and ends as it began. */
static enum weir_reader_status hold_block(struct weir_reader *reader, struct weir_reader_call *call,
					  struct block *block)
{
	if ((size_t)(call->end - call->at) < block->size)
		return weir_reader_more(call, block->size);
	block->body = call->at + 8;
	block->end = call->at + block->size - 4;
	uint32_t length = weir_reader_u32(block->end, reader->swapped);
	if (length != block->length)
		return weir_reader_fail(reader, call,
					"a block claims to have %u bytes at its start and %u at "
					"its end",
					block->length, length);
	if (length % 4 != 0)
		warn_length(reader, call, length);
	return WEIR_READER_OK;
}

/* ---- Headers ---- */

static enum weir_reader_status
take_section(struct weir_reader *reader, struct weir_reader_call *call, const struct block *block)
{
	unsigned major = weir_reader_u16(block->body + 4, reader->swapped);
	unsigned minor = weir_reader_u16(block->body + 6, reader->swapped);
	if (major != 1)
		return weir_reader_fail(reader, call, "pcapng version %u.%u; 1.x can be read",
					major, minor);
	reader->ng.n = 0;
	reader->is_open = true;
	reader->totals.header_bytes += block->size;
	return WEIR_READER_OK;
}

static enum weir_reader_status
take_interface(struct weir_reader *reader, struct weir_reader_call *call, const struct block *block)
{
	if (!weir_pcapng_add_interface(reader, call, block->body, block->end))
		return weir_reader_fail(reader, call, "more than %u interfaces in a section",
					UINT16_MAX);
	reader->totals.header_bytes += block->size;
	return WEIR_READER_OK;
}

/* ---- Packets ---- */

static struct record read_enhanced(const uint8_t *body, bool swapped)
{
	return (struct record){
		.iface = weir_reader_u32(body, swapped),
		.ticks = (uint64_t)weir_reader_u32(body + 4, swapped) << 32 |
			 weir_reader_u32(body + 8, swapped),
		.caplen = weir_reader_u32(body + 12, swapped),
		.wirelen = weir_reader_u32(body + 16, swapped),
		.data = body + 20,
		.timed = true,
	};
}

/* The obsolete block: as the enhanced one, but for a short interface id and a number of drops. */
static struct record read_obsolete(const uint8_t *body, bool swapped)
{
	struct record record = read_enhanced(body, swapped);
	uint16_t drops = weir_reader_u16(body + 2, swapped);
	record.iface = weir_reader_u16(body, swapped);
	record.dropped = drops == DROPS_UNKNOWN ? 0 : drops;
	return record;
}

/* It belongs to the first interface, has no time, and is cut at that interface's snaplen. */
static struct record read_simple(const struct weir_reader *reader, const uint8_t *body)
{
	uint32_t wirelen = weir_reader_u32(body, reader->swapped);
	uint32_t snaplen = reader->ng.n > 0 ? reader->ng.clocks[0].snaplen : 0;
	return (struct record){
		.caplen = snaplen != 0 && wirelen > snaplen ? snaplen : wirelen,
		.wirelen = wirelen,
		.data = body + 4,
	};
}

static struct record read_record(const struct weir_reader *reader, const struct block *block)
{
	if (block->type == BLOCK_EPB)
		return read_enhanced(block->body, reader->swapped);
	if (block->type == BLOCK_PB)
		return read_obsolete(block->body, reader->swapped);
	return read_simple(reader, block->body);
}

static void read_option(const struct weir_reader *reader, const struct weir_pcapng_option *option,
			struct weir_packet *packet)
{
	if (option->code == EPB_FLAGS && option->len == 4) {
		uint32_t direction = weir_reader_u32(option->value, reader->swapped) & 3;
		packet->flags |= direction == 1 ? WEIR_F_IN : direction == 2 ? WEIR_F_OUT : 0;
	} else if (option->code == EPB_DROPCOUNT && option->len == 8) {
		uint64_t drops = weir_reader_u64(option->value, reader->swapped);
		packet->dropped = drops < UINT32_MAX ? (uint32_t)drops : UINT32_MAX;
	} else if (option->code == EPB_QUEUE && option->len == 4) {
		uint32_t queue = weir_reader_u32(option->value, reader->swapped);
		packet->queue = queue < UINT16_MAX ? (uint16_t)queue : UINT16_MAX;
	}
}

static void read_options(const struct weir_reader *reader, const struct block *block,
			 struct weir_packet *packet)
{
	size_t padded = ((size_t)packet->caplen + 3) & ~(size_t)3;
	if (block->type == BLOCK_SPB || (size_t)(block->end - packet->data) < padded)
		return;
	const uint8_t *at = packet->data + padded;
	struct weir_pcapng_option option;
	while (weir_pcapng_next_option(reader, &at, block->end, &option))
		read_option(reader, &option, packet);
}

static enum weir_reader_status take_packet(struct weir_reader *reader,
					   struct weir_reader_call *call, const struct block *block)
{
	struct record record = read_record(reader, block);
	if (record.iface >= reader->ng.n)
		return weir_reader_fail(reader, call,
					"a packet of interface %u, where %u are described",
					record.iface, reader->ng.n);
	if (record.caplen > WEIR_MAX_CAPLEN || record.caplen > block->end - record.data)
		return weir_reader_fail(reader, call,
					"a packet claims %u captured bytes in a block of %u",
					record.caplen, block->length);
	const struct weir_reader_clock *clock = &reader->ng.clocks[record.iface];
	if (clock->refused) {
		reader->totals.skipped_bytes += block->size;
		reader->totals.skipped_packets++;
		return WEIR_READER_OK;
	}
	struct weir_packet *packet = &call->packets[call->n++];
	*packet = (struct weir_packet){
		.data = record.data,
		.ts_ns = record.timed ? weir_pcapng_time(reader, call, clock, record.ticks) : 0,
		.caplen = record.caplen,
		.wirelen = record.wirelen < record.caplen ? record.caplen : record.wirelen,
		.dropped = record.dropped,
		.iface = clock->iface,
		.queue = UINT16_MAX,
	};
	read_options(reader, block, packet);
	reader->totals.record_bytes += block->size;
	return WEIR_READER_OK;
}

/* ---- The stream ---- */

static enum weir_reader_status take_block(struct weir_reader *reader, struct weir_reader_call *call,
					  const struct block *block)
{
	if (is_packet(block->type))
		return take_packet(reader, call, block);
	if (block->type == BLOCK_SHB)
		return take_section(reader, call, block);
	if (block->type == BLOCK_IDB)
		return take_interface(reader, call, block);
	reader->totals.skipped_bytes += block->size;
	return WEIR_READER_OK;
}

static void pass_over(struct weir_reader *reader, struct weir_reader_call *call)
{
	uint64_t left = (uint64_t)(call->end - call->at);
	uint64_t bytes = left < reader->ng.pass_over ? left : reader->ng.pass_over;
	reader->ng.pass_over -= bytes;
	reader->totals.skipped_bytes += bytes;
	call->at += bytes;
}

enum weir_reader_status weir_pcapng_read(struct weir_reader *reader, struct weir_reader_call *call)
{
	pass_over(reader, call);
	while (call->at < call->end) {
		struct block block = {0};
		enum weir_reader_status status = peek_block(reader, call, &block);
		if (status != WEIR_READER_OK)
			return status;
		if (is_packet(block.type) && call->n == call->max)
			return WEIR_READER_OK;
		if (block.size > HELD_MAX && !is_needed(block.type)) {
			reader->ng.pass_over = block.size;
			pass_over(reader, call);
			continue;
		}
		status = hold_block(reader, call, &block);
		if (status == WEIR_READER_OK)
			status = take_block(reader, call, &block);
		if (status != WEIR_READER_OK)
			return status;
		call->at += block.size;
	}
	return WEIR_READER_OK;
}
