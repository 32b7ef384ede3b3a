/*
 * chunks.c: settles packets by the bytes that are known to have been read.
 */
#include "chunks.h"

static void settle(struct outlet *outlet, struct chunk *chunk, struct sum upto,
		   enum outcome outcome)
{
	if (upto.packets <= chunk->settled.packets)
		return;
	weir_settle(outlet->self, outcome, upto.packets - chunk->settled.packets,
		    upto.bytes - chunk->settled.bytes);
	chunk->settled = upto;
}

/* The packets that are whole in the first bytes of a chunk. */
static struct sum whole_in(const struct outlet *outlet, const struct chunk *chunk, size_t bytes)
{
	struct weir_extent extent = {0};

	weir_capfile_walk(chunk->bytes, chunk->header_len, bytes, outlet->pcapng, &extent);
	return (struct sum){extent.packets, extent.packet_bytes};
}

/* How much of a chunk has been read. */
static size_t read_of(const struct outlet *outlet, const struct chunk *chunk, uint64_t unread)
{
	uint64_t read = outlet->written - unread;

	if (chunk->done == 0 || read <= chunk->start)
		return 0;
	return read - chunk->start < chunk->done ? (size_t)(read - chunk->start) : chunk->done;
}

struct chunk *chunks_next(struct outlet *outlet, size_t *ret_ready)
{
	struct chunk *chunk;

	pthread_mutex_lock(&outlet->lock);
	for (chunk = outlet->oldest; chunk; chunk = chunk->next)
		if (outlet_is_current(outlet, chunk) && chunk->done < chunk->ready)
			break;
	*ret_ready = chunk ? chunk->ready : 0;
	pthread_mutex_unlock(&outlet->lock);
	return chunk;
}

/* With the lock held; `at` is the link that leads to it. */
static void give_back(struct outlet *outlet, struct chunk **at)
{
	struct chunk *chunk = *at;

	*at = chunk->next;
	if (!*at)
		outlet->newest_end = at;
	chunk->listed = false;
	chunk->next = outlet->free;
	outlet->free = chunk;
}

/* Takes out of the list what is closed and settled. */
static void give_back_all(struct outlet *outlet)
{
	bool any = false;

	pthread_mutex_lock(&outlet->lock);
	for (struct chunk **at = &outlet->oldest; *at;) {
		if ((*at)->closed && (*at)->settled.packets == (*at)->ready_sum.packets &&
		    (!outlet_is_current(outlet, *at) || (*at)->done == (*at)->ready)) {
			give_back(outlet, at);
			any = true;
		} else {
			at = &(*at)->next;
		}
	}
	pthread_mutex_unlock(&outlet->lock);
	if (any)
		weir_notify(outlet->self);
}

/* A chunk as it is now: the lane goes on filling it. */
static struct chunk *look(struct outlet *outlet, struct chunk *chunk, size_t *ret_ready,
			  struct sum *ret_sum)
{
	pthread_mutex_lock(&outlet->lock);
	chunk = chunk ? chunk->next : outlet->oldest;
	if (chunk) {
		*ret_ready = chunk->ready;
		*ret_sum = chunk->ready_sum;
	}
	pthread_mutex_unlock(&outlet->lock);
	return chunk;
}

void chunks_settle_read(struct outlet *outlet, uint64_t unread)
{
	struct chunk *chunk = NULL;
	struct sum sum;
	size_t ready;

	while ((chunk = look(outlet, chunk, &ready, &sum))) {
		if (!outlet_is_current(outlet, chunk))
			settle(outlet, chunk, sum, READER_GONE);
		else if (read_of(outlet, chunk, unread) == ready)
			settle(outlet, chunk, sum, WRITTEN);
	}
	give_back_all(outlet);
}

void chunks_cut(struct outlet *outlet, enum outcome outcome)
{
	struct chunk *chunk = NULL;
	struct sum sum, whole;
	size_t ready;

	while ((chunk = look(outlet, chunk, &ready, &sum))) {
		if (!outlet_is_current(outlet, chunk) || chunk->done >= ready)
			continue;
		whole = whole_in(outlet, chunk, chunk->done);
		weir_settle(outlet->self, outcome, sum.packets - whole.packets,
			    sum.bytes - whole.bytes);
		pthread_mutex_lock(&outlet->lock);
		chunk->ready = chunk->done;
		chunk->ready_sum = whole;
		pthread_mutex_unlock(&outlet->lock);
	}
}

void chunks_bury(struct outlet *outlet, uint64_t unread)
{
	struct chunk *chunk = NULL;
	struct sum sum;
	size_t ready;

	while ((chunk = look(outlet, chunk, &ready, &sum))) {
		if (!outlet_is_current(outlet, chunk))
			continue;
		settle(outlet, chunk, whole_in(outlet, chunk, read_of(outlet, chunk, unread)),
		       WRITTEN);
		settle(outlet, chunk, sum, READER_GONE);
	}
	__atomic_fetch_add(&outlet->generation, 1, __ATOMIC_RELAXED);
	outlet->written = 0;
	give_back_all(outlet);
}
