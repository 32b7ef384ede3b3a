/* run.c: the main thread: listens to signals and timers, closes.  It never touches a packet. */
#include "opening.h"
#include "views.h"

#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>

#define DEFAULT_INTERVAL_NS (60 * 1000000000LL)

/* ---- What lanes and plugins tell ---- */

static void on_log(void *user, const struct weir_seat *seat, int level, const char *message)
{
	const struct weir_running *run = user;

	if (run->options->quiet && level == WEIR_INFORM)
		return;
	weir_stats_interrupt(run->stats);
	fprintf(stderr, "weir: %s%s: %s\n", level == WEIR_WARN ? "warning: " : "", seat->self.name,
		message);
}

static void on_event(void *user, const struct weir_seat *seat, const char *event,
		     const char *detail)
{
	const struct weir_running *run = user;

	weir_journal_event(run->journal, seat->self.name,
			   seat->lane ? (int)seat->self.lane_index : -1, event, detail);
}

static void set_stop(struct weir_running *run, enum weir_stop stop)
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
	struct weir_running *run = user;

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

/* ---- Signals and timers ---- */

static gboolean on_stop_signal(gpointer user)
{
	struct weir_running *run = user;

	set_stop(run, run->told_to_stop ? WEIR_ABANDONED : WEIR_STOPPING);
	run->told_to_stop = true;
	return G_SOURCE_CONTINUE;
}

static gboolean on_reopen_signal(gpointer user)
{
	struct weir_running *run = user;
	g_autoptr(GError) error = NULL;

	if (!weir_journal_reopen(run->journal, &error))
		fprintf(stderr, "weir: warning: %s; the old one goes on\n", error->message);
	for (unsigned i = 0; i < run->lanes->len; i++)
		weir_lane_reopen(run->lanes->pdata[i]);
	return G_SOURCE_CONTINUE;
}

static gboolean on_ledger_signal(gpointer user)
{
	weir_views_print(user);
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
	weir_views_interval(user);
	return G_SOURCE_CONTINUE;
}

static void keep_source(struct weir_running *run, guint source)
{
	g_array_append_val(run->sources, source);
}

static void listen_to_signals(struct weir_running *run)
{
	keep_source(run, g_unix_signal_add(SIGINT, on_stop_signal, run));
	keep_source(run, g_unix_signal_add(SIGTERM, on_stop_signal, run));
	keep_source(run, g_unix_signal_add(SIGHUP, on_reopen_signal, run));
	keep_source(run, g_unix_signal_add(SIGUSR1, on_ledger_signal, run));
	keep_source(run, g_unix_signal_add(SIGUSR2, on_reload_signal, run));
}

static void add_timer(struct weir_running *run, int64_t ns, GSourceFunc callback)
{
	int64_t ms = MAX(ns / 1000000, 1);

	if (ms <= G_MAXUINT)
		keep_source(run, g_timeout_add((guint)ms, callback, run));
	else /* 49 days */
		keep_source(run,
			    g_timeout_add_seconds((guint)MIN(ms / 1000, G_MAXUINT), callback, run));
}

static void start_timers(struct weir_running *run)
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

static void remove_sources(struct weir_running *run)
{
	for (unsigned i = 0; i < run->sources->len; i++) {
		GSource *source = g_main_context_find_source_by_id(
			NULL, g_array_index(run->sources, guint, i));

		if (source)
			g_source_destroy(source);
	}
}

/* ---- Closing ---- */

static void close_all(struct weir_running *run)
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

static gboolean note_closed(gpointer user)
{
	struct weir_running *run = user;

	run->closed = true;
	return G_SOURCE_REMOVE;
}

static void *listen_while_closing(void *user)
{
	const struct weir_running *run = user;

	while (!run->closed)
		g_main_context_iteration(NULL, TRUE);
	return NULL;
}

/* Plugins may wait for their peers here, for as long as they were told and the user wants. */
static void close_listening(struct weir_running *run)
{
	pthread_t listener;
	bool listens = pthread_create(&listener, NULL, listen_while_closing, run) == 0;

	close_all(run);
	if (!listens)
		return;
	g_idle_add(note_closed, run);
	pthread_join(listener, NULL);
}

static int conclude(struct weir_running *run)
{
	struct weir_errors *errors = run->context->errors;
	struct weir_ledger *ledger = weir_views_ledger(run);
	bool balanced = weir_ledger_balance(ledger);
	bool lossy = ledger->lost || (ledger->has_nic && ledger->nic);

	for (unsigned i = 0; i < errors->messages->len; i++)
		fprintf(stderr, "weir: %s\n", (char *)errors->messages->pdata[i]);
	weir_views_end(run, ledger, balanced);
	weir_ledger_free(ledger);
	if (run->context->failed || !balanced)
		return WEIR_EXIT_FAILED;
	return run->options->strict && lossy ? WEIR_EXIT_LOSS : WEIR_EXIT_DONE;
}

static int run_to_the_end(struct weir_running *run)
{
	listen_to_signals(run);
	start_timers(run);
	if (!weir_opening_start_lanes(run)) {
		run->context->failed = true;
		set_stop(run, WEIR_ABANDONED);
	} else {
		if (!run->options->quiet)
			fprintf(stderr, "weir: running, %u lane%s\n", run->lanes->len,
				run->lanes->len == 1 ? "" : "s");
		g_main_loop_run(run->loop);
	}
	close_listening(run);
	run->end_us = g_get_real_time();
	return conclude(run);
}

static void free_run(struct weir_running *run)
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

static bool open_journal(struct weir_running *run)
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

static void refuse(struct weir_running *run)
{
	const GPtrArray *messages = run->context->errors->messages;

	close_all(run);
	weir_journal_event(run->journal, NULL, -1, "run-refused",
			   messages->len ? messages->pdata[0] : NULL);
}

int weir_run(const struct weir_graph *graph, const struct weir_run_options *options,
	     struct weir_errors *errors)
{
	struct weir_running run = {.graph = graph, .options = options};
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
	pthread_getcpuclockid(pthread_self(), &run.main_clock);
	if (options->stats_ns)
		run.stats = weir_stats_new(graph);
	run.plan = weir_plan_new(graph, run.context);
	if (run.plan && open_journal(&run)) {
		if (weir_opening_prepare(&run))
			status = run_to_the_end(&run);
		else
			refuse(&run);
	}
	free_run(&run);
	return status;
}
