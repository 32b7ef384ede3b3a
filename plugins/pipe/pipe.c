/*
 * pipe.c: the sink that writes a capture stream to standard output or a FIFO, for a program that
 * reads it as it comes.
 *
 * Whole records only, so that what a reader misses is missing as packets: behind live sources a
 * reader that is too slow loses by name, behind files the files wait for it.
 */
#include "outlet.h"

#include <stdlib.h>
#include <string.h>

#define LINKTYPE_ETHERNET 1u
/* The largest record with all that may have to stand before it, in each of four chunks. */
#define BUFFER_MIN "2MiB"

struct config {
	const char *to, *exec;
	uint32_t format, precision;
	bool extras;
	uint64_t buffer_bytes;
	int64_t linger_ns, grace_ns;
};

enum { FORMAT_PCAP, FORMAT_PCAPNG };

struct node {
	struct outlet *outlets; /* of all lanes */
	unsigned readers;       /* that have not gone for good; atomic */
};

struct lane {
	struct outlet outlet;
	struct chunk *chunk; /* being filled; NULL: none */
	bool begun;          /* the stream of the reader of that generation has its header */
	unsigned generation;
	uint32_t linktype;
	uint32_t *index_of; /* by interface id: 1 + the index of its block in the stream; 0: none */
	unsigned n_known, n_ifaces;
};

static const struct weir_interface unknown_interface = {.name = "unknown",
							.linktype = LINKTYPE_ETHERNET};

static const struct weir_option options[] = {
	{"to", WEIR_ENDPOINT, offsetof(struct config, to), "", NULL,
	 "Where to: - is standard output, else a FIFO, whose reader is waited for. With %{lane} in "
	 "it each lane has its own."},
	{"exec", WEIR_STRING, offsetof(struct config, exec), "", NULL,
	 "A program instead, one for each lane, that reads the stream from its standard input, "
	 "such "
	 "as \"suricata -r /dev/stdin -l /var/log/suricata/%{lane}\"; no shell. When it ends it is "
	 "started again after 0.1 s, and each time after twice as long up to 10 s."},
	{"format", WEIR_CHOICE, offsetof(struct config, format), "pcap", "pcap|pcapng",
	 "What is written; classic pcap is what every analyzer reads from a stream."},
	{"precision", WEIR_CHOICE, offsetof(struct config, precision), "us", "ns|us",
	 "Times in classic pcap."},
	{"extras", WEIR_BOOL, offsetof(struct config, extras), "yes", NULL,
	 "Write direction, queue, drops and mark of each packet into pcapng."},
	{"buffer", WEIR_SIZE, offsetof(struct config, buffer_bytes), "16MiB", BUFFER_MIN "..16GiB",
	 "Memory for packets that wait for the readers of all lanes. No packet waits for more than "
	 "100 ms if its reader has room."},
	{"linger", WEIR_TIME, offsetof(struct config, linger_ns), "500ms", "0ms..1h",
	 "At the end, how long to wait for a reader that takes nothing."},
	{"grace", WEIR_TIME, offsetof(struct config, grace_ns), "10s", "0ms..1h",
	 "At the end, how long a program may work on after the end of its input; then it gets "
	 "TERM, "
	 "and after as long again KILL."},
	{NULL, 0, 0, NULL, NULL, NULL},
};

static const struct weir_output outcomes[] = {
	[WRITTEN] = {"written", WEIR_PASS, WEIR_PACKETS,
		     "taken by the reader; at the end also what is in the pipe"},
	[READER_SLOW] = {"reader-slow", WEIR_LOSS, WEIR_PACKETS, "the buffer was full"},
	[READER_GONE] = {"reader-gone", WEIR_LOSS, WEIR_PACKETS,
			 "meant for a reader that went before it had read them"},
	[NO_READER] = {"no-reader", WEIR_LOSS, WEIR_PACKETS,
		       "nobody has opened the FIFO, or no program runs"},
	[OTHER_LINKTYPE] = {"other-linktype", WEIR_LOSS, WEIR_PACKETS,
			    "of a second link type, which classic pcap cannot hold"},
	{NULL, 0, 0, NULL},
};

static const struct weir_counter counters[] = {
	[STREAM_BYTES] = {"stream-bytes", WEIR_INFO,
			  "bytes that the reader, or its pipe, has taken"},
	{NULL, 0, NULL},
};

static const struct weir_interface *interface_of(struct weir_self *self, uint16_t id)
{
	const struct weir_interface *interface = weir_interface(self, id);

	return interface ? interface : &unknown_interface;
}

/* ---- What is written ---- */

