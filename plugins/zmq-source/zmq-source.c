/*
 * zmq-source.c: reads the packets that zmq sinks publish, and knows what was lost on the way.
 *
 * Packets are handed out as they lie in the message, which is kept until the next call of poll().
 */
#include "message.h"
#include "receiver.h"
#include "../zmq-endpoint.h"

#include <inttypes.h>

enum {
	ANNOUNCED,
	UNDECODED,
	LOST,
	UNSENT,
	MISSED,
	OTHERS,
	BAD,
	MESSAGES,
	PUBLISHERS,
};

/* Messages without packets that one poll() takes in before it looks after the lane again. */
#define MESSAGES_A_POLL 64

struct lane {
	struct receiver receiver;
	struct decoder decoder;
	struct streams streams;
	struct stream *stream; /* of the open message */
	int64_t now_ns;        /* the clock as of the last tick */
	unsigned n_streams;    /* when the publishers were counted */
	uint32_t lost_before;  /* the next packet */
	bool ifaces_full;      /* some interface of this message could not be declared */
	bool stopping;
	unsigned drain; /* messages that may still be taken while stopping */
};

/* ---- Opening ---- */

static bool check_keys(struct weir_self *self)
{
	const struct config *config = self->config;
	unsigned n = receiver_length(config->curve_server);

	if (!config->curve_secret != !config->curve_server) {
		weir_error(
			self, config->curve_secret ? "curve-secret" : "curve-server",
			"curve-secret and curve-server belong together: one's own key, and those "
			"of the publishers");
		return false;
	}
	if (n <= 1 || n == receiver_length(config->endpoints))
		return true;
	weir_error(self, "curve-server", "one file for all endpoints is wanted, or one for each");
	return false;
}

static bool source_check(struct weir_self *self)
{
	const struct config *config = self->config;
	bool safe = config->insecure || config->curve_secret;
	bool good = check_keys(self);

	for (const char *const *endpoint = config->endpoints; *endpoint; endpoint++)
		good &= endpoint_check(self, *endpoint, safe);
	if (config->topic && config->mode == MODE_PULL) {
		weir_error(self, "topic", "a worker (mode=pull) cannot choose its topics");
		return false;
	}
	return good;
}

static bool source_open(struct weir_self *self)
{
	return endpoint_descriptors(self, ((const struct config *)self->config)->endpoints);
}

static uint16_t declare(void *user, const struct weir_interface *interface)
{
	struct weir_self *self = user;
	struct lane *lane = self->lane;
	uint16_t id = weir_interface_add(self, interface);

	lane->ifaces_full |= id == UINT16_MAX;
	return id;
}

static bool source_lane_open(struct weir_self *self)
{
	struct lane *lane = self->lane;

	lane->decoder.on_interface = declare;
	lane->decoder.user = self;
	return receiver_open(&lane->receiver, self);
}

/* ---- Receiving ---- */

static void refuse(struct weir_self *self, const char *problem)
{
	weir_count(self, BAD, 1);
	weir_log(self, WEIR_WARN, "a message is refused: %s", problem);
}

/* What the ledger file says of one topic of one publisher. */
static void tell_stream(struct weir_self *self, const char *event, const struct stream *stream)
{
	weir_event(self, event,
		   "%.*s of publisher %016" PRIx64 ": %" PRIu64 " packets, %" PRIu64
		   " lost, %" PRIu64 " unsent, %" PRIu64 " missed before joining",
		   (int)stream->topic_len, stream->topic, stream->publisher, stream->packets,
		   stream->lost, stream->unsent, stream->missed);
}

static void add_to_stream(struct weir_self *self, struct stream *stream,
			  const struct weir_stream_header *header,
			  const struct weir_stream_gap *gap)
{
	stream->packets += header->count;
	stream->lost += gap->lost;
	stream->unsent += gap->unsent;
	stream->missed += gap->missed;
	stream->heard_mono_ns = ((struct lane *)self->lane)->now_ns;
	if (!stream->told)
		tell_stream(self, "stream-joined", stream);
	stream->told = true;
	if (header->flags & WEIR_STREAM_END)
		tell_stream(self, "stream-ended", stream);
}

static void leave_all(struct weir_self *self)
{
	const struct lane *lane = self->lane;

	for (unsigned i = 0; i < lane->streams.n; i++)
		if (!lane->streams.rows[i].position.ended)
			tell_stream(self, "stream-left", &lane->streams.rows[i]);
}

static uint32_t saturated(uint64_t packets)
{
	return packets < UINT32_MAX ? (uint32_t)packets : UINT32_MAX;
}

