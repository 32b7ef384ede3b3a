/*
 * state.h: which files this node has made, in the order in which they were closed.
 *
 * The state file `.weir-<node>` beside them is a journal of it, which survives restarts.
 */
#ifndef PCAP_STATE_H
#define PCAP_STATE_H

#include <weir/plugin.h>

#include <stdio.h>

struct stat;

/* A complete file.  It is known by more than its name: another one in its place is not ours. */
struct kept {
	struct kept *next;
	int64_t closed_s; /* clock */
	uint64_t inode, bytes;
	int64_t changed_ns; /* its time of modification */
	char name[];        /* in the folder */
};

struct state {
	char *folder, *path; /* path: of the journal */
	int folder_fd;
	FILE *journal;
	bool is_behind; /* something could not be written */
	struct kept *oldest, **newest_end;
	uint64_t n_files, bytes;
};

/* folder: without a slash at its end.  false after weir_error(); state_clear() in any case. */
bool state_open(struct state *state, struct weir_self *self, const char *folder);
void state_clear(struct state *state);

/* A file of that name, in the folder, is complete. */
void state_add(struct state *state, const char *name);
/* The oldest file is there no more. */
void state_remove_oldest(struct state *state);
/* Forgets those that others have removed or changed. */
void state_sweep(struct state *state);
/* Writes down what could not be written before, if there is anything. */
void state_mend(struct state *state);
/* Whether the file is still as it was when it was closed. */
bool state_is_ours(const struct state *state, const struct kept *kept, struct stat *ret_status);

#endif
