/*
 * Fuzzer of the zmq-source plugin's view of foreign messages: whatever three frames hold, the
 * packets that come out lie within the body, and are as many as the header promises less what is
 * left.
 *
 * An input is one message: a byte with the length of the topic, the topic, a byte with the length
 * of the header, the header, and the body.
 */
#include "../plugins/zmq-source/message.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct frame take(const uint8_t **at, const uint8_t *end)
{
	struct frame frame = {*at, 0};

	if (*at == end)
		return frame;
	frame.bytes++;
	frame.len = **at;
	if (frame.len > (size_t)(end - frame.bytes))
		frame.len = (size_t)(end - frame.bytes);
	*at = frame.bytes + frame.len;
	return frame;
}

static void check(const struct frame *body, const struct weir_packet *packet)
{
	const uint8_t *end = body->bytes + body->len;

	if (packet->data < body->bytes || packet->data > end ||
	    packet->caplen > (size_t)(end - packet->data) || packet->wirelen < packet->caplen)
		abort();
}

static void read_twice(const struct frame *body, uint32_t promised)
{
	struct decoder decoder = {0};
	struct weir_packet packets[3];
	const char *problem;

	for (int round = 0; round < 2; round++) {
		uint32_t n = 0;

		message_open(&decoder, body, promised);
		while (message_is_open(&decoder)) {
			unsigned got = message_read(&decoder, packets, 3, &problem);

			for (unsigned i = 0; i < got; i++)
				check(body, &packets[i]);
			n += got;
		}
		if (n + decoder.left != promised)
			abort();
	}
	message_clear(&decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size;
	struct streams streams = {0};
	struct weir_stream_header header;
	struct weir_stream_gap gap;
	struct frame frames[N_FRAMES];

	frames[FRAME_TOPIC] = take(&data, end);
	frames[FRAME_HEADER] = take(&data, end);
	frames[FRAME_BODY] = (struct frame){data, (size_t)(end - data)};
	if (message_check(frames, &header))
		return 0;
	struct stream *stream = streams_find(&streams, header.publisher, frames[FRAME_TOPIC].bytes,
					     frames[FRAME_TOPIC].len);
	if (stream && !weir_stream_follow(&stream->position, &header, &gap))
		read_twice(&frames[FRAME_BODY], header.count);
	streams_clear(&streams);
	return 0;
}
