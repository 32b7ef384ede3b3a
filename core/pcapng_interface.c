/*
 * pcapng_interface.c: interface blocks of pcapng, and the clocks that they describe.
 */
#include "capfile_read.h"

#include <glib.h>

#define NS_PER_S       1000000000
#define INTERFACES_MAX UINT16_MAX
#define IDB_FIXED      8u
#define DECIMAL_MAX    18u /* 10^-18 s and 2^-63 s are the finest that 64 bits can count in */
#define BINARY_MAX     63u
#define BINARY         0x80u
#define BEYOND_INT64_S 9223372036 /* seconds from 1970 to 2262, where 64 bits of ns end */

enum { IF_NAME = 2, IF_DESCRIPTION = 3, IF_TSRESOL = 9, IF_TSOFFSET = 14 };

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

bool weir_pcapng_next_option(const struct weir_reader *reader, const uint8_t **at,
			     const uint8_t *end, struct weir_pcapng_option *ret)
{
	if (end - *at < 4)
		return false;
	ret->code = weir_reader_u16(*at, reader->swapped);
	ret->len = weir_reader_u16(*at + 2, reader->swapped);
	ret->value = *at + 4;
	if (ret->code == 0 || ret->len > end - ret->value)
		return false;
	size_t padded = (ret->len + 3u) & ~3u;
	*at = (size_t)(end - ret->value) < padded ? end : ret->value + padded;
	return true;
}

static uint64_t power(uint64_t base, unsigned exponent)
{
	uint64_t result = 1;
	while (exponent-- > 0)
		result *= base;
	return result;
}

/* False: finer than can be counted. */
static bool set_resolution(struct weir_reader_clock *clock, uint8_t code)
{
	unsigned exponent = code & (BINARY - 1);
	if (exponent > (code & BINARY ? BINARY_MAX : DECIMAL_MAX))
		return false;
	clock->ticks_per_s = power(code & BINARY ? 2 : 10, exponent);
	clock->ns_per_tick = NS_PER_S % clock->ticks_per_s == 0 ? NS_PER_S / clock->ticks_per_s : 0;
	return true;
}

static void set_direct(struct weir_reader_clock *clock)
{
	if (clock->ns_per_tick != 0 && clock->offset_s == 0)
		clock->direct_ticks = INT64_MAX / clock->ns_per_tick + 1;
}

struct description {
	char *name, *description;
	uint8_t resolution;
};

static void read_options(struct weir_reader *reader, const uint8_t *at, const uint8_t *end,
			 struct description *ret, struct weir_reader_clock *clock)
{
	struct weir_pcapng_option option;
	while (weir_pcapng_next_option(reader, &at, end, &option)) {
		if (option.code == IF_NAME && !ret->name)
			ret->name = g_strndup((const char *)option.value, option.len);
		else if (option.code == IF_DESCRIPTION && !ret->description)
			ret->description = g_strndup((const char *)option.value, option.len);
		else if (option.code == IF_TSRESOL && option.len == 1)
			ret->resolution = option.value[0];
		else if (option.code == IF_TSOFFSET && option.len == 8)
			clock->offset_s = (int64_t)weir_reader_u64(option.value, reader->swapped);
	}
}

/* Room for one more, or NULL. */
static struct weir_reader_clock *append(struct weir_reader *reader)
{
	if (reader->ng.n == INTERFACES_MAX)
		return NULL;
	if (reader->ng.n == reader->ng.room) {
		reader->ng.room = reader->ng.room ? 2 * reader->ng.room : 4;
		reader->ng.clocks = g_renew(struct weir_reader_clock, reader->ng.clocks,
					    reader->ng.room);
	}
	struct weir_reader_clock *clock = &reader->ng.clocks[reader->ng.n++];
	*clock = (struct weir_reader_clock){0};
	return clock;
}

bool weir_pcapng_add_interface(struct weir_reader *reader, const struct weir_reader_call *call,
			       const uint8_t *body, const uint8_t *end)
{
	struct weir_reader_clock *clock = append(reader);
	if (!clock)
		return false;
	struct description text = {.resolution = 6};
	uint32_t linktype = weir_reader_u16(body, reader->swapped);
	clock->snaplen = weir_reader_u32(body + 4, reader->swapped);
	read_options(reader, body + IDB_FIXED, end, &text, clock);
	if (set_resolution(clock, text.resolution)) {
		set_direct(clock);
		clock->iface = weir_reader_declare(reader, text.name, text.description, linktype,
						   clock->snaplen);
		clock->refused = clock->iface == UINT16_MAX;
	} else {
		clock->refused = true;
		weir_reader_warn(reader, call,
				 "interface %u counts time in %s^-%u seconds, which is finer than "
				 "can be read: its packets are skipped",
				 reader->ng.n - 1, text.resolution & BINARY ? "2" : "10",
				 text.resolution & (BINARY - 1));
	}
	g_free(text.name);
	g_free(text.description);
	return true;
}

int64_t weir_pcapng_time(struct weir_reader *reader, const struct weir_reader_call *call,
			 const struct weir_reader_clock *clock, uint64_t ticks)
{
	if (ticks < clock->direct_ticks)
		return (int64_t)(ticks * clock->ns_per_tick);
	uint64_t rest = ticks % clock->ticks_per_s;
	int64_t fraction_ns = (int64_t)((uint128)rest * NS_PER_S / clock->ticks_per_s);
	int128 s = (int128)(ticks / clock->ticks_per_s) + clock->offset_s;
	if (s >= BEYOND_INT64_S || s < -BEYOND_INT64_S) {
		/* As others do that write such files as pcap: at least the distances stay right. */
		if (!reader->ng.warned_time)
			weir_reader_warn(reader, call,
					 "a time beyond the year 2262, taken modulo 2^32 seconds");
		reader->ng.warned_time = true;
		s = (uint32_t)s;
	}
	return (int64_t)s * NS_PER_S + fraction_ns;
}
