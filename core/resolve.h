/*
 * resolve.h: the statements of a text as nodes and edges.
 */
#ifndef WEIR_RESOLVE_H
#define WEIR_RESOLVE_H

#include "graph.h"
#include "text.h"

/* Which nodes stand behind, and before, an arrow of the text, right or wrong: sets of struct
 * weir_node *. */
struct weir_mentions {
	GHashTable *fed, *leading;
};

/* Fills the graph's nodes and edges, in the order of the text; what is wrong is in errors. */
void weir_resolve(struct weir_graph *graph, const struct weir_text *text,
		  struct weir_loader *loader, struct weir_mentions *mentions,
		  struct weir_errors *errors);

#endif
