/* push.c: walks the paths out of a source. */
#include "push.h"

#include "link.h"
#include "pushdown.h"

#define MAX_PATHS 64u

struct walk {
	const struct weir_plan *plan;
	uint32_t linktype;
	GPtrArray *steps;  /* struct weir_step *, of the path so far */
	GArray *paths;     /* struct weir_path */
	GPtrArray *stored; /* all the steps */
	GPtrArray *arrays; /* of steps, in the paths */
	GPtrArray *stages; /* const char *, names of the stages on the paths */
	char *why_not;     /* NULL: so far nobody wants everything */
};

static void end_path(struct walk *walk)
{
	struct weir_path path = {.n_steps = walk->steps->len, .max_bytes = UINT32_MAX};

	if (walk->paths->len == MAX_PATHS && !walk->why_not)
		walk->why_not = g_strdup_printf("there are more than %u paths", MAX_PATHS);
	if (walk->why_not)
		return;
	path.steps = g_memdup2(walk->steps->pdata, walk->steps->len * sizeof(gpointer));
	g_ptr_array_add(walk->arrays, (gpointer)path.steps);
	g_array_append_val(walk->paths, path);
}

/* Nothing can be said of what that node leaves. */
static void end_at(struct walk *walk, const struct weir_node *node, const char *why)
{
	if (walk->steps->len == 0 && !walk->why_not)
		walk->why_not = g_strdup_printf("%s wants every packet whole%s%s", node->name,
						why ? ": " : "", why ? why : "");
	end_path(walk);
}

/* NULL with a reason, or without: the stage cannot say what it leaves. */
static struct weir_step *step_of(const struct walk *walk, const struct weir_node *node,
				 unsigned output, const char **ret_why_not)
{
	struct weir_instance *instance = walk->plan->instances[node->index];
	struct weir_reduction reduction = {0};

	if (!node->plugin->reduce(&instance->seat.self, output, walk->linktype, &reduction)) {
		*ret_why_not = "it cannot say what it leaves of them";
		return NULL;
	}
	if (reduction.skip_vlan && walk->linktype == WEIR_LINK_LINUX_SLL) {
		*ret_why_not = "vlan=skip goes into the kernel only for Ethernet";
		return NULL;
	}
	reduction.skip_vlan &= walk->linktype == WEIR_LINK_ETHERNET;
	return weir_step_new(&reduction, ret_why_not);
}

/* Filters behind a step that cuts stay where they are. */
static bool takes_part(const struct walk *walk, const struct weir_step *step)
{
	for (unsigned i = 0; i < walk->steps->len; i++)
		if (((const struct weir_step *)walk->steps->pdata[i])->max_bytes != UINT32_MAX)
			return step->max_bytes != UINT32_MAX;
	return true;
}

static void follow(struct walk *walk, const struct weir_node *node, unsigned output);

static void pass(struct walk *walk, const struct weir_node *node, unsigned output)
{
	const char *why_not = NULL;
	struct weir_step *step = step_of(walk, node, output, &why_not);

	if (!step) {
		end_at(walk, node, why_not);
		return;
	}
	g_ptr_array_add(walk->stored, step);
	if (takes_part(walk, step) && !g_ptr_array_find(walk->stages, node->name, NULL))
		g_ptr_array_add(walk->stages, node->name);
	g_ptr_array_add(walk->steps, step);
	follow(walk, node, output);
	g_ptr_array_set_size(walk->steps, (int)walk->steps->len - 1);
}

/* A packet arrives at that node: the path goes on through it, or ends here. */
static void arrive(struct walk *walk, const struct weir_node *node)
{
	if (!node->plugin->reduce)
		end_at(walk, node, NULL);
	for (unsigned o = 0; node->plugin->reduce && o < node->n_outputs && !walk->why_not; o++)
		if (node->out[o]->len)
			pass(walk, node, o);
}

