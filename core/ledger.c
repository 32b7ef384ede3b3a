/* ledger.c: copies rows, sums them, and proves them. */
#include "ledger.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE ((size_t)64)

/* Zeros in lines of their own, for free(). */
static void *lines_new(size_t n, size_t size)
{
	size_t bytes = (n * size + CACHE_LINE) / CACHE_LINE * CACHE_LINE;
	void *lines = aligned_alloc(CACHE_LINE, bytes);

	g_assert(lines);
	return memset(lines, 0, bytes);
}

void weir_row_init(struct weir_row *row, const struct weir_node *node)
{
	*row = (struct weir_row){
		.out = lines_new(node->n_outputs, sizeof(*row->out)),
		.counters = lines_new(node->n_counters, sizeof(*row->counters)),
		.counter_set = lines_new(node->n_counters, sizeof(*row->counter_set)),
	};
}

void weir_row_clear(struct weir_row *row)
{
	free(row->out);
	free(row->counters);
	free(row->counter_set);
	*row = (struct weir_row){0};
}

static void add(uint64_t *sum, const uint64_t *at)
{
	*sum += __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static void add_count(struct weir_count *sum, const struct weir_count *at)
{
	add(&sum->packets, &at->packets);
	add(&sum->captured, &at->captured);
	add(&sum->wire, &at->wire);
}

static void add_left(struct weir_row *sum, const struct weir_row *row, const struct weir_node *node)
{
	for (unsigned i = 0; i < node->n_outputs; i++)
		add_count(&sum->out[i], &row->out[i]);
	add(&sum->absorbed, &row->absorbed);
}

static void add_came(struct weir_row *sum, const struct weir_row *row, const struct weir_node *node)
{
	add_count(&sum->in, &row->in);
	add(&sum->made, &row->made);
	add(&sum->astray, &row->astray);
	add(&sum->faults, &row->faults);
	for (unsigned i = 0; i < node->n_counters; i++) {
		add(&sum->counters[i], &row->counters[i]);
		sum->counter_set[i] |= __atomic_load_n(&row->counter_set[i], __ATOMIC_RELAXED);
	}
}

/* What left first, in all lanes, since packets come into a queue in one and leave in another: one
 * on its way is then seen as held, never as left before it came. */
static void copy_rows(struct weir_ledger_node *entry, const struct weir_row *rows)
{
	for (unsigned i = 0; i <= entry->n_lanes; i++) {
		weir_row_init(&entry->lanes[i], entry->node);
		add_left(&entry->lanes[i], &rows[i], entry->node);
	}
	for (unsigned i = 0; i <= entry->n_lanes; i++) {
		add_came(&entry->lanes[i], &rows[i], entry->node);
		add_left(&entry->total, &entry->lanes[i], entry->node);
		add_came(&entry->total, &entry->lanes[i], entry->node);
	}
}

static uint64_t packets_out(const struct weir_ledger_node *entry)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < entry->node->n_outputs; i++)
		sum += entry->total.out[i].packets;
	return sum;
}

static uint32_t role(const struct weir_node *node, unsigned counter)
{
	return weir_plugin_counter(node->plugin, counter)->role;
}

static void sum_losses(struct weir_ledger *ledger)
{
	g_autoptr(GArray) losses = weir_ledger_losses(ledger);

	for (unsigned i = 0; i < losses->len; i++)
		ledger->lost += g_array_index(losses, struct weir_loss, i).packets;
	for (unsigned n = 0; n < ledger->n_nodes; n++) {
		const struct weir_ledger_node *entry = &ledger->nodes[n];

		for (unsigned i = 0; i < entry->node->n_counters; i++) {
			if (!(role(entry->node, i) & WEIR_IS_NIC) || !entry->total.counter_set[i])
				continue;
			ledger->nic += entry->total.counters[i];
			ledger->has_nic = true;
		}
	}
}

struct weir_ledger *weir_ledger_new(const struct weir_graph *graph, struct weir_row *const *rows,
				    const unsigned *n_lanes)
{
	struct weir_ledger *ledger = g_new0(struct weir_ledger, 1);

	ledger->n_nodes = graph->nodes->len;
	ledger->nodes = g_new0(struct weir_ledger_node, ledger->n_nodes);
	ledger->problems = g_ptr_array_new_with_free_func(g_free);
	for (unsigned n = 0; n < ledger->n_nodes; n++) {
		struct weir_ledger_node *entry = &ledger->nodes[n];

		entry->node = graph->nodes->pdata[n];
		entry->n_lanes = n_lanes[n];
		entry->lanes = g_new0(struct weir_row, entry->n_lanes + 1);
		weir_row_init(&entry->total, entry->node);
		copy_rows(entry, rows[n]);
		if (entry->node->plugin->kind != WEIR_SOURCE)
			entry->held = (int64_t)(entry->total.in.packets + entry->total.made -
						entry->total.absorbed - packets_out(entry));
	}
	sum_losses(ledger);
	return ledger;
}

void weir_ledger_free(struct weir_ledger *ledger)
{
	if (!ledger)
		return;
	for (unsigned n = 0; n < ledger->n_nodes; n++) {
		for (unsigned i = 0; i <= ledger->nodes[n].n_lanes; i++)
			weir_row_clear(&ledger->nodes[n].lanes[i]);
		weir_row_clear(&ledger->nodes[n].total);
		g_free(ledger->nodes[n].lanes);
	}
	g_ptr_array_unref(ledger->problems);
	g_free(ledger->nodes);
	g_free(ledger);
}

