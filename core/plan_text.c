/* plan_text.c: what `weir plan` says: threads, where packets wait and where they are copied, what
 * it needs. */
#include "plan_text.h"

#include "cells.h"
#include "human.h"
#include "push.h"
#include "queue.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

static bool is_queue(const struct weir_node *node)
{
	return node->plugin == &weir_queue_plugin;
}

static int processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

static unsigned count_lanes(const struct weir_plan *plan)
{
	unsigned n = 0;

	for (unsigned i = 0; i < plan->domains->len; i++)
		n += ((struct weir_domain *)plan->domains->pdata[i])->n_lanes;
	return n;
}

/* ---- Lanes ---- */

static const char *split_text(const struct weir_domain *domain)
{
	static const char *const texts[] = {[WEIR_LANES_ANY] = "flows are taken apart",
					    [WEIR_LANES_FLOW] = "whole flows in each",
					    [WEIR_LANES_ONE] = "which has all packets"};

	return texts[domain->split];
}

static const char *kind_text(const struct weir_domain *domain)
{
	return domain->live && domain->files ? "live and files" : domain->live ? "live" : "files";
}

static void add_nodes(GString *to, const struct weir_domain *domain)
{
	g_string_append_printf(to, "  each runs %s", domain->head->node->name);
	for (unsigned i = 0; i < domain->nodes->len; i++) {
		const struct weir_node *node =
			((struct weir_instance *)domain->nodes->pdata[i])->node;

		g_string_append_printf(to, ", %s%s", node->name, is_queue(node) ? " (into)" : "");
	}
	g_string_append_c(to, '\n');
}

static void add_processors(GString *to, const struct weir_domain *domain)
{
	struct weir_self *self = &domain->head->seat.self;
	const struct weir_plugin *plugin = domain->head->node->plugin;
	const char *before = "  lanes on processors ";

	for (unsigned i = 0; plugin->processor && i < domain->n_lanes; i++) {
		int processor = plugin->processor(self, i);

		if (processor < 0)
			return;
		g_string_append_printf(to, "%s%d", before, processor);
		before = ", ";
	}
	if (*before == ',')
		g_string_append_c(to, '\n');
}

static void add_description(GString *to, struct weir_instance *head)
{
	const struct weir_plugin *plugin = head->node->plugin;
	char *text = plugin->describe ? plugin->describe(&head->seat.self) : NULL;
	g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);

	for (char **line = lines; *line; line++) {
		if (**line)
			g_string_append_printf(to, "  %s\n", *line);
	}
	free(text);
}

static void add_domain(GString *to, const struct weir_domain *domain)
{
	const struct weir_node *node = domain->head->node;

	g_string_append_printf(to, "%s: %s, %s; %u lane%s, %s\n", node->name, node->plugin->name,
			       kind_text(domain), domain->n_lanes, domain->n_lanes == 1 ? "" : "s",
			       split_text(domain));
	add_nodes(to, domain);
	g_string_append_printf(to, "  when a sink or queue is full %s\n",
			       domain->waits ? "they wait" : "packets are dropped and counted");
	add_processors(to, domain);
	add_description(to, domain->head);
}

static void add_lanes(GString *to, const struct weir_plan *plan)
{
	int available = processors();
	unsigned lanes = count_lanes(plan);

	g_string_append_printf(to,
			       "threads: %u lane%s and the main thread, besides those of plugins; "
			       "%d processor%s\n",
			       lanes, lanes == 1 ? "" : "s", available, available == 1 ? "" : "s");
	for (unsigned i = 0; i < plan->domains->len; i++)
		add_domain(to, plan->domains->pdata[i]);
}

/* ---- Pushdown ---- */

#define ETHERNET 1 /* the link type is known for sure once a source is open */

static void add_push(GString *to, const struct weir_plan *plan)
{
	for (unsigned i = 0; i < plan->domains->len; i++) {
		const struct weir_domain *domain = plan->domains->pdata[i];
		g_autofree char *text = NULL;
		struct weir_push *push;

		if (!domain->head->node->plugin->want)
			continue;
		push = weir_push_new(plan, domain, ETHERNET);
		text = weir_push_text(push);
		g_string_append_printf(to, "into the kernel, by %s: %s\n", push->source->name,
				       text);
		weir_push_free(push);
	}
}

/* ---- Copies ---- */

