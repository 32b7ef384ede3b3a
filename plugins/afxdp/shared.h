/*
 * shared.h: what the XDP program and the source that loads it agree on.
 */
#ifndef AFXDP_SHARED_H
#define AFXDP_SHARED_H

#include <linux/types.h>

/* Programs that follow the first one, by tail call. */
enum {
	STEP_FILTER, /* of the graph, see filter.h; not there: everything is wanted */
	STEP_TAKE,
	STEP_LEAVE,
	STEPS,
};

/* What became of the frames of a queue; each is in one of these. */
struct counts {
	__u64 redirected; /* to the queue's socket */
	__u64 unwanted;   /* passed to the host's stack, by the filter */
	__u64 unserved;   /* passed to the host's stack: the queue has no socket */
	__u64 dropped;    /* unwanted, and not passed on either */
};

/* In front of each frame in the UMEM. */
struct stamp {
	__u64 mono_ns; /* CLOCK_MONOTONIC when the program saw it */
};

#endif
