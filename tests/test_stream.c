/* The message header of weir/stream.h, what a subscriber computes from it, and what the zmq-source
 * plugin makes of foreign messages. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <weir/capfile.h>
#include <weir/stream.h>

#include "../plugins/zmq-source/message.c"
#include "../plugins/zmq-source/streams.c"

static struct weir_stream_header header_of(uint64_t number, uint64_t before, uint32_t count)
{
	return (struct weir_stream_header){
		.publisher = 7, .number = number, .before = before, .count = count};
}

Test(stream, layout_is_the_documented_one)
{
	const struct weir_stream_header header = {
		.publisher = 0x0807060504030201,
		.number = 0x100f0e0d0c0b0a09,
		.before = 0x1817161514131211,
		.count = 0x1c1b1a19,
		.flags = 0x201f1e1d,
		.unsent = 0x2827262524232221,
		.sent_ns = 0x302f2e2d2c2b2a29,
	};
	uint8_t bytes[WEIR_STREAM_HEADER];

	weir_stream_encode(bytes, &header);
	cr_assert_arr_eq(bytes, "WEIR\x01\x00\x38\x00", 8);
	for (unsigned i = 8; i < sizeof(bytes); i++)
		cr_assert_eq(bytes[i], i - 7, "byte %u is %u", i, bytes[i]);
}

Test(stream, decoding_gives_back_what_was_encoded)
{
	const struct weir_stream_header header = {.publisher = UINT64_MAX,
						  .number = 1,
						  .before = 1ull << 40,
						  .count = UINT32_MAX,
						  .flags = WEIR_STREAM_END,
						  .unsent = 5,
						  .sent_ns = -1};
	struct weir_stream_header back;
	uint8_t bytes[WEIR_STREAM_HEADER];

	weir_stream_encode(bytes, &header);
	cr_assert_null(weir_stream_decode(bytes, sizeof(bytes), &back));
	cr_assert_eq(back.publisher, header.publisher);
	cr_assert_eq(back.number, header.number);
	cr_assert_eq(back.before, header.before);
	cr_assert_eq(back.count, header.count);
	cr_assert_eq(back.flags, header.flags);
	cr_assert_eq(back.unsent, header.unsent);
	cr_assert_eq(back.sent_ns, header.sent_ns);
	cr_assert_eq(back.version, 1);
	cr_assert_eq(back.length, 56);
}

Test(stream, a_longer_header_is_read_and_a_shorter_one_refused)
{
	uint8_t bytes[64] = {0};
	struct weir_stream_header header = header_of(3, 0, 0), back;

	weir_stream_encode(bytes, &header);
	bytes[6] = 64;
	cr_assert_null(weir_stream_decode(bytes, 64, &back));
	cr_assert_eq(back.number, 3);
	cr_assert_not_null(weir_stream_decode(bytes, 63, &back));
	bytes[6] = 55;
	cr_assert_not_null(weir_stream_decode(bytes, 64, &back));
}

Test(stream, other_magic_or_version_is_refused)
{
	uint8_t bytes[WEIR_STREAM_HEADER];
	struct weir_stream_header header = header_of(0, 0, 0), back;

	weir_stream_encode(bytes, &header);
	bytes[0] = 'w';
	cr_assert_not_null(weir_stream_decode(bytes, sizeof(bytes), &back));
	bytes[0] = 'W';
	bytes[4] = 2;
	cr_assert_not_null(weir_stream_decode(bytes, sizeof(bytes), &back));
}

/* ---- What was lost ---- */

Test(stream, joining_late_is_missed_and_not_lost)
{
	struct weir_stream_position position = {0};
	struct weir_stream_header header = header_of(9, 900, 100);
	struct weir_stream_gap gap;

	header.unsent = 50;
	cr_assert_null(weir_stream_follow(&position, &header, &gap));
	cr_assert_eq(gap.missed, 900);
	cr_assert_eq(gap.lost, 0);
	cr_assert_eq(gap.unsent, 0);
}

Test(stream, loss_is_the_gap_and_the_growth_of_unsent)
{
	struct weir_stream_position position = {0};
	struct weir_stream_header first = header_of(0, 0, 10), second = header_of(1, 10, 10),
				  later = header_of(5, 47, 3);
	struct weir_stream_gap gap;

	second.unsent = 4;
	later.unsent = 6;
	cr_assert_null(weir_stream_follow(&position, &first, &gap));
	cr_assert_null(weir_stream_follow(&position, &second, &gap));
	cr_assert_eq(gap.lost, 0);
	cr_assert_eq(gap.unsent, 4);
	cr_assert_null(weir_stream_follow(&position, &later, &gap));
	cr_assert_eq(gap.lost, 27);
	cr_assert_eq(gap.unsent, 2);
	cr_assert_eq(position.before, 50);
	cr_assert_eq(position.number, 6);
}

