/*
 * ledger.h: what every node of a run counted, and whether it adds up.
 *
 * Rows are written by lanes while they run and read by the main thread at any time: atomics, one
 * row per node and lane, so that lanes share no cache line.  A ledger is a copy of all rows at one
 * moment, from which report, terminal, ledger file and metrics are made.
 */
#ifndef WEIR_LEDGER_H
#define WEIR_LEDGER_H

#include "graph.h"

struct weir_count {
	uint64_t packets, captured, wire; /* bytes: captured as they were at this place */
};

/* What one node counted in one lane.  outcomes of a sink are in out. */
struct weir_row {
	struct weir_count in;
	uint64_t made, absorbed;
	uint64_t astray;        /* packets with a verdict that is none of its outputs: a fault */
	uint64_t faults;        /* calls into core that cannot be right; any thread */
	struct weir_count *out; /* n_outputs */
	uint64_t *counters;     /* n_counters */
	bool *counter_set;      /* a counter that was never set is absent, not 0 */
} __attribute__((aligned(64)));

void weir_row_init(struct weir_row *row, const struct weir_node *node);
void weir_row_clear(struct weir_row *row);

/* Adds to a number that only this thread writes.  Released, so that who sees that a packet left
 * sees that it came, however many threads it went through. */
static inline void weir_row_add(uint64_t *at, uint64_t n)
{
	__atomic_store_n(at, __atomic_load_n(at, __ATOMIC_RELAXED) + n, __ATOMIC_RELEASE);
}

static inline void weir_row_count(struct weir_count *at, const struct weir_count *count)
{
	weir_row_add(&at->packets, count->packets);
	weir_row_add(&at->captured, count->captured);
	weir_row_add(&at->wire, count->wire);
}

struct weir_ledger_node {
	const struct weir_node *node;
	struct weir_row total;
	struct weir_row *lanes; /* n_lanes */
	unsigned n_lanes;
	int64_t held; /* of a sink: pending */
};

struct weir_ledger {
	struct weir_ledger_node *nodes; /* n_nodes, as in the graph */
	unsigned n_nodes;
	GPtrArray *problems; /* char *: each equation that does not hold */
	uint64_t lost;       /* packets */
	uint64_t nic;        /* packets; valid with has_nic */
	bool has_nic;
};

/* A copy of the rows as they are now: rows[i] are the n_lanes[i] + 1 rows of node i, the last one
 * its own. */
struct weir_ledger *weir_ledger_new(const struct weir_graph *graph, struct weir_row *const *rows,
				    const unsigned *n_lanes);
void weir_ledger_free(struct weir_ledger *ledger);

/* Checks every equation of docs/design.md's third idea at the end of a run and fills `problems`;
 * true if all hold. */
bool weir_ledger_balance(struct weir_ledger *ledger);

/* One kind of loss. */
struct weir_loss {
	const struct weir_node *node;
	const char *what;
	uint64_t packets;
};

/* All losses that are not 0, in the order of the graph: an array of struct weir_loss. */
GArray *weir_ledger_losses(const struct weir_ledger *ledger);

/* What an unconnected output means; of an output that is connected WEIR_PASS. */
uint32_t weir_node_meaning(const struct weir_node *node, unsigned output);

#endif
