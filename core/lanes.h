/*
 * lanes.h: builds the lanes of a plan: posts, the edges between them, and the rings between lanes.
 */
#ifndef WEIR_LANES_H
#define WEIR_LANES_H

#include "lane.h"

/* struct weir_lane *, lanes of one domain after each other; NULL: no memory for a queue, said in
 * the context's errors. */
GPtrArray *weir_lanes_new(const struct weir_plan *plan, struct weir_context *context);

#endif
