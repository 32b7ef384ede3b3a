/*
 * ring.h: the AF_XDP socket of one queue and the ring by which its frames come.
 *
 * A frame lies in one chunk of the UMEM, or in several that follow each other in the ring.  It is
 * described where it lies; one of several chunks is put together in memory of the ring.  Whoever
 * walks has the frames until the next ring_give_back().
 */
#ifndef AFXDP_RING_H
#define AFXDP_RING_H

#include "umem.h"

#include <weir/plugin.h>
#include <linux/if_xdp.h>

struct ring {
	uint32_t queue;
	struct umem umem;
	struct xsk_socket *socket;
	struct xsk_ring_cons rx;
	bool zerocopy;
	bool whole; /* frames of several chunks come, too */

	uint32_t held_at, held; /* descriptors that were walked and not given back */
	uint8_t *joined;        /* JOINED_BYTES, for frames of several chunks */
	uint32_t joined_bytes;  /* used of it, by the frames that are held */
	uint64_t joins;
};

/* How ring_walk() describes a frame. */
struct ring_view {
	bool stamped;     /* frames have a stamp in front of them */
	int64_t ahead_ns; /* of stamps: what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC */
	int64_t now_ns;   /* CLOCK_REALTIME, for frames without */
	uint16_t iface;
};

struct ring_choice {
	uint32_t chunks, chunk_bytes;
	bool zerocopy, copy; /* what may be; the first is tried first */
	bool fits;           /* whatever the interface receives fits into a chunk */
};

/* Opens and binds a socket for a queue, which gets nothing yet; tries for up to two seconds where
 * another has just left it.  0 or -errno; ring_close() in either case. */
int ring_open(struct ring *ring, const char *interface, uint32_t queue,
	      const struct ring_choice *choice);
void ring_close(struct ring *ring); /* takes one that was never opened */

/* Has the lane drive the NIC's queue by ring_wake_driver() for so long a time.  0 or -errno. */
int ring_set_busy_poll(const struct ring *ring, int64_t ns);

/* -1: not open. */
int ring_fd(const struct ring *ring);

/* Describes up to max frames; returns how many. */
unsigned ring_walk(struct ring *ring, struct weir_packet *packets, unsigned max,
		   const struct ring_view *view);
void ring_give_back(struct ring *ring);

/* Whether there is something to walk. */
bool ring_ready(struct ring *ring);

/* Tells a driver that asked for it that there are chunks again, or has one be polled. */
void ring_wake_driver(struct ring *ring, bool always);

/* The kernel's counts of the socket since it was opened. */
struct xdp_statistics ring_statistics(const struct ring *ring);

#endif
