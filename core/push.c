/* push.c: walks the paths out of a source. */
#include "push.h"

#include "pushdown.h"

#define MAX_PATHS 64u

struct walk {
	const struct weir_plan *plan;
	uint32_t linktype;
	GPtrArray *steps;       /* struct weir_reduction *, of the path so far */
	GArray *paths;          /* struct weir_path */
	GPtrArray *memory;      /* what paths point to */
	GPtrArray *stages;      /* const char *, names of the stages on the paths */
	const char *everything; /* the node that wants everything, NULL: none does */
	bool too_many;
};

static void end_path(struct walk *walk, const struct weir_node *at)
{
	struct weir_path path = {.n_steps = walk->steps->len, .max_bytes = UINT32_MAX};

	if (walk->steps->len == 0)
		walk->everything = at->name;
	if (walk->paths->len == MAX_PATHS) {
		walk->too_many = true;
		return;
	}
	path.steps = g_memdup2(walk->steps->pdata, walk->steps->len * sizeof(gpointer));
	g_ptr_array_add(walk->memory, (gpointer)path.steps);
	g_array_append_val(walk->paths, path);
}

static void follow(struct walk *walk, const struct weir_node *node, unsigned output);

/* A packet arrives at that node: the path goes on through it, or ends here. */
static void arrive(struct walk *walk, const struct weir_node *node)
{
	struct weir_instance *instance = walk->plan->instances[node->index];
	bool reduces = node->plugin->reduce != NULL;

	for (unsigned o = 0; reduces && o < node->n_outputs && !walk->too_many; o++) {
		struct weir_reduction *step;

		if (node->out[o]->len == 0)
			continue;
		step = g_new0(struct weir_reduction, 1);
		g_ptr_array_add(walk->memory, step);
		if (!node->plugin->reduce(&instance->seat.self, o, walk->linktype, step)) {
			end_path(walk, node);
			continue;
		}
		if (!g_ptr_array_find(walk->stages, node->name, NULL))
			g_ptr_array_add(walk->stages, node->name);
		g_ptr_array_add(walk->steps, step);
		follow(walk, node, o);
		g_ptr_array_set_size(walk->steps, (int)walk->steps->len - 1);
	}
	if (!reduces)
		end_path(walk, node);
}

static void follow(struct walk *walk, const struct weir_node *node, unsigned output)
{
	for (unsigned i = 0; i < node->out[output]->len && !walk->too_many; i++)
		arrive(walk, ((struct weir_edge *)node->out[output]->pdata[i])->to);
}

struct weir_push *weir_push_new(const struct weir_plan *plan, const struct weir_domain *domain,
				uint32_t linktype)
{
	struct weir_push *push = g_new0(struct weir_push, 1);
	struct walk walk = {
		.plan = plan,
		.linktype = linktype,
		.steps = g_ptr_array_new(),
		.paths = g_array_new(FALSE, FALSE, sizeof(struct weir_path)),
		.memory = g_ptr_array_new_with_free_func(g_free),
		.stages = g_ptr_array_new(),
	};

	for (unsigned o = 0; o < domain->head->node->n_outputs; o++)
		follow(&walk, domain->head->node, o);
	if (walk.everything)
		push->why_not = g_strdup_printf("%s must see every packet", walk.everything);
	else if (walk.too_many)
		push->why_not = g_strdup_printf("there are more than %u paths", MAX_PATHS);
	else
		push->program = weir_pushdown_compose((struct weir_path *)(void *)walk.paths->data,
						      walk.paths->len, &push->len);
	g_ptr_array_add(walk.stages, NULL);
	push->what = g_strjoinv(", ", (char **)walk.stages->pdata);
	if (!push->program && !push->why_not)
		push->why_not = g_strdup(
			"what the paths leave of a packet cannot be one kernel program");
	g_ptr_array_unref(walk.steps);
	g_array_unref(walk.paths);
	g_ptr_array_unref(walk.memory);
	g_ptr_array_unref(walk.stages);
	return push;
}

void weir_push_free(struct weir_push *push)
{
	if (!push)
		return;
	g_free(push->program);
	g_free(push->what);
	g_free(push->why_not);
	g_free(push);
}

/* The one link type of a node's interfaces; false: there are none, or several. */
static bool only_linktype(const struct weir_interfaces *interfaces, const struct weir_node *node,
			  uint32_t *ret_linktype)
{
	unsigned found = 0;

	for (unsigned id = 0; id < weir_interfaces_count(interfaces); id++) {
		uint32_t linktype = weir_interfaces_get(interfaces, (uint16_t)id)->linktype;

		if (weir_interfaces_node(interfaces, (uint16_t)id) != node)
			continue;
		if (found++ && linktype != *ret_linktype)
			return false;
		*ret_linktype = linktype;
	}
	return found > 0;
}

static char *push_one(const struct weir_plan *plan, const struct weir_domain *domain,
		      const struct weir_interfaces *interfaces)
{
	struct weir_instance *head = domain->head;
	const char *name = head->node->name, *why_not;
	struct weir_push *push;
	uint32_t linktype = 0;
	char *line;

	if (!only_linktype(interfaces, head->node, &linktype))
		return g_strdup_printf(
			"%s: nothing is pushed down: its interfaces differ in link type", name);
	push = weir_push_new(plan, domain, linktype);
	why_not = push->program
			  ? head->node->plugin->want(&head->seat.self, push->program, push->len)
			  : push->why_not;
	line = why_not ? g_strdup_printf("%s: nothing is pushed down: %s", name, why_not)
		       : g_strdup_printf("%s: pushed down, as %u instructions: %s", name, push->len,
					 push->what);
	weir_push_free(push);
	return line;
}

GPtrArray *weir_push_all(const struct weir_plan *plan, const struct weir_interfaces *interfaces)
{
	GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);

	for (unsigned i = 0; i < plan->domains->len; i++) {
		const struct weir_domain *domain = plan->domains->pdata[i];

		if (domain->head->node->plugin->want)
			g_ptr_array_add(lines, push_one(plan, domain, interfaces));
	}
	return lines;
}