Test(stream, shares_of_other_workers_are_not_lost)
{
	struct weir_stream_position position = {0};
	struct weir_stream_header first = header_of(2, 20, 10), later = header_of(5, 50, 10);
	struct weir_stream_gap gap;

	first.flags = later.flags = WEIR_STREAM_PUSHED;
	cr_assert_null(weir_stream_follow(&position, &first, &gap));
	cr_assert_eq(gap.others, 20);
	cr_assert_null(weir_stream_follow(&position, &later, &gap));
	cr_assert_eq(gap.others, 20);
	cr_assert_eq(gap.lost, 0);
	cr_assert_eq(gap.missed, 0);
}

Test(stream, numbers_that_cannot_follow_change_nothing)
{
	struct weir_stream_position position = {0}, kept;
	struct weir_stream_header first = header_of(4, 100, 10);
	const uint64_t beyond = WEIR_STREAM_NUMBER_MAX + 1;
	struct weir_stream_header bad[] = {header_of(4, 110, 0), header_of(5, 109, 0),
					   header_of(beyond, 110, 0), header_of(5, beyond, 1),
					   header_of(5, 110, 0)};
	struct weir_stream_gap gap;

	cr_assert_null(weir_stream_follow(&position, &first, &gap));
	kept = position;
	bad[4].unsent = beyond;
	for (unsigned i = 0; i < 5; i++) {
		cr_assert_not_null(weir_stream_follow(&position, &bad[i], &gap), "header %u", i);
		cr_assert_arr_eq(&position, &kept, sizeof(kept));
	}
}

Test(stream, the_end_is_seen_and_can_be_taken_back)
{
	struct weir_stream_position position = {0};
	struct weir_stream_header end = header_of(0, 0, 0), more = header_of(1, 0, 1);
	struct weir_stream_gap gap;

	end.flags = WEIR_STREAM_END;
	cr_assert_null(weir_stream_follow(&position, &end, &gap));
	cr_assert(position.ended);
	cr_assert_null(weir_stream_follow(&position, &more, &gap));
	cr_assert_not(position.ended);
}

/* ---- Streams ---- */

Test(streams, publishers_and_topics_have_rows_of_their_own)
{
	struct streams streams = {0};
	struct stream *a = streams_find(&streams, 1, "tap/00/", 7);

	a->position.number = 5;
	streams_find(&streams, 1, "tap/01/", 7);
	streams_find(&streams, 2, "tap/00/", 7);
	cr_assert_eq(streams.n, 3);
	cr_assert_eq(streams_publishers(&streams), 2);
	cr_assert_eq(streams_find(&streams, 1, "tap/00/", 7)->position.number, 5);
	cr_assert_eq(streams.n, 3);
	streams_clear(&streams);
}

Test(streams, all_must_have_ended)
{
	struct streams streams = {0};

	cr_assert_not(streams_ended(&streams));
	streams_find(&streams, 1, "a/00/", 5)->position.ended = true;
	cr_assert(streams_ended(&streams));
	streams_find(&streams, 2, "a/00/", 5);
	cr_assert_not(streams_ended(&streams));
	streams_clear(&streams);
}

Test(streams, beyond_the_limit_the_longest_silent_is_forgotten)
{
	struct streams streams = {0};

	for (uint64_t i = 0; i < STREAMS_MAX; i++)
		streams_find(&streams, i, "a/00/", 5)->position.number = i + 1;
	streams_find(&streams, 0, "a/00/", 5);
	streams_find(&streams, STREAMS_MAX, "a/00/", 5);
	cr_assert_eq(streams.n, STREAMS_MAX);
	cr_assert_eq(streams_find(&streams, 0, "a/00/", 5)->position.number, 1);
	cr_assert_eq(streams_find(&streams, 1, "a/00/", 5)->position.number, 0, "1 was the one");
	streams_clear(&streams);
}

Test(streams, a_topic_that_is_too_long_has_no_row)
{
	struct streams streams = {0};
	char topic[257] = {0};

	cr_assert_null(streams_find(&streams, 1, topic, sizeof(topic)));
	cr_assert_eq(streams.n, 0);
}

#define S 1000000000ll

