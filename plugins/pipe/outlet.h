/*
 * outlet.h: the reading end's side of the pipe sink: a thread that writes what the lane has filled.
 *
 * The thread is there so that the lane never waits for a reader, and so that what a stuck reader
 * has got is known to the packet.
 */
#ifndef PIPE_OUTLET_H
#define PIPE_OUTLET_H

#include <weir/capfile.h>

#include <pthread.h>

enum outcome { WRITTEN, READER_SLOW, READER_GONE, NO_READER, OTHER_LINKTYPE };
enum counter { STREAM_BYTES };

/* Whole records, in a part of the buffer. */
struct chunk {
	struct chunk *next;
	uint8_t *bytes;
	size_t len;
	size_t header_len; /* of the file, at the chunk's start */
	struct weir_extent sum;
};

struct outlet {
	struct weir_self *self; /* of the lane */
	const char *path;       /* of a FIFO; NULL: standard output */
	bool pcapng;
	int64_t linger_ns;

	int fd; /* -1: no reader yet */
	bool is_socket;
	int wake_fd;
	pthread_t thread;
	bool started;
	int gone;    /* the reader, for good; atomic */
	int reading; /* there is a reader; atomic */
	int closing; /* atomic */

	pthread_mutex_t lock;
	struct chunk *oldest, **newest_end; /* filled ones, under lock */
	struct chunk *free;                 /* under lock */
	struct chunk *chunks;
	size_t chunk_bytes;
	size_t done;         /* bytes of the oldest that are written; the thread's */
	int64_t progress_ns; /* CLOCK_MONOTONIC; the thread's, like closing_ns */
	int64_t closing_ns;
};

/* Main thread.  Each returns false after weir_error(); clear takes what is half open. */
bool outlet_open(struct outlet *outlet, struct weir_self *self, const char *to);
bool outlet_make_chunks(struct outlet *outlet, struct weir_self *lane, size_t bytes);
bool outlet_start(struct outlet *outlet, struct weir_self *self);
/* Waits for the reader as long as it goes on reading; settles everything. */
void outlet_clear(struct outlet *outlet);

/* The lane. take: NULL if there is none. */
struct chunk *outlet_take(struct outlet *outlet);
void outlet_submit(struct outlet *outlet, struct chunk *chunk);
/* Nothing is waiting to be written. */
bool outlet_is_idle(struct outlet *outlet);

static inline bool outlet_flag(const int *flag)
{
	return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

#endif
