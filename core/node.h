/*
 * node.h: how the nodes of a graph are made and freed.
 */
#ifndef WEIR_NODE_H
#define WEIR_NODE_H

#include "graph.h"

/* name is taken over.  plugin is NULL for one that is not known: such a node lives only until its
 * errors have been found. */
struct weir_node *weir_node_new(char *name, const struct weir_plugin *plugin,
				struct weir_position where);
void weir_node_free(struct weir_node *node);

/* The output of that name, or -1. */
int weir_node_output(const struct weir_node *node, const char *name);

#endif
