/* metrics.c: the ledger in Prometheus' text format 0.0.4, for the node exporter's textfile
 * collector.
 *
 * Every sample has the label `pipeline`, since the collector merges the files of all runs of a
 * machine.
 */
#include "report.h"

#include <inttypes.h>
#include <stdarg.h>

struct metrics {
	const struct weir_report *report;
	GString *to;
	GString *labels; /* of the next sample, beside `pipeline` */
};

static void add_escaped(GString *to, const char *value)
{
	g_autofree char *valid = g_utf8_make_valid(value, -1);

	for (const char *c = valid; *c; c++) {
		if (*c == '\n')
			g_string_append(to, "\\n");
		else if (*c == '\\' || *c == '"')
			g_string_append_printf(to, "\\%c", *c);
		else
			g_string_append_c(to, *c);
	}
}

static void label(struct metrics *metrics, const char *name, const char *value)
{
	g_string_append_printf(metrics->labels, ",%s=\"", name);
	add_escaped(metrics->labels, value);
	g_string_append_c(metrics->labels, '"');
}

static void family(struct metrics *metrics, const char *name, const char *type, const char *help)
{
	g_string_append_printf(metrics->to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* With the labels collected so far, which are used up. */
static void sample(struct metrics *metrics, const char *name, const char *format, ...)
	G_GNUC_PRINTF(3, 4);

static void sample(struct metrics *metrics, const char *name, const char *format, ...)
{
	va_list args;

	g_string_append_printf(metrics->to, "%s{pipeline=\"", name);
	add_escaped(metrics->to, metrics->report->graph->source);
	g_string_append_printf(metrics->to, "\"%s} ", metrics->labels->str);
	g_string_truncate(metrics->labels, 0);
	va_start(args, format);
	g_string_append_vprintf(metrics->to, format, args);
	va_end(args);
	g_string_append_c(metrics->to, '\n');
}

/* ---- Rows: what each node counted in each lane ---- */

struct place {
	const struct weir_node *node;
	const struct weir_row *row;
	int lane; /* -1: the node's own row */
};

typedef void (*row_fn)(struct metrics *metrics, const char *name, const struct place *place);

static void each_row(struct metrics *metrics, const char *name, row_fn visit)
{
	const struct weir_ledger *ledger = metrics->report->ledger;

	for (unsigned n = 0; n < ledger->n_nodes; n++) {
		const struct weir_ledger_node *entry = &ledger->nodes[n];

		for (unsigned i = 0; i <= entry->n_lanes; i++) {
			struct place place = {entry->node, &entry->lanes[i],
					      i < entry->n_lanes ? (int)i : -1};

			visit(metrics, name, &place);
		}
	}
}

/* kind, which: a label beside the place, or NULL. */
static void count_sample(struct metrics *metrics, const char *name, const struct place *place,
			 const char *kind, const char *which, uint64_t value)
{
	char lane[16];

	label(metrics, "node", place->node->name);
	if (kind)
		label(metrics, kind, which);
	g_snprintf(lane, sizeof(lane), "%d", place->lane);
	if (place->lane >= 0)
		label(metrics, "lane", lane);
	sample(metrics, name, "%" PRIu64, value);
}

static void in_packets(struct metrics *metrics, const char *name, const struct place *place)
{
	if (place->lane >= 0 && place->node->plugin->kind != WEIR_SOURCE)
		count_sample(metrics, name, place, NULL, NULL, place->row->in.packets);
}

static void in_bytes(struct metrics *metrics, const char *name, const struct place *place)
{
	if (place->lane >= 0 && place->node->plugin->kind != WEIR_SOURCE)
		count_sample(metrics, name, place, NULL, NULL, place->row->in.captured);
}

/* The node's own row has only what a plugin settled without a lane. */
static bool is_used(const struct place *place, const struct weir_count *count)
{
	return place->lane >= 0 || count->packets;
}

static void out_packets(struct metrics *metrics, const char *name, const struct place *place)
{
	for (unsigned i = 0; i < place->node->n_outputs; i++) {
		const char *output = weir_plugin_output(place->node->plugin, i)->name;

		if (is_used(place, &place->row->out[i]))
			count_sample(metrics, name, place, "output", output,
				     place->row->out[i].packets);
	}
}

static void out_bytes(struct metrics *metrics, const char *name, const struct place *place)
{
	for (unsigned i = 0; i < place->node->n_outputs; i++) {
		const char *output = weir_plugin_output(place->node->plugin, i)->name;

		if (is_used(place, &place->row->out[i]))
			count_sample(metrics, name, place, "output", output,
				     place->row->out[i].captured);
	}
}

static void counters(struct metrics *metrics, const char *name, const struct place *place)
{
	for (unsigned i = 0; i < place->node->n_counters; i++) {
		const char *counter = weir_plugin_counter(place->node->plugin, i)->name;

		if (place->row->counter_set[i])
			count_sample(metrics, name, place, "counter", counter,
				     place->row->counters[i]);
	}
}

static const struct {
	const char *name, *type, *help;
	row_fn visit;
} row_families[] = {
	{"weir_node_in_packets_total", "counter", "Packets that came into a node.", in_packets},
	{"weir_node_in_captured_bytes_total", "counter", "Captured bytes that came into a node.",
	 in_bytes},
	{"weir_output_packets_total", "counter",
	 "Packets that left a node by an output, or had that outcome at a sink.", out_packets},
	{"weir_output_captured_bytes_total", "counter", "Their captured bytes.", out_bytes},
	{"weir_counter", "untyped", "What a plugin counted, see 'weir plugins NAME'.", counters},
};

/* ---- The run ---- */

static void add_losses(struct metrics *metrics)
{
	const struct weir_ledger *ledger = metrics->report->ledger;
	g_autoptr(GArray) losses = weir_ledger_losses(ledger);

	family(metrics, "weir_lost_packets_total", "counter", "Packets that the run has lost.");
	sample(metrics, "weir_lost_packets_total", "%" PRIu64, ledger->lost);
	family(metrics, "weir_loss_packets_total", "counter", "Lost packets by node and kind.");
	for (unsigned i = 0; i < losses->len; i++) {
		const struct weir_loss *loss = &g_array_index(losses, struct weir_loss, i);

		label(metrics, "node", loss->node->name);
		label(metrics, "what", loss->what);
		sample(metrics, "weir_loss_packets_total", "%" PRIu64, loss->packets);
	}
	if (!ledger->has_nic)
		return;
	family(metrics, "weir_nic_lost_packets_total", "counter", "Packets that NICs have lost.");
	sample(metrics, "weir_nic_lost_packets_total", "%" PRIu64, ledger->nic);
}

static void add_threads(struct metrics *metrics)
{
	const struct weir_report *report = metrics->report;

	family(metrics, "weir_cpu_seconds_total", "counter",
	       "Processor time of the whole process.");
	sample(metrics, "weir_cpu_seconds_total", "%.6f", report->cpu_seconds);
	family(metrics, "weir_thread_cpu_seconds_total", "counter",
	       "Processor time of a lane's thread, and of the main one.");
	for (unsigned i = 0; i < report->n_threads; i++) {
		label(metrics, "thread", report->threads[i].name);
		sample(metrics, "weir_thread_cpu_seconds_total", "%.6f",
		       report->threads[i].cpu_seconds);
	}
}

static void add_run(struct metrics *metrics)
{
	const struct weir_report *report = metrics->report;

	family(metrics, "weir_info", "gauge", "1, with the version.");
	label(metrics, "version", WEIR_VERSION);
	sample(metrics, "weir_info", "1");
	family(metrics, "weir_run_start_time_seconds", "gauge", "When the run began, Unix time.");
	sample(metrics, "weir_run_start_time_seconds", "%.6f", (double)report->start_us / 1e6);
	if (report->end_us) {
		family(metrics, "weir_run_end_time_seconds", "gauge",
		       "When it ended; absent while it runs.");
		sample(metrics, "weir_run_end_time_seconds", "%.6f", (double)report->end_us / 1e6);
	}
	if (report->balanced >= 0) {
		family(metrics, "weir_balanced", "gauge",
		       "1 if the ledger of the ended run closes, else 0.");
		sample(metrics, "weir_balanced", "%d", report->balanced);
	}
}

char *weir_report_metrics(const struct weir_report *report)
{
	struct metrics metrics = {report, g_string_new(NULL), g_string_new(NULL)};

	add_run(&metrics);
	add_losses(&metrics);
	for (unsigned i = 0; i < G_N_ELEMENTS(row_families); i++) {
		family(&metrics, row_families[i].name, row_families[i].type, row_families[i].help);
		each_row(&metrics, row_families[i].name, row_families[i].visit);
	}
	add_threads(&metrics);
	g_string_free(metrics.labels, TRUE);
	return g_string_free(metrics.to, FALSE);
}