static void account(struct weir_self *self, const struct weir_stream_header *header,
		    const struct weir_stream_gap *gap)
{
	struct lane *lane = self->lane;

	weir_count(self, MESSAGES, 1);
	weir_count(self, ANNOUNCED, header->count);
	weir_count(self, LOST, gap->lost);
	weir_count(self, UNSENT, gap->unsent);
	weir_count(self, MISSED, gap->missed);
	weir_count(self, OTHERS, gap->others);
	lane->lost_before = saturated(lane->lost_before + gap->lost);
	if (lane->n_streams == lane->streams.n)
		return;
	lane->n_streams = lane->streams.n;
	weir_witness(self, PUBLISHERS, streams_publishers(&lane->streams));
	if (lane->n_streams == STREAMS_MAX)
		weir_log(self, WEIR_WARN,
			 "%u streams were heard: for each other one the longest silent is "
			 "forgotten, and what it loses meanwhile is missed before joining",
			 STREAMS_MAX);
}

/* Steps onto the message that was received; what is wrong with it, or NULL. */
static const char *open_message(struct weir_self *self)
{
	struct lane *lane = self->lane;
	struct frame frames[N_FRAMES];
	struct weir_stream_header header;
	struct weir_stream_gap gap;
	struct stream *stream;
	const char *problem;

	for (unsigned i = 0; i < N_FRAMES; i++) {
		frames[i].bytes = zmq_msg_data(&lane->receiver.frames[i]);
		frames[i].len = zmq_msg_size(&lane->receiver.frames[i]);
	}
	problem = message_check(frames, &header);
	if (problem)
		return problem;
	stream = streams_find(&lane->streams, header.publisher, frames[FRAME_TOPIC].bytes,
			      frames[FRAME_TOPIC].len);
	if (!stream)
		return "its topic is too long";
	problem = weir_stream_follow(&stream->position, &header, &gap);
	if (problem)
		return problem;
	account(self, &header, &gap);
	add_to_stream(self, stream, &header, &gap);
	lane->stream = stream;
	lane->ifaces_full = false;
	message_open(&lane->decoder, &frames[FRAME_BODY], header.count);
	return NULL;
}

/* Takes in one message; false: there is none. */
static bool next_message(struct weir_self *self)
{
	struct lane *lane = self->lane;
	const char *problem;
	bool bad = false;

	if (!receiver_next(&lane->receiver, &bad) && !bad)
		return false;
	problem = bad ? "it does not have three frames" : open_message(self);
	if (problem)
		refuse(self, problem);
	return true;
}

/* ---- Decoding ---- */

/* Nobody downstream could know what the packets of an undeclared interface are. */
static unsigned without_undeclared(struct weir_packet *packets, unsigned n)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++)
		if (packets[i].iface != UINT16_MAX)
			packets[kept++] = packets[i];
	return kept;
}

static unsigned decode(struct weir_self *self, struct weir_packet *packets, unsigned max)
{
	struct lane *lane = self->lane;
	const char *problem;
	unsigned n = message_read(&lane->decoder, packets, max, &problem);
	unsigned kept = lane->ifaces_full ? without_undeclared(packets, n) : n;

	if (kept < n)
		weir_count(self, UNDECODED, n - kept);
	if (problem) {
		weir_count(self, UNDECODED, lane->decoder.left);
		lane->decoder.left = 0;
		refuse(self, problem);
	}
	if (kept > 0) {
		packets[0].dropped = saturated((uint64_t)packets[0].dropped + lane->lost_before);
		lane->lost_before = 0;
	}
	return kept;
}

static bool has_ended(struct weir_self *self)
{
	const struct config *config = self->config;
	struct lane *lane = self->lane;

	return lane->stopping || (config->until_end && streams_ended(&lane->streams));
}

static bool may_take(struct lane *lane)
{
	if (lane->stopping && lane->drain == 0)
		return false;
	if (lane->stopping)
		lane->drain--;
	return true;
}

static void note_time(struct lane *lane, const struct weir_packet *last)
{
	if (last->ts_ns > lane->stream->newest_ns)
		lane->stream->newest_ns = last->ts_ns;
	lane->stream->packet_mono_ns = lane->now_ns;
}

/* Packets, 0 or WEIR_END. */
static int next_packets(struct weir_self *self, struct weir_packet *packets, unsigned max,
			int timeout_ms)
{
	struct lane *lane = self->lane;

	for (int i = 0; i < MESSAGES_A_POLL; i++) {
		unsigned n = 0;

		if (message_is_open(&lane->decoder))
			n = decode(self, packets, max);
		if (n > 0)
			return (int)n;
		if (message_is_open(&lane->decoder) || (may_take(lane) && next_message(self)))
			continue;
		if (has_ended(self))
			return WEIR_END;
		if (timeout_ms == 0 || !receiver_wait(&lane->receiver, timeout_ms))
			return 0;
		timeout_ms = 0;
	}
	return 0;
}

