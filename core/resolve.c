/*
 * resolve.c: which node each name of a text means, and which edge each arrow.
 *
 * An unknown plugin or name becomes a node without a plugin, so that what stands around it is not
 * called unconnected too.
 */
#include "resolve.h"
#include "node.h"
#include "options.h"

#include <string.h>

struct resolver {
	struct weir_graph *graph;
	const struct weir_text *text;
	struct weir_loader *loader;
	struct weir_mentions *mentions;
	struct weir_errors *errors;
	GHashTable *names;   /* what definitions define: char * to struct weir_node * */
	GHashTable *serials; /* of the nodes written in place: plugin's name to the last number */
};

static struct weir_node *add_node(struct resolver *r, char *name, const struct weir_plugin *plugin,
				  struct weir_position where)
{
	struct weir_node *node = weir_node_new(name, plugin, where);

	g_ptr_array_add(r->graph->nodes, node);
	return node;
}

/* ---- Plugins ---- */

/* The word that was meant, or where plugins are looked for. */
static char *suggest_plugin(struct resolver *r, const struct weir_term *term, bool with_names)
{
	g_auto(GStrv) plugins = weir_loader_names(r->loader);
	g_autoptr(GPtrArray) known = g_ptr_array_new();
	GHashTableIter each;
	gpointer name;
	gpointer node;

	g_hash_table_iter_init(&each, r->names);
	while (with_names && g_hash_table_iter_next(&each, &name, &node))
		if (((struct weir_node *)node)->plugin)
			g_ptr_array_add(known, name);
	for (char **plugin = plugins; *plugin; plugin++)
		g_ptr_array_add(known, *plugin);
	g_ptr_array_add(known, NULL);
	if (!term->output && !weir_nearest(term->name, (const char *const *)known->pdata))
		return weir_loader_where(r->loader);
	return weir_suggestion(term->name, (const char *const *)known->pdata);
}

/* in_flow: the word could be meant as a name as well. */
static const struct weir_plugin *find_plugin(struct resolver *r, const struct weir_term *term,
					     bool in_flow)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *suggestion = NULL;
	const struct weir_plugin *plugin = weir_loader_find(r->loader, term->name, &error);

	if (plugin)
		return plugin;
	if (error->code == WEIR_LOADER_REFUSED) {
		weir_errors_add(r->errors, term->where, "%s", error->message);
		return NULL;
	}
	suggestion = suggest_plugin(r, term, in_flow);
	if (term->output)
		weir_errors_add(r->errors, term->where, "there is no name '%s'%s", term->name,
				suggestion);
	else
		weir_errors_add(r->errors, term->where, "there is no plugin%s '%s'%s",
				in_flow && !term->words->len ? " or name" : "", term->name,
				suggestion);
	return NULL;
}

/* ---- Definitions ---- */

static void define(struct resolver *r, const struct weir_statement *statement)
{
	const struct weir_term *term = statement->terms->len ? statement->terms->pdata[0] : NULL;
	const struct weir_node *other = g_hash_table_lookup(r->names, statement->name);
	const struct weir_plugin *plugin;
	struct weir_node *node;

	if (other)
		weir_errors_add(r->errors, statement->where,
				"the name '%s' is given twice; it is defined in line %u",
				statement->name, other->where.line);
	plugin = term && !term->output ? find_plugin(r, term, false) : NULL;
	node = add_node(r, g_strdup(statement->name), plugin, statement->where);
	if (plugin)
		weir_options_fill(node, term->words, term->where, r->errors);
	if (other) {
		g_hash_table_add(r->mentions->fed, node);
		g_hash_table_add(r->mentions->leading, node);
	} else {
		g_hash_table_insert(r->names, node->name, node);
	}
}

/* ---- Terms of flows ---- */

static struct weir_node *named_node(struct resolver *r, const struct weir_term *term,
				    struct weir_node *node)
{
	const struct weir_word *word = term->words->len ? term->words->pdata[0] : NULL;

	if (word)
		weir_errors_add(r->errors, word->where,
				"'%s' is a name: its options stand where it is defined, in line %u",
				term->name, node->where.line);
	return node;
}

static struct weir_node *node_in_place(struct resolver *r, const struct weir_term *term,
				       const struct weir_plugin *plugin)
{
	guint serial = GPOINTER_TO_UINT(g_hash_table_lookup(r->serials, term->name)) + 1;
	struct weir_node *node;

	g_hash_table_replace(r->serials, term->name, GUINT_TO_POINTER(serial));
	node = add_node(r, g_strdup_printf("%s:%u", term->name, serial), plugin, term->where);
	weir_options_fill(node, term->words, term->where, r->errors);
	if (term->output)
		weir_errors_add(
			r->errors, term->where,
			"'%s' is a plugin, and outputs belong to names: define NAME = %s …, "
			"then write NAME.%s",
			term->name, term->name, term->output);
	return node;
}

static struct weir_node *term_node(struct resolver *r, const struct weir_term *term)
{
	struct weir_node *node = g_hash_table_lookup(r->names, term->name);
	const struct weir_plugin *plugin;

	if (node)
		return named_node(r, term, node);
	plugin = find_plugin(r, term, true);
	if (plugin)
		return node_in_place(r, term, plugin);
	return add_node(r, g_strdup(term->name), NULL, term->where);
}

/* ---- Edges ---- */

static bool is_kind(const struct weir_node *node, uint32_t kind)
{
	return node->plugin && node->plugin->kind == kind;
}

