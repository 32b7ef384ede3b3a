/*
 * journal.h: the ledger file: one JSON object a line, appended while the run goes on.
 *
 * Each line is one write(2) to a descriptor opened with O_APPEND, so a crash loses no earlier line
 * and two runs may share a file.  A run without its last line has crashed.
 */
#ifndef WEIR_JOURNAL_H
#define WEIR_JOURNAL_H

#include "report.h"

struct weir_journal;

struct weir_journal *weir_journal_open(const char *path, GError **error);
/* How many of the last lines could not be written. */
uint64_t weir_journal_unwritten(const struct weir_journal *journal); /* takes NULL */
void weir_journal_close(struct weir_journal *journal);               /* takes NULL */
/* Goes on in the file that has the name now, so that it can be rotated away; after an error in the
 * old one.  Takes NULL. */
bool weir_journal_reopen(struct weir_journal *journal, GError **error);

/* The first line of a run, and its last, to which the caller has written the last interval.  Main
 * thread. */
void weir_journal_started(struct weir_journal *journal, const struct weir_graph *graph);
void weir_journal_ended(struct weir_journal *journal, const struct weir_report *report);
/* Any thread. lane: -1 for none; detail may be NULL.  All of these do nothing with a NULL journal.
 */
void weir_journal_event(struct weir_journal *journal, const char *node, int lane, const char *event,
			const char *detail);
/* Every difference to the last interval that is not zero; and loss-began and loss-ended events.
 * Main thread. */
void weir_journal_interval(struct weir_journal *journal, const struct weir_report *report);

#endif
