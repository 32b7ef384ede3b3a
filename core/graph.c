/*
 * graph.c: from a text to a graph, and a graph as a picture.
 */
#include "graph.h"
#include "node.h"
#include "resolve.h"
#include "structure.h"
#include "text.h"

void weir_graph_free(struct weir_graph *graph)
{
	if (!graph)
		return;
	g_ptr_array_unref(graph->nodes);
	g_ptr_array_unref(graph->edges);
	g_free(graph->source);
	g_free(graph->text);
	g_free(graph);
}

struct weir_graph *weir_graph_new(const char *text, GHashTable *variables,
				  struct weir_loader *loader, struct weir_errors *errors)
{
	struct weir_graph *graph = g_new0(struct weir_graph, 1);
	struct weir_text *parsed = weir_text_parse(text, variables, errors);
	struct weir_mentions mentions = {g_hash_table_new(NULL, NULL),
					 g_hash_table_new(NULL, NULL)};

	graph->source = g_strdup(errors->source);
	graph->text = g_strdup(text);
	graph->nodes = g_ptr_array_new_with_free_func((GDestroyNotify)weir_node_free);
	graph->edges = g_ptr_array_new_with_free_func(g_free);
	weir_resolve(graph, parsed, loader, &mentions, errors);
	weir_structure_check(graph, &mentions, errors);
	g_hash_table_unref(mentions.fed);
	g_hash_table_unref(mentions.leading);
	weir_text_free(parsed);
	if (errors->messages->len)
		g_clear_pointer(&graph, weir_graph_free);
	return graph;
}

/* ---- Graphviz ---- */

static char *quoted(const char *text)
{
	GString *result = g_string_new(text);

	g_string_replace(result, "\\", "\\\\", 0);
	g_string_replace(result, "\"", "\\\"", 0);
	g_string_replace(result, "\n", " ", 0);
	return g_string_free(result, FALSE);
}

static const char *shape(const struct weir_node *node)
{
	switch (node->plugin->kind) {
	case WEIR_SOURCE:
		return "ellipse";
	case WEIR_SINK:
		return "cylinder";
	default:
		return "box";
	}
}

static void dot_node(GString *dot, const struct weir_node *node)
{
	const char *argument = node->n_options ? node->values[0].text : NULL;
	g_autofree char *text = quoted(argument ? argument : "");

	g_string_append_printf(dot, "\t\"%s\" [shape=%s, label=\"%s\\n%s%s%s\"];\n", node->name,
			       shape(node), node->name, node->plugin->name, *text ? " " : "", text);
}

static void dot_edges(GString *dot, const struct weir_node *node, unsigned output)
{
	for (guint i = 0; i < node->out[output]->len; i++) {
		const struct weir_edge *edge = node->out[output]->pdata[i];

		g_string_append_printf(dot, "\t\"%s\" -> \"%s\"", node->name, edge->to->name);
		if (output > 0)
			g_string_append_printf(dot, " [label=\"%s\"]",
					       weir_plugin_output(node->plugin, output)->name);
		g_string_append(dot, ";\n");
	}
}

char *weir_graph_dot(const struct weir_graph *graph)
{
	GString *dot = g_string_new("digraph weir {\n\trankdir=LR;\n");

	for (guint i = 0; i < graph->nodes->len; i++)
		dot_node(dot, graph->nodes->pdata[i]);
	for (guint i = 0; i < graph->nodes->len; i++) {
		const struct weir_node *node = graph->nodes->pdata[i];

		for (unsigned output = 0; output < node->n_outputs; output++)
			dot_edges(dot, node, output);
	}
	g_string_append(dot, "}\n");
	return g_string_free(dot, FALSE);
}