static void heard(struct streams *streams, uint64_t publisher, int64_t mono_ns, int64_t packet_ns)
{
	struct stream *stream = streams_find(streams, publisher, "a/00/", 5);

	stream->heard_mono_ns = mono_ns;
	if (packet_ns == INT64_MIN)
		return;
	stream->newest_ns = packet_ns;
	stream->packet_mono_ns = mono_ns;
}

Test(streams, the_mark_is_the_earliest_of_those_that_are_alive)
{
	struct streams streams = {0};

	cr_assert_eq(streams_mark(&streams, 0, true), INT64_MIN);
	heard(&streams, 1, 10 * S, 1000 * S);
	heard(&streams, 2, 10 * S, 1005 * S);
	heard(&streams, 3, 10 * S, INT64_MIN);
	cr_assert_eq(streams_mark(&streams, 10 * S, false), 1000 * S);
	streams_find(&streams, 1, "a/00/", 5)->position.ended = true;
	cr_assert_eq(streams_mark(&streams, 10 * S, false), 1005 * S);
	cr_assert_eq(streams_mark(&streams, 13 * S + 1, false), INT64_MIN, "silent");
	streams_clear(&streams);
}

Test(streams, with_heartbeats_alone_the_mark_goes_on)
{
	struct streams streams = {0};

	heard(&streams, 1, 10 * S, 1000 * S);
	heard(&streams, 1, 15 * S, INT64_MIN);
	cr_assert_eq(streams_mark(&streams, 15 * S, false), 1000 * S);
	cr_assert_eq(streams_mark(&streams, 15 * S, true), 1004 * S);
	heard(&streams, 1, 15 * S, INT64_MAX - 5);
	cr_assert_eq(streams_mark(&streams, 18 * S, true), INT64_MAX - 5, "no overflow");
	streams_clear(&streams);
}

/* ---- Messages ---- */

#define N_PACKETS 5u

static uint16_t one_interface(void *user, const struct weir_interface *interface)
{
	unsigned *calls = user;

	cr_assert_eq(interface->linktype, 1);
	(*calls)++;
	return 3;
}

struct sample {
	uint8_t header[WEIR_STREAM_HEADER], body[8192];
	struct frame frames[N_FRAMES];
	unsigned calls;
	struct decoder decoder;
};

static void make(struct sample *sample, uint32_t promised, uint32_t there)
{
	struct weir_stream_header header = header_of(0, 0, promised);
	const struct weir_interface interface = {.name = "eth0", .linktype = 1};
	uint8_t *to = sample->body;

	memset(sample, 0, sizeof(*sample));
	weir_stream_encode(sample->header, &header);
	to += weir_pcapng_section(to, &(struct weir_section){0});
	to += weir_pcapng_interface(to, &interface, NULL, NULL);
	for (uint32_t i = 0; i < there; i++) {
		struct weir_packet packet = {.data = (const uint8_t *)"abcdefgh",
					     .caplen = i + 1,
					     .wirelen = i + 100,
					     .ts_ns = i,
					     .queue = UINT16_MAX};
		to += weir_pcapng_packet(to, &packet, 0, true);
	}
	sample->frames[FRAME_TOPIC] = (struct frame){(const uint8_t *)"tap/07/", 7};
	sample->frames[FRAME_HEADER] = (struct frame){sample->header, sizeof(sample->header)};
	sample->frames[FRAME_BODY] = (struct frame){sample->body, (size_t)(to - sample->body)};
	sample->decoder.on_interface = one_interface;
	sample->decoder.user = &sample->calls;
}

/* Reads all of the message, max packets at a time; returns how many there were. */
static unsigned drain(struct sample *sample, unsigned max, const char **ret_problem)
{
	struct weir_packet packets[8];
	unsigned n = 0;

	*ret_problem = NULL;
	message_open(&sample->decoder, &sample->frames[FRAME_BODY],
		     (uint32_t)weir_stream_get(sample->header + 32, 4));
	while (message_is_open(&sample->decoder)) {
		unsigned got = message_read(&sample->decoder, packets, max, ret_problem);

		for (unsigned i = 0; i < got; i++) {
			cr_assert_eq(packets[i].caplen, n + i + 1);
			cr_assert_eq(packets[i].wirelen, n + i + 100);
			cr_assert_eq(packets[i].iface, 3);
			cr_assert_arr_eq(packets[i].data, "abcdefgh", packets[i].caplen);
		}
		n += got;
	}
	return n;
}

