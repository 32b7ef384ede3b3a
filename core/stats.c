/* stats.c: differences between two looks at the ledger, as rates. */
#include "stats.h"

#include "cells.h"
#include "human.h"

#include <sys/ioctl.h>
#include <unistd.h>

struct weir_stats {
	struct weir_count **out; /* for each node its outputs at the last look */
	unsigned n_nodes;
	GArray *losses; /* struct weir_loss, at the last look */
	int64_t shown_us;
	int drawn_lines; /* of the table on the terminal; atomic */
};

struct weir_stats *weir_stats_new(const struct weir_graph *graph)
{
	struct weir_stats *stats = g_new0(struct weir_stats, 1);

	stats->n_nodes = graph->nodes->len;
	stats->out = g_new0(struct weir_count *, stats->n_nodes + 1);
	for (unsigned n = 0; n < stats->n_nodes; n++) {
		const struct weir_node *node = graph->nodes->pdata[n];

		stats->out[n] = g_new0(struct weir_count, node->n_outputs + 1);
	}
	stats->losses = g_array_new(FALSE, FALSE, sizeof(struct weir_loss));
	stats->shown_us = g_get_monotonic_time();
	return stats;
}

void weir_stats_free(struct weir_stats *stats)
{
	if (!stats)
		return;
	for (unsigned n = 0; n < stats->n_nodes; n++)
		g_free(stats->out[n]);
	g_free(stats->out);
	g_array_unref(stats->losses);
	g_free(stats);
}

/* ---- Rates ---- */

struct rate {
	double packets, bits; /* a second; captured */
};

static double per_second(uint64_t now, uint64_t before, double seconds)
{
	return now > before ? (double)(now - before) / seconds : 0;
}

static struct rate rate_of(const struct weir_count *now, const struct weir_count *before,
			   double seconds)
{
	return (struct rate){per_second(now->packets, before->packets, seconds),
			     8 * per_second(now->captured, before->captured, seconds)};
}

static struct rate output_rate(const struct weir_stats *stats, const struct weir_ledger_node *entry,
			       unsigned output, double seconds)
{
	return rate_of(&entry->total.out[output], &stats->out[entry->node->index][output], seconds);
}

static uint64_t lost_before(const struct weir_stats *stats, const struct weir_loss *loss)
{
	for (unsigned i = 0; i < stats->losses->len; i++) {
		const struct weir_loss *before = &g_array_index(stats->losses, struct weir_loss, i);

		if (before->node == loss->node && before->what == loss->what)
			return before->packets;
	}
	return 0;
}

static void remember(struct weir_stats *stats, const struct weir_ledger *ledger)
{
	for (unsigned n = 0; n < stats->n_nodes; n++) {
		const struct weir_ledger_node *entry = &ledger->nodes[n];

		for (unsigned i = 0; i < entry->node->n_outputs; i++)
			stats->out[n][i] = entry->total.out[i];
	}
	g_array_unref(stats->losses);
	stats->losses = weir_ledger_losses(ledger);
}

/* ---- Words ---- */

static double elapsed(const struct weir_report *report)
{
	int64_t now_us = report->end_us ? report->end_us : g_get_real_time();

	return (double)(now_us - report->start_us) / 1e6;
}

static void add_rate(GString *to, double per_second, const char *unit)
{
	g_autofree char *text = weir_human_rate(per_second, unit);

	g_string_append_printf(to, " %s", text);
}

/* "lost 112 (now: q full 12), nic 0" */
static void add_losses(GString *to, const struct weir_stats *stats,
		       const struct weir_ledger *ledger)
{
	g_autoptr(GArray) losses = weir_ledger_losses(ledger);
	g_autofree char *lost = weir_human_count(ledger->lost);
	const char *before = " (now:";

	g_string_append_printf(to, "lost %s", lost);
	for (unsigned i = 0; i < losses->len; i++) {
		const struct weir_loss *loss = &g_array_index(losses, struct weir_loss, i);
		uint64_t grown = loss->packets - lost_before(stats, loss);
		g_autofree char *packets = weir_human_count(grown);

		if (!grown)
			continue;
		g_string_append_printf(to, "%s %s %s %s", before, loss->node->name, loss->what,
				       packets);
		before = ",";
	}
	g_string_append(to, *before == ',' ? ")" : "");
	if (ledger->has_nic) {
		g_autofree char *nic = weir_human_count(ledger->nic);

		g_string_append_printf(to, ", nic %s", nic);
	}
}

/* What a source takes in and a sink gets rid of. */
static void add_end(GString *to, const struct weir_stats *stats,
		    const struct weir_ledger_node *entry, double seconds)
{
	struct rate rate = output_rate(stats, entry, 0, seconds);

	if (entry->node->plugin->kind == WEIR_STAGE)
		return;
	g_string_append_printf(to, "%s", entry->node->name);
	add_rate(to, rate.packets, "pps");
	add_rate(to, rate.bits, "bps");
	g_string_append(to, "; ");
}

