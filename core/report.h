/*
 * report.h: the views of a ledger: JSON for --report, a table for the terminal, Prometheus text for
 * --metrics.
 *
 * All are made from the same structures, so that they cannot disagree.  Field names are an
 * interface: docs/report.md describes them, and golden lists under tests/golden pin them.
 */
#ifndef WEIR_REPORT_H
#define WEIR_REPORT_H

#include "push.h"

#include <json-glib/json-glib.h>
#include <stdio.h>

struct weir_thread_time {
	const char *name; /* of the lane, or "main" */
	double cpu_seconds;
};

/* What a report says beside the ledger. */
struct weir_report {
	const struct weir_graph *graph;
	const struct weir_ledger *ledger;
	const GPtrArray *pushes;  /* const struct weir_push *; NULL: not known yet */
	int64_t start_us, end_us; /* since the Unix epoch; end 0: still running */
	const struct weir_thread_time *threads;
	unsigned n_threads;
	double cpu_seconds;          /* of the whole process: lanes, main, and those of plugins */
	const char *const *messages; /* errors of the run, NULL-terminated; NULL: none */
	int balanced;                /* 1, 0; -1: not known while it runs */
};

/* The report as JSON text that ends in a newline; g_free(). */
char *weir_report_json(const struct weir_report *report);
/* Its part that says how the run went: balanced, lost, nic, losses, problems, errors. */
void weir_report_set_verdict(JsonObject *object, const struct weir_report *report);
/* Writes a file that appears whole: a temporary name, then renamed.  What is no regular file (a
 * device, a FIFO, a symbolic link) is written to instead. */
bool weir_report_write(const char *path, const char *text, GError **error);
/* Whether that will be possible, as far as can be known before; NULL is. */
bool weir_report_check_path(const char *path, GError **error);
/* The ledger for people. */
void weir_report_print(const struct weir_report *report, FILE *to);
/* Prometheus text format 0.0.4; g_free(). */
char *weir_report_metrics(const struct weir_report *report);

/* What that node does in the kernel of the work of others; NULL: nothing. */
const struct weir_push *weir_report_push(const struct weir_report *report,
					 const struct weir_node *node);
/* How many packets it kept out there; false: that is unknown. */
bool weir_report_kept_out(const struct weir_ledger_node *entry, uint64_t *ret_packets);

/* "source", "stage" or "sink". */
const char *weir_node_kind(const struct weir_node *node);

#endif
