/*
 * structure.h: whether the nodes and edges of a text make a pipeline, and their order in it.
 */
#ifndef WEIR_STRUCTURE_H
#define WEIR_STRUCTURE_H

#include "resolve.h"

/* Refuses nodes that nothing feeds or that lead nowhere, two of them on one file or endpoint, and
 * cycles; sorts graph->nodes into topological order. */
void weir_structure_check(struct weir_graph *graph, const struct weir_mentions *mentions,
			  struct weir_errors *errors);

#endif