Test(message, packets_come_in_as_many_reads_as_it_takes)
{
	for (unsigned max = 1; max <= 8; max++) {
		struct sample sample;
		struct weir_stream_header header;
		const char *problem;

		make(&sample, N_PACKETS, N_PACKETS);
		cr_assert_null(message_check(sample.frames, &header));
		cr_assert_eq(header.count, N_PACKETS);
		cr_assert_eq(drain(&sample, max, &problem), N_PACKETS);
		cr_assert_null(problem, "max %u: %s", max, problem);
		cr_assert_eq(drain(&sample, max, &problem), N_PACKETS, "the reader goes on");
		cr_assert_eq(sample.calls, 2);
		message_clear(&sample.decoder);
	}
}

Test(message, a_body_without_packets_is_a_message)
{
	struct sample sample;
	struct weir_stream_header header;
	const char *problem;

	make(&sample, 0, 0);
	cr_assert_null(message_check(sample.frames, &header));
	cr_assert_eq(drain(&sample, 8, &problem), 0);
	cr_assert_null(problem);
	message_clear(&sample.decoder);
}

Test(message, what_was_promised_and_is_not_there_is_left)
{
	struct sample sample;
	const char *problem;

	make(&sample, N_PACKETS + 1, N_PACKETS);
	cr_assert_eq(drain(&sample, 8, &problem), N_PACKETS);
	cr_assert_not_null(problem);
	cr_assert_eq(sample.decoder.left, 1);
	make(&sample, N_PACKETS, N_PACKETS);
	sample.frames[FRAME_BODY].len -= 4;
	cr_assert_eq(drain(&sample, 8, &problem), N_PACKETS - 1);
	cr_assert_not_null(problem);
	cr_assert_eq(sample.decoder.left, 1);
	message_clear(&sample.decoder);
}

Test(message, what_was_not_promised_is_not_delivered)
{
	for (unsigned max = 1; max <= 8; max++) {
		struct sample sample;
		const char *problem;

		make(&sample, N_PACKETS - 1, N_PACKETS);
		cr_assert_eq(drain(&sample, max, &problem), N_PACKETS - 1);
		cr_assert_not_null(problem);
		cr_assert_eq(sample.decoder.left, 0);
		message_clear(&sample.decoder);
	}
}

Test(message, a_damaged_one_does_not_spoil_the_next)
{
	struct sample sample;
	const char *problem;

	make(&sample, N_PACKETS, N_PACKETS);
	sample.body[sample.frames[FRAME_BODY].len - 1] ^= 1; /* the length at the end */
	cr_assert_eq(drain(&sample, 8, &problem), N_PACKETS - 1);
	cr_assert_not_null(problem);
	sample.body[sample.frames[FRAME_BODY].len - 1] ^= 1;
	cr_assert_eq(drain(&sample, 8, &problem), N_PACKETS);
	cr_assert_null(problem);
	message_clear(&sample.decoder);
}

struct wrong {
	unsigned frame;
	size_t at; /* SIZE_MAX: the frame is cut to value bytes */
	uint8_t value;
};

ParameterizedTestParameters(message, wrong_frames_are_refused)
{
	static struct wrong wrong[] = {
		{FRAME_TOPIC, 6, 'x'},
		{FRAME_TOPIC, 4, 'x'},
		{FRAME_TOPIC, SIZE_MAX, 4},
		{FRAME_TOPIC, SIZE_MAX, 0},
		{FRAME_HEADER, 0, 'w'},
		{FRAME_HEADER, SIZE_MAX, 0},
		{FRAME_HEADER, SIZE_MAX, 55},
		{FRAME_HEADER, 33, 1 /* 256 packets */},
		{FRAME_HEADER, 36, WEIR_STREAM_HEARTBEAT},
		{FRAME_BODY, 0, 6 /* a packet first */},
		{FRAME_BODY, 8, 0x1a /* big-endian */},
		{FRAME_BODY, SIZE_MAX, 0},
		{FRAME_BODY, SIZE_MAX, 27},
	};
	return cr_make_param_array(struct wrong, wrong, sizeof(wrong) / sizeof(*wrong));
}

ParameterizedTest(struct wrong *wrong, message, wrong_frames_are_refused)
{
	struct sample sample;
	struct weir_stream_header header;
	struct frame *frame = &sample.frames[wrong->frame];
	uint8_t bytes[8192];

	make(&sample, N_PACKETS, N_PACKETS);
	cr_assert_null(message_check(sample.frames, &header));
	memcpy(bytes, frame->bytes, frame->len);
	frame->bytes = bytes;
	if (wrong->at == SIZE_MAX)
		frame->len = wrong->value;
	else
		bytes[wrong->at] = wrong->value;
	cr_assert_not_null(message_check(sample.frames, &header));
}
