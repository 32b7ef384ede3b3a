/*
 * provenance.c: what a sink may write down of where its packets come from.
 *
 * The third part of weir/plugin.h that core implements.  Figures are those of the ledger, since
 * they are read from the same rows.
 */
#include "lane.h"

#include <stdlib.h>
#include <string.h>

#define FILTER_MAX 4096
#define STEPS_MAX  256 /* of paths that part and meet again there may be very many */

static const struct weir_context *context_of(struct weir_self *self)
{
	return weir_seat_of(self)->instance->context;
}

const char *weir_pipeline(struct weir_self *self)
{
	return context_of(self)->graph->text;
}

const char *weir_pipeline_sha256(struct weir_self *self)
{
	return context_of(self)->pipeline_sha256;
}

/* ---- Filters ---- */

struct path {
	bool exists; /* from the source */
	char *text;  /* NULL: lets everything through */
};

/* The filter of a stage; NULL: it has none, or one whose meaning depends on more. */
static const char *filter_of(const struct weir_node *node)
{
	if (node->plugin->kind != WEIR_STAGE || node->n_options == 0 ||
	    strcmp(weir_plugin_option(node->plugin, 0)->name, "filter") != 0)
		return NULL;
	for (unsigned i = 1; i < node->n_options; i++) {
		if (node->values[i].given)
			return NULL;
	}
	return node->values[0].given ? node->values[0].text : NULL;
}

/* Both conditions; takes `before`. */
static char *both(char *before, const char *filter, unsigned output)
{
	g_autofree char *first = before;
	g_autofree char *own = NULL;

	if (!filter || output > 1)
		return g_steal_pointer(&first);
	own = g_strdup_printf(output == 0 ? "(%s)" : "not (%s)", filter);
	return first ? g_strdup_printf("%s and %s", first, own) : g_steal_pointer(&own);
}

/* Either condition; takes both. */
static char *either(char *a, char *b)
{
	g_autofree char *first = a;
	g_autofree char *second = b;

	if (!first || !second)
		return NULL;
	return g_strdup_printf("(%s) or (%s)", first, second);
}

static struct path path_to(const struct weir_node *node, const struct weir_node *source,
			   unsigned *steps)
{
	struct path path = {.exists = node == source};

	for (unsigned i = 0; i < node->in->len; i++) {
		const struct weir_edge *edge = node->in->pdata[i];
		struct path before = {.exists = true};

		if ((*steps)++ < STEPS_MAX)
			before = path_to(edge->from, source, steps);
		if (!before.exists)
			continue;
		before.text = both(before.text, filter_of(edge->from), edge->output);
		path.text = path.exists ? either(path.text, before.text) : before.text;
		path.exists = true;
	}
	return path;
}

char *weir_filter_upstream(struct weir_self *self, uint16_t iface)
{
	const struct weir_node *source = weir_interfaces_node(context_of(self)->interfaces, iface);
	unsigned steps = 0;
	struct path path = path_to(weir_seat_of(self)->instance->node, source, &steps);
	char *text = path.text && strlen(path.text) <= FILTER_MAX ? strdup(path.text) : NULL;

	g_free(path.text);
	return text;
}

/* ---- Figures ---- */

static void add_known(uint64_t *sum, uint64_t n)
{
	*sum = (*sum == UINT64_MAX ? 0 : *sum) + n;
}

static void add_row(struct weir_counted *sum, const struct weir_node *node,
		    const struct weir_row *row)
{
	for (unsigned i = 0; i < node->n_counters; i++) {
		uint32_t role = weir_plugin_counter(node->plugin, i)->role;
		uint64_t n = __atomic_load_n(&row->counters[i], __ATOMIC_RELAXED);

		if (!__atomic_load_n(&row->counter_set[i], __ATOMIC_RELAXED))
			continue;
		if ((role & WEIR_ROLE) == WEIR_PLUS_PACKETS)
			add_known(&sum->received, n);
		if (role & WEIR_IS_LOSS)
			add_known(&sum->dropped, n);
		if (role & WEIR_IS_NIC)
			add_known(&sum->missed, n);
	}
}

static bool has_several(const struct weir_interfaces *interfaces, const struct weir_node *source)
{
	unsigned found = 0;

	for (unsigned id = 0; id < weir_interfaces_count(interfaces); id++)
		found += weir_interfaces_node(interfaces, (uint16_t)id) == source;
	return found > 1;
}

void weir_interface_counted(struct weir_self *self, uint16_t iface, struct weir_counted *ret)
{
	const struct weir_context *context = context_of(self);
	const struct weir_node *source = weir_interfaces_node(context->interfaces, iface);
	struct weir_lane *lane = weir_seat_of(self)->lane;
	const struct weir_instance *instance;

	*ret = (struct weir_counted){UINT64_MAX, UINT64_MAX, UINT64_MAX};
	if (!source || has_several(context->interfaces, source))
		return;
	instance = context->instances[source->index];
	/* The last look may be a second old; other lanes look for themselves. */
	if (lane && !weir_lane_ended(lane))
		weir_lane_witness(lane, instance);
	for (unsigned i = 0; i <= instance->n_lanes; i++)
		add_row(ret, source, &instance->rows[i]);
}
