/*
 * structure.c: the checks that need the whole graph.
 */
#include "structure.h"
#include "node.h"

#include <string.h>

/* ---- Ends ---- */

static void check_ends(const struct weir_node *node, const struct weir_mentions *mentions,
		       struct weir_errors *errors)
{
	bool fed = g_hash_table_contains(mentions->fed, node);
	bool leads = g_hash_table_contains(mentions->leading, node);

	if (!node->plugin)
		return;
	if (!fed && !leads) {
		weir_errors_add(errors, node->where, "no flow uses '%s'", node->name);
		return;
	}
	if (!fed && node->plugin->kind != WEIR_SOURCE)
		weir_errors_add(errors, node->where, "nothing feeds '%s': expected '->' before it",
				node->name);
	if (!leads && node->plugin->kind != WEIR_SINK)
		weir_errors_add(errors, node->where, "'%s' leads nowhere: expected '->' behind it",
				node->name);
}

/* ---- Files and endpoints ---- */

struct taken {
	const struct weir_node *node;
	uint32_t type;
};

/* What tells two of them apart; NULL: nothing to compare, or a name that is different in each node.
 */
static char *resource(const struct weir_option *option, const struct weir_value *value)
{
	if (!value->text || !*value->text)
		return NULL;
	if (option->type == WEIR_ENDPOINT)
		return g_strdup(value->text);
	if (option->type == WEIR_OUTFILE && !strstr(value->text, "%{node}"))
		return g_canonicalize_filename(value->text, NULL);
	return NULL;
}

/* name: what it is known by; text: what the user calls it. */
static void claim(GHashTable *owners, const struct weir_node *node, unsigned i, const char *name,
		  const char *text, struct weir_errors *errors)
{
	const struct weir_node *owner = g_hash_table_lookup(owners, name);
	bool file = weir_plugin_option(node->plugin, i)->type == WEIR_OUTFILE;

	if (owner && owner != node)
		weir_errors_add(errors, node->values[i].where, "'%s' and '%s' have the same %s %s",
				owner->name, node->name, file ? "file" : "endpoint", text);
	else
		g_hash_table_insert(owners, g_strdup(name), (gpointer)node);
}

static void check_resource(GHashTable *owners, const struct weir_node *node, unsigned i,
			   struct weir_errors *errors)
{
	const struct weir_option *option = weir_plugin_option(node->plugin, i);
	const void *at = (const char *)node->config + option->offset;
	g_autofree char *name = resource(option, &node->values[i]);

	if (name)
		claim(owners, node, i, name, node->values[i].text, errors);
	if (option->type != WEIR_ENDPOINTS)
		return;
	for (const char *const *each = *(const char *const *const *)at; each && *each; each++)
		claim(owners, node, i, *each, *each, errors);
}

#define STANDARD_INPUT "< -" /* beside "-", which pipe writes to, and absolute names */

/* It has one reader, and `weir run -` is one. */
static void check_stdin(GHashTable *owners, const struct weir_node *node, unsigned i,
			struct weir_errors *errors)
{
	const struct weir_node *owner = g_hash_table_lookup(owners, STANDARD_INPUT);

	if (strcmp(errors->source, "-") == 0)
		weir_errors_add(errors, node->values[i].where,
				"'%s' reads standard input, from which this text comes: give the "
				"text as a file or by -e",
				node->name);
	else if (owner)
		weir_errors_add(errors, node->values[i].where,
				"'%s' reads standard input, which '%s' reads already", node->name,
				owner->name);
	else
		g_hash_table_insert(owners, g_strdup(STANDARD_INPUT), (gpointer)node);
}

static void check_read(GHashTable *owners, const struct weir_node *node, unsigned i,
		       const char *file, struct weir_errors *errors)
{
	g_autofree char *name = g_canonicalize_filename(file, NULL);
	const struct weir_node *owner = g_hash_table_lookup(owners, name);

	if (owner)
		weir_errors_add(errors, node->values[i].where,
				"'%s' reads the file that '%s' writes, %s", node->name, owner->name,
				file);
}

/* Files that are read, against those that are written. */
static void check_files_read(GHashTable *owners, const struct weir_node *node, unsigned i,
			     struct weir_errors *errors)
{
	const struct weir_option *option = weir_plugin_option(node->plugin, i);
	const void *at = (const char *)node->config + option->offset;

	if (option->type == WEIR_INFILE && *(const char *const *)at)
		check_read(owners, node, i, *(const char *const *)at, errors);
	if (option->type != WEIR_INFILES)
		return;
	for (const char *const *file = *(const char *const *const *)at; file && *file; file++) {
		if (strcmp(*file, "-") == 0)
			check_stdin(owners, node, i, errors);
		else
			check_read(owners, node, i, *file, errors);
	}
}

typedef void (*check_fn)(GHashTable *owners, const struct weir_node *node, unsigned option,
			 struct weir_errors *errors);

