/*
 * Fuzzer of the pipeline language.  Any bytes give either a graph or errors, each with a place that
 * is in the text; a graph is in topological order, and both ends of its edges know of them.  "${x}"
 * is set, to text that would matter if it were scanned again.
 */
#include "graph.h"
#include "samples.h"
#include "variables.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool condition)
{
	if (!condition)
		abort();
}

static unsigned count_lines(const char *text)
{
	unsigned n = 1;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void check_errors(const struct weir_errors *errors, const char *text)
{
	unsigned lines = count_lines(text);

	for (guint i = 0; i < errors->messages->len; i++) {
		struct weir_position where = g_array_index(errors->places, struct weir_position, i);

		demand(where.line <= lines && where.column <= strlen(text) + 1);
		demand(where.line == 0 || where.column > 0);
	}
}

static bool contains(const GPtrArray *edges, const struct weir_edge *edge)
{
	return edges && g_ptr_array_find((GPtrArray *)edges, edge, NULL);
}

static void check_graph(const struct weir_graph *graph)
{
	g_autofree char *dot = weir_graph_dot(graph);

	demand(g_utf8_validate(dot, -1, NULL) && g_str_has_suffix(dot, "}\n"));
	for (guint i = 0; i < graph->edges->len; i++) {
		const struct weir_edge *edge = graph->edges->pdata[i];

		demand(edge->from->index < edge->to->index);
		demand(graph->nodes->pdata[edge->from->index] == edge->from);
		demand(graph->nodes->pdata[edge->to->index] == edge->to);
		demand(contains(edge->from->out[edge->output], edge));
		demand(contains(edge->to->in, edge));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autofree char *text = g_strndup((const char *)data, size);
	GHashTable *variables = weir_variables_new();
	struct weir_errors *errors = weir_errors_new("t");
	struct weir_loader *loader = sample_loader();
	struct weir_graph *graph;

	weir_variables_add(variables, "x=' -> \"${y} lanes=2;", NULL);
	graph = weir_graph_new(text, variables, loader, errors);
	demand((graph == NULL) == (errors->messages->len > 0));
	check_errors(errors, text);
	if (graph)
		check_graph(graph);
	weir_graph_free(graph);
	weir_loader_free(loader);
	weir_errors_free(errors);
	g_hash_table_unref(variables);
	return 0;
}
