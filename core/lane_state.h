/*
 * lane_state.h: what a lane is made of, for lane.c, which runs it, and lane_life.c, which makes it.
 */
#ifndef WEIR_LANE_STATE_H
#define WEIR_LANE_STATE_H

#include "arena.h"
#include "lane.h"

struct weir_lane {
	struct weir_context *context;
	const struct weir_domain *domain;
	char *name;
	struct weir_post *head;
	GPtrArray *posts; /* struct weir_post *, topological, without head */
	bool has_merges;  /* some post has several feeders, so positions in the batch matter */
	bool has_queues;
	unsigned poll_max; /* packets a batch */
	struct weir_arena arena;
	int64_t mark_ns, oldest_ns; /* of all that is still to come; of this batch */
	int64_t now_ns, next_tick_ns, next_witness_ns;
	int64_t stuck_since_ns; /* it waits, or has nothing to do; 0: it does not */
	bool gave_up;

	pthread_t thread;
	bool started;
	bool ended;      /* atomic */
	bool reopen;     /* atomic */
	uint64_t cpu_ns; /* atomic */

	pthread_mutex_t lock;
	pthread_cond_t woken;
	bool wake; /* under lock */

	struct weir_packet batch[WEIR_BATCH];
};

/* The thread: takes the lane; returns once it has ended. */
void *weir_lane_main(void *lane);

#endif
