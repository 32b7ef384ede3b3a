/*
 * ring.c: see ring.h.
 */
#include "ring.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 8u
#define WRAP  UINT32_MAX /* in place of a length: the next frame is at the start of the memory */

static uint64_t record_size(uint32_t len)
{
	return ((uint64_t)sizeof(len) + len + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static uint8_t *at(const struct ring *ring, uint64_t position)
{
	return ring->bytes + (position & (ring->size - 1));
}

static void put_len(const struct ring *ring, uint64_t position, uint32_t len)
{
	memcpy(at(ring, position), &len, sizeof(len));
}

static uint32_t get_len(const struct ring *ring, uint64_t position)
{
	uint32_t len;

	memcpy(&len, at(ring, position), sizeof(len));
	return len;
}

static uint64_t to_start(const struct ring *ring, uint64_t position)
{
	return ring->size - (position & (ring->size - 1));
}

bool ring_new(struct ring *ring, uint64_t size)
{
	while (size & (size - 1))
		size &= size - 1;
	*ring = (struct ring){.bytes = malloc(size), .size = size};
	return ring->bytes != NULL;
}

void ring_free(struct ring *ring)
{
	free(ring->bytes);
	ring->bytes = NULL;
}

uint8_t *ring_reserve(struct ring *ring, uint32_t len)
{
	uint64_t need = record_size(len), left = to_start(ring, ring->reserved);
	uint64_t skip = left < need ? left : 0;
	uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);

	if (ring->reserved + skip + need - tail > ring->size)
		return NULL;
	if (skip)
		put_len(ring, ring->reserved, WRAP);
	ring->reserved += skip;
	put_len(ring, ring->reserved, len);
	uint8_t *frame = at(ring, ring->reserved) + sizeof(len);
	ring->reserved += need;
	return frame;
}

void ring_publish(struct ring *ring)
{
	__atomic_store_n(&ring->published, ring->reserved, __ATOMIC_RELEASE);
}

unsigned ring_peek(const struct ring *ring, struct ring_frame *frames, unsigned max)
{
	uint64_t end = __atomic_load_n(&ring->published, __ATOMIC_ACQUIRE);
	uint64_t position = ring->tail;
	unsigned n = 0;

	while (n < max && position < end) {
		uint32_t len = get_len(ring, position);
		if (len == WRAP) {
			position += to_start(ring, position);
			continue;
		}
		frames[n].bytes = at(ring, position) + sizeof(len);
		frames[n].len = len;
		position += record_size(len);
		frames[n++].end = position;
	}
	return n;
}

void ring_release(struct ring *ring, const struct ring_frame *last)
{
	__atomic_store_n(&ring->tail, last->end, __ATOMIC_RELEASE);
}

bool ring_is_empty(const struct ring *ring)
{
	return __atomic_load_n(&ring->published, __ATOMIC_ACQUIRE) ==
	       __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
}
