/*
 * player.c: reads the inputs one after another, as often as is wanted, and hands out their packets.
 *
 * At full speed packets go out as they were parsed.  At a pace a batch is held back here, and what
 * is due of it goes out: never early, and never late for the sake of a fuller batch.
 */
#include "replay.h"

#define OUTSIDE_BATCHES 64        /* read on end where no packet is in the range */
#define LONE_PACKET_NS  NS_PER_MS /* how long an input with one packet lasts when it is repeated */

/* ---- Files, one after another ---- */

static void close_stream(struct lane *lane)
{
	struct stream *stream = lane->stream;
	const struct weir_reader_totals *totals = weir_reader_totals(stream->reader);
	lane->totals.header_bytes += totals->header_bytes;
	lane->totals.record_bytes += totals->record_bytes;
	lane->totals.skipped_bytes += totals->skipped_bytes;
	lane->totals.skipped_packets += totals->skipped_packets;
	lane->bytes_read += stream->bytes_read;
	lane->torn_bytes += stream->torn_bytes;
	lane->unread_bytes += (uint64_t)(stream->end - stream->at);
	lane->truncated += stream->torn_bytes > 0;
	lane->warnings += stream->warnings;
	lane->files++;
	lane->stream = NULL;
	stream_free(stream);
}

/* The next pass begins one mean gap after the last packet of this one. False: nothing to repeat. */
static bool begin_pass(struct lane *lane)
{
	const struct pass *pass = &lane->pass;
	if (pass->packets == 0)
		return false;
	uint64_t span_ns = (uint64_t)pass->last_ns - (uint64_t)pass->first_ns;
	uint64_t gap_ns = pass->packets > 1 ? span_ns / (pass->packets - 1)
					    : (uint64_t)LONE_PACKET_NS;
	lane->shift_ns = (int64_t)((uint64_t)lane->shift_ns + span_ns + gap_ns);
	lane->pass = (struct pass){0};
	lane->next = 0;
	return true;
}

/* Opens the next input: 1, WEIR_END or WEIR_FAILED. */
static int open_next(struct weir_self *self)
{
	const struct config *config = self->config;
	struct node *node = self->node;
	struct lane *lane = self->lane;
	if (lane->next == node->inputs.n && (++lane->passes == config->loop || !begin_pass(lane)))
		return WEIR_END;
	struct input *input = &node->inputs.list[lane->next++];
	lane->stream = input->stream ? input->stream : stream_open(self, input->path, STREAM_CHUNK);
	input->stream = NULL;
	lane->pace.may_step_back = true;
	return lane->stream ? 1 : WEIR_FAILED;
}

bool player_open(struct weir_self *self)
{
	return open_next(self) != WEIR_FAILED;
}

/* ---- Packets ---- */

/* Leaves those between from and to. */
static unsigned select_range(const struct node *node, struct lane *lane,
			     struct weir_packet *packets, unsigned n)
{
	unsigned kept = 0;
	if (node->from_ns == INT64_MIN && node->to_ns == INT64_MAX)
		return n;
	for (unsigned i = 0; i < n; i++)
		if (packets[i].ts_ns >= node->from_ns && packets[i].ts_ns < node->to_ns)
			packets[kept++] = packets[i];
	lane->outside += n - kept;
	return kept;
}

static void measure_and_shift(struct lane *lane, struct weir_packet *packets, unsigned n)
{
	struct pass *pass = &lane->pass;
	for (unsigned i = 0; i < n; i++) {
		int64_t ts_ns = packets[i].ts_ns;
		if (pass->packets == 0 || ts_ns < pass->first_ns)
			pass->first_ns = ts_ns;
		if (pass->packets == 0 || ts_ns > pass->last_ns)
			pass->last_ns = ts_ns;
		pass->packets++;
		packets[i].ts_ns = (int64_t)((uint64_t)ts_ns + (uint64_t)lane->shift_ns);
	}
}

/* What the inputs have next, at most one chunk of it. */
static int read_inputs(struct weir_self *self, struct weir_packet *packets, unsigned max,
		       int timeout_ms)
{
	struct lane *lane = self->lane;
	for (;;) {
		int n = lane->stream ? 1 : open_next(self);
		if (n < 0)
			return n;
		lane->stream->self = self;
		n = stream_read(lane->stream, packets, max, timeout_ms);
		if (n != STREAM_END)
			return n == STREAM_FAILED ? WEIR_FAILED : n;
		close_stream(lane);
	}
}

/* Up to max packets that are in the range. */
static int read_range(struct weir_self *self, struct weir_packet *packets, unsigned max,
		      int timeout_ms)
{
	for (unsigned batches = 0; batches < OUTSIDE_BATCHES; batches++) {
		int n = read_inputs(self, packets, max, batches == 0 ? timeout_ms : 0);
		if (n <= 0)
			return n;
		unsigned kept = select_range(self->node, self->lane, packets, (unsigned)n);
		if (kept > 0)
			return (int)kept;
	}
	return 0;
}

int player_read(struct weir_self *self, struct weir_packet *packets, unsigned max, int timeout_ms)
{
	const struct config *config = self->config;
	struct lane *lane = self->lane;
	uint64_t left = (uint64_t)config->limit - lane->packets;
	if (config->limit > 0 && left < max)
		max = (unsigned)left;
	int n = max > 0 ? read_range(self, packets, max, timeout_ms) : WEIR_END;
	if (n > 0 && config->loop != 1)
		measure_and_shift(lane, packets, (unsigned)n);
	return n;
}

/* Hands out what is due of the packets that are held, and waits for the first one until then. */
static int release(struct lane *lane, struct weir_packet *packets, unsigned max, int64_t until_ns)
{
	struct pace *pace = &lane->pace;
	int64_t now_ns = pace_clock();
	int64_t due_ns = pace_due(pace, &lane->held[lane->held_at], now_ns);
	if (due_ns > now_ns) {
		pace_sleep(due_ns < until_ns ? due_ns : until_ns);
		now_ns = pace_clock();
	}
	unsigned n = 0;
	while (n < max && lane->held_at < lane->held_n) {
		const struct weir_packet *packet = &lane->held[lane->held_at];
		if (pace_due(pace, packet, now_ns) > now_ns)
			break;
		pace_sent(pace, packet);
		packets[n++] = *packet;
		lane->held_at++;
	}
	return (int)n;
}

int player_read_paced(struct weir_self *self, struct weir_packet *packets, unsigned max,
		      int timeout_ms)
{
	struct lane *lane = self->lane;
	int64_t until_ns = pace_clock() + timeout_ms * NS_PER_MS;
	if (lane->held_at == lane->held_n) {
		int n = player_read(self, lane->held, WEIR_BATCH, timeout_ms);
		if (n <= 0)
			return n;
		lane->held_at = 0;
		lane->held_n = (unsigned)n;
	}
	return release(lane, packets, max, until_ns);
}

void player_close(struct lane *lane)
{
	if (lane->stream)
		close_stream(lane);
}
