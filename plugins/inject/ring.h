/*
 * ring.h: frames on their way from a lane to the thread that sends them, in one ring of bytes.
 *
 *   tail                 published            reserved
 *    v                       v                    v
 *   [len|frame][len|frame]...[len|frame][len|frame]    positions only grow; a frame never wraps
 *    \___ the reader's ___/   \__ the writer's __/
 */
#ifndef INJECT_RING_H
#define INJECT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
	uint8_t *bytes;
	uint64_t size;            /* a power of two */
	uint64_t reserved;        /* the writer's */
	uint64_t published, tail; /* atomic */
};

struct ring_frame {
	const uint8_t *bytes;
	uint32_t len;
	uint64_t end; /* position behind it */
};

/* size is rounded down to a power of two.  false: out of memory. */
bool ring_new(struct ring *ring, uint64_t size);
void ring_free(struct ring *ring); /* takes one that is all zero */

/* The writer.  reserve: room for a frame, which the reader sees once it is published; NULL: full.
 */
uint8_t *ring_reserve(struct ring *ring, uint32_t len);
void ring_publish(struct ring *ring);

/* The reader.  peek: up to max frames, the oldest first; release: all up to one of these. */
unsigned ring_peek(const struct ring *ring, struct ring_frame *frames, unsigned max);
void ring_release(struct ring *ring, const struct ring_frame *last);

/* Either: nothing was published that has not been released. */
bool ring_is_empty(const struct ring *ring);

#endif
