/*
 * instance.h: a node as it runs: its state, its rows, and what plugins' calls into core need to
 * know.
 *
 * Nothing here is global: two runs in one process do not see each other.
 */
#ifndef WEIR_INSTANCE_H
#define WEIR_INSTANCE_H

#include <pthread.h>

#include "interfaces.h"
#include "ledger.h"

struct weir_lane;
struct weir_seat;

enum weir_stop {
	WEIR_RUNNING,
	WEIR_STOPPING,  /* sources stop, everything that was taken is finished */
	WEIR_ABANDONED, /* nobody waits for anything any more */
};

/* Where a run tells its user something; called from any thread. */
struct weir_listener {
	void (*log)(void *user, const struct weir_seat *seat, int level, const char *message);
	void (*event)(void *user, const struct weir_seat *seat, const char *event,
		      const char *detail);
	void (*ending)(void *user); /* the run shall stop: it failed, or all sinks have finished */
	void (*lane_ended)(void *user); /* from the lane, as the last thing it does */
	void *user;
};

struct weir_context {
	const struct weir_graph *graph;   /* these two from the plan on */
	struct weir_instance **instances; /* as graph->nodes */
	char *pipeline_sha256;
	struct weir_interfaces *interfaces;
	struct weir_errors *errors; /* of callbacks; under lock */
	struct weir_listener listener;
	pthread_mutex_t lock;
	GHashTable *last_logged;   /* under lock: format and node to the time it was last printed */
	int stop;                  /* enum weir_stop, atomic */
	unsigned unfinished_sinks; /* atomic */
	bool failed;               /* atomic */
};

struct weir_context *weir_context_new(struct weir_errors *errors,
				      const struct weir_listener *listener);
void weir_context_free(struct weir_context *context);

static inline enum weir_stop weir_context_stop(const struct weir_context *context)
{
	return (enum weir_stop)__atomic_load_n(&context->stop, __ATOMIC_ACQUIRE);
}

/* The errors so far, while plugins may add to them; g_strfreev(). */
char **weir_context_messages(struct weir_context *context);

/* The run fails, and stops. Any thread. */
void weir_context_fail(struct weir_context *context);

/* What a callback's weir_self really is: a node's own seat, or the first part of its seat in a
 * lane. */
struct weir_seat {
	struct weir_self self; /* first, so that a plugin's pointer leads here */
	struct weir_instance *instance;
	struct weir_lane *lane; /* NULL: the node's own */
	struct weir_row *row;
};

struct weir_instance {
	struct weir_seat seat;
	const struct weir_node *node;
	struct weir_context *context;
	struct weir_row *rows; /* n_lanes + 1, the last one the node's own */
	unsigned n_lanes;      /* of a queue: the larger of its producing and consuming lanes */
	bool finished;         /* a sink that wants no more; atomic */
};

struct weir_instance *weir_instance_new(const struct weir_node *node, struct weir_context *context);
void weir_instance_free(struct weir_instance *instance);
/* Makes the rows, once the number of lanes is known. */
void weir_instance_set_lanes(struct weir_instance *instance, unsigned n_lanes);

static inline struct weir_seat *weir_seat_of(struct weir_self *self)
{
	return (struct weir_seat *)self;
}

/* Says and counts that its plugin has asked for what cannot be, and is not done. Any thread. */
void weir_fault(struct weir_seat *seat, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* How it splits its packets, or what it needs: WEIR_LANES_*. */
uint32_t weir_instance_affinity(struct weir_instance *instance);

#endif