char *weir_stats_line(struct weir_stats *stats, const struct weir_report *report, double seconds)
{
	g_autofree char *time = weir_human_time(elapsed(report));
	GString *to = g_string_new(NULL);

	g_string_printf(to, "weir: %s: ", time);
	for (unsigned n = 0; n < stats->n_nodes; n++)
		add_end(to, stats, &report->ledger->nodes[n], seconds);
	add_losses(to, stats, report->ledger);
	g_string_append_c(to, '\n');
	remember(stats, report->ledger);
	return g_string_free(to, FALSE);
}

/* ---- The table ---- */

static void add_row(struct weir_cells *cells, const struct weir_stats *stats,
		    const struct weir_ledger_node *entry, unsigned output, double seconds)
{
	struct rate rate = output_rate(stats, entry, output, seconds);
	const char *name = weir_plugin_output(entry->node->plugin, output)->name;

	weir_cells_add(cells, output ? "" : entry->node->name);
	weir_cells_add(cells, name);
	weir_cells_take(cells, weir_human_rate(rate.packets, "pps"));
	weir_cells_take(cells, weir_human_rate(rate.bits, "bps"));
	weir_cells_take(cells, weir_human_count(entry->total.out[output].packets));
}

static void add_rows(struct weir_cells *cells, const struct weir_stats *stats,
		     const struct weir_ledger_node *entry, double seconds)
{
	for (unsigned i = 0; i < entry->node->n_outputs; i++) {
		if (i == 0 || entry->total.out[i].packets)
			add_row(cells, stats, entry, i, seconds);
	}
}

char *weir_stats_table(struct weir_stats *stats, const struct weir_report *report, double seconds)
{
	static const char *const heads[] = {"node", "output", "packets/s", "captured/s", "packets"};
	g_autofree char *time = weir_human_time(elapsed(report));
	struct weir_cells *cells = weir_cells_new("<<>>>");
	g_autofree char *rows = NULL;
	GString *to = g_string_new(NULL);

	for (unsigned i = 0; i < G_N_ELEMENTS(heads); i++)
		weir_cells_add(cells, heads[i]);
	for (unsigned n = 0; n < stats->n_nodes; n++)
		add_rows(cells, stats, &report->ledger->nodes[n], seconds);
	rows = weir_cells_text(cells, "  ");
	weir_cells_free(cells);
	g_string_printf(to, "weir: %s: ", time);
	add_losses(to, stats, report->ledger);
	g_string_append_printf(to, "\n%s", rows);
	remember(stats, report->ledger);
	return g_string_free(to, FALSE);
}

/* ---- The terminal ---- */

void weir_stats_interrupt(struct weir_stats *stats)
{
	if (stats)
		__atomic_store_n(&stats->drawn_lines, 0, __ATOMIC_RELAXED);
}

/* Lines that wrap or scroll away could not be drawn over: they are cut, and the last ones left out.
 * Returns how many were drawn. */
static int draw(const char *table, int columns, int rows, FILE *to)
{
	g_auto(GStrv) lines = g_strsplit(table, "\n", -1);
	int n = 0;

	for (; lines[n] && *lines[n] && n < rows - 1; n++) {
		g_autofree char *line = g_utf8_substring(
			lines[n], 0, MIN(columns - 1, g_utf8_strlen(lines[n], -1)));

		fprintf(to, "%s\n", line);
	}
	return n;
}

static void redraw(struct weir_stats *stats, const char *table, FILE *to)
{
	struct winsize size = {0};
	int drawn;

	if (ioctl(fileno(to), TIOCGWINSZ, &size) != 0 || size.ws_col < 2 || size.ws_row < 2)
		size = (struct winsize){.ws_col = 80, .ws_row = 24};
	drawn = __atomic_load_n(&stats->drawn_lines, __ATOMIC_RELAXED);
	if (drawn)
		fprintf(to, "\033[%dA\r\033[J", drawn);
	drawn = draw(table, size.ws_col, size.ws_row, to);
	fflush(to);
	__atomic_store_n(&stats->drawn_lines, drawn, __ATOMIC_RELAXED);
}

void weir_stats_show(struct weir_stats *stats, const struct weir_report *report, FILE *to)
{
	int64_t now_us = g_get_monotonic_time();
	double seconds = MAX((double)(now_us - stats->shown_us) / 1e6, 1e-6);
	bool terminal = isatty(fileno(to));
	g_autofree char *text = terminal ? weir_stats_table(stats, report, seconds)
					 : weir_stats_line(stats, report, seconds);

	if (terminal)
		redraw(stats, text, to);
	else
		fputs(text, to);
	stats->shown_us = now_us;
}
