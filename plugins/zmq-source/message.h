/*
 * message.h: one message of a stream, foreign bytes until proven otherwise.
 *
 * message_open() looks at what the frames claim, message_read() decodes the body.  Packets point
 * into the body, whose memory is the caller's until the next message is opened.
 */
#ifndef ZMQ_SOURCE_MESSAGE_H
#define ZMQ_SOURCE_MESSAGE_H

#include "streams.h"

#include <weir/capfile.h>

struct frame {
	const uint8_t *bytes;
	size_t len;
};

enum { FRAME_TOPIC, FRAME_HEADER, FRAME_BODY, N_FRAMES };

struct decoder {
	struct weir_reader *reader; /* NULL until it is needed */
	weir_reader_interface on_interface;
	void *user;
	const uint8_t *body;
	size_t body_len, used;
	uint32_t left; /* packets that the header promised and that have not come */
};

/* NULL, or what is wrong: then nothing has been changed. */
const char *message_check(const struct frame frames[N_FRAMES], struct weir_stream_header *ret);
void message_open(struct decoder *decoder, const struct frame *body, uint32_t packets);

/* Stores up to max packets, fewer only at the end of what can be read.  *ret_problem is set where
 * the body is not what the header promised; decoder->left are the packets that will not come. */
unsigned message_read(struct decoder *decoder, struct weir_packet *packets, unsigned max,
		      const char **ret_problem);
bool message_is_open(const struct decoder *decoder);
void message_clear(struct decoder *decoder);

#endif
