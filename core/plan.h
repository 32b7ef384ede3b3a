/*
 * plan.h: which lanes there are, and which nodes each of them runs.
 *
 * The planner inserts nothing: where a pipeline asks for what cannot work, it refuses and says what
 * would.
 */
#ifndef WEIR_PLAN_H
#define WEIR_PLAN_H

#include "instance.h"

/* A source or a queue, and all that is downstream of it up to the next queues. */
struct weir_domain {
	struct weir_instance *head;
	GPtrArray
		*nodes; /* struct weir_instance *, topological, without head; queues it feeds too */
	unsigned n_lanes;
	uint32_t split;   /* WEIR_LANES_*: how its packets are spread over its lanes */
	bool live, files; /* what feeds it; both may be true */
	bool waits;       /* a full buffer makes its lanes wait, and is no loss */
};

struct weir_plan {
	const struct weir_graph *graph;
	struct weir_instance **instances; /* as graph->nodes */
	GPtrArray *domains;               /* struct weir_domain *, in the order of their heads */
	GPtrArray *warnings;              /* char * */
};

/* Makes instances, calls check(), affinity() and lanes() of the plugins.  NULL after errors, which
 * are in the context's. */
struct weir_plan *weir_plan_new(const struct weir_graph *graph, struct weir_context *context);
/* close() of every plugin; after lane_close() of what was opened, and before the ledger is taken.
 */
void weir_plan_close(struct weir_plan *plan); /* takes NULL */
void weir_plan_free(struct weir_plan *plan);  /* takes NULL */

/* Lanes that run the node, apart from those it is the head of; how they split packets, and the last
 * of their domains. */
unsigned weir_plan_producing_lanes(const struct weir_plan *plan,
				   const struct weir_instance *instance, uint32_t *ret_split,
				   const struct weir_domain **ret_domain);

/* Whether bytes of packets at that node can be seen by another branch of the domain. */
bool weir_plan_shares(const struct weir_domain *domain, const struct weir_node *node);

#endif
