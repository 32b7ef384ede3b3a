/*
 * interfaces.h: the interfaces that packets of a run came from; append-only, read without a lock by
 * lanes.
 */
#ifndef WEIR_INTERFACES_H
#define WEIR_INTERFACES_H

#include "graph.h"

struct weir_interfaces;

struct weir_interfaces *weir_interfaces_new(void);
void weir_interfaces_free(struct weir_interfaces *interfaces);

/* The id of an equal one of that node, else a new one; UINT16_MAX: too many. Any thread. */
uint16_t weir_interfaces_add(struct weir_interfaces *interfaces, const struct weir_node *node,
			     const struct weir_interface *interface);
/* NULL: nobody added it. Any thread. */
const struct weir_interface *weir_interfaces_get(const struct weir_interfaces *interfaces,
						 uint16_t id);
/* The node that added it. */
const struct weir_node *weir_interfaces_node(const struct weir_interfaces *interfaces, uint16_t id);
unsigned weir_interfaces_count(const struct weir_interfaces *interfaces);

#endif
