/*
 * opening.h: from a plan to lanes that run, and when privileges go.
 */
#ifndef WEIR_OPENING_H
#define WEIR_OPENING_H

#include "running.h"

/* Makes the lanes, opens and starts all nodes, and drops privileges in between; false after errors,
 * which are in the context's. What is open then is still to be closed. */
bool weir_opening_prepare(struct weir_running *run);
/* False after an error: some lanes may run, the others will not. */
bool weir_opening_start_lanes(struct weir_running *run);

#endif
