/*
 * child.h: a program that reads a stream on its standard input.
 *
 * It has Weir's user and folder and none of its capabilities, signals or descriptors; what it
 * prints goes to Weir's standard error.  All of it but check and free is called by one thread.
 */
#ifndef PIPE_CHILD_H
#define PIPE_CHILD_H

#include <weir/plugin.h>

#include <sys/types.h>

struct child {
	struct weir_self *self; /* of the lane */
	char **words;           /* the program's path and its arguments */
	pid_t pid;              /* 0: none is running */
	pid_t ended;            /* not waited for, since its group may live on; 0: none */
	int pidfd;              /* becomes readable when it ends; -1 */
	int64_t started_ns;     /* CLOCK_MONOTONIC, like next_ns */
	int64_t bury_ns;        /* when what it has left gets KILL */
	int64_t next_ns;        /* when it may be started again */
	int64_t delay_ns;       /* before that */
};

/* Main thread: what can be known of a command without starting it. False after weir_error(). */
bool child_check(struct weir_self *self, const char *command);
bool child_prepare(struct child *child, struct weir_self *self, const char *command);
void child_free(struct child *child);

/* Gives up this thread's capabilities, which its children would inherit. */
void child_drop_capabilities(void);

/* If it is time, and what the last one has left is gone: a new process; the writing end of its
 * input, which does not block, or -1.  To be called again and again. */
int child_start(struct child *child, int64_t now_ns);
/* Waits for at most that long for its end; true: it has ended, and has been said to. */
bool child_wait(struct child *child, int timeout_ms);
/* Its input has ended: waits, asks it to end, and ends it, for at most grace each. */
void child_end(struct child *child, int64_t grace_ns);

#endif
