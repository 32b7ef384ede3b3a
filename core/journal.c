/* journal.c: lines of the ledger file. */
#include "journal.h"

#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* A number of the ledger as it was at the last interval. */
struct past {
	uint64_t value;
	bool losing; /* it is a loss, and grew in the last interval */
};

struct weir_journal {
	char *path;
	int fd;
	pthread_mutex_t lock;
	char *run;          /* tells the lines of runs apart that share the file */
	bool torn;          /* the last line was written in part */
	uint64_t unwritten; /* lines that could not be written since the last one that could */
	struct past *past;  /* main thread, as all below; NULL before the first interval */
	unsigned n_past, cursor;
	uint64_t lost, nic;
	int64_t interval_us; /* where the last interval ended */
};

static int open_file(const char *path, GError **error)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		g_set_error(error, G_FILE_ERROR, (int)g_file_error_from_errno(errno),
			    "the ledger file %s cannot be opened: %s", path, g_strerror(errno));
	return fd;
}

struct weir_journal *weir_journal_open(const char *path, GError **error)
{
	int fd = open_file(path, error);
	struct weir_journal *journal;

	if (fd < 0)
		return NULL;
	journal = g_new0(struct weir_journal, 1);
	journal->path = g_strdup(path);
	journal->fd = fd;
	journal->run = g_strdup_printf("%08x%08x", g_random_int(), g_random_int());
	pthread_mutex_init(&journal->lock, NULL);
	return journal;
}

void weir_journal_close(struct weir_journal *journal)
{
	if (!journal)
		return;
	close(journal->fd);
	pthread_mutex_destroy(&journal->lock);
	g_free(journal->path);
	g_free(journal->run);
	g_free(journal->past);
	g_free(journal);
}

uint64_t weir_journal_unwritten(const struct weir_journal *journal)
{
	return journal ? journal->unwritten : 0;
}

bool weir_journal_reopen(struct weir_journal *journal, GError **error)
{
	int fd;

	if (!journal)
		return true;
	fd = open_file(journal->path, error);
	if (fd < 0)
		return false;
	pthread_mutex_lock(&journal->lock);
	close(journal->fd);
	journal->fd = fd;
	journal->torn = false;
	pthread_mutex_unlock(&journal->lock);
	return true;
}

/* ---- Lines ---- */

static JsonObject *line_new(const struct weir_journal *journal, const char *event)
{
	JsonObject *line = json_object_new();

	weir_json_set_time(line, "time", g_get_real_time());
	weir_json_set_text(line, "run", journal->run);
	weir_json_set_text(line, "event", event);
	return line;
}

/* Takes the line. */
static bool put(struct weir_journal *journal, JsonObject *line)
{
	g_autofree char *json = weir_json_text(line, FALSE);
	g_autofree char *text = g_strconcat(journal->torn ? "\n" : "", json, "\n", NULL);
	size_t len = strlen(text);
	ssize_t written;

	do
		written = write(journal->fd, text, len);
	while (written < 0 && errno == EINTR);
	if (written >= 0)
		journal->torn = (size_t)written < len && (written > 0 || journal->torn);
	return written >= 0 && (size_t)written == len;
}

/* Takes the line.  With the lock held. */
static void write_line(struct weir_journal *journal, JsonObject *line)
{
	if (journal->unwritten) {
		JsonObject *gap = line_new(journal, "lines-missing");

		weir_json_set_count(gap, "lines", journal->unwritten);
		if (put(journal, gap))
			journal->unwritten = 0;
	}
	if (!put(journal, line))
		journal->unwritten++;
}

void weir_journal_event(struct weir_journal *journal, const char *node, int lane, const char *event,
			const char *detail)
{
	JsonObject *line;

	if (!journal)
		return;
	/* JSON is made under the lock too: GLib registers types at first use. */
	pthread_mutex_lock(&journal->lock);
	line = line_new(journal, event);
	if (node)
		weir_json_set_text(line, "node", node);
	if (lane >= 0)
		json_object_set_int_member(line, "lane", lane);
	if (detail)
		weir_json_set_text(line, "detail", detail);
	write_line(journal, line);
	pthread_mutex_unlock(&journal->lock);
}

void weir_journal_started(struct weir_journal *journal, const struct weir_graph *graph)
{
	JsonObject *line;

	if (!journal)
		return;
	pthread_mutex_lock(&journal->lock);
	line = line_new(journal, "run-started");
	weir_json_set_machine(line);
	json_object_set_int_member(line, "pid", getpid());
	weir_json_set_text(line, "source", graph->source);
	weir_json_set_text(line, "pipeline", graph->text);
	write_line(journal, line);
	pthread_mutex_unlock(&journal->lock);
}

void weir_journal_ended(struct weir_journal *journal, const struct weir_report *report)
{
	JsonObject *line;

	if (!journal)
		return;
	pthread_mutex_lock(&journal->lock);
	line = line_new(journal, "run-ended");
	weir_json_set_time(line, "start", report->start_us);
	weir_json_set_time(line, "end", report->end_us);
	weir_report_set_verdict(line, report);
	write_line(journal, line);
	pthread_mutex_unlock(&journal->lock);
}

/* ---- Intervals ---- */

