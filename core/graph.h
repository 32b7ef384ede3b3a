/*
 * graph.h: a pipeline text, understood: nodes with their options, edges between outputs and inputs.
 *
 * Built once, then read-only: nothing of a run is stored here, so that a second graph can be made
 * beside a running one.
 */
#ifndef WEIR_GRAPH_H
#define WEIR_GRAPH_H

#include "errors.h"
#include "loader.h"

struct weir_value {
	char *text; /* as given, or the fallback; NULL: absent */
	bool given;
	struct weir_position where; /* of the option in the text; of the element if not given */
};

struct weir_node {
	char *name; /* "disk", "snaplen:1" */
	const struct weir_plugin *plugin;
	struct weir_position where;
	struct weir_value *values; /* one for each option of the plugin's table */
	unsigned n_options, n_outputs, n_counters;
	void *config;             /* plugin->config_size bytes, filled from values */
	GPtrArray *config_memory; /* what config points to */
	GPtrArray *in;            /* struct weir_edge *, borrowed, in the order of the text */
	GPtrArray **out;          /* n_outputs such arrays */
	unsigned index;           /* in graph->nodes */
};

struct weir_edge {
	struct weir_node *from;
	unsigned output;
	struct weir_node *to;
	struct weir_position where;
};

struct weir_graph {
	char *source; /* what messages call the text */
	char *text;
	GPtrArray *
		nodes; /* struct weir_node *, in topological order, ties in the order of the text */
	GPtrArray *edges; /* struct weir_edge * */
};

/*
 * Understands the text.  variables: name to value, both char *, from --set.  NULL if there was any
 * error; all of them are in errors.  Opens nothing and calls no plugin.
 */
struct weir_graph *weir_graph_new(const char *text, GHashTable *variables,
				  struct weir_loader *loader, struct weir_errors *errors);
void weir_graph_free(struct weir_graph *graph);

/* The entry of option `i` and so on, whatever size the plugin was built with. */
const struct weir_option *weir_plugin_option(const struct weir_plugin *plugin, unsigned i);
const struct weir_output *weir_plugin_output(const struct weir_plugin *plugin, unsigned i);
const struct weir_counter *weir_plugin_counter(const struct weir_plugin *plugin, unsigned i);

/* Graphviz text in a stable order; g_free(). */
char *weir_graph_dot(const struct weir_graph *graph);

#endif
