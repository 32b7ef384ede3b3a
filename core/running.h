/*
 * running.h: all that belongs to one run, in the hands of its main thread.
 */
#ifndef WEIR_RUNNING_H
#define WEIR_RUNNING_H

#include "journal.h"
#include "lanes.h"
#include "run.h"
#include "stats.h"

#include <time.h>

struct weir_running {
	const struct weir_graph *graph;
	const struct weir_run_options *options;
	struct weir_context *context;
	struct weir_plan *plan;
	GPtrArray *pushes; /* struct weir_push * */
	GPtrArray *lanes;
	struct weir_journal *journal;
	struct weir_stats *stats; /* NULL: not asked for */
	GMainLoop *loop;
	GArray *sources; /* guint, of the main loop */
	int64_t start_us, end_us;
	clockid_t main_clock; /* the processor time of the main thread */
	bool told_to_stop;    /* by a signal */
	bool closed;          /* everything is: nobody has to be listened to any more */
};

#endif
