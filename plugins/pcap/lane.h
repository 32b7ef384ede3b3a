/*
 * lane.h: what a lane of the pcap sink does: encodes packets into blocks, and decides where one
 * file ends and the next one starts.
 */
#ifndef PCAP_LANE_H
#define PCAP_LANE_H

#include "writer.h"

struct lane;

struct node {
	struct site site;
	struct writer writer;
	struct lane *lanes; /* a list of those that are open */
	int64_t start_ns;   /* clock */
	int64_t first_ns;   /* stream time at which stop-time begins; INT64_MAX: not yet; atomic */
	uint64_t bytes, packets; /* of all lanes, where stop-* limits them; atomic */
	int stopped;             /* atomic */
};

/* What a lane knows of an interface. */
struct known {
	uint32_t serial;         /* of the file that has its block; 0: none */
	uint32_t index;          /* of its block there */
	uint64_t taken, refused; /* packets, in all files */
};

struct lane {
	struct lane *next;
	struct weir_self *self;
	const struct config *config;
	struct node *node;
	struct pool pool;
	struct namer namer; /* the writer's */
	uint8_t *scratch;   /* one unit that does not fit into its block */

	struct block *block; /* being filled; NULL: none */
	struct block *spare; /* taken in advance */
	uint64_t block_at;   /* in the file's stream */
	uint32_t fill, sent; /* bytes of the block; of these, submitted */
	uint32_t spill; /* bytes at its start of a unit that starts before it, or of the header */
	size_t room;    /* a record of that length needs no decision */
	struct weir_extent sum;                /* of what has ended since the last stretch */
	struct header *headers, **headers_end; /* started since then */
	int64_t unsent_since_ns; /* CLOCK_MONOTONIC, as of a tick; 0: nothing is unsent */

	struct file *file; /* NULL: none is open */
	uint32_t serial;   /* of the file, from 1 */
	uint32_t n_ifaces; /* in it */
	uint64_t packets_left;
	int64_t rotate_at_ns;     /* stream time */
	int64_t stop_at_ns;       /* the same */
	int64_t look_at_ns;       /* the earlier of both */
	int64_t statistics_at_ns; /* stream time */
	int64_t began_ns;         /* stream time of the first file */
	int64_t last_ns;          /* of the last packet */
	int64_t reached_ns;       /* stream time of the last tick */
	uint32_t linktype;        /* of all classic files of this lane */
	uint64_t keys_at;         /* how much of tls-keys is in the file */
	size_t keys_kept;         /* bytes of these that would be written again behind a gap */
	struct known *known;      /* by interface id */
	unsigned n_known;
};

bool lane_init(struct lane *lane, struct weir_self *self);
void lane_clear(struct lane *lane);
void lane_judge(struct lane *lane, struct weir_packet *packets, unsigned n);
void lane_tick(struct lane *lane, const struct weir_now *now, unsigned why);
/* Main thread, when all sources have their last figures: finishes what is still open. */
void lane_end(struct lane *lane);

#endif
