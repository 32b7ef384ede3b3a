/* null.c: the sink that takes everything and keeps nothing: to count, and to measure what is before
 * it. */
#include <weir/plugin.h>

static const struct weir_option options[] = {{NULL, 0, 0, NULL, NULL, NULL}};

static const struct weir_output outcomes[] = {
	{"discarded", WEIR_PASS, WEIR_PACKETS, "counted, and gone"},
	{NULL, 0, 0, NULL},
};

static const struct weir_counter counters[] = {{NULL, 0, NULL}};

static void null_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	/* The verdict is 0 already, the only outcome. */
	(void)self;
	(void)packets;
	(void)n;
}

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SINK,
	.lanes_kind = WEIR_LANES_ANY,
	.name = "null",
	.version = WEIR_VERSION,
	.summary = "counts packets and keeps nothing",
	.example = "tap -> bpf tcp -> null",
	.options = options,
	.outputs = outcomes,
	.counters = counters,
	.judge = null_judge,
};