/* A sink without any state of its own has no place to copy to. */
static const char *copy_text(const struct weir_plan *plan, const struct weir_instance *instance)
{
	const struct weir_node *node = instance->node;

	if (is_queue(node))
		return "each packet, into a ring";
	if (node->plugin->kind == WEIR_SINK)
		return node->plugin->lane_size + node->plugin->node_size
			       ? "each packet, into its buffer"
			       : NULL;
	if (!(node->plugin->flags & WEIR_CHANGES_BYTES))
		return NULL;
	for (unsigned i = 0; i < plan->domains->len; i++) {
		const struct weir_domain *domain = plan->domains->pdata[i];

		if (g_ptr_array_find(domain->nodes, (gpointer)instance, NULL) &&
		    (weir_plan_shares(domain, node) ||
		     !(domain->head->node->plugin->flags & WEIR_MEMORY_WRITABLE)))
			return "packets that it changes, since others see them";
	}
	return NULL;
}

static void add_copies(GString *to, const struct weir_plan *plan)
{
	struct weir_cells *cells = weir_cells_new("<<");
	g_autofree char *rows = NULL;

	for (unsigned i = 0; i < plan->graph->nodes->len; i++) {
		const char *text = copy_text(plan, plan->instances[i]);

		if (!text)
			continue;
		weir_cells_add(cells, plan->instances[i]->node->name);
		weir_cells_add(cells, text);
	}
	rows = weir_cells_text(cells, "  ");
	g_string_append_printf(to, "bytes are copied by:%s\n%s", *rows ? "" : " nobody", rows);
	weir_cells_free(cells);
}

/* ---- Memory ---- */

static uint64_t size_option(const struct weir_node *node, const char *name)
{
	for (unsigned i = 0; i < node->n_options; i++) {
		const struct weir_option *option = weir_plugin_option(node->plugin, i);

		if (option->type == WEIR_SIZE && strcmp(option->name, name) == 0)
			return *(const uint64_t *)((const char *)node->config + option->offset);
	}
	return 0;
}

static char *share_text(const struct weir_plan *plan, const struct weir_instance *instance,
			uint64_t bytes)
{
	const struct weir_queue_config *queue = instance->node->config;
	const struct weir_domain *feeder;
	uint32_t split;
	unsigned rings;

	if (!is_queue(instance->node)) {
		g_autofree char *share = weir_human_bytes(bytes / MAX(instance->n_lanes, 1));

		if (instance->n_lanes <= 1)
			return g_strdup("in one lane");
		return g_strdup_printf("%s a lane", share);
	}
	rings = weir_plan_producing_lanes(plan, instance, &split, &feeder) * (unsigned)queue->lanes;
	if (rings == 1)
		return g_strdup("in one ring");
	g_autofree char *share = weir_human_bytes(bytes / MAX(rings, 1));

	return g_strdup_printf("%s for each of %u rings", share, rings);
}

static void add_sizes(struct weir_cells *cells, const struct weir_plan *plan,
		      const struct weir_instance *instance)
{
	const char *memory = instance->node->plugin->memory;
	g_auto(GStrv) names = g_strsplit(memory ? memory : "", " ", -1);

	for (char **name = names; *name; name++) {
		uint64_t bytes = size_option(instance->node, *name);

		weir_cells_add(cells, instance->node->name);
		weir_cells_add(cells, *name);
		weir_cells_take(cells, weir_human_bytes(bytes));
		weir_cells_take(cells, share_text(plan, instance, bytes));
	}
}

static void add_memory(GString *to, const struct weir_plan *plan)
{
	struct weir_cells *cells = weir_cells_new("<<><");
	g_autofree char *rows = NULL;

	for (unsigned i = 0; i < plan->graph->nodes->len; i++)
		add_sizes(cells, plan, plan->instances[i]);
	rows = weir_cells_text(cells, "  ");
	g_string_append_printf(to, "buffers:%s\n%s", *rows ? "" : " none", rows);
	weir_cells_free(cells);
}

/* ---- Capabilities ---- */

static void add_needs(GString *to, const struct weir_plan *plan)
{
	const char *before = "capabilities needed: ";

	for (unsigned i = 0; i < plan->graph->nodes->len; i++) {
		const struct weir_node *node = plan->graph->nodes->pdata[i];

		if (!node->plugin->needs)
			continue;
		g_string_append_printf(to, "%s%s (%s)", before, node->plugin->needs, node->name);
		before = ", ";
	}
	g_string_append(to, *before == ',' ? "\n" : "capabilities needed: none\n");
}

char *weir_plan_text(const struct weir_plan *plan)
{
	GString *to = g_string_new(NULL);

	add_lanes(to, plan);
	add_push(to, plan);
	add_copies(to, plan);
	add_memory(to, plan);
	add_needs(to, plan);
	return g_string_free(to, FALSE);
}
