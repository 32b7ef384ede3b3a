/*
 * stats.h: rates and losses while a run goes on: a line an interval, or on a terminal a table that
 * is redrawn in place.
 */
#ifndef WEIR_STATS_H
#define WEIR_STATS_H

#include "report.h"

struct weir_stats;

struct weir_stats *weir_stats_new(const struct weir_graph *graph);
void weir_stats_free(struct weir_stats *stats); /* takes NULL */

/* What has changed since the last call of either, `seconds` ago: one line with a newline, or a
 * table; g_free().  Main thread. */
char *weir_stats_line(struct weir_stats *stats, const struct weir_report *report, double seconds);
char *weir_stats_table(struct weir_stats *stats, const struct weir_report *report, double seconds);

/* Prints the line, or where `to` is a terminal draws the table over the last one.  Main thread. */
void weir_stats_show(struct weir_stats *stats, const struct weir_report *report, FILE *to);
/* Something else has been printed: the next table starts below it.  Any thread; takes NULL. */
void weir_stats_interrupt(struct weir_stats *stats);

#endif
