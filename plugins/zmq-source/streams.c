/*
 * streams.c: a plain array: a search costs nothing beside the hundreds of packets of a message.
 */
#include "streams.h"

#include <stdlib.h>

#define NS_PER_S 1000000000

/* What a publisher may keep back, and after how many missed heartbeats nobody waits for it. */
#define DELAY_NS  NS_PER_S
#define SILENT_NS (3LL * NS_PER_S)

static bool is_that(const struct stream *stream, uint64_t publisher, const void *topic,
		    size_t topic_len)
{
	return stream->publisher == publisher && stream->topic_len == topic_len &&
	       memcmp(stream->topic, topic, topic_len) == 0;
}

static struct stream *search(struct streams *streams, uint64_t publisher, const void *topic,
			     size_t topic_len)
{
	if (streams->last && is_that(streams->last, publisher, topic, topic_len))
		return streams->last;
	for (unsigned i = 0; i < streams->n; i++)
		if (is_that(&streams->rows[i], publisher, topic, topic_len))
			return &streams->rows[i];
	return NULL;
}

static struct stream *longest_silent(struct streams *streams)
{
	struct stream *silent = &streams->rows[0];

	for (unsigned i = 1; i < streams->n; i++)
		if (streams->rows[i].heard < silent->heard)
			silent = &streams->rows[i];
	return silent;
}

static struct stream *new_row(struct streams *streams)
{
	unsigned room = streams->room ? 2 * streams->room : 16;
	struct stream *rows;

	if (streams->n == STREAMS_MAX)
		return longest_silent(streams);
	if (streams->n == streams->room) {
		rows = realloc(streams->rows, room * sizeof(*rows));
		if (!rows)
			return NULL;
		streams->rows = rows;
		streams->room = room;
	}
	return &streams->rows[streams->n++];
}

struct stream *streams_find(struct streams *streams, uint64_t publisher, const void *topic,
			    size_t topic_len)
{
	struct stream *stream;

	if (topic_len > sizeof(stream->topic))
		return NULL;
	stream = search(streams, publisher, topic, topic_len);
	if (!stream) {
		stream = new_row(streams);
		if (!stream)
			return NULL;
		memset(stream, 0, sizeof(*stream));
		stream->publisher = publisher;
		stream->newest_ns = INT64_MIN;
		stream->topic_len = topic_len;
		memcpy(stream->topic, topic, topic_len);
	}
	stream->heard = streams->messages++;
	streams->last = stream;
	return stream;
}

/* Clocks of other machines are not trusted: time goes on from that of the last packet. */
static int64_t mark_of(const struct stream *stream, int64_t mono_ns, bool idle)
{
	int64_t idle_ns = mono_ns - stream->packet_mono_ns - DELAY_NS;
	int64_t mark_ns;

	if (!idle || idle_ns <= 0 || __builtin_add_overflow(stream->newest_ns, idle_ns, &mark_ns))
		return stream->newest_ns;
	return mark_ns;
}

int64_t streams_mark(const struct streams *streams, int64_t mono_ns, bool idle)
{
	int64_t earliest_ns = INT64_MAX;

	for (unsigned i = 0; i < streams->n; i++) {
		const struct stream *stream = &streams->rows[i];

		if (stream->newest_ns == INT64_MIN || stream->position.ended ||
		    mono_ns - stream->heard_mono_ns > SILENT_NS)
			continue;
		int64_t mark_ns = mark_of(stream, mono_ns, idle);
		if (mark_ns < earliest_ns)
			earliest_ns = mark_ns;
	}
	return earliest_ns == INT64_MAX ? INT64_MIN : earliest_ns;
}

bool streams_ended(const struct streams *streams)
{
	for (unsigned i = 0; i < streams->n; i++)
		if (!streams->rows[i].position.ended)
			return false;
	return streams->n > 0;
}

static bool has_earlier_row(const struct streams *streams, unsigned row)
{
	for (unsigned i = 0; i < row; i++)
		if (streams->rows[i].publisher == streams->rows[row].publisher)
			return true;
	return false;
}

unsigned streams_publishers(const struct streams *streams)
{
	unsigned n = 0;

	for (unsigned i = 0; i < streams->n; i++)
		n += !has_earlier_row(streams, i);
	return n;
}

void streams_clear(struct streams *streams)
{
	free(streams->rows);
	memset(streams, 0, sizeof(*streams));
}
