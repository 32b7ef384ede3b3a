/*
 * message.c: checks and decodes messages.
 *
 * One reader serves all messages, since to it bodies one after another are one valid file; after a
 * body that it could not finish it is made anew.
 */
#include "message.h"

#define SECTION_TYPE  0x0a0d0d0au
#define SECTION_ORDER 0x1a2b3c4du
#define SECTION_MIN   28u
#define PACKET_MIN    32u /* an enhanced packet block without data */

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

/* "<name>/<two digits>/" */
static bool is_topic(const struct frame *frame)
{
	const uint8_t *end = frame->bytes + frame->len;

	return frame->len >= 5 && end[-1] == '/' && is_digit(end[-2]) && is_digit(end[-3]) &&
	       end[-4] == '/';
}

const char *message_check(const struct frame frames[N_FRAMES], struct weir_stream_header *ret)
{
	const struct frame *body = &frames[FRAME_BODY];
	struct weir_stream_header header;
	const char *problem;

	if (!is_topic(&frames[FRAME_TOPIC]))
		return "its topic is not NAME/LANE/";
	problem = weir_stream_decode(frames[FRAME_HEADER].bytes, frames[FRAME_HEADER].len, &header);
	if (problem)
		return problem;
	if (body->len < SECTION_MIN || weir_stream_get(body->bytes, 4) != SECTION_TYPE ||
	    weir_stream_get(body->bytes + 8, 4) != SECTION_ORDER)
		return "its body is no little-endian pcapng file";
	if (header.count > (body->len - SECTION_MIN) / PACKET_MIN)
		return "its header promises more packets than the body has room for";
	if (header.count > 0 && (header.flags & WEIR_STREAM_HEARTBEAT))
		return "it is a heartbeat with packets";
	*ret = header;
	return NULL;
}

void message_open(struct decoder *decoder, const struct frame *body, uint32_t packets)
{
	decoder->body = body->bytes;
	decoder->body_len = body->len;
	decoder->used = 0;
	decoder->left = packets;
}

bool message_is_open(const struct decoder *decoder)
{
	return decoder->body != NULL;
}

static void forget(struct decoder *decoder, const char *problem)
{
	decoder->body = NULL;
	if (!problem)
		return;
	weir_reader_free(decoder->reader);
	decoder->reader = NULL;
}

/* Runs the reader once; true: it stopped since there are max packets, and there may be more. */
static bool read_some(struct decoder *decoder, struct weir_packet *packets, unsigned max,
		      unsigned *ret_n, const char **ret_problem)
{
	size_t used = 0, need = 0;
	enum weir_reader_status status;

	if (!decoder->reader)
		decoder->reader = weir_reader_new(decoder->on_interface, NULL, decoder->user);
	if (!decoder->reader) {
		*ret_problem = "there is no memory to decode it";
		return false;
	}
	status = weir_reader_read(decoder->reader, decoder->body + decoder->used,
				  decoder->body_len - decoder->used, packets, max, ret_n, &used,
				  &need);
	decoder->used += used;
	if (status == WEIR_READER_BAD)
		*ret_problem = "its body is damaged";
	else if (status == WEIR_READER_MORE)
		*ret_problem = "its body ends within a block";
	return status == WEIR_READER_OK && decoder->used < decoder->body_len;
}

/* What stands behind the promised packets: nothing, or blocks of another kind. */
static void read_rest(struct decoder *decoder, const char **ret_problem)
{
	struct weir_packet surplus;
	unsigned n = 0;

	if (read_some(decoder, &surplus, 1, &n, ret_problem) || n > 0)
		*ret_problem = "its body has more packets than its header promises";
}

unsigned message_read(struct decoder *decoder, struct weir_packet *packets, unsigned max,
		      const char **ret_problem)
{
	unsigned wanted = max < decoder->left ? max : decoder->left;
	unsigned n = 0;
	bool more;

	*ret_problem = NULL;
	more = read_some(decoder, packets, wanted, &n, ret_problem);
	decoder->left -= n;
	if (*ret_problem || !more) {
		if (!*ret_problem && decoder->left > 0)
			*ret_problem = "its body has fewer packets than its header promises";
		forget(decoder, *ret_problem);
	} else if (decoder->left == 0) {
		read_rest(decoder, ret_problem);
		forget(decoder, *ret_problem);
	}
	return n;
}

void message_clear(struct decoder *decoder)
{
	weir_reader_free(decoder->reader);
	decoder->reader = NULL;
	decoder->body = NULL;
	decoder->left = 0;
}