static void check_options(const struct weir_graph *graph, GHashTable *owners, check_fn check,
			  struct weir_errors *errors)
{
	for (guint n = 0; n < graph->nodes->len; n++) {
		const struct weir_node *node = graph->nodes->pdata[n];

		for (unsigned i = 0; i < node->n_options; i++)
			check(owners, node, i, errors);
	}
}

static void check_resources(const struct weir_graph *graph, struct weir_errors *errors)
{
	g_autoptr(GHashTable) owners = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

	check_options(graph, owners, check_resource, errors);
	check_options(graph, owners, check_files_read, errors);
}

/* ---- Order and cycles ---- */

struct sorting {
	struct weir_node **nodes; /* in the order of the text; node->index is the place here */
	guint n;
	unsigned *waiting; /* of each: edges from nodes that are not placed yet */
	bool *placed;
	GHashTable *cut; /* the set of edges that closed a cycle and were taken out */
	GPtrArray *order;
};

static void place(struct sorting *s, guint i)
{
	struct weir_node *node = s->nodes[i];

	s->placed[i] = true;
	g_ptr_array_add(s->order, node);
	for (unsigned output = 0; output < node->n_outputs; output++) {
		for (guint e = 0; e < node->out[output]->len; e++) {
			struct weir_edge *edge = node->out[output]->pdata[e];

			if (!g_hash_table_contains(s->cut, edge))
				s->waiting[edge->to->index]--;
		}
	}
}

/* The first edge into the node from one that waits too; there is one where nothing can be placed.
 */
static struct weir_edge *waiting_edge(const struct sorting *s, const struct weir_node *node)
{
	for (guint i = 0; i < node->in->len; i++) {
		struct weir_edge *edge = node->in->pdata[i];

		if (!s->placed[edge->from->index] && !g_hash_table_contains(s->cut, edge))
			return edge;
	}
	g_assert_not_reached();
}

/* Going against the edges from a waiting node, every node waits, so that one must come up again. */
static void cut_cycle(struct sorting *s, guint start, struct weir_errors *errors)
{
	g_autofree bool *seen = g_new0(bool, s->n);
	g_autoptr(GString) path = g_string_new(NULL);
	struct weir_node *node = s->nodes[start];
	struct weir_edge *closing;

	for (; !seen[node->index]; node = waiting_edge(s, node)->from)
		seen[node->index] = true;
	closing = waiting_edge(s, node);
	g_string_assign(path, node->name);
	for (struct weir_edge *edge = closing; edge->from != node;
	     edge = waiting_edge(s, edge->from)) {
		g_autofree char *before = g_strdup_printf("%s -> ", edge->from->name);

		g_string_prepend(path, before);
	}
	weir_errors_add(errors, closing->where, "a cycle: %s -> %s", node->name, path->str);
	g_hash_table_add(s->cut, closing);
	s->waiting[closing->to->index]--;
}

static void sort_nodes(struct sorting *s, struct weir_errors *errors)
{
	while (s->order->len < s->n) {
		guint i = 0, first = s->n;

		for (; i < s->n && (s->placed[i] || s->waiting[i]); i++)
			if (!s->placed[i] && first == s->n)
				first = i;
		if (i < s->n)
			place(s, i);
		else
			cut_cycle(s, first, errors);
	}
}

static int order_places(const void *a, const void *b)
{
	const struct weir_node *const *x = a;
	const struct weir_node *const *y = b;

	if ((*x)->where.line != (*y)->where.line)
		return (*x)->where.line < (*y)->where.line ? -1 : 1;
	return (*x)->where.column < (*y)->where.column ? -1 : 1;
}

static void order_nodes(struct weir_graph *graph, struct weir_errors *errors)
{
	struct sorting s = {.n = graph->nodes->len};

	g_ptr_array_sort(graph->nodes, order_places);
	s.nodes = (struct weir_node **)graph->nodes->pdata;
	s.waiting = g_new0(unsigned, s.n);
	s.placed = g_new0(bool, s.n);
	s.cut = g_hash_table_new(NULL, NULL);
	s.order = g_ptr_array_new();
	for (guint i = 0; i < s.n; i++) {
		s.nodes[i]->index = i;
		s.waiting[i] = s.nodes[i]->in->len;
	}
	sort_nodes(&s, errors);
	for (guint i = 0; i < s.n; i++) {
		graph->nodes->pdata[i] = s.order->pdata[i];
		s.nodes[i]->index = i;
	}
	g_ptr_array_unref(s.order);
	g_hash_table_unref(s.cut);
	g_free(s.placed);
	g_free(s.waiting);
}

void weir_structure_check(struct weir_graph *graph, const struct weir_mentions *mentions,
			  struct weir_errors *errors)
{
	order_nodes(graph, errors);
	for (guint i = 0; i < graph->nodes->len; i++)
		check_ends(graph->nodes->pdata[i], mentions, errors);
	check_resources(graph, errors);
}