static void follow(struct walk *walk, const struct weir_node *node, unsigned output)
{
	for (unsigned i = 0; i < node->out[output]->len && !walk->why_not; i++)
		arrive(walk, ((struct weir_edge *)node->out[output]->pdata[i])->to);
}

static void walk_init(struct walk *walk, const struct weir_plan *plan, uint32_t linktype)
{
	*walk = (struct walk){
		.plan = plan,
		.linktype = linktype,
		.steps = g_ptr_array_new(),
		.paths = g_array_new(FALSE, FALSE, sizeof(struct weir_path)),
		.stored = g_ptr_array_new_with_free_func((GDestroyNotify)weir_step_free),
		.arrays = g_ptr_array_new_with_free_func(g_free),
		.stages = g_ptr_array_new(),
	};
}

static void walk_clear(struct walk *walk)
{
	g_ptr_array_unref(walk->steps);
	g_array_unref(walk->paths);
	g_ptr_array_unref(walk->stored);
	g_ptr_array_unref(walk->arrays);
	g_ptr_array_unref(walk->stages);
	g_free(walk->why_not);
}

/* ---- What the source says ---- */

static char *offer(struct walk *walk, struct weir_self *self, const struct weir_plugin *plugin)
{
	g_autofree struct weir_insn *program = NULL;
	const struct weir_path *paths = (const struct weir_path *)(void *)walk->paths->data;
	uint32_t len = 0;

	if (!walk->why_not)
		program = weir_pushdown_compose(paths, walk->paths->len, &len, &walk->why_not);
	return program ? g_strdup(plugin->want(self, program, len))
		       : g_steal_pointer(&walk->why_not);
}

struct weir_push *weir_push_new(const struct weir_plan *plan, const struct weir_domain *domain,
				uint32_t linktype)
{
	struct weir_instance *head = domain->head;
	const struct weir_plugin *plugin = head->node->plugin;
	struct weir_push *push = g_new0(struct weir_push, 1);
	struct walk walk;

	push->source = head->node;
	walk_init(&walk, plan, linktype);
	for (unsigned o = 0; o < head->node->n_outputs; o++)
		follow(&walk, head->node, o);
	push->why_not = offer(&walk, &head->seat.self, plugin);
	if (!push->why_not) {
		g_ptr_array_add(walk.stages, NULL);
		push->what = g_strjoinv(", ", (char **)walk.stages->pdata);
		push->how = plugin->pushed ? g_strdup(plugin->pushed(&head->seat.self)) : NULL;
	}
	walk_clear(&walk);
	return push;
}

void weir_push_free(struct weir_push *push)
{
	if (!push)
		return;
	g_free(push->what);
	g_free(push->how);
	g_free(push->why_not);
	g_free(push);
}

char *weir_push_text(const struct weir_push *push)
{
	if (!push->what)
		return g_strdup_printf("nothing, since %s", push->why_not);
	return push->how ? g_strdup_printf("%s; %s", push->what, push->how) : g_strdup(push->what);
}

/* ---- All sources ---- */

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

static struct weir_push *refuse(const struct weir_node *source)
{
	struct weir_push *push = g_new0(struct weir_push, 1);

	push->source = source;
	push->why_not = g_strdup("its interfaces differ in link type");
	return push;
}

GPtrArray *weir_push_all(const struct weir_plan *plan, const struct weir_interfaces *interfaces)
{
	GPtrArray *all = g_ptr_array_new_with_free_func((GDestroyNotify)weir_push_free);

	for (unsigned i = 0; i < plan->domains->len; i++) {
		const struct weir_domain *domain = plan->domains->pdata[i];
		const struct weir_node *source = domain->head->node;
		uint32_t linktype = 0;

		if (!source->plugin->want)
			continue;
		g_ptr_array_add(all, only_linktype(interfaces, source, &linktype)
					     ? weir_push_new(plan, domain, linktype)
					     : refuse(source));
	}
	return all;
}
