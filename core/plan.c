/* plan.c: domains, and whether their lanes suit the nodes in them. */
#include "plan.h"

#include "queue.h"

#include <string.h>

#define MAX_LANES 1024u /* of a source: more than there are queues of a NIC, or processors */

static void domain_free(struct weir_domain *domain)
{
	g_ptr_array_unref(domain->nodes);
	g_free(domain);
}

void weir_plan_close(struct weir_plan *plan)
{
	for (unsigned i = 0; plan && i < plan->graph->nodes->len; i++) {
		struct weir_instance *instance = plan->instances[i];

		if (instance->node->plugin->close)
			instance->node->plugin->close(&instance->seat.self);
	}
}

void weir_plan_free(struct weir_plan *plan)
{
	if (!plan)
		return;
	for (unsigned i = 0; plan->instances && i < plan->graph->nodes->len; i++)
		weir_instance_free(plan->instances[i]);
	g_free(plan->instances);
	g_ptr_array_unref(plan->domains);
	g_ptr_array_unref(plan->warnings);
	g_free(plan);
}

static bool is_queue(const struct weir_node *node)
{
	return node->plugin == &weir_queue_plugin;
}

static const struct weir_queue_config *queue_config(const struct weir_node *node)
{
	return node->config;
}

static const struct weir_value *option_value(const struct weir_node *node, const char *name)
{
	for (unsigned i = 0; i < node->n_options; i++) {
		if (strcmp(weir_plugin_option(node->plugin, i)->name, name) == 0)
			return &node->values[i];
	}
	return NULL;
}

/* ---- Reachability ---- */

enum crossing { WITHIN_LANE, ACROSS_QUEUES };

static void mark_output(const struct weir_node *node, unsigned output, enum crossing crossing,
			bool *reached)
{
	for (unsigned i = 0; i < node->out[output]->len; i++) {
		const struct weir_node *to = ((struct weir_edge *)node->out[output]->pdata[i])->to;

		if (reached[to->index])
			continue;
		reached[to->index] = true;
		for (unsigned o = 0; o < to->n_outputs; o++) {
			if (crossing == ACROSS_QUEUES || !is_queue(to) || o != WEIR_QUEUE_OUT)
				mark_output(to, o, crossing, reached);
		}
	}
}

/* The nodes that packets which leave this one can come to; g_free(). */
static bool *reach(const struct weir_plan *plan, const struct weir_node *node,
		   enum crossing crossing)
{
	bool *reached = g_new0(bool, plan->graph->nodes->len);

	for (unsigned o = 0; o < node->n_outputs; o++)
		mark_output(node, o, crossing, reached);
	return reached;
}

/* ---- Domains ---- */

static struct weir_domain *domain_new(struct weir_plan *plan, struct weir_instance *head)
{
	unsigned n_nodes = plan->graph->nodes->len;
	g_autofree bool *reached = g_new0(bool, n_nodes);
	struct weir_domain *domain = g_new0(struct weir_domain, 1);

	domain->head = head;
	domain->nodes = g_ptr_array_new();
	for (unsigned o = 0; o < head->node->n_outputs; o++) {
		if (!is_queue(head->node) || o == WEIR_QUEUE_OUT)
			mark_output(head->node, o, WITHIN_LANE, reached);
	}
	for (unsigned i = 0; i < n_nodes; i++) {
		if (reached[i])
			g_ptr_array_add(domain->nodes, plan->instances[i]);
	}
	g_ptr_array_add(plan->domains, domain);
	return domain;
}

static unsigned source_lanes(struct weir_instance *head)
{
	const struct weir_plugin *plugin = head->node->plugin;
	uint32_t lanes = plugin->lanes ? plugin->lanes(&head->seat.self) : 1;

	if (lanes > 0 && lanes <= MAX_LANES)
		return lanes;
	weir_errors_add(head->context->errors, head->node->where,
			"%s: a fault of plugin '%s': lanes() returned %u, and 1 to %u can be",
			head->node->name, plugin->name, lanes, MAX_LANES);
	return 1;
}

static void add_source(struct weir_plan *plan, struct weir_instance *head)
{
	const struct weir_plugin *plugin = head->node->plugin;
	struct weir_domain *domain = domain_new(plan, head);

	domain->n_lanes = source_lanes(head);
	domain->split = domain->n_lanes == 1 ? WEIR_LANES_ONE : weir_instance_affinity(head);
	domain->live = plugin->flags & WEIR_LIVE;
	domain->files = !domain->live;
	domain->waits = domain->files;
}