/* The past of the next number in the order of the walk through the ledger. */
static struct past *next_past(struct weir_journal *journal)
{
	g_assert(journal->cursor < journal->n_past);
	return &journal->past[journal->cursor++];
}

static int64_t step(struct past *past, uint64_t value)
{
	int64_t grown = (int64_t)(value - past->value);

	past->value = value;
	return grown;
}

static void set_step(struct weir_journal *journal, JsonObject *object, const char *name,
		     uint64_t value)
{
	int64_t grown = step(next_past(journal), value);

	if (grown)
		json_object_set_int_member(object, name, grown);
}

/* A loss has begun or ended if it grew in one of two intervals and not in the other. */
static void tell_loss(struct weir_journal *journal, struct past *past, uint64_t before,
		      const struct weir_node *node, const char *what)
{
	bool losing = past->value > before;
	JsonObject *line;

	if (losing == past->losing)
		return;
	past->losing = losing;
	line = line_new(journal, losing ? "loss-began" : "loss-ended");
	weir_json_set_text(line, "node", node->name);
	weir_json_set_text(line, "what", what);
	weir_json_set_time(line, losing ? "after" : "before", journal->interval_us);
	if (losing)
		weir_json_set_count(line, "packets", past->value - before);
	write_line(journal, line);
}

static JsonObject *count_steps(struct weir_journal *journal, const struct weir_count *count)
{
	JsonObject *object = json_object_new();

	set_step(journal, object, "packets", count->packets);
	set_step(journal, object, "captured_bytes", count->captured);
	set_step(journal, object, "wire_bytes", count->wire);
	return object;
}

static JsonObject *output_steps(struct weir_journal *journal, const struct weir_ledger_node *entry)
{
	const struct weir_node *node = entry->node;
	JsonObject *outputs = json_object_new();

	for (unsigned i = 0; i < node->n_outputs; i++) {
		const char *name = weir_plugin_output(node->plugin, i)->name;
		struct past *packets = &journal->past[journal->cursor];
		uint64_t before = packets->value;

		weir_json_set_filled(outputs, name, count_steps(journal, &entry->total.out[i]));
		if (weir_node_meaning(node, i) == WEIR_LOSS)
			tell_loss(journal, packets, before, node, name);
	}
	return outputs;
}

static JsonObject *counter_steps(struct weir_journal *journal, const struct weir_ledger_node *entry)
{
	const struct weir_node *node = entry->node;
	JsonObject *counters = json_object_new();

	for (unsigned i = 0; i < node->n_counters; i++) {
		const struct weir_counter *counter = weir_plugin_counter(node->plugin, i);
		struct past *past = &journal->past[journal->cursor];
		uint64_t before = past->value;

		set_step(journal, counters, counter->name, entry->total.counters[i]);
		if (counter->role & (WEIR_IS_LOSS | WEIR_IS_NIC))
			tell_loss(journal, past, before, node, counter->name);
	}
	return counters;
}

static JsonObject *node_steps(struct weir_journal *journal, const struct weir_ledger_node *entry)
{
	JsonObject *object = json_object_new();

	weir_json_set_filled(object, "in", count_steps(journal, &entry->total.in));
	weir_json_set_filled(object, "outputs", output_steps(journal, entry));
	set_step(journal, object, "made", entry->total.made);
	set_step(journal, object, "absorbed", entry->total.absorbed);
	weir_json_set_filled(object, "counters", counter_steps(journal, entry));
	return object;
}

static void begin_walk(struct weir_journal *journal, const struct weir_report *report)
{
	journal->cursor = 0;
	if (journal->past)
		return;
	for (unsigned i = 0; i < report->ledger->n_nodes; i++) {
		const struct weir_node *node = report->ledger->nodes[i].node;

		journal->n_past += 5 + 3 * node->n_outputs + node->n_counters;
	}
	journal->past = g_new0(struct past, journal->n_past);
	journal->interval_us = report->start_us;
}

static void write_interval(struct weir_journal *journal, const struct weir_report *report)
{
	const struct weir_ledger *ledger = report->ledger;
	JsonObject *nodes = json_object_new();
	JsonObject *line;
	int64_t end_us = report->end_us ? report->end_us : g_get_real_time();

	begin_walk(journal, report);
	for (unsigned i = 0; i < ledger->n_nodes; i++)
		weir_json_set_filled(nodes, ledger->nodes[i].node->name,
				     node_steps(journal, &ledger->nodes[i]));
	line = line_new(journal, "interval");
	weir_json_set_time(line, "start", journal->interval_us);
	weir_json_set_time(line, "end", end_us);
	if (ledger->lost != journal->lost)
		weir_json_set_count(line, "lost", ledger->lost - journal->lost);
	if (ledger->nic != journal->nic)
		weir_json_set_count(line, "nic", ledger->nic - journal->nic);
	weir_json_set_filled(line, "nodes", nodes);
	write_line(journal, line);
	journal->interval_us = end_us;
	journal->lost = ledger->lost;
	journal->nic = ledger->nic;
}

void weir_journal_interval(struct weir_journal *journal, const struct weir_report *report)
{
	if (!journal)
		return;
	pthread_mutex_lock(&journal->lock);
	write_interval(journal, report);
	pthread_mutex_unlock(&journal->lock);
}
