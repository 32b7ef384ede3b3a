/* report_text.c: the ledger for people: a row for each way out of a node, what was lost, whether it
 * closes. */
#include "report.h"

#include "cells.h"
#include "human.h"
#include "json.h"

/* ---- The table ---- */

static void add_count(struct weir_cells *cells, const struct weir_count *count)
{
	weir_cells_take(cells, weir_human_count(count->packets));
	weir_cells_take(cells, weir_human_bytes(count->captured));
}

static const char *remark(const struct weir_ledger_node *entry, unsigned output)
{
	uint32_t meaning = weir_node_meaning(entry->node, output);

	if (entry->total.out[output].packets == 0 || meaning == WEIR_PASS)
		return "";
	return meaning == WEIR_LOSS ? "LOST" : "discarded";
}

static void add_row(struct weir_cells *cells, const struct weir_ledger_node *entry, unsigned output,
		    bool first)
{
	const struct weir_node *node = entry->node;

	weir_cells_add(cells, first ? node->name : "");
	if (first && node->plugin->kind != WEIR_SOURCE) {
		add_count(cells, &entry->total.in);
	} else {
		weir_cells_add(cells, "");
		weir_cells_add(cells, "");
	}
	weir_cells_add(cells, weir_plugin_output(node->plugin, output)->name);
	add_count(cells, &entry->total.out[output]);
	weir_cells_add(cells, remark(entry, output));
}

/* Ways that no packet took are left out, but every node has a row. */
static void add_node(struct weir_cells *cells, const struct weir_ledger_node *entry)
{
	bool first = true;

	for (unsigned i = 0; i < entry->node->n_outputs; i++) {
		if (entry->total.out[i].packets == 0)
			continue;
		add_row(cells, entry, i, first);
		first = false;
	}
	if (first && entry->node->n_outputs)
		add_row(cells, entry, 0, true);
}

static void print_table(const struct weir_ledger *ledger, FILE *to)
{
	static const char *const heads[] = {"node",    "in",       "captured", "output",
					    "packets", "captured", ""};
	struct weir_cells *cells = weir_cells_new("<>><>><");
	g_autofree char *text = NULL;

	for (unsigned i = 0; i < G_N_ELEMENTS(heads); i++)
		weir_cells_add(cells, heads[i]);
	for (unsigned i = 0; i < ledger->n_nodes; i++)
		add_node(cells, &ledger->nodes[i]);
	text = weir_cells_text(cells, "  ");
	fputs(text, to);
	weir_cells_free(cells);
}

/* ---- What follows it ---- */

static void print_held(const struct weir_ledger *ledger, FILE *to)
{
	for (unsigned i = 0; i < ledger->n_nodes; i++) {
		const struct weir_ledger_node *entry = &ledger->nodes[i];

		if (entry->held)
			fprintf(to, "  %s: %" G_GINT64_FORMAT " packets %s\n", entry->node->name,
				entry->held,
				entry->node->plugin->kind == WEIR_SINK ? "pending" : "held");
	}
}

static void print_losses(const struct weir_ledger *ledger, FILE *to)
{
	g_autoptr(GArray) losses = weir_ledger_losses(ledger);
	g_autofree char *lost = weir_human_count(ledger->lost);
	g_autofree char *nic = weir_human_count(ledger->nic);

	fprintf(to, "  lost %s packets", lost);
	for (unsigned i = 0; i < losses->len; i++) {
		const struct weir_loss *loss = &g_array_index(losses, struct weir_loss, i);
		g_autofree char *packets = weir_human_count(loss->packets);

		fprintf(to, "%s %s %s %s", i ? "," : ":", loss->node->name, loss->what, packets);
	}
	fprintf(to, "; lost by the NIC: %s\n", ledger->has_nic ? nic : "unknown");
}

/* What the kernel did not hand over since nobody wanted it. */
static void print_kept_out(const struct weir_report *report, FILE *to)
{
	for (unsigned i = 0; i < report->ledger->n_nodes; i++) {
		const struct weir_ledger_node *entry = &report->ledger->nodes[i];
		const struct weir_push *push = weir_report_push(report, entry->node);
		g_autofree char *packets = NULL;
		uint64_t kept_out;

		if (!push)
			continue;
		if (weir_report_kept_out(entry, &kept_out))
			packets = weir_human_count(kept_out);
		fprintf(to, "  %s: kept out by the kernel: %s, for %s\n", entry->node->name,
			packets ? packets : "unknown", push->what);
	}
}

static void print_threads(const struct weir_report *report, FILE *to)
{
	fprintf(to, "  processor time %.2f s", report->cpu_seconds);
	for (unsigned i = 0; i < report->n_threads; i++)
		fprintf(to, "%s %s %.2f", i ? "," : ":", report->threads[i].name,
			report->threads[i].cpu_seconds);
	fputc('\n', to);
}

static void print_verdict(const struct weir_report *report, FILE *to)
{
	const GPtrArray *problems = report->ledger->problems;

	if (report->balanced < 0)
		return;
	if (report->balanced) {
		fprintf(to, "  balanced\n");
		return;
	}
	fprintf(to, "weir: THE LEDGER DOES NOT CLOSE:\n");
	for (unsigned i = 0; i < problems->len; i++)
		fprintf(to, "weir:   %s\n", (char *)problems->pdata[i]);
}

void weir_report_print(const struct weir_report *report, FILE *to)
{
	int64_t end_us = report->end_us ? report->end_us : g_get_real_time();
	g_autofree char *start = weir_time_text(report->start_us);
	g_autofree char *length = weir_human_time((double)(end_us - report->start_us) / 1e6);

	fprintf(to, "weir: ledger of %s, %s %s, since %s\n", report->graph->source,
		report->end_us ? "ended after" : "running for", length, start);
	print_table(report->ledger, to);
	if (report->balanced < 0)
		print_held(report->ledger, to);
	print_losses(report->ledger, to);
	print_kept_out(report, to);
	print_threads(report, to);
	print_verdict(report, to);
}