static void add_queue(struct weir_plan *plan, struct weir_instance *head)
{
	const struct weir_queue_config *config = queue_config(head->node);
	bool live = false, files = false;
	struct weir_domain *domain;

	for (unsigned i = 0; i < plan->domains->len; i++) {
		const struct weir_domain *feeder = plan->domains->pdata[i];

		if (g_ptr_array_find(feeder->nodes, head, NULL)) {
			live |= feeder->live;
			files |= feeder->files;
		}
	}
	domain = domain_new(plan, head);
	domain->n_lanes = (unsigned)config->lanes;
	domain->split = domain->n_lanes == 1 ? WEIR_LANES_ONE : WEIR_LANES_FLOW;
	domain->live = live;
	domain->files = files;
	domain->waits = config->on_full == WEIR_ON_FULL_AUTO
				? files
				: config->on_full == WEIR_ON_FULL_BLOCK;
}

/* ---- What is refused ---- */

static void check_mixed(const struct weir_domain *domain, struct weir_errors *errors)
{
	const struct weir_node *node = domain->head->node;

	if (is_queue(node) && domain->live && domain->files &&
	    queue_config(node)->on_full == WEIR_ON_FULL_AUTO)
		weir_errors_add(errors, node->where,
				"%s is fed by a live source and by files: say on-full=drop (the "
				"files lose too) or "
				"on-full=block (the live source loses in its own buffers)",
				node->name);
}

unsigned weir_plan_producing_lanes(const struct weir_plan *plan,
				   const struct weir_instance *instance, uint32_t *ret_split,
				   const struct weir_domain **ret_domain)
{
	unsigned lanes = 0, domains = 0;

	*ret_split = WEIR_LANES_ONE;
	for (unsigned i = 0; i < plan->domains->len; i++) {
		const struct weir_domain *domain = plan->domains->pdata[i];

		if (!g_ptr_array_find(domain->nodes, (gpointer)instance, NULL))
			continue;
		lanes += domain->n_lanes;
		*ret_split = domains++ ? WEIR_LANES_ANY : domain->split;
		*ret_domain = domain;
	}
	return lanes;
}

/* Whether a node between the head and this one takes flows apart. */
static bool flow_changed_before(const struct weir_plan *plan, const struct weir_domain *domain,
				const struct weir_instance *instance)
{
	for (unsigned i = 0; i < domain->nodes->len; i++) {
		const struct weir_instance *other = domain->nodes->pdata[i];
		g_autofree bool *reached = NULL;

		if (!(other->node->plugin->flags & WEIR_CHANGES_FLOW))
			continue;
		reached = reach(plan, other->node, WITHIN_LANE);
		if (reached[instance->node->index])
			return true;
	}
	return false;
}

static void refuse_lanes(struct weir_errors *errors, const struct weir_node *node, unsigned lanes)
{
	bool file = false;

	for (unsigned i = 0; i < node->n_options; i++)
		file |= weir_plugin_option(node->plugin, i)->type == WEIR_OUTFILE;
	weir_errors_add(errors, node->where,
			"%s is %s by %u lanes: put %s'queue lanes=1' before it", node->name,
			node->plugin->kind == WEIR_SINK ? "written" : "fed", lanes,
			file ? "%{lane} in its name, or " : "");
}

static void refuse_split(struct weir_errors *errors, const struct weir_node *node,
			 const struct weir_domain *domain, unsigned domains_lanes)
{
	const struct weir_value *fanout = option_value(domain->head->node, "fanout");

	if (fanout && fanout->text && !is_queue(domain->head->node))
		weir_errors_add(errors, node->where,
				"%s needs whole flows, and fanout=%s splits them: fanout=hash, or "
				"'queue lanes=%u' "
				"before it",
				node->name, fanout->text, domains_lanes);
	else
		weir_errors_add(errors, node->where,
				"%s needs whole flows, and its %u lanes split them: 'queue "
				"lanes=%u' before it",
				node->name, domains_lanes, domains_lanes);
}

static void check_lanes(struct weir_plan *plan, struct weir_instance *instance,
			struct weir_errors *errors)
{
	const struct weir_domain *domain = NULL;
	uint32_t split;
	unsigned lanes = weir_plan_producing_lanes(plan, instance, &split, &domain);
	uint32_t need = is_queue(instance->node) ? WEIR_LANES_ANY
						 : weir_instance_affinity(instance);

	if (need == WEIR_LANES_ONE && lanes > 1)
		refuse_lanes(errors, instance->node, lanes);
	if (need == WEIR_LANES_FLOW && lanes > 1 &&
	    (split == WEIR_LANES_ANY || flow_changed_before(plan, domain, instance)))
		refuse_split(errors, instance->node, domain, lanes);
	weir_instance_set_lanes(instance, lanes);
}

static void check_queue_size(const struct weir_instance *instance, struct weir_errors *errors)
{
	const struct weir_queue_config *config = queue_config(instance->node);
	uint64_t rings = instance->n_lanes * (uint64_t)config->lanes;

	if (config->size / rings < WEIR_RING_MIN)
		weir_errors_add(errors, instance->node->where,
				"%s of %" G_GUINT64_FORMAT
				" bytes is divided among %" G_GUINT64_FORMAT
				" rings: it needs at least %" G_GUINT64_FORMAT " bytes",
				instance->node->name, config->size, rings, rings * WEIR_RING_MIN);
}

/* ---- Warnings ---- */

