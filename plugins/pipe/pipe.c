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
	const char *to;
	uint32_t format, precision;
	bool extras;
	uint64_t buffer_bytes;
	int64_t linger_ns;
};

enum { FORMAT_PCAP, FORMAT_PCAPNG };

struct node {
	struct outlet outlet;
	struct chunk *chunk; /* being filled; NULL: none */
	bool begun;          /* the stream has its header */
	uint32_t linktype;
	uint32_t *index_of; /* by interface id: 1 + the index of its block in the stream; 0: none */
	unsigned n_known, n_ifaces;
};

static const struct weir_interface unknown_interface = {.name = "unknown",
							.linktype = LINKTYPE_ETHERNET};

static const struct weir_option options[] = {
	{"to", WEIR_ENDPOINT, offsetof(struct config, to), NULL, NULL,
	 "Where to: - is standard output, else a FIFO, whose reader is waited for."},
	{"format", WEIR_CHOICE, offsetof(struct config, format), "pcap", "pcap|pcapng",
	 "What is written; classic pcap is what every analyzer reads from a stream."},
	{"precision", WEIR_CHOICE, offsetof(struct config, precision), "us", "ns|us",
	 "Times in classic pcap."},
	{"extras", WEIR_BOOL, offsetof(struct config, extras), "yes", NULL,
	 "Write direction, queue, drops and mark of each packet into pcapng."},
	{"buffer", WEIR_SIZE, offsetof(struct config, buffer_bytes), "4MiB", BUFFER_MIN "..16GiB",
	 "Memory for packets that wait for the reader."},
	{"linger", WEIR_TIME, offsetof(struct config, linger_ns), "500ms", "0ms..1h",
	 "At the end, how long to wait for a reader that takes nothing."},
	{NULL, 0, 0, NULL, NULL, NULL},
};