static int source_poll(struct weir_self *self, struct weir_packet *packets, unsigned max,
		       int timeout_ms, int64_t *ret_mark_ns)
{
	struct lane *lane = self->lane;
	int n = next_packets(self, packets, max, timeout_ms);
	int64_t mark_ns;

	if (n > 0)
		note_time(lane, &packets[n - 1]);
	mark_ns = streams_mark(&lane->streams, lane->now_ns, n == 0);
	if (mark_ns != INT64_MIN)
		*ret_mark_ns = mark_ns;
	return n;
}

static void source_tick(struct weir_self *self, const struct weir_now *now, unsigned why)
{
	struct lane *lane = self->lane;

	lane->now_ns = now->mono_ns;
	if (why & WEIR_TICK_TIME)
		receiver_hear(&lane->receiver, self, now->mono_ns);
}

/* Publishers go on, so what has arrived by now is taken, and no more than a full queue of it. */
static void source_stop(struct weir_self *self)
{
	struct lane *lane = self->lane;

	lane->stopping = true;
	lane->drain = (unsigned)receiver_hwm(self->config);
}

static void source_lane_close(struct weir_self *self)
{
	struct lane *lane = self->lane;

	leave_all(self);
	message_clear(&lane->decoder);
	streams_clear(&lane->streams);
	receiver_close(&lane->receiver);
}

/* ---- Tables ---- */

static const struct weir_option options[] = {
	{"endpoint", WEIR_LIST, offsetof(struct config, endpoints), NULL, NULL,
	 "Publishers, as a list: tcp://HOST:PORT or ipc://PATH."},
	{"connect", WEIR_BOOL, offsetof(struct config, connect), "yes", NULL,
	 "Connect to the endpoints; no: listen on them, for sinks that connect."},
	{"mode", WEIR_CHOICE, offsetof(struct config, mode), "sub", "sub|pull",
	 "sub: everything that is published; pull: a share of it, as one of several workers."},
	{"topic", WEIR_STRING, offsetof(struct config, topic), "", NULL,
	 "Only topics that begin with this, such as tap/ or tap/03/."},
	{"hwm", WEIR_SIZE, offsetof(struct config, hwm_bytes), "64MiB", "1KiB..64GiB",
	 "Bytes that wait here for each publisher at most, counted as messages of 256KiB."},
	{"until-end", WEIR_BOOL, offsetof(struct config, until_end), "no", NULL,
	 "End once all publishers that were heard have ended."},
	{"insecure", WEIR_BOOL, offsetof(struct config, insecure), "no", NULL,
	 "Allow endpoints on other machines, though nothing is encrypted or authenticated."},
	{"curve-secret", WEIR_INFILE, offsetof(struct config, curve_secret), "", NULL,
	 "Speak to publishers that encrypt, with one's own secret key in this file, which weir "
	 "keygen has made."},
	{"curve-server", WEIR_INFILES, offsetof(struct config, curve_server), "", NULL,
	 "The public key of all publishers, or of each in the order of the endpoints; needed with "
	 "curve-secret."},
	{0},
};

static const struct weir_output outputs[] = {
	{"out", WEIR_DISCARD, WEIR_PACKETS, "all packets"},
	{0},
};

static const struct weir_counter counters[] = {
	{"announced", WEIR_PLUS_PACKETS, "packets in the messages, by their headers"},
	{"undecoded", WEIR_MINUS_PACKETS | WEIR_IS_LOSS, "packets in damaged bodies"},
	{"lost-upstream", WEIR_IS_LOSS, "packets that were sent and did not arrive"},
	{"unsent-upstream", WEIR_IS_LOSS, "packets that a publisher could not send"},
	{"missed-before-joining", WEIR_INFO, "packets sent before the first message seen"},
	{"other-workers", WEIR_INFO, "packets pushed to other workers"},
	{"bad-messages", WEIR_INFO, "messages refused, whole or in part"},
	{"messages", WEIR_INFO, "messages taken in"},
	{"publishers", WEIR_INFO, "publishers heard, of at most 1,024 topics"},
	{0},
};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SOURCE,
	.lanes_kind = WEIR_LANES_ONE,
	.flags = WEIR_LIVE,
	.name = "zmq-source",
	.version = WEIR_VERSION,
	.summary = "reads packets that a zmq sink publishes, and reports its loss",
	.example = "zmq-source tcp://127.0.0.1:5555 -> pcap copy.pcapng",
	.options = options,
	.outputs = outputs,
	.counters = counters,
	.config_size = sizeof(struct config),
	.lane_size = sizeof(struct lane),
	.check = source_check,
	.open = source_open,
	.lane_open = source_lane_open,
	.poll = source_poll,
	.stop = source_stop,
	.tick = source_tick,
	.lane_close = source_lane_close,
};
