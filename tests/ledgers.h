/*
 * ledgers.h: a small run with round numbers, for tests of every view of a ledger.
 *
 * tap (two lanes) -> keys -> disk; keys.rest leads nowhere.  Lane 0 counts 10 times what lane 1
 * does.
 */
#ifndef TESTS_LEDGERS_H
#define TESTS_LEDGERS_H

#include "report.h"

#include <criterion/criterion.h>

enum { TAP, KEYS, DISK, LEDGER_NODES };
enum { TAP_TAKEN, TAP_DROPS, TAP_MISSED, TAP_NEVER, TAP_KEPT_OUT };
enum { KEYS_MATCH, KEYS_REST, KEYS_UNFIT };
enum { DISK_WRITTEN, DISK_FULL };

/* Never called: rows are filled in by hand. */
static inline int no_poll(struct weir_self *self, struct weir_packet *packets, unsigned max,
			  int timeout_ms, int64_t *ret_mark_ns)
{
	(void)self, (void)packets, (void)max, (void)timeout_ms, (void)ret_mark_ns;
	return WEIR_END;
}

static inline void no_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	(void)self, (void)packets, (void)n;
}

static const struct weir_option tap_options[] = {
	{"interface", WEIR_STRING, 0, NULL, NULL, "which"},
	{"mode", WEIR_STRING, sizeof(char *), "quick", NULL, "how"},
	{"extra", WEIR_STRING, 2 * sizeof(char *), "", NULL, "absent"},
	{0}};
static const struct weir_output tap_outputs[] = {{"out", WEIR_LOSS, WEIR_PACKETS, ""}, {0}};
static const struct weir_counter tap_counters[] = {
	{"taken", WEIR_PLUS_PACKETS, ""},   {"drops", WEIR_IS_LOSS, ""},
	{"missed", WEIR_IS_NIC, ""},        {"never-set", WEIR_INFO, ""},
	{"kept-out", WEIR_IS_KEPT_OUT, ""}, {0}};
static const struct weir_plugin tap_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SOURCE,
	.name = "tap-plugin",
	.version = "1.2",
	.summary = "Of a test",
	.example = "tap-plugin eth0 -> disk-plugin",
	.options = tap_options,
	.outputs = tap_outputs,
	.counters = tap_counters,
	.config_size = 3 * sizeof(char *),
	.poll = no_poll,
};

static const struct weir_output keys_outputs[] = {{"match", WEIR_DISCARD, WEIR_PACKETS, ""},
						  {"rest", WEIR_DISCARD, WEIR_PACKETS, ""},
						  {"unfit", WEIR_LOSS, WEIR_PACKETS, ""},
						  {0}};
static const struct weir_plugin keys_plugin = {
	WEIR_HEAD,
	.kind = WEIR_STAGE,
	.name = "keys-plugin",
	.version = "1",
	.summary = "Of a test",
	.example = "tap -> keys-plugin -> disk",
	.outputs = keys_outputs,
	.judge = no_judge,
};

static const struct weir_output disk_outputs[] = {
	{"written", WEIR_PASS, WEIR_PACKETS, ""}, {"full", WEIR_LOSS, WEIR_PACKETS, ""}, {0}};
static const struct weir_counter disk_counters[] = {{"size-bytes", WEIR_INFO, ""}, {0}};
static const struct weir_plugin disk_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SINK,
	.name = "disk-plugin",
	.version = "1",
	.summary = "Of a test",
	.example = "tap -> disk-plugin",
	.outputs = disk_outputs,
	.counters = disk_counters,
	.judge = no_judge,
};

struct small_run {
	struct weir_loader *loader;
	struct weir_errors *errors;
	struct weir_graph *graph;
	unsigned lanes[LEDGER_NODES];
	struct weir_row rows[LEDGER_NODES][3]; /* lane 0, lane 1, the node's own */
	struct weir_thread_time threads[2];
	struct weir_report report;
};

/* Started in the year 2001. */
#define SMALL_RUN_TEXT                                                                             \
	"tap = tap-plugin eth0; keys = keys-plugin; tap -> keys -> disk; disk = disk-plugin"
#define SMALL_RUN_START_US 1000000000000000

/* One row's share of 1,000 packets of 100 captured and 150 wire bytes. */
static inline void count_of(struct weir_count *count, uint64_t packets)
{
	*count = (struct weir_count){packets, packets * 100, packets * 150};
}

static inline void set_counter(struct weir_row *row, unsigned counter, uint64_t value)
{
	row->counters[counter] = value;
	row->counter_set[counter] = true;
}

/* tap hands on n packets in lane 0 and a tenth of that in lane 1; half of them match. */
static inline void small_run_count(struct small_run *run, uint64_t n)
{
	for (unsigned lane = 0; lane < 2; lane++, n /= 10) {
		count_of(&run->rows[TAP][lane].out[0], n);
		set_counter(&run->rows[TAP][lane], TAP_TAKEN, n);
		count_of(&run->rows[KEYS][lane].in, n);
		count_of(&run->rows[KEYS][lane].out[KEYS_MATCH], n / 2);
		count_of(&run->rows[KEYS][lane].out[KEYS_REST], n - n / 2);
		count_of(&run->rows[DISK][lane].in, n / 2);
		count_of(&run->rows[DISK][lane].out[DISK_WRITTEN], n / 2);
	}
}

static inline void small_run_init(struct small_run *run)
{
	*run = (struct small_run){
		.loader = weir_loader_new((const char *const[]){NULL}),
		.errors = weir_errors_new("small.weir"),
		.lanes = {2, 2, 2},
		.threads = {{"tap/0", 1.5}, {"tap/1", 0.25}},
	};
	weir_loader_add(run->loader, &tap_plugin);
	weir_loader_add(run->loader, &keys_plugin);
	weir_loader_add(run->loader, &disk_plugin);
	run->graph = weir_graph_new(SMALL_RUN_TEXT, NULL, run->loader, run->errors);
	cr_assert_not_null(run->graph, "%s", (char *)run->errors->messages->pdata[0]);
	for (unsigned n = 0; n < LEDGER_NODES; n++) {
		for (unsigned i = 0; i < 3; i++)
			weir_row_init(&run->rows[n][i], run->graph->nodes->pdata[n]);
	}
	run->report = (struct weir_report){
		.graph = run->graph,
		.start_us = SMALL_RUN_START_US,
		.threads = run->threads,
		.n_threads = 2,
		.cpu_seconds = 2,
		.balanced = -1,
	};
}

/* A new copy of the rows for the report. */
static inline const struct weir_report *small_run_look(struct small_run *run)
{
	struct weir_row *rows[LEDGER_NODES] = {run->rows[TAP], run->rows[KEYS], run->rows[DISK]};

	weir_ledger_free((struct weir_ledger *)run->report.ledger);
	run->report.ledger = weir_ledger_new(run->graph, rows, run->lanes);
	return &run->report;
}

/* 2.5 s after its start. */
static inline const struct weir_report *small_run_end(struct small_run *run)
{
	small_run_look(run);
	run->report.end_us = SMALL_RUN_START_US + 2500000;
	run->report.balanced = weir_ledger_balance((struct weir_ledger *)run->report.ledger);
	return &run->report;
}

static inline void small_run_clear(struct small_run *run)
{
	weir_ledger_free((struct weir_ledger *)run->report.ledger);
	for (unsigned n = 0; n < LEDGER_NODES; n++) {
		for (unsigned i = 0; i < 3; i++)
			weir_row_clear(&run->rows[n][i]);
	}
	weir_graph_free(run->graph);
	weir_errors_free(run->errors);
	weir_loader_free(run->loader);
}

#endif