static const struct weir_output outcomes[] = {
	[WRITTEN] = {"written", WEIR_PASS, WEIR_PACKETS, "in the pipe"},
	[READER_SLOW] = {"reader-slow", WEIR_LOSS, WEIR_PACKETS, "the buffer was full"},
	[READER_GONE] = {"reader-gone", WEIR_LOSS, WEIR_PACKETS, "the reader has closed its end"},
	[NO_READER] = {"no-reader", WEIR_LOSS, WEIR_PACKETS, "nobody has opened the FIFO"},
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

static void begin(struct weir_self *self, uint32_t linktype)
{
	const struct config *config = self->config;
	struct node *node = self->node;
	struct chunk *chunk = node->chunk;
	struct weir_section section = {.application = "weir " WEIR_VERSION};

	node->begun = true;
	node->linktype = linktype;
	if (config->format == FORMAT_PCAPNG) {
		chunk->len = weir_pcapng_section(chunk->bytes, &section);
		return;
	}
	chunk->len = chunk->header_len = weir_pcap_header(
		chunk->bytes, linktype, config->precision ? WEIR_PRECISION_US : WEIR_PRECISION_NS);
}

/* The index of an interface's block in the stream, which is written if it is new; UINT32_MAX: out
 * of memory. */
static uint32_t index_of(struct weir_self *self, uint16_t id)
{
	struct node *node = self->node;
	struct chunk *chunk = node->chunk;

	if (id >= node->n_known) {
		unsigned n = id + 16u;
		uint32_t *grown = realloc(node->index_of, n * sizeof(*grown));

		if (!grown)
			return UINT32_MAX;
		memset(grown + node->n_known, 0, (n - node->n_known) * sizeof(*grown));
		node->index_of = grown;
		node->n_known = n;
	}
	if (!node->index_of[id]) {
		node->index_of[id] = ++node->n_ifaces;
		chunk->len += weir_pcapng_interface(chunk->bytes + chunk->len,
						    interface_of(self, id), NULL, NULL);
	}
	return node->index_of[id] - 1;
}

static bool put_record(struct weir_self *self, const struct weir_packet *packet)
{
	const struct config *config = self->config;
	struct node *node = self->node;
	struct chunk *chunk = node->chunk;
	uint32_t index;
	size_t size;

	if (config->format == FORMAT_PCAPNG) {
		index = index_of(self, packet->iface);
		if (index == UINT32_MAX)
			return false;
		size = weir_pcapng_packet(chunk->bytes + chunk->len, packet, index, config->extras);
	} else {
		size = weir_pcap_record(chunk->bytes + chunk->len, packet,
					config->precision ? WEIR_PRECISION_US : WEIR_PRECISION_NS);
	}
	chunk->len += size;
	chunk->sum.packets++;
	chunk->sum.packet_bytes += packet->caplen;
	return true;
}

/* ---- Chunks ---- */

static void submit(struct node *node)
{
	struct chunk *chunk = node->chunk;

	node->chunk = NULL;
	outlet_submit(&node->outlet, chunk);
}

/* Room for that many bytes; false: there is none, and no waiting for it. */
static bool reserve(struct weir_self *self, size_t need)
{
	struct node *node = self->node;

	if (node->chunk && node->outlet.chunk_bytes - node->chunk->len < need)
		submit(node);
	while (!node->chunk) {
		node->chunk = outlet_take(&node->outlet);
		if (!node->chunk && (outlet_flag(&node->outlet.gone) || !weir_wait(self, 100)))
			return false;
	}
	return true;
}

static uint8_t why_full(const struct node *node)
{
	if (outlet_flag(&node->outlet.gone))
		return READER_GONE;
	return outlet_flag(&node->outlet.reading) ? READER_SLOW : NO_READER;
}

static uint8_t take(struct weir_self *self, const struct weir_packet *packet)
{
	const struct config *config = self->config;
	struct node *node = self->node;
	uint32_t linktype = interface_of(self, packet->iface)->linktype;
	size_t need = WEIR_PCAPNG_SECTION_MAX + WEIR_PCAPNG_INTERFACE_MAX + WEIR_PCAPNG_PACKET_MAX +
		      packet->caplen;

	if (config->format == FORMAT_PCAP && node->begun && linktype != node->linktype) {
		weir_log(self, WEIR_WARN,
			 "a classic pcap stream holds one link type, and packets of another one "
			 "came: say format=pcapng");
		return OTHER_LINKTYPE;
	}
	if (!reserve(self, need))
		return why_full(node);
	if (!node->begun)
		begin(self, linktype);
	return put_record(self, packet) ? WEIR_PENDING : READER_SLOW;
}

/* ---- Callbacks ---- */

static bool pipe_check(struct weir_self *self)
{
	const struct config *config = self->config;

	if (*config->to != '\0')
		return true;
	weir_error(self, "to", "an empty name: say - for standard output");
	return false;
}

static bool pipe_open(struct weir_self *self)
{
	const struct config *config = self->config;
	struct node *node = self->node;

	node->outlet.pcapng = config->format == FORMAT_PCAPNG;
	node->outlet.linger_ns = config->linger_ns;
	return outlet_open(&node->outlet, self, config->to);
}

static bool pipe_lane_open(struct weir_self *self)
{
	const struct config *config = self->config;
	struct node *node = self->node;

	if (outlet_make_chunks(&node->outlet, self, config->buffer_bytes))
		return true;
	weir_error(self, "buffer", "out of memory");
	return false;
}

static bool pipe_start(struct weir_self *self)
{
	struct node *node = self->node;

	return outlet_start(&node->outlet, self);
}

static void pipe_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	const struct node *node = self->node;

	for (unsigned i = 0; i < n; i++)
		packets[i].verdict = outlet_flag(&node->outlet.gone) ? READER_GONE
								     : take(self, &packets[i]);
}

/* A reader that waits for the header before it does anything gets it as soon as it is known. */
static void begin_early(struct weir_self *self, bool at_end)
{
	uint16_t id;
	bool known = weir_interfaces_upstream(self, &id, 1) > 0;
	struct node *node = self->node;

	if (node->begun || (!known && !at_end))
		return;
	node->chunk = outlet_take(&node->outlet);
	if (node->chunk)
		begin(self, known ? interface_of(self, id)->linktype : LINKTYPE_ETHERNET);
}

static void pipe_tick(struct weir_self *self, const struct weir_now *now, unsigned why)
{
	struct node *node = self->node;
	bool at_end = why & WEIR_TICK_END;

	(void)now;
	begin_early(self, at_end);
	if (node->chunk && (at_end || outlet_is_idle(&node->outlet)))
		submit(node);
	/* Behind files a reader may take as long as it likes. */
	while (at_end && !outlet_is_idle(&node->outlet) && weir_wait(self, 100))
		;
}

static void pipe_close(struct weir_self *self)
{
	struct node *node = self->node;

	outlet_clear(&node->outlet);
	free(node->index_of);
	node->index_of = NULL;
}

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SINK,
	.lanes_kind = WEIR_LANES_ONE,
	.name = "pipe",
	.version = WEIR_VERSION,
	.summary = "writes a capture stream to standard output or a FIFO",
	.example = "tap -> pipe -",
	.options = options,
	.outputs = outcomes,
	.counters = counters,
	.config_size = sizeof(struct config),
	.node_size = sizeof(struct node),
	.check = pipe_check,
	.open = pipe_open,
	.lane_open = pipe_lane_open,
	.start = pipe_start,
	.judge = pipe_judge,
	.tick = pipe_tick,
	.close = pipe_close,
	.memory = "buffer",
};
