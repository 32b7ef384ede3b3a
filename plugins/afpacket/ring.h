/*
 * ring.h: one TPACKET_V3 ring: the kernel fills blocks of packets, we walk them in order and give
 * them back.
 *
 *   closed, ours                  open, the kernel's       free
 *   [block][block][block] ......  [block, filling up]      [block][block]
 *    ^ block
 *
 * A block closes when it is full or when its retire time is over.  Only stopping looks into the
 * open one.  Packets are described where they lie: whoever walks a block has it until the next
 * ring_advance().
 */
#ifndef AFPACKET_RING_H
#define AFPACKET_RING_H

#include <weir/plugin.h>

struct ring_geometry {
	uint32_t block_bytes, block_count;
	int64_t retire_ns;
};

struct ring {
	int fd;
	uint8_t *map;
	struct ring_geometry geometry;
	uint16_t iface;     /* what packets are marked with */
	int index;          /* of the interface it is bound to */
	bool foreign_clock; /* stamps may be of another clock than ours */

	uint32_t block;       /* the one being walked, or the next to close */
	uint64_t seq;         /* that it carries, if it is not stale */
	bool held;            /* it is ours and goes back when it is used up */
	uint32_t left;        /* packets in it that were not described yet */
	uint8_t *next;        /* header of the first of them */
	int64_t last_ns;      /* stamp of the last one that was described */
	uint32_t lost_before; /* packets lost just before it */
	bool drained;         /* stopping: the open block has been looked into */
	int64_t behind_ns;    /* by how much stamps of a foreign clock may be behind ours */
	bool away;            /* the link is down or gone */
	bool given_up;        /* and nothing more will come from it */

	uint64_t packets, drops, freezes; /* sums of the kernel's statistics */
};

/* What walking has met, added up. */
struct ring_walked {
	uint64_t cut, tags;
};

/* Makes the ring of a packet socket, which stays the caller's: 0 or -errno. */
int ring_open(struct ring *ring, int fd, const struct ring_geometry *geometry);
void ring_close(struct ring *ring);

/* Gives back a block that is used up, and takes the next if it has closed.  true: there are
 * packets to walk. */
bool ring_advance(struct ring *ring);

/* As ring_advance(), once no more packets can come in: after the closed blocks the open one. */
bool ring_drain(struct ring *ring);

/* Whether it has closed a block that is not walked yet. */
bool ring_is_ready(const struct ring *ring);

/* Whether it holds no packet, walked or not, of which the kernel or we still know. */
bool ring_is_empty(const struct ring *ring);

/* Takes over the sums of a ring that it replaces. */
void ring_inherit(struct ring *ring, const struct ring *from);

/* Describes up to max packets no later than until_ns; returns how many. */
unsigned ring_walk(struct ring *ring, struct weir_packet *packets, unsigned max, int64_t until_ns,
		   struct ring_walked *walked);

/* Stamp of the next packet, if there is one to walk. */
int64_t ring_next_ns(const struct ring *ring);

/* No packet to come will be older, as far as can be known at now_ns of CLOCK_REALTIME; INT64_MIN:
 * nothing is known. */
int64_t ring_bound_ns(const struct ring *ring, int64_t now_ns);

/* Adds the kernel's statistics, which reading resets, to the sums.  Nobody else may read them. */
void ring_statistics(struct ring *ring);

#endif
