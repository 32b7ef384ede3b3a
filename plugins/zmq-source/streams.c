/*
 * streams.c: a plain array: a search costs nothing beside the hundreds of packets of a message.
 */
#include "streams.h"

#include <stdlib.h>

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
		stream->topic_len = topic_len;
		memcpy(stream->topic, topic, topic_len);
	}
	stream->heard = streams->messages++;
	streams->last = stream;
	return stream;
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
