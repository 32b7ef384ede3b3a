/*
 * pcap-replay: packets from capture files, as fast as they can be read or at a pace.
 */
#include "replay.h"

#include <stdlib.h>
#include <unistd.h>

enum { PROGRESS_AUTO, PROGRESS_YES, PROGRESS_NO };

enum {
	BYTES_READ,
	HEADER_BYTES,
	RECORD_BYTES,
	SKIPPED_BYTES,
	TORN_BYTES,
	UNREAD_BYTES,
	FILES,
	TRUNCATED,
	PACKETS_SKIPPED,
	OUTSIDE_RANGE,
	WARNINGS,
};

/* ---- Options ---- */

static bool parse_time(struct weir_self *self, const char *option, const char *text,
		       int64_t otherwise_ns, int64_t *ret_ns)
{
	*ret_ns = otherwise_ns;
	if (!text || times_parse(text, ret_ns))
		return true;
	weir_error(self, option,
		   "'%s' is no time; 2026-01-02T03:04:05Z, '2026-01-02 03:04:05' (local) or -2h "
		   "(before now) would be",
		   text);
	return false;
}

static bool parse_options(struct weir_self *self, struct node *ret)
{
	const struct config *config = self->config;
	bool ok = parse_time(self, "from", config->from, INT64_MIN, &ret->from_ns);
	ok = parse_time(self, "to", config->to, INT64_MAX, &ret->to_ns) && ok;
	if (ok && ret->from_ns >= ret->to_ns) {
		weir_error(self, "to", "is not after from=%s: no packet can be between them",
			   config->from);
		ok = false;
	}
	if (!pace_parse(config->pace, &ret->pace)) {
		weir_error(self, "pace",
			   "'%s' is no pace; max, original, x2 (twice as fast), 500kpps or 1Gbps "
			   "would be",
			   config->pace);
		ok = false;
	}
	return ok;
}

static bool replay_check(struct weir_self *self)
{
	struct node parsed;
	return parse_options(self, &parsed);
}

/* ---- Setting up ---- */

static bool can_repeat(struct weir_self *self, const struct inputs *inputs)
{
	for (unsigned i = 0; i < inputs->n; i++)
		if (inputs->list[i].stream) {
			weir_error(self, "loop", "%s can be read only once", inputs->list[i].path);
			return false;
		}
	return true;
}

static bool replay_open(struct weir_self *self)
{
	const struct config *config = self->config;
	struct node *node = self->node;
	if (!parse_options(self, node) || !inputs_open(self, &node->inputs, config->files))
		return false;
	node->progress = config->progress == PROGRESS_YES ||
			 (config->progress == PROGRESS_AUTO && isatty(STDERR_FILENO));
	return config->loop == 1 || can_repeat(self, &node->inputs);
}

static bool replay_lane_open(struct weir_self *self)
{
	const struct node *node = self->node;
	struct lane *lane = self->lane;
	lane->pace = node->pace;
	return player_open(self);
}

/* ---- The lane ---- */

static int replay_poll(struct weir_self *self, struct weir_packet *packets, unsigned max,
		       int timeout_ms, int64_t *ret_mark_ns)
{
	struct lane *lane = self->lane;
	if (lane->over)
		return WEIR_END;
	int n = lane->pace.kind == PACE_MAX ? player_read(self, packets, max, timeout_ms)
					    : player_read_paced(self, packets, max, timeout_ms);
	if (n > 0) {
		lane->packets += (unsigned)n;
		*ret_mark_ns = packets[n - 1].ts_ns;
	}
	lane->over = n < 0;
	return n;
}

static void replay_stop(struct weir_self *self)
{
	struct lane *lane = self->lane;
	lane->over = true;
}

/* ---- What is said about it ---- */

static void replay_witness(struct weir_self *self)
{
	const struct lane *lane = self->lane;
	const struct stream *stream = lane->stream;
	const struct weir_reader_totals none = {0};
	const struct weir_reader_totals *now = stream ? weir_reader_totals(stream->reader) : &none;
	weir_witness(self, BYTES_READ, lane->bytes_read + (stream ? stream->bytes_read : 0));
	weir_witness(self, HEADER_BYTES, lane->totals.header_bytes + now->header_bytes);
	weir_witness(self, RECORD_BYTES, lane->totals.record_bytes + now->record_bytes);
	weir_witness(self, SKIPPED_BYTES, lane->totals.skipped_bytes + now->skipped_bytes);
	weir_witness(self, TORN_BYTES, lane->torn_bytes + (stream ? stream->torn_bytes : 0));
	weir_witness(self, UNREAD_BYTES,
		     lane->unread_bytes + (stream ? (uint64_t)(stream->end - stream->at) : 0));
	weir_witness(self, FILES, lane->files + (stream ? 1 : 0));
	weir_witness(self, TRUNCATED, lane->truncated);
	weir_witness(self, PACKETS_SKIPPED, lane->totals.skipped_packets + now->skipped_packets);
	weir_witness(self, OUTSIDE_RANGE, lane->outside);
	weir_witness(self, WARNINGS, lane->warnings + (stream ? stream->warnings : 0));
}

