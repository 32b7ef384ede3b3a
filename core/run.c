/* run.c: the main thread: opens, starts, listens to signals and timers, closes.  It never touches a
 * packet. */
#include "run.h"

#include "feedback.h"
#include "journal.h"
#include "lanes.h"
#include "privileges.h"
#include "push.h"
#include "report.h"
#include "stats.h"

#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define DEFAULT_INTERVAL_NS (60 * 1000000000LL)

struct run {
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
	bool told_to_stop; /* by a signal */
};

/* ---- What lanes and plugins tell ---- */

static void on_log(void *user, const struct weir_seat *seat, int level, const char *message)
{
	const struct run *run = user;

	if (run->options->quiet && level == WEIR_INFORM)
		return;
	weir_stats_interrupt(run->stats);
	fprintf(stderr, "weir: %s%s: %s\n", level == WEIR_WARN ? "warning: " : "", seat->self.name,
		message);
}

static void on_event(void *user, const struct weir_seat *seat, const char *event,
		     const char *detail)
{
	const struct run *run = user;

	weir_journal_event(run->journal, seat->self.name,
			   seat->lane ? (int)seat->self.lane_index : -1, event, detail);
}

static void set_stop(struct run *run, enum weir_stop stop)
{
	if (weir_context_stop(run->context) >= stop)
		return;
	__atomic_store_n(&run->context->stop, (int)stop, __ATOMIC_RELEASE);
	for (unsigned i = 0; run->lanes && i < run->lanes->len; i++)
		weir_lane_wake(run->lanes->pdata[i]);
}

static gboolean stop_once(gpointer user)
{
	set_stop(user, WEIR_STOPPING);
	return G_SOURCE_REMOVE;
}

static void on_ending(void *user)
{
	g_idle_add(stop_once, user);
}

static gboolean quit_if_ended(gpointer user)
{
	struct run *run = user;

	for (unsigned i = 0; i < run->lanes->len; i++) {
		if (!weir_lane_ended(run->lanes->pdata[i]))
			return G_SOURCE_REMOVE;
	}
	g_main_loop_quit(run->loop);
	return G_SOURCE_REMOVE;
}

static void on_lane_ended(void *user)
{
	g_idle_add(quit_if_ended, user);
}

/* ---- Views ---- */

static struct weir_ledger *take_ledger(const struct run *run)
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

/* Of the lanes, then of this thread; g_free(). */
static struct weir_thread_time *thread_times(const struct run *run)
{
	unsigned n = run->lanes->len;
	struct weir_thread_time *times = g_new0(struct weir_thread_time, n + 1);
	struct timespec now = {0};

