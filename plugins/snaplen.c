/*
 * snaplen.c: keeps the first bytes of each packet.
 *
 * Only caplen is lowered: no byte moves, and the length on the wire stays what it was.
 */
#include <weir/plugin.h>

struct config {
	uint64_t bytes;
};

static const struct weir_option options[] = {
	{"bytes", WEIR_SIZE, offsetof(struct config, bytes), NULL, "1..262144",
	 "How many bytes of each packet go on."},
	{0},
};

static const struct weir_output outputs[] = {
	{"out", WEIR_PASS, WEIR_PACKETS, "all packets, cut"},
	{0},
};

enum { CUT };

static const struct weir_counter counters[] = {
	[CUT] = {"cut", WEIR_INFO, "packets that were longer"},
	{0},
};

static uint32_t limit_of(const struct weir_self *self)
{
	const struct config *config = self->config;
	return (uint32_t)config->bytes;
}

static bool snaplen_reduce(struct weir_self *self, unsigned output, uint32_t linktype,
			   struct weir_reduction *ret)
{
	(void)output;
	(void)linktype;
	*ret = (struct weir_reduction){.max_bytes = limit_of(self)};
	return true;
}

static void snaplen_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	uint32_t limit = limit_of(self);
	unsigned cut = 0;

	for (unsigned i = 0; i < n; i++) {
		if (packets[i].caplen <= limit)
			continue;
		packets[i].caplen = limit;
		cut++;
	}
	if (cut)
		weir_count(self, CUT, cut);
}

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_STAGE,
	.name = "snaplen",
	.version = WEIR_VERSION,
	.summary = "keeps the first bytes of each packet",
	.example = "tap -> snaplen 128 -> disk",
	.options = options,
	.outputs = outputs,
	.counters = counters,
	.config_size = sizeof(struct config),
	.reduce = snaplen_reduce,
	.judge = snaplen_judge,
};