static void replay_tick(struct weir_self *self, const struct weir_now *now, unsigned why)
{
	const struct config *config = self->config;
	const struct node *node = self->node;
	struct lane *lane = self->lane;
	if (!node->progress)
		return;
	if (why & WEIR_TICK_END) {
		progress_clear(&lane->progress);
		return;
	}
	uint64_t done = lane->bytes_read + (lane->stream ? lane->stream->bytes_read : 0);
	uint64_t size = config->loop > 0 ? node->inputs.size * (uint64_t)config->loop : 0;
	progress_draw(&lane->progress, self->name, now->mono_ns, done, size, lane->packets);
}

static void replay_lane_close(struct weir_self *self)
{
	struct lane *lane = self->lane;
	player_close(lane);
	replay_witness(self);
}

static void replay_close(struct weir_self *self)
{
	struct node *node = self->node;
	inputs_close(&node->inputs);
}

/* ---- The tables ---- */

static const struct weir_option options[] = {
	{"files", WEIR_INFILES, offsetof(struct config, files), NULL, NULL,
	 "Capture files, folders, patterns such as 'day-*.pcap', FIFOs, or - for standard input."},
	{"pace", WEIR_STRING, offsetof(struct config, pace), "max", NULL,
	 "max, original, x2 (twice as fast as original), or a rate such as 500kpps or 1Gbps."},
	{"loop", WEIR_NUMBER, offsetof(struct config, loop), "1", "0..1000000000",
	 "How often all of it is read, with times that move on; 0 is forever."},
	{"limit", WEIR_NUMBER, offsetof(struct config, limit), "0", "0..1000000000000000",
	 "How many packets to hand out in all; 0 is no limit."},
	{"from", WEIR_STRING, offsetof(struct config, from), "", NULL,
	 "Leaves out packets before this time: RFC 3339, local time, or -2h before now."},
	{"to", WEIR_STRING, offsetof(struct config, to), "", NULL,
	 "Leaves out packets from this time on."},
	{"progress", WEIR_CHOICE, offsetof(struct config, progress), "auto", "auto|yes|no",
	 "A line that shows how far it is; auto: if standard error is a terminal."},
	{0},
};

static const struct weir_output outputs[] = {
	{"out", WEIR_LOSS, WEIR_PACKETS, "the packets, in the order of the files"},
	{0},
};

static const struct weir_counter counters[] = {
	[BYTES_READ] = {"bytes-read", WEIR_PLUS_BYTES, "what read() returned"},
	[HEADER_BYTES] = {"header-bytes", WEIR_MINUS_BYTES, "file headers, interface blocks"},
	[RECORD_BYTES] = {"record-bytes", WEIR_MINUS_BYTES, "packets with their headers"},
	[SKIPPED_BYTES] = {"skipped-bytes", WEIR_MINUS_BYTES,
			   "blocks without packets, and packets that were skipped"},
	[TORN_BYTES] = {"torn-bytes", WEIR_MINUS_BYTES, "the records that ends of files cut"},
	[UNREAD_BYTES] = {"unread-bytes", WEIR_MINUS_BYTES,
			  "read ahead, and left when the replay stopped or failed"},
	[FILES] = {"files", WEIR_INFO, "files begun, each time that they were"},
	[TRUNCATED] = {"truncated", WEIR_INFO, "files that end within a record"},
	[PACKETS_SKIPPED] = {"packets-skipped", WEIR_INFO | WEIR_IS_LOSS,
			     "packets whose interface's clock cannot be read"},
	[OUTSIDE_RANGE] = {"outside-range", WEIR_INFO, "packets before from= or not before to="},
	[WARNINGS] = {"warnings", WEIR_INFO, "peculiarities of files"},
	{0},
};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SOURCE,
	.lanes_kind = WEIR_LANES_ONE,
	.flags = WEIR_MEMORY_WRITABLE,
	.name = "pcap-replay",
	.version = WEIR_VERSION,
	.summary = "reads packets from capture files, pipes or standard input",
	.example = "pcap-replay day-*.pcap pace=x10 -> null",
	.options = options,
	.outputs = outputs,
	.counters = counters,
	.config_size = sizeof(struct config),
	.node_size = sizeof(struct node),
	.lane_size = sizeof(struct lane),
	.check = replay_check,
	.open = replay_open,
	.lane_open = replay_lane_open,
	.poll = replay_poll,
	.stop = replay_stop,
	.tick = replay_tick,
	.witness = replay_witness,
	.lane_close = replay_lane_close,
	.close = replay_close,
};