	for (unsigned i = 0; i < n; i++) {
		times[i].name = weir_lane_name(run->lanes->pdata[i]);
		times[i].cpu_seconds = weir_lane_cpu_seconds(run->lanes->pdata[i]);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	times[n].name = "main";
	times[n].cpu_seconds = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	return times;
}

typedef void (*view_fn)(struct run *run, const struct weir_report *report);

static void show(struct run *run, const struct weir_ledger *ledger, int balanced, view_fn view)
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

static void show_now(struct run *run, view_fn view)
{
	struct weir_ledger *ledger = take_ledger(run);

	show(run, ledger, -1, view);
	weir_ledger_free(ledger);
}

static void view_text(struct run *run, const struct weir_report *report)
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

static void view_interval(struct run *run, const struct weir_report *report)
{
	g_autofree char *metrics = run->options->metrics ? weir_report_metrics(report) : NULL;

	weir_journal_interval(run->journal, report);
	if (metrics)
		write_view(run->options->metrics, metrics);
}

static void view_stats(struct run *run, const struct weir_report *report)
{
	weir_stats_show(run->stats, report, stderr);
}

static void view_ended(struct run *run, const struct weir_report *report)
{
	weir_journal_ended(run->journal, report);
	if (weir_journal_unwritten(run->journal) == 0)
		return;
	/* Without its end the ledger file says that the run has crashed. */
	fprintf(stderr, "weir: the end of the ledger file %s cannot be written\n",
		run->options->ledger);
	__atomic_store_n(&run->context->failed, true, __ATOMIC_RELAXED);
}

static void view_report(struct run *run, const struct weir_report *report)
{
	g_autofree char *json = weir_report_json(report);

	/* The report is the proof of the run: without it the run has failed. */
	if (!write_view(run->options->report, json))
		__atomic_store_n(&run->context->failed, true, __ATOMIC_RELAXED);
}

/* ---- Signals and timers ---- */

static gboolean on_stop_signal(gpointer user)
{
	struct run *run = user;

	set_stop(run, run->told_to_stop ? WEIR_ABANDONED : WEIR_STOPPING);
	run->told_to_stop = true;
	return G_SOURCE_CONTINUE;
}

static gboolean on_reopen_signal(gpointer user)
{
	struct run *run = user;
	g_autoptr(GError) error = NULL;

	if (!weir_journal_reopen(run->journal, &error))
		fprintf(stderr, "weir: warning: %s; the old one goes on\n", error->message);
	for (unsigned i = 0; i < run->lanes->len; i++)
		weir_lane_reopen(run->lanes->pdata[i]);
	return G_SOURCE_CONTINUE;
}

static gboolean on_ledger_signal(gpointer user)
{
	show_now(user, view_text);
	return G_SOURCE_CONTINUE;
}

static gboolean on_reload_signal(gpointer user)
{
	(void)user;
	fprintf(stderr, "weir: reading the pipeline text anew is not built yet; the run goes on\n");
	return G_SOURCE_CONTINUE;
}

static gboolean on_interval(gpointer user)
{
	struct run *run = user;

	show_now(run, view_interval);
	if (run->stats)
		show_now(run, view_stats);
	return G_SOURCE_CONTINUE;
}

static void keep_source(struct run *run, guint source)
{
	g_array_append_val(run->sources, source);
}

static void listen_to_signals(struct run *run)
{
	keep_source(run, g_unix_signal_add(SIGINT, on_stop_signal, run));
	keep_source(run, g_unix_signal_add(SIGTERM, on_stop_signal, run));
	keep_source(run, g_unix_signal_add(SIGHUP, on_reopen_signal, run));
	keep_source(run, g_unix_signal_add(SIGUSR1, on_ledger_signal, run));
	keep_source(run, g_unix_signal_add(SIGUSR2, on_reload_signal, run));
}

static void add_timer(struct run *run, int64_t ns, GSourceFunc callback)
{
	int64_t ms = MAX(ns / 1000000, 1);

	if (ms <= G_MAXUINT)
		keep_source(run, g_timeout_add((guint)ms, callback, run));
	else /* 49 days */
		keep_source(run,
			    g_timeout_add_seconds((guint)MIN(ms / 1000, G_MAXUINT), callback, run));
}

static void start_timers(struct run *run)
{
	int64_t interval_ns = run->options->stats_ns ? run->options->stats_ns : DEFAULT_INTERVAL_NS;

	if (run->journal || run->options->metrics || run->stats)
		add_timer(run, interval_ns, on_interval);
	if (run->options->duration_ns)
		add_timer(run, run->options->duration_ns, stop_once);
}

/* What the run ends with shall not depend on a signal that comes after its end. */
static void block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static void remove_sources(struct run *run)
{
	for (unsigned i = 0; i < run->sources->len; i++) {
		GSource *source = g_main_context_find_source_by_id(
			NULL, g_array_index(run->sources, guint, i));

		if (source)
			g_source_destroy(source);
	}
}

/* ---- Opening ---- */

static bool call(struct run *run, struct weir_seat *seat, bool (*callback)(struct weir_self *))
{
	struct weir_errors *errors = run->context->errors;
	unsigned before = errors->messages->len;

	if (!callback || callback(&seat->self))
		return errors->messages->len == before;
	if (errors->messages->len == before)
		weir_errors_add(errors, seat->instance->node->where, "%s cannot be opened",
				seat->self.name);
	return false;
}

/* Sources before all others, so that link types are known before a sink makes a file. */
static bool open_nodes(struct run *run)
{
	bool ok = true;

	for (int sources = 1; sources >= 0 && ok; sources--) {
		for (unsigned i = 0; i < run->graph->nodes->len; i++) {
			struct weir_instance *instance = run->plan->instances[i];

			if ((instance->node->plugin->kind == WEIR_SOURCE) == sources)
				ok &= call(run, &instance->seat, instance->node->plugin->open);
		}
	}
	return ok;
}

/* What came of it is in the ledger file, since it explains what the source counts. */
static void push_down(struct run *run)
{
	run->pushes = weir_push_all(run->plan, run->context->interfaces);
	for (unsigned i = 0; i < run->pushes->len; i++) {
		const struct weir_push *push = run->pushes->pdata[i];
		g_autofree char *text = weir_push_text(push);

		weir_journal_event(run->journal, push->source->name, -1, "pushdown", text);
	}
}

static bool open_lane(struct run *run, struct weir_lane *lane)
{
	bool ok = true;

	for (unsigned i = 0; i < weir_lane_n_posts(lane) && ok; i++) {
		struct weir_post *post = weir_lane_nth_post(lane, i);

		ok = call(run, &post->seat, post->plugin->lane_open);
	}
	return ok;
}

static bool open_lanes(struct run *run)
{
	bool ok = true;

	for (unsigned l = 0; l < run->lanes->len && ok; l++)
		ok = open_lane(run, run->lanes->pdata[l]);
	return ok;
}

/* Sinks first, so that whoever lets packets in finds everything ready. */
static bool start_nodes(struct run *run)
{
	bool ok = true;

	for (unsigned i = run->graph->nodes->len; i-- > 0 && ok;) {
		struct weir_instance *instance = run->plan->instances[i];

		ok = call(run, &instance->seat, instance->node->plugin->start);
	}
	return ok;
}

static bool start_lanes(struct run *run)
{
	g_autoptr(GError) error = NULL;

	for (unsigned l = run->lanes->len; l-- > 0;) {
		if (weir_lane_start(run->lanes->pdata[l], &error))
			continue;
		weir_errors_add(run->context->errors, (struct weir_position){0}, "%s",
				error->message);
		for (unsigned i = 0; i <= l; i++)
			weir_lane_skip(run->lanes->pdata[i]);
		return false;
	}
	return true;
}

/* Threads that plugins start while they open are then sealed, too. */
static bool seal_privileges(struct run *run)
{
	g_autoptr(GError) error = NULL;

	if (!run->options->user || weir_privileges_seal(run->options->user, &error))
		return true;
	weir_errors_add(run->context->errors, (struct weir_position){0}, "%s", error->message);
	return false;
}

/* From here on with the rights that the run will have, so that what it may not do shows at once. */
static bool drop_privileges(struct run *run)
{
	g_autoptr(GError) error = NULL;

	if ((!run->options->user || weir_privileges_drop(run->options->user, &error)) &&
	    weir_report_check_path(run->options->report, &error) &&
	    weir_report_check_path(run->options->metrics, &error))
		return true;
	weir_errors_add(run->context->errors, (struct weir_position){0}, "%s", error->message);
	return false;
}

static void print_warnings(const GPtrArray *warnings)
{
	for (unsigned i = 0; i < warnings->len; i++)
		fprintf(stderr, "weir: warning: %s\n", (char *)warnings->pdata[i]);
}

static void warn_of_feedback(const struct run *run)
{
	g_autoptr(GPtrArray) warnings = weir_feedback_find(run->graph, run->context->interfaces);

	print_warnings(warnings);
}

static bool prepare(struct run *run)
{
	print_warnings(run->plan->warnings);
	for (unsigned i = 0; i < run->graph->nodes->len; i++) {
		if (((struct weir_node *)run->graph->nodes->pdata[i])->plugin->kind == WEIR_SINK)
			run->context->unfinished_sinks++;
	}
	run->lanes = weir_lanes_new(run->plan, run->context);
	if (!run->lanes || !seal_privileges(run) || !open_nodes(run))
		return false;
	warn_of_feedback(run);
	push_down(run);
	return open_lanes(run) && drop_privileges(run) && start_nodes(run);
}

/* ---- Closing ---- */

static void close_all(struct run *run)
{
	for (unsigned l = 0; run->lanes && l < run->lanes->len; l++)
		weir_lane_join(run->lanes->pdata[l]);
	for (unsigned l = 0; run->lanes && l < run->lanes->len; l++) {
		for (unsigned i = 0; i < weir_lane_n_posts(run->lanes->pdata[l]); i++) {
			struct weir_post *post = weir_lane_nth_post(run->lanes->pdata[l], i);

			if (post->plugin->lane_close)
				post->plugin->lane_close(&post->seat.self);
		}
	}
	weir_plan_close(run->plan);
}

static int conclude(struct run *run)
{
	struct weir_errors *errors = run->context->errors;
	struct weir_ledger *ledger = take_ledger(run);
	bool balanced = weir_ledger_balance(ledger);
	bool lossy = ledger->lost || (ledger->has_nic && ledger->nic);

	for (unsigned i = 0; i < errors->messages->len; i++)
		fprintf(stderr, "weir: %s\n", (char *)errors->messages->pdata[i]);
	if (!run->options->quiet || !balanced)
		show(run, ledger, balanced, view_text);
	show(run, ledger, balanced, view_interval);
	if (run->options->report)
		show(run, ledger, balanced, view_report);
	show(run, ledger, balanced, view_ended);
	weir_ledger_free(ledger);
	if (run->context->failed || !balanced)
		return WEIR_EXIT_FAILED;
	return run->options->strict && lossy ? WEIR_EXIT_LOSS : WEIR_EXIT_DONE;
}

static int run_to_the_end(struct run *run)
{
	listen_to_signals(run);
	start_timers(run);
	if (!start_lanes(run)) {
		run->context->failed = true;
		set_stop(run, WEIR_ABANDONED);
	} else {
		if (!run->options->quiet)
			fprintf(stderr, "weir: running, %u lane%s\n", run->lanes->len,
				run->lanes->len == 1 ? "" : "s");
		g_main_loop_run(run->loop);
	}
	close_all(run);
	run->end_us = g_get_real_time();
	return conclude(run);
}

static void free_run(struct run *run)
{
	block_signals();
	remove_sources(run);
	while (g_main_context_iteration(NULL,
					FALSE)) /* what lanes have asked for while they ended */
		;
	weir_journal_close(run->journal);
	weir_stats_free(run->stats);
	if (run->lanes)
		g_ptr_array_unref(run->lanes);
	if (run->pushes)
		g_ptr_array_unref(run->pushes);
	weir_plan_free(run->plan);
	weir_context_free(run->context);
	g_array_unref(run->sources);
	g_main_loop_unref(run->loop);
}

static bool open_journal(struct run *run)
{
	g_autoptr(GError) error = NULL;

	if (!run->options->ledger)
		return true;
	run->journal = weir_journal_open(run->options->ledger, &error);
	if (!run->journal)
		weir_errors_add(run->context->errors, (struct weir_position){0}, "%s",
				error->message);
	weir_journal_started(run->journal, run->graph);
	return run->journal;
}

static void refuse(struct run *run)
{
	const GPtrArray *messages = run->context->errors->messages;

	close_all(run);
	weir_journal_event(run->journal, NULL, -1, "run-refused",
			   messages->len ? messages->pdata[0] : NULL);
}

int weir_run(const struct weir_graph *graph, const struct weir_run_options *options,
	     struct weir_errors *errors)
{
	struct run run = {.graph = graph, .options = options};
	const struct weir_listener listener = {on_log, on_event, on_ending, on_lane_ended, &run};
	static const int ignored[] = {SIGPIPE, SIGXFSZ, SIGHUP, SIGUSR1, SIGUSR2};
	int status = WEIR_EXIT_USAGE;

	/* Until lanes run there is nothing to reopen or to show, but nothing to die of either. */
	for (unsigned i = 0; i < G_N_ELEMENTS(ignored); i++)
		signal(ignored[i], SIG_IGN);
	run.context = weir_context_new(errors, &listener);
	run.loop = g_main_loop_new(NULL, FALSE);
	run.sources = g_array_new(FALSE, FALSE, sizeof(guint));
	run.start_us = g_get_real_time();
	if (options->stats_ns)
		run.stats = weir_stats_new(graph);
	run.plan = weir_plan_new(graph, run.context);
	if (run.plan && open_journal(&run)) {
		if (prepare(&run))
			status = run_to_the_end(&run);
		else
			refuse(&run);
	}
	free_run(&run);
	return status;
}
