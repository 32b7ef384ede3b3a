/*
 * streams.h: each topic of each publisher, and where we stand on it.
 *
 * A publisher that restarts has a new id and so a new row: its numbers begin anew, and that is no
 * loss.
 */
#ifndef ZMQ_STREAMS_H
#define ZMQ_STREAMS_H

#include <weir/stream.h>

/* Foreign messages decide how many there are; beyond this the longest silent one is forgotten. */
#define STREAMS_MAX 1024u

struct stream {
	uint64_t publisher;
	uint64_t heard;         /* when it was, counted in messages */
	int64_t heard_mono_ns;  /* and by the clock */
	int64_t newest_ns;      /* time of its latest packet; INT64_MIN: none yet */
	int64_t packet_mono_ns; /* when that was */
	struct weir_stream_position position;
	bool told;                              /* that we have joined it */
	uint64_t packets, lost, unsent, missed; /* sums of packets */
	char topic[256];
	size_t topic_len;
};

struct streams {
	struct stream *rows;
	unsigned n, room;
	uint64_t messages;
	struct stream *last; /* the one of the last message, which most often is that of the next */
};

/* The row of that topic, made if it is new; NULL: out of memory, or the topic is too long. */
struct stream *streams_find(struct streams *streams, uint64_t publisher, const void *topic,
			    size_t topic_len);
/* The time before which nothing more is to be expected, INT64_MIN if unknown.  idle: nothing is
 * waiting to be read, so a stream that only sends heartbeats has no packets up to about now. */
int64_t streams_mark(const struct streams *streams, int64_t mono_ns, bool idle);
/* True if there is a stream, and the end of each has come. */
bool streams_ended(const struct streams *streams);
unsigned streams_publishers(const struct streams *streams);
void streams_clear(struct streams *streams);

#endif
