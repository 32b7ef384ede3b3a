/* views.c: one ledger, shown in many ways. */
#include "views.h"

#include "push.h"

#include <stdio.h>
#include <time.h>

struct weir_ledger *weir_views_ledger(const struct weir_running *run)
{
	unsigned n_nodes = run->graph->nodes->len;
	g_autofree struct weir_row **rows = g_new0(struct weir_row *, n_nodes);
	g_autofree unsigned *n_lanes = g_new0(unsigned, n_nodes);

	for (unsigned i = 0; i < n_nodes; i++) {
		rows[i] = run->plan->instances[i]->rows;
		n_lanes[i] = run->plan->instances[i]->n_lanes;
	}
	return weir_ledger_new(run->graph, rows, n_lanes);
}

/* Of the lanes, then of the main thread; g_free(). */
static struct weir_thread_time *thread_times(const struct weir_running *run)
{
	unsigned n = run->lanes->len;
	struct weir_thread_time *times = g_new0(struct weir_thread_time, n + 1);
	struct timespec now = {0};

	for (unsigned i = 0; i < n; i++) {
		times[i].name = weir_lane_name(run->lanes->pdata[i]);
		times[i].cpu_seconds = weir_lane_cpu_seconds(run->lanes->pdata[i]);
	}
	clock_gettime(run->main_clock, &now);
	times[n].name = "main";
	times[n].cpu_seconds = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	return times;
}

typedef void (*view_fn)(struct weir_running *run, const struct weir_report *report);

static void show(struct weir_running *run, const struct weir_ledger *ledger, int balanced,
		 view_fn view)
{
	g_autofree struct weir_thread_time *threads = thread_times(run);
	g_auto(GStrv) messages = weir_context_messages(run->context);
	struct weir_report report = {
		.graph = run->graph,
		.ledger = ledger,
		.pushes = run->pushes,
		.start_us = run->start_us,
		.end_us = run->end_us,
		.threads = threads,
		.n_threads = run->lanes->len + 1,
		.cpu_seconds = (double)clock() / CLOCKS_PER_SEC,
		.messages = (const char *const *)messages,
		.balanced = balanced,
	};

	view(run, &report);
}

static void show_now(struct weir_running *run, view_fn view)
{
	struct weir_ledger *ledger = weir_views_ledger(run);

	show(run, ledger, -1, view);
	weir_ledger_free(ledger);
}

static void view_text(struct weir_running *run, const struct weir_report *report)
{
	weir_stats_interrupt(run->stats);
	weir_report_print(report, stderr);
}

static bool write_view(const char *path, const char *text)
{
	g_autoptr(GError) error = NULL;

	if (weir_report_write(path, text, &error))
		return true;
	fprintf(stderr, "weir: warning: %s\n", error->message);
	return false;
}

static void view_interval(struct weir_running *run, const struct weir_report *report)
{
	g_autofree char *metrics = run->options->metrics ? weir_report_metrics(report) : NULL;

	weir_journal_interval(run->journal, report);
	if (metrics)
		write_view(run->options->metrics, metrics);
}

static void view_stats(struct weir_running *run, const struct weir_report *report)
{
	weir_stats_show(run->stats, report, stderr);
}

static void view_ended(struct weir_running *run, const struct weir_report *report)
{
	weir_journal_ended(run->journal, report);
	if (weir_journal_unwritten(run->journal) == 0)
		return;
	/* Without its end the ledger file says that the run has crashed. */
	fprintf(stderr, "weir: the end of the ledger file %s cannot be written\n",
		run->options->ledger);
	__atomic_store_n(&run->context->failed, true, __ATOMIC_RELAXED);
}

static void view_report(struct weir_running *run, const struct weir_report *report)
{
	g_autofree char *json = weir_report_json(report);

	/* The report is the proof of the run: without it the run has failed. */
	if (!write_view(run->options->report, json))
		__atomic_store_n(&run->context->failed, true, __ATOMIC_RELAXED);
}

void weir_views_print(struct weir_running *run)
{
	show_now(run, view_text);
}

void weir_views_interval(struct weir_running *run)
{
	show_now(run, view_interval);
	if (run->stats)
		show_now(run, view_stats);
}

void weir_views_end(struct weir_running *run, const struct weir_ledger *ledger, bool balanced)
{
	if (!run->options->quiet || !balanced)
		show(run, ledger, balanced, view_text);
	show(run, ledger, balanced, view_interval);
	if (run->options->report)
		show(run, ledger, balanced, view_report);
	show(run, ledger, balanced, view_ended);
}