/* Where the output stands in "name.output". */
static struct weir_position output_position(const struct weir_term *term)
{
	struct weir_position where = term->where;

	where.column += (unsigned)strlen(term->name) + 1;
	return where;
}

/* The output that the term names, -1 after an error or if it cannot be known. */
static int find_output(struct resolver *r, const struct weir_node *node,
		       const struct weir_term *term)
{
	g_autofree const char **names = g_new0(const char *, node->n_outputs + 1);
	g_autofree char *all = NULL;
	g_autofree char *suggestion = NULL;

	if (!node->plugin)
		return -1;
	if (!term->output || strchr(node->name, ':'))
		return 0;
	if (weir_node_output(node, term->output) >= 0)
		return weir_node_output(node, term->output);
	for (unsigned i = 0; i < node->n_outputs; i++)
		names[i] = weir_plugin_output(node->plugin, i)->name;
	all = g_strjoinv(", ", (char **)names);
	suggestion = weir_suggestion(term->output, names);
	weir_errors_add(r->errors, output_position(term), "%s has no output '%s'%s%s",
			node->plugin->name, term->output, *suggestion ? suggestion : "; it has ",
			*suggestion ? "" : all);
	return -1;
}

static bool can_connect(struct resolver *r, const struct weir_node *from,
			const struct weir_term *from_term, const struct weir_node *to,
			const struct weir_term *to_term)
{
	bool ok = true;

	if (is_kind(from, WEIR_SINK)) {
		if (from_term->output)
			weir_errors_add(r->errors, output_position(from_term),
					"the outcomes of sink '%s' are counted, and cannot be "
					"connected",
					from->name);
		else
			weir_errors_add(r->errors, from_term->where,
					"'%s' is a sink, and cannot be read", from->name);
		ok = false;
	}
	if (is_kind(to, WEIR_SOURCE)) {
		weir_errors_add(r->errors, to_term->where, "'%s' is a source, and cannot be fed",
				to->name);
		ok = false;
	}
	return ok;
}

static bool is_connected(const struct weir_node *from, unsigned output, const struct weir_node *to)
{
	for (guint i = 0; i < from->out[output]->len; i++)
		if (((struct weir_edge *)from->out[output]->pdata[i])->to == to)
			return true;
	return false;
}

static void connect(struct resolver *r, struct weir_node *from, const struct weir_term *from_term,
		    struct weir_node *to, const struct weir_term *to_term)
{
	struct weir_edge *edge;
	int output;

	g_hash_table_add(r->mentions->leading, from);
	g_hash_table_add(r->mentions->fed, to);
	if (!can_connect(r, from, from_term, to, to_term))
		return;
	output = find_output(r, from, from_term);
	if (output < 0 || !to->plugin)
		return;
	if (is_connected(from, (unsigned)output, to)) {
		weir_errors_add(r->errors, to_term->where, "'%s.%s -> %s' is there twice",
				from->name,
				weir_plugin_output(from->plugin, (unsigned)output)->name, to->name);
		return;
	}
	edge = g_new(struct weir_edge, 1);
	*edge = (struct weir_edge){from, (unsigned)output, to, to_term->where};
	g_ptr_array_add(r->graph->edges, edge);
	g_ptr_array_add(from->out[output], edge);
	g_ptr_array_add(to->in, edge);
}

static void resolve_flow(struct resolver *r, const struct weir_statement *flow)
{
	const struct weir_term *last = NULL;
	struct weir_node *from = NULL;

	for (guint i = 0; i < flow->terms->len; i++) {
		const struct weir_term *term = flow->terms->pdata[i];
		struct weir_node *node = term_node(r, term);

		if (last)
			connect(r, from, last, node, term);
		last = term;
		from = node;
	}
	if (flow->broken && from) {
		g_hash_table_add(r->mentions->leading, from);
	} else if (last && last->output) {
		g_hash_table_add(r->mentions->leading, from);
		weir_errors_add(r->errors, last->where,
				"an output cannot end a flow: expected '->' after '%s.%s'",
				last->name, last->output);
	}
}

/* What an unreadable statement mentions may be fed or read there. */
static void excuse_mentioned(struct resolver *r)
{
	GHashTableIter each;
	gpointer name;
	gpointer node;

	g_hash_table_iter_init(&each, r->names);
	while (g_hash_table_iter_next(&each, &name, &node)) {
		if (!g_hash_table_contains(r->text->mentioned, name))
			continue;
		g_hash_table_add(r->mentions->fed, node);
		g_hash_table_add(r->mentions->leading, node);
	}
}

void weir_resolve(struct weir_graph *graph, const struct weir_text *text,
		  struct weir_loader *loader, struct weir_mentions *mentions,
		  struct weir_errors *errors)
{
	struct resolver resolver = {graph, text, loader, mentions, errors, NULL, NULL};
	struct weir_statement *const *statements =
		(struct weir_statement **)text->statements->pdata;

	resolver.names = g_hash_table_new(g_str_hash, g_str_equal);
	resolver.serials = g_hash_table_new(g_str_hash, g_str_equal);
	for (guint i = 0; i < text->statements->len; i++)
		if (statements[i]->name)
			define(&resolver, statements[i]);
	for (guint i = 0; i < text->statements->len; i++)
		if (!statements[i]->name)
			resolve_flow(&resolver, statements[i]);
	excuse_mentioned(&resolver);
	g_hash_table_unref(resolver.names);
	g_hash_table_unref(resolver.serials);
}
