/*
 * options.h: the words behind a plugin's name as the values of its options.
 */
#ifndef WEIR_OPTIONS_H
#define WEIR_OPTIONS_H

#include "graph.h"

/* Fills values and config of a node, whose plugin is known, from its words (struct weir_word *).
 * element: where the plugin is named.  What is wrong is in errors. */
void weir_options_fill(struct weir_node *node, const GPtrArray *words, struct weir_position element,
		       struct weir_errors *errors);

#endif
