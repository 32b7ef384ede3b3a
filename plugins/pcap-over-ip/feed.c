/*
 * feed.c: see feed.h.
 */
#include "feed.h"

#include "server.h"

#include <stdlib.h>

#define CHUNK_BYTES (256u << 10)
#define SPARE_MAX   32u

void feed_init(struct feed *feed, struct weir_self *lane, struct server *server, uint64_t inbox_max)
{
	feed->self = lane;
	feed->server = server;
	feed->index = lane->lane_index;
	feed->inbox_max = inbox_max;
	feed->newest_end = &feed->oldest;
	feed->listener = (struct watched){WATCHED_LISTENER, -1};
	pthread_mutex_init(&feed->lock, NULL);
}

void feed_clear(struct feed *feed)
{
	struct chunk *chunk;

	while ((chunk = feed_first(feed))) {
		feed_take(feed);
		feed_give_back(chunk, NO_CLIENT);
	}
	free(feed->chunk);
	feed->chunk = NULL;
	while ((chunk = feed->spare)) {
		feed->spare = chunk->next;
		free(chunk);
	}
}

/* ---- The lane ---- */

void feed_begin(struct feed *feed, uint32_t linktype)
{
	feed->has_begun = true;
	__atomic_store_n(&feed->linktype_known, linktype + 1, __ATOMIC_RELEASE);
	server_wake(feed->server);
}

static bool inbox_is_full(struct feed *feed)
{
	pthread_mutex_lock(&feed->lock);
	bool is_full = feed->inbox_bytes >= feed->inbox_max;
	pthread_mutex_unlock(&feed->lock);
	return is_full;
}

static struct chunk *take_spare(struct feed *feed)
{
	pthread_mutex_lock(&feed->lock);
	struct chunk *chunk = feed->spare;
	if (chunk) {
		feed->spare = chunk->next;
		feed->n_spare--;
	}
	pthread_mutex_unlock(&feed->lock);
	return chunk;
}

static struct chunk *chunk_new(struct feed *feed, size_t need)
{
	size_t room = need > CHUNK_BYTES ? need : CHUNK_BYTES;
	struct chunk *chunk = room == CHUNK_BYTES ? take_spare(feed) : NULL;

	if (!chunk)
		chunk = malloc(sizeof(*chunk) + room);
	if (chunk)
		*chunk = (struct chunk){.feed = feed, .room = room};
	return chunk;
}

struct chunk *feed_reserve(struct feed *feed, size_t need)
{
	if (feed->chunk && feed->chunk->room - feed->chunk->len < need)
		feed_publish(feed);
	if (!feed->chunk && !inbox_is_full(feed))
		feed->chunk = chunk_new(feed, need);
	return feed->chunk;
}

void feed_publish(struct feed *feed)
{
	struct chunk *chunk = feed->chunk;

	if (!chunk || chunk->sum.packets == 0)
		return;
	/* Of a slow stream a client's buffer shall hold packets, not air. */
	struct chunk *shrunk = chunk->len < chunk->room / 2
				       ? realloc(chunk, sizeof(*chunk) + chunk->len)
				       : NULL;
	if (shrunk) {
		chunk = shrunk;
		chunk->room = chunk->len;
	}
	feed->chunk = NULL;
	__atomic_add_fetch(&feed->outstanding, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&feed->lock);
	*feed->newest_end = chunk;
	feed->newest_end = &chunk->next;
	feed->inbox_bytes += chunk->len;
	pthread_mutex_unlock(&feed->lock);
	server_wake(feed->server);
}

/* ---- The server ---- */

struct chunk *feed_first(struct feed *feed)
{
	pthread_mutex_lock(&feed->lock);
	struct chunk *chunk = feed->oldest;
	pthread_mutex_unlock(&feed->lock);
	return chunk;
}

void feed_take(struct feed *feed)
{
	pthread_mutex_lock(&feed->lock);
	struct chunk *chunk = feed->oldest;
	feed->oldest = chunk->next;
	if (!feed->oldest)
		feed->newest_end = &feed->oldest;
	feed->inbox_bytes -= chunk->len;
	pthread_mutex_unlock(&feed->lock);
	weir_notify(feed->self);
}

static void chunk_free(struct feed *feed, struct chunk *chunk)
{
	pthread_mutex_lock(&feed->lock);
	bool is_kept = chunk->room == CHUNK_BYTES && feed->n_spare < SPARE_MAX;
	if (is_kept) {
		chunk->next = feed->spare;
		feed->spare = chunk;
		feed->n_spare++;
	}
	pthread_mutex_unlock(&feed->lock);
	if (!is_kept)
		free(chunk);
}

void feed_give_back(struct chunk *chunk, enum outcome rest)
{
	struct feed *feed = chunk->feed;

	if (chunk->delivered > 0)
		weir_settle(feed->self, SENT, chunk->delivered, chunk->delivered_bytes);
	if (chunk->sum.packets > chunk->delivered)
		weir_settle(feed->self, rest, chunk->sum.packets - chunk->delivered,
			    chunk->sum.packet_bytes - chunk->delivered_bytes);
	chunk_free(feed, chunk);
	__atomic_sub_fetch(&feed->outstanding, 1, __ATOMIC_RELEASE);
	weir_notify(feed->self);
}