/* One packet goes to all consumers of one output: two of them that lead to one sink bring it there
 * twice. */
static void warn_if_twice(struct weir_plan *plan, const struct weir_node *node, unsigned output)
{
	const GPtrArray *edges = node->out[output];
	unsigned n_nodes = plan->graph->nodes->len;
	g_autofree unsigned *times = g_new0(unsigned, n_nodes);

	for (unsigned i = 0; i < edges->len; i++) {
		const struct weir_edge *edge = edges->pdata[i];
		g_autofree bool *reached = reach(plan, edge->to, ACROSS_QUEUES);

		reached[edge->to->index] = true;
		for (unsigned n = 0; n < n_nodes; n++)
			times[n] += reached[n];
	}
	for (unsigned n = 0; n < n_nodes; n++) {
		const struct weir_node *sink = plan->graph->nodes->pdata[n];

		if (times[n] > 1 && sink->plugin->kind == WEIR_SINK)
			g_ptr_array_add(
				plan->warnings,
				g_strdup_printf("a packet of %s.%s can reach %s %u times",
						node->name,
						weir_plugin_output(node->plugin, output)->name,
						sink->name, times[n]));
	}
}

static void warn(struct weir_plan *plan)
{
	for (unsigned n = 0; n < plan->graph->nodes->len; n++) {
		const struct weir_node *node = plan->graph->nodes->pdata[n];

		for (unsigned o = 0; o < node->n_outputs; o++)
			warn_if_twice(plan, node, o);
	}
}

/* ---- The plan ---- */

static bool check_plugins(struct weir_plan *plan, struct weir_errors *errors)
{
	for (unsigned i = 0; i < plan->graph->nodes->len; i++) {
		struct weir_instance *instance = plan->instances[i];
		const struct weir_plugin *plugin = instance->node->plugin;
		unsigned before = errors->messages->len;

		if (plugin->check && !plugin->check(&instance->seat.self) &&
		    errors->messages->len == before)
			weir_errors_add(errors, instance->node->where, "%s refuses its options",
					instance->node->name);
	}
	return errors->messages->len == 0;
}

static void make_domains(struct weir_plan *plan)
{
	for (unsigned i = 0; i < plan->graph->nodes->len; i++) {
		struct weir_instance *instance = plan->instances[i];

		if (instance->node->plugin->kind == WEIR_SOURCE)
			add_source(plan, instance);
		else if (is_queue(instance->node))
			add_queue(plan, instance);
	}
}

static void check_all_lanes(struct weir_plan *plan, struct weir_errors *errors)
{
	for (unsigned i = 0; i < plan->graph->nodes->len; i++) {
		if (plan->instances[i]->node->plugin->kind != WEIR_SOURCE)
			check_lanes(plan, plan->instances[i], errors);
	}
	for (unsigned i = 0; i < plan->domains->len; i++) {
		const struct weir_domain *domain = plan->domains->pdata[i];

		check_mixed(domain, errors);
		if (is_queue(domain->head->node))
			check_queue_size(domain->head, errors);
		weir_instance_set_lanes(domain->head, MAX(domain->head->n_lanes, domain->n_lanes));
	}
}

struct weir_plan *weir_plan_new(const struct weir_graph *graph, struct weir_context *context)
{
	struct weir_plan *plan = g_new0(struct weir_plan, 1);

	plan->graph = graph;
	plan->domains = g_ptr_array_new_with_free_func((GDestroyNotify)domain_free);
	plan->warnings = g_ptr_array_new_with_free_func(g_free);
	plan->instances = g_new0(struct weir_instance *, graph->nodes->len);
	for (unsigned i = 0; i < graph->nodes->len; i++)
		plan->instances[i] = weir_instance_new(graph->nodes->pdata[i], context);
	context->graph = graph;
	context->instances = plan->instances;
	context->pipeline_sha256 = g_compute_checksum_for_string(G_CHECKSUM_SHA256, graph->text,
								 -1);
	if (check_plugins(plan, context->errors)) {
		make_domains(plan);
		check_all_lanes(plan, context->errors);
		warn(plan);
	}
	if (context->errors->messages->len == 0)
		return plan;
	weir_plan_close(plan);
	weir_plan_free(plan);
	return NULL;
}

bool weir_plan_shares(const struct weir_domain *domain, const struct weir_node *node)
{
	if (node == domain->head->node)
		return false;
	for (unsigned i = 0; i < node->in->len; i++) {
		const struct weir_edge *edge = node->in->pdata[i];
		bool here = edge->from == domain->head->node;

		for (unsigned n = 0; !here && n < domain->nodes->len; n++)
			here = ((struct weir_instance *)domain->nodes->pdata[n])->node ==
			       edge->from;
		/* Who emits may do so twice, or from memory that it reads again. */
		if (here && (edge->from->out[edge->output]->len > 1 ||
			     edge->from->plugin->transform || weir_plan_shares(domain, edge->from)))
			return true;
	}
	return false;
}
