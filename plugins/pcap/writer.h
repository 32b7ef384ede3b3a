/*
 * writer.h: the one thread of a node that opens, writes, renames and removes files, and the blocks
 * that lanes hand to it.
 *
 * A lane takes a block of its pool, fills it, and submits stretches of it in the order of the
 * file's stream.  It may go on filling a block behind a stretch that it has submitted.
 */
#ifndef PCAP_WRITER_H
#define PCAP_WRITER_H

#include "file.h"

#include <pthread.h>

#define BLOCK_BYTES_MAX (4u << 20)
/* Each holds more than one record of any length, so that none needs more than two. */
#define BLOCK_BYTES_MIN (512u << 10)
#define BLOCK_ALIGNMENT 4096u

struct pool;

struct block {
	struct block *next;
	struct pool *pool;
	uint8_t *bytes;
	struct stretch flush; /* while the lane goes on filling */
	struct stretch rest;  /* with which it gives the block back */
	int flushing;         /* flush is with the writer; atomic */
};

/* One lane's blocks. */
struct pool {
	struct weir_self *self;      /* of the lane */
	struct block *blocks, *free; /* free: under the writer's lock */
	unsigned n_blocks;
	uint32_t block_bytes;
	uint8_t *memory;
};

struct writer {
	struct site *site;
	pthread_mutex_t lock;
	pthread_cond_t submitted;
	struct stretch *oldest, **newest_end; /* under lock */
	bool stop;                            /* under lock */
	bool started;
	pthread_t thread;
};

/* Main thread. */
void writer_init(struct writer *writer, struct site *site);
bool writer_start(struct writer *writer);
/* Returns when everything that was submitted is on disk and settled; may be called again. */
void writer_stop(struct writer *writer);
void writer_clear(struct writer *writer);
bool pool_init(struct pool *pool, struct weir_self *self, uint64_t bytes);
void pool_clear(struct pool *pool);

/* Lanes.  take: NULL if there is none; a weir_notify() follows when there is one again. */
struct block *writer_take(struct writer *writer, struct pool *pool);
void writer_submit(struct writer *writer, struct stretch *stretch);

#endif
