/*
 * weir/stream.h: the header of the messages that the zmq sink sends, and what a subscriber has
 * lost.
 *
 * A message has three frames: the topic "<name>/<lane, two digits>/", this header, and a body that
 * is a complete little-endian pcapng file of its own.  docs/stream.md is the prose.  No libraries,
 * no state; any thread.
 */
#ifndef WEIR_STREAM_H
#define WEIR_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_STREAM_MAGIC   "WEIR"
#define WEIR_STREAM_VERSION 1u
#define WEIR_STREAM_HEADER  56u /* what this version writes, and the least that a reader accepts */

/* Larger numbers of messages and packets are no stream's: the smallest frames at 100 Gbit/s take
 * two years to get there, and readers whose numbers are doubles hold these exactly. */
#define WEIR_STREAM_NUMBER_MAX (UINT64_C(1) << 53)

enum {
	WEIR_STREAM_END = 1,       /* the last message of its publisher on this topic */
	WEIR_STREAM_HEARTBEAT = 2, /* no packets: nothing came for a second */
	WEIR_STREAM_PUSHED = 4,    /* each message goes to one worker: gaps are shares of others */
};

/* As it stands in the message, where all numbers are little-endian. */
struct weir_stream_header {
	char magic[4];
	uint16_t version;
	uint16_t length;    /* of the header: readers skip what they do not know */
	uint64_t publisher; /* random, per sink and start */
	uint64_t number;    /* of the message on this topic, from 0 */
	uint64_t before;    /* packets sent on this topic before this message */
	uint32_t count;     /* packets in it */
	uint32_t flags;  /* WEIR_STREAM_*; those that a reader does not know mean nothing to it */
	uint64_t unsent; /* packets that the sink had for the topic and could not send */
	int64_t sent_ns; /* time of sending, since the Unix epoch */
};

#ifndef __cplusplus
_Static_assert(sizeof(struct weir_stream_header) == WEIR_STREAM_HEADER, "no padding");
_Static_assert(offsetof(struct weir_stream_header, publisher) == 8, "layout");
_Static_assert(offsetof(struct weir_stream_header, count) == 32, "layout");
_Static_assert(offsetof(struct weir_stream_header, unsent) == 40, "layout");
_Static_assert(offsetof(struct weir_stream_header, sent_ns) == 48, "layout");
#endif

static inline void weir_stream_put(uint8_t *to, uint64_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

static inline uint64_t weir_stream_get(const uint8_t *from, unsigned size)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)from[i] << 8 * i;
	return value;
}

/* Stores the WEIR_STREAM_HEADER bytes of the second frame; magic, version and length are not read.
 */
static inline void weir_stream_encode(uint8_t *to, const struct weir_stream_header *header)
{
	memcpy(to, WEIR_STREAM_MAGIC, 4);
	weir_stream_put(to + 4, WEIR_STREAM_VERSION, 2);
	weir_stream_put(to + 6, WEIR_STREAM_HEADER, 2);
	weir_stream_put(to + 8, header->publisher, 8);
	weir_stream_put(to + 16, header->number, 8);
	weir_stream_put(to + 24, header->before, 8);
	weir_stream_put(to + 32, header->count, 4);
	weir_stream_put(to + 36, header->flags, 4);
	weir_stream_put(to + 40, header->unsent, 8);
	weir_stream_put(to + 48, (uint64_t)header->sent_ns, 8);
}

/* Reads a second frame of `len` foreign bytes.  NULL, or what is wrong with it, and nothing stored.
 */
static inline const char *weir_stream_decode(const uint8_t *from, size_t len,
					     struct weir_stream_header *ret)
{
	if (len < WEIR_STREAM_HEADER)
		return "the header is shorter than 56 bytes";
	if (memcmp(from, WEIR_STREAM_MAGIC, 4) != 0)
		return "the header does not begin with WEIR";
	if (weir_stream_get(from + 4, 2) != WEIR_STREAM_VERSION)
		return "the header is of another version than 1";
	if (weir_stream_get(from + 6, 2) < WEIR_STREAM_HEADER || weir_stream_get(from + 6, 2) > len)
		return "the header's length is not that of its frame";
	memcpy(ret->magic, from, 4);
	ret->version = (uint16_t)weir_stream_get(from + 4, 2);
	ret->length = (uint16_t)weir_stream_get(from + 6, 2);
	ret->publisher = weir_stream_get(from + 8, 8);
	ret->number = weir_stream_get(from + 16, 8);
	ret->before = weir_stream_get(from + 24, 8);
	ret->count = (uint32_t)weir_stream_get(from + 32, 4);
	ret->flags = (uint32_t)weir_stream_get(from + 36, 4);
	ret->unsent = weir_stream_get(from + 40, 8);
	ret->sent_ns = (int64_t)weir_stream_get(from + 48, 8);
	return NULL;
}

/* Where a subscriber stands on one topic of one publisher; all zero before its first message. */
struct weir_stream_position {
	uint64_t number, before; /* that the next message has if nothing is lost */
	uint64_t unsent;
	bool joined, ended;
};

/* What happened between the last message and this one. */
struct weir_stream_gap {
	uint64_t missed; /* packets before the first message that this subscriber saw */
	uint64_t others; /* packets that were pushed to other workers */
	uint64_t lost;   /* packets that were sent and did not arrive */
	uint64_t unsent; /* packets that the publisher could not send */
};

/*
 * Steps over a message.  NULL, or why its numbers cannot follow those before, and then the position
 * stays as it was.
 */
static inline const char *weir_stream_follow(struct weir_stream_position *position,
					     const struct weir_stream_header *header,
					     struct weir_stream_gap *ret)
{
	struct weir_stream_gap gap = {0, 0, 0, 0};

	if (header->number > WEIR_STREAM_NUMBER_MAX || header->before > WEIR_STREAM_NUMBER_MAX ||
	    header->unsent > WEIR_STREAM_NUMBER_MAX)
		return "the header's numbers are beyond all bounds";
	if (position->joined &&
	    (header->number < position->number || header->before < position->before ||
	     header->unsent < position->unsent))
		return "the header's numbers go backwards";
	if (position->joined) {
		gap.lost = header->before - position->before;
		gap.unsent = header->unsent - position->unsent;
	} else {
		gap.missed = header->before;
	}
	if (header->flags & WEIR_STREAM_PUSHED) {
		gap.others = gap.lost + gap.missed;
		gap.lost = gap.missed = 0;
	}
	position->number = header->number + 1;
	position->before = header->before + header->count;
	position->unsent = header->unsent;
	position->joined = true;
	position->ended = (header->flags & WEIR_STREAM_END) != 0;
	*ret = gap;
	return NULL;
}

#ifdef __cplusplus
}
#endif
#endif
