/*
 * feed.h: what a lane streams: whole records in chunks, which the lane fills, the server hands to
 * its clients, and the last one of these gives back.
 *
 * Clients share chunks, so that ten clients cost one copy of each packet.
 */
#ifndef PCAP_OVER_IP_FEED_H
#define PCAP_OVER_IP_FEED_H

#include "watched.h"

#include <weir/capfile.h>

#include <pthread.h>

/* In the order of the table of outcomes. */
enum outcome { SENT, CLIENT_SLOW, CLIENT_GONE, NO_CLIENT, BUFFER_FULL, OTHER_LINKTYPE };

/* In the order of the table of counters. */
enum counter {
	TCP_BYTES,
	HEADER_BYTES,
	RECORD_BYTES,
	TORN_BYTES,
	CLIENT_SENT,
	CLIENT_LOST,
	CLIENTS,
	ACCEPTED,
	TURNED_AWAY,
	STALLED,
	IGNORED_BYTES,
};

struct chunk {
	struct chunk *next;
	struct feed *feed;
	unsigned refs;                       /* clients that are to get it; the server's */
	uint64_t delivered, delivered_bytes; /* most packets of it that one client has got whole */
	size_t len, room;
	struct weir_extent sum;
	uint8_t bytes[];
};

struct server;
struct client;

struct feed {
	struct watched listener; /* fd -1: not open */
	struct weir_self *self;  /* of the lane */
	struct server *server;
	uint32_t index;     /* of the lane */
	uint64_t inbox_max; /* bytes */

	/* The lane's. */
	struct chunk *chunk; /* being filled; NULL: none */
	bool has_begun;      /* linktype is known */
	bool has_asked;      /* whether it waits */

	/* Both's: under lock, or atomic. */
	pthread_mutex_t lock;
	struct chunk *oldest, **newest_end;
	uint64_t inbox_bytes;
	struct chunk *spare; /* memory that the kernel need not clear again: with packets of 700
				bytes an eighth of the processor time */
	unsigned n_spare;
	uint32_t linktype_known; /* atomic: 1 + link type; 0: not known yet */
	unsigned outstanding;    /* atomic: chunks that were published and not given back */
	unsigned n_clients;      /* atomic; the server changes it */
	bool waits; /* atomic: behind files nothing is lost for want of room or of a client */

	/* The server's. */
	bool was_ready;    /* the clients that were to be waited for have been there */
	int64_t paused_ns; /* CLOCK_MONOTONIC: since when, for want of descriptors, no connection is
			      taken; 0: they are */
	struct client *clients;
};

void feed_init(struct feed *feed, struct weir_self *lane, struct server *server,
	       uint64_t inbox_max);
void feed_clear(struct feed *feed); /* after the server has ended; settles what is left */

/* The lane. begin: the link type of the stream.  reserve: a chunk with room for so many bytes;
 * NULL: there is none.  publish: what has been filled so far goes to the server. */
void feed_begin(struct feed *feed, uint32_t linktype);
struct chunk *feed_reserve(struct feed *feed, size_t need);
void feed_publish(struct feed *feed);

/* The server. first: the oldest chunk that it has not taken; NULL: none. */
struct chunk *feed_first(struct feed *feed);
void feed_take(struct feed *feed); /* that one */
/* Done with: packets that nobody got have the outcome `rest`. */
void feed_give_back(struct chunk *chunk, enum outcome rest);

static inline uint32_t feed_linktype_known(const struct feed *feed)
{
	return __atomic_load_n(&feed->linktype_known, __ATOMIC_ACQUIRE);
}

static inline unsigned feed_clients(const struct feed *feed)
{
	return __atomic_load_n(&feed->n_clients, __ATOMIC_RELAXED);
}

static inline bool feed_waits(const struct feed *feed)
{
	return __atomic_load_n(&feed->waits, __ATOMIC_RELAXED);
}

static inline bool feed_is_drained(const struct feed *feed)
{
	return __atomic_load_n(&feed->outstanding, __ATOMIC_ACQUIRE) == 0;
}

#endif
