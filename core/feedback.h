/*
 * feedback.h: sources that hear what a sink behind them sends over the network: each message would
 * be captured and sent again.
 */
#ifndef WEIR_FEEDBACK_H
#define WEIR_FEEDBACK_H

#include "interfaces.h"

/* A warning for each such source and endpoint: char *; g_ptr_array_unref().  Once sources have
 * declared their interfaces.  Only addresses are looked at, no names: looking up may take long. */
GPtrArray *weir_feedback_find(const struct weir_graph *graph,
			      const struct weir_interfaces *interfaces);

#endif