uint32_t weir_node_meaning(const struct weir_node *node, unsigned output)
{
	if (node->plugin->kind != WEIR_SINK && node->out[output]->len)
		return WEIR_PASS;
	return weir_plugin_output(node->plugin, output)->unconnected;
}

GArray *weir_ledger_losses(const struct weir_ledger *ledger)
{
	GArray *losses = g_array_new(FALSE, FALSE, sizeof(struct weir_loss));

	for (unsigned n = 0; n < ledger->n_nodes; n++) {
		const struct weir_ledger_node *entry = &ledger->nodes[n];
		struct weir_loss loss = {.node = entry->node};

		for (unsigned i = 0; i < entry->node->n_counters; i++) {
			loss.what = weir_plugin_counter(entry->node->plugin, i)->name;
			loss.packets = entry->total.counters[i];
			if (loss.packets && role(entry->node, i) & WEIR_IS_LOSS)
				g_array_append_val(losses, loss);
		}
		for (unsigned i = 0; i < entry->node->n_outputs; i++) {
			loss.what = weir_plugin_output(entry->node->plugin, i)->name;
			loss.packets = entry->total.out[i].packets;
			if (loss.packets && weir_node_meaning(entry->node, i) == WEIR_LOSS)
				g_array_append_val(losses, loss);
		}
	}
	return losses;
}

/* ---- The proof ---- */

static void problem(struct weir_ledger *ledger, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void problem(struct weir_ledger *ledger, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	g_ptr_array_add(ledger->problems, g_strdup_vprintf(format, args));
	va_end(args);
}

static void check_edges(struct weir_ledger *ledger, const struct weir_ledger_node *entry)
{
	struct weir_count sum = {0};
	const struct weir_count *in = &entry->total.in;

	for (unsigned i = 0; i < entry->node->in->len; i++) {
		const struct weir_edge *edge = entry->node->in->pdata[i];

		add_count(&sum, &ledger->nodes[edge->from->index].total.out[edge->output]);
	}
	if (sum.packets != in->packets || sum.captured != in->captured || sum.wire != in->wire)
		problem(ledger,
			"%s: %" PRIu64 " packets (%" PRIu64 " bytes captured, %" PRIu64
			" on the wire) were sent to it, %" PRIu64 " (%" PRIu64 ", %" PRIu64
			") came in",
			entry->node->name, sum.packets, sum.captured, sum.wire, in->packets,
			in->captured, in->wire);
}

/* The terms of one kind: packets or bytes; false if the table has none. */
static bool sum_terms(const struct weir_ledger_node *entry, uint32_t plus, uint32_t minus,
		      int64_t *ret_sum)
{
	bool any = false;

	*ret_sum = 0;
	for (unsigned i = 0; i < entry->node->n_counters; i++) {
		uint32_t kind = role(entry->node, i) & WEIR_ROLE;

		if (kind != plus && kind != minus)
			continue;
		any = true;
		*ret_sum += (kind == plus ? 1 : -1) * (int64_t)entry->total.counters[i];
	}
	return any;
}

static void check_witness(struct weir_ledger *ledger, const struct weir_ledger_node *entry)
{
	bool source = entry->node->plugin->kind == WEIR_SOURCE;
	uint64_t proved = source ? packets_out(entry) : entry->total.out[0].packets;
	int64_t sum;

	if (sum_terms(entry, WEIR_PLUS_PACKETS, WEIR_MINUS_PACKETS, &sum) && sum != (int64_t)proved)
		problem(ledger, "%s: its witness says %" PRId64 " packets, it %s %" PRIu64,
			entry->node->name, sum, source ? "sent on" : "counted", proved);
	if (sum_terms(entry, WEIR_PLUS_BYTES, WEIR_MINUS_BYTES, &sum) && sum != 0)
		problem(ledger, "%s: %" PRId64 " bytes are not accounted for", entry->node->name,
			sum);
}

bool weir_ledger_balance(struct weir_ledger *ledger)
{
	for (unsigned n = 0; n < ledger->n_nodes; n++) {
		const struct weir_ledger_node *entry = &ledger->nodes[n];

		if (entry->node->plugin->kind != WEIR_SOURCE)
			check_edges(ledger, entry);
		if (entry->total.astray)
			problem(ledger,
				"%s: plugin '%s' gave %" PRIu64
				" packets a verdict that is none of its %u outputs",
				entry->node->name, entry->node->plugin->name, entry->total.astray,
				entry->node->n_outputs);
		if (entry->total.faults)
			problem(ledger, "%s: faults of plugin '%s', each in a warning: %" PRIu64,
				entry->node->name, entry->node->plugin->name, entry->total.faults);
		if (entry->held != 0)
			problem(ledger, "%s: %" PRId64 " packets %s", entry->node->name,
				entry->held,
				entry->held < 0 ? "more left than came in"
				: entry->node->plugin->kind == WEIR_SINK
					? "are still pending"
					: "came in and never left");
		if (entry->node->plugin->kind != WEIR_STAGE)
			check_witness(ledger, entry);
	}
	return ledger->problems->len == 0;
}