/* A chunk that is to begin the stream of a reader. */
static void begin(struct weir_self *self, uint32_t linktype)
{
	const struct config *config = self->config;
	struct lane *lane = self->lane;
	struct chunk *chunk = lane->chunk;
	struct weir_section section = {.application = "weir " WEIR_VERSION};

	lane->begun = true;
	lane->generation = chunk->generation;
	lane->linktype = linktype;
	if (lane->index_of)
		memset(lane->index_of, 0, lane->n_known * sizeof(*lane->index_of));
	lane->n_ifaces = 0;
	if (config->format == FORMAT_PCAPNG) {
		chunk->len = weir_pcapng_section(chunk->bytes, &section);
		return;
	}
	chunk->len = chunk->header_len = weir_pcap_header(
		chunk->bytes, linktype, config->precision ? WEIR_PRECISION_US : WEIR_PRECISION_NS);
}

static bool has_begun(const struct lane *lane, unsigned generation)
{
	return lane->begun && lane->generation == generation;
}

/* The index of an interface's block in the stream, which is written if it is new; UINT32_MAX: out
 * of memory. */
static uint32_t index_of(struct weir_self *self, uint16_t id)
{
	struct lane *lane = self->lane;
	struct chunk *chunk = lane->chunk;

	if (id >= lane->n_known) {
		unsigned n = id + 16u;
		uint32_t *grown = realloc(lane->index_of, n * sizeof(*grown));

		if (!grown)
			return UINT32_MAX;
		memset(grown + lane->n_known, 0, (n - lane->n_known) * sizeof(*grown));
		lane->index_of = grown;
		lane->n_known = n;
	}
	if (!lane->index_of[id]) {
		lane->index_of[id] = ++lane->n_ifaces;
		chunk->len += weir_pcapng_interface(chunk->bytes + chunk->len,
						    interface_of(self, id), NULL, NULL);
	}
	return lane->index_of[id] - 1;
}

static bool put_record(struct weir_self *self, const struct weir_packet *packet)
{
	const struct config *config = self->config;
	struct lane *lane = self->lane;
	struct chunk *chunk = lane->chunk;
	uint32_t index;

	if (config->format == FORMAT_PCAPNG) {
		index = index_of(self, packet->iface);
		if (index == UINT32_MAX)
			return false;
		chunk->len += weir_pcapng_packet(chunk->bytes + chunk->len, packet, index,
						 config->extras);
	} else {
		chunk->len += weir_pcap_record(chunk->bytes + chunk->len, packet,
					       config->precision ? WEIR_PRECISION_US
								 : WEIR_PRECISION_NS);
	}
	chunk->sum.packets++;
	chunk->sum.bytes += packet->caplen;
	return true;
}

/* ---- Chunks ---- */

static void give_up_chunk(struct lane *lane)
{
	outlet_publish(&lane->outlet, lane->chunk, true);
	lane->chunk = NULL;
}

/* A chunk that nobody is left to read is of no more use. */
static void leave_stale_chunk(struct lane *lane)
{
	if (lane->chunk && !outlet_is_current(&lane->outlet, lane->chunk))
		give_up_chunk(lane);
}

/* Room for that many bytes; false: there is none, and no waiting for it. */
static bool reserve(struct weir_self *self, size_t need)
{
	struct lane *lane = self->lane;

	leave_stale_chunk(lane);
	if (lane->chunk && lane->outlet.chunk_bytes - lane->chunk->len < need)
		give_up_chunk(lane);
	while (!lane->chunk) {
		lane->chunk = outlet_take(&lane->outlet);
		if (!lane->chunk && (outlet_flag(&lane->outlet.gone) || !weir_wait(self, 100)))
			return false;
	}
	return true;
}

static uint8_t why_full(const struct lane *lane)
{
	if (outlet_flag(&lane->outlet.gone))
		return READER_GONE;
	return outlet_flag(&lane->outlet.reading) ? READER_SLOW : NO_READER;
}

static uint8_t take(struct weir_self *self, const struct weir_packet *packet)
{
	const struct config *config = self->config;
	struct lane *lane = self->lane;
	uint32_t linktype = interface_of(self, packet->iface)->linktype;
	size_t need = WEIR_PCAPNG_SECTION_MAX + WEIR_PCAPNG_INTERFACE_MAX + WEIR_PCAPNG_PACKET_MAX +
		      packet->caplen;

	if (!reserve(self, need))
		return why_full(lane);
	if (!has_begun(lane, lane->chunk->generation))
		begin(self, linktype);
	if (config->format == FORMAT_PCAP && linktype != lane->linktype) {
		weir_log(self, WEIR_WARN,
			 "a classic pcap stream holds one link type, and packets of another one "
			 "came: say format=pcapng");
		return OTHER_LINKTYPE;
	}
	return put_record(self, packet) ? WEIR_PENDING : READER_SLOW;
}

/* ---- Callbacks ---- */

