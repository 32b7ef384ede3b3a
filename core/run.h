/*
 * run.h: the life of a run: open, start, wait for its end, close, prove.
 *
 * Only this and the command print.
 */
#ifndef WEIR_RUN_H
#define WEIR_RUN_H

#include "graph.h"

struct weir_run_options {
	int64_t duration_ns, stats_ns;                /* 0: none */
	const char *report, *ledger, *metrics, *user; /* NULL: none */
	bool strict, quiet;
};

/* Exit statuses, as the manual says. */
enum { WEIR_EXIT_DONE, WEIR_EXIT_FAILED, WEIR_EXIT_USAGE, WEIR_EXIT_LOSS };

/* Runs the graph in this thread and lanes of its own until it has ended; returns an exit status.
 * Errors that refuse the pipeline are in errors and not printed. */
int weir_run(const struct weir_graph *graph, const struct weir_run_options *options,
	     struct weir_errors *errors);

#endif
