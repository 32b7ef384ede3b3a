/*
 * outlet.h: the reading end's side of the pipe sink: a thread that writes what the lane has filled.
 *
 * The thread is there so that the lane never waits for a reader, and so that what a reader has got
 * is known to the packet: a pipe tells how many bytes in it are still unread, so a chunk is kept
 * until its bytes have been taken out of the pipe.
 *
 * What one reader gets is a stream of its own, with a header of its own.  Chunks are of one
 * generation; those of an earlier one were meant for a reader that has gone.
 */
#ifndef PIPE_OUTLET_H
#define PIPE_OUTLET_H

#include "child.h"

#include <weir/capfile.h>

#include <pthread.h>

enum outcome { WRITTEN, READER_SLOW, READER_GONE, NO_READER, OTHER_LINKTYPE };
enum counter { STREAM_BYTES };

struct sum {
	uint64_t packets, bytes; /* captured */
};

/* Whole records, in a part of the buffer. */
struct chunk {
	struct chunk *next;
	uint8_t *bytes;
	unsigned generation;
	size_t header_len; /* of the file, at the chunk's start */

	/* The lane's: */
	size_t len;
	struct sum sum;

	/* Under the lock: */
	bool listed, closed; /* the thread has it; the lane adds nothing more */
	size_t ready;        /* of len and sum: what may be written */
	struct sum ready_sum;

	/* The thread's: */
	size_t done;    /* bytes written; changed under the lock, for outlet_is_idle() */
	uint64_t start; /* in the stream of this reader */
	struct sum settled;
};

struct outlet {
	struct outlet *next;    /* of the node's other lanes */
	struct weir_self *self; /* of the lane */
	char *path;             /* of a FIFO; NULL: standard output, or a program */
	bool is_child, is_socket, is_pipe;
	bool may_block;    /* a pipe that could not be opened anew */
	bool has_said_why; /* the FIFO cannot be opened */
	bool pcapng;
	int64_t linger_ns, grace_ns;
	unsigned *readers; /* of the node, that have not gone for good; atomic */
	struct child child;

	int fd; /* -1: no reader yet */
	int wake_fd;
	pthread_t thread;
	bool started;
	int gone;            /* the reader, for good; atomic */
	int reading;         /* there is a reader; atomic */
	int closing;         /* atomic */
	unsigned generation; /* atomic */

	pthread_mutex_t lock;
	struct chunk *oldest, **newest_end; /* listed ones, under lock */
	struct chunk *free;                 /* under lock */
	struct chunk *chunks;
	size_t chunk_bytes;

	/* The thread's: */
	uint64_t written;    /* bytes, to this reader */
	int64_t progress_ns; /* CLOCK_MONOTONIC, like closing_ns */
	int64_t closing_ns;
};

/* What the reader is: standard output, a FIFO, or a program. */
struct outlet_reader {
	const char *to, *exec; /* one of them; patterns */
};

/* Main thread.  Each returns false after weir_error(); clear takes what is half open.  self: of the
 * lane. */
bool outlet_open(struct outlet *outlet, struct weir_self *self, const struct outlet_reader *reader);
bool outlet_make_chunks(struct outlet *outlet, size_t bytes);
bool outlet_start(struct outlet *outlet);
/* The lane has ended.  clear waits for the reader as long as it goes on reading, and settles
 * everything. */
void outlet_end(struct outlet *outlet);
void outlet_clear(struct outlet *outlet);

/* The lane. take: NULL if there is none.  publish: what is in it may be written; closed: and the
 * lane gives it up. */
struct chunk *outlet_take(struct outlet *outlet);
void outlet_publish(struct outlet *outlet, struct chunk *chunk, bool closed);
/* Nothing is waiting to be written. */
bool outlet_is_idle(struct outlet *outlet);

static inline bool outlet_flag(const int *flag)
{
	return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

/* Whether there is still the reader that the chunk was begun for. */
static inline bool outlet_is_current(const struct outlet *outlet, const struct chunk *chunk)
{
	return __atomic_load_n(&outlet->generation, __ATOMIC_RELAXED) == chunk->generation;
}

#endif
