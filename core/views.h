/*
 * views.h: when a run shows what of its ledger: terminal, ledger file, metrics, report.
 */
#ifndef WEIR_VIEWS_H
#define WEIR_VIEWS_H

#include "running.h"

struct weir_ledger *weir_views_ledger(const struct weir_running *run);

/* The ledger so far, to standard error. */
void weir_views_print(struct weir_running *run);
/* What is due once an interval. */
void weir_views_interval(struct weir_running *run);
/* All that a run leaves behind; what of it cannot be written makes the run fail. */
void weir_views_end(struct weir_running *run, const struct weir_ledger *ledger, bool balanced);

#endif