static bool pipe_check(struct weir_self *self)
{
	const struct config *config = self->config;

	if (!config->to == !config->exec) {
		weir_error(self, config->to ? "exec" : NULL,
			   "one reader is wanted: - for standard output, a FIFO, or exec=COMMAND");
		return false;
	}
	return config->to || child_check(self, config->exec);
}

static uint32_t pipe_affinity(struct weir_self *self)
{
	const struct config *config = self->config;

	return config->exec || weir_pattern_has(config->to, "lane") ? WEIR_LANES_ANY
								    : WEIR_LANES_ONE;
}

static bool make_buffer(struct weir_self *self)
{
	const struct config *config = self->config;
	struct lane *lane = self->lane;
	uint64_t share = config->buffer_bytes / self->lane_count, least;

	weir_parse_size(BUFFER_MIN, &least);
	if (share < least) {
		weir_error(self, "buffer",
			   "it is divided among %u lanes: they need " BUFFER_MIN " each",
			   self->lane_count);
		return false;
	}
	if (outlet_make_chunks(&lane->outlet, share))
		return true;
	weir_error(self, "buffer", "out of memory");
	return false;
}

static bool pipe_lane_open(struct weir_self *self)
{
	const struct config *config = self->config;
	const struct outlet_reader reader = {config->to, config->exec};
	struct node *node = self->node;
	struct lane *lane = self->lane;

	lane->outlet.pcapng = config->format == FORMAT_PCAPNG;
	lane->outlet.linger_ns = config->linger_ns;
	lane->outlet.grace_ns = config->grace_ns;
	lane->outlet.readers = &node->readers;
	lane->outlet.next = node->outlets;
	node->outlets = &lane->outlet;
	node->readers++;
	return outlet_open(&lane->outlet, self, &reader) && make_buffer(self);
}

static void pipe_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	const struct lane *lane = self->lane;

	for (unsigned i = 0; i < n; i++)
		packets[i].verdict = outlet_flag(&lane->outlet.gone) ? READER_GONE
								     : take(self, &packets[i]);
}

/* A reader that waits for the header before it does anything gets it as soon as it is known. */
static void begin_early(struct weir_self *self, bool at_end)
{
	uint16_t id;
	bool known = weir_interfaces_upstream(self, &id, 1) > 0;
	struct lane *lane = self->lane;

	if (lane->chunk || (!known && !at_end))
		return;
	if (has_begun(lane, __atomic_load_n(&lane->outlet.generation, __ATOMIC_RELAXED)))
		return;
	lane->chunk = outlet_take(&lane->outlet);
	if (lane->chunk)
		begin(self, known ? interface_of(self, id)->linktype : LINKTYPE_ETHERNET);
}

static void pipe_tick(struct weir_self *self, const struct weir_now *now, unsigned why)
{
	struct lane *lane = self->lane;
	bool at_end = why & WEIR_TICK_END;

	(void)now;
	leave_stale_chunk(lane);
	begin_early(self, at_end);
	if (lane->chunk && at_end)
		give_up_chunk(lane);
	else if (lane->chunk && lane->chunk->len > lane->chunk->ready)
		outlet_publish(&lane->outlet, lane->chunk, false);
	/* Behind files a reader may take as long as it likes. */
	while (at_end && !outlet_is_idle(&lane->outlet) && weir_wait(self, 100))
		;
}

/* All lanes are told that it is the end before any is waited for. */
static void pipe_lane_close(struct weir_self *self)
{
	struct lane *lane = self->lane;

	if (lane->chunk)
		give_up_chunk(lane);
	outlet_end(&lane->outlet);
	free(lane->index_of);
	lane->index_of = NULL;
	lane->n_known = 0;
}

static bool pipe_start(struct weir_self *self)
{
	const struct node *node = self->node;

	for (struct outlet *outlet = node->outlets; outlet; outlet = outlet->next)
		if (!outlet_start(outlet))
			return false;
	return true;
}

static void pipe_close(struct weir_self *self)
{
	struct node *node = self->node;

	for (struct outlet *outlet = node->outlets; outlet; outlet = outlet->next)
		outlet_clear(outlet);
	node->outlets = NULL;
}

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SINK,
	.lanes_kind = WEIR_LANES_ONE,
	.name = "pipe",
	.version = WEIR_VERSION,
	.summary = "writes a capture stream to standard output, a FIFO, or a program",
	.example = "tap -> pipe -",
	.options = options,
	.outputs = outcomes,
	.counters = counters,
	.config_size = sizeof(struct config),
	.node_size = sizeof(struct node),
	.lane_size = sizeof(struct lane),
	.memory = "buffer",
	.check = pipe_check,
	.affinity = pipe_affinity,
	.lane_open = pipe_lane_open,
	.start = pipe_start,
	.judge = pipe_judge,
	.tick = pipe_tick,
	.lane_close = pipe_lane_close,
	.close = pipe_close,
};
