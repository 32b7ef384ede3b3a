/*
 * body.h: the memory of message bodies, each a complete pcapng file.
 *
 * A packet is copied once, into the memory that libzmq sends from.  Bodies are used again, since
 * fresh pages would cost as much as the copy.
 */
#ifndef ZMQ_BODY_H
#define ZMQ_BODY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct topic;
struct body_pool;

struct body {
	struct body *next; /* in the pool, or in the sender's queue */
	struct body_pool *pool;
	struct topic *topic;
	atomic_bool announced; /* a header with its packets has been sent; whoever releases it sees
				  what was done before, as libzmq sees to itself, but out of sight
				  of sanitizers */
	uint32_t packets;
	uint64_t captured_bytes;
	size_t len;
	uint8_t bytes[];
};

struct body_pool {
	pthread_mutex_t lock;
	struct body *free;
	unsigned n_free;
	size_t capacity; /* of bytes[] */
};

void body_pool_init(struct body_pool *pool, size_t capacity);
void body_pool_clear(struct body_pool *pool); /* all bodies are back */

/* An empty body, of whichever content; NULL: out of memory. Any thread. */
struct body *body_new(struct body_pool *pool);
void body_free(struct body *body); /* any thread */

#endif
