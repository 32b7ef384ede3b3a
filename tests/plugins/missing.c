/* missing: a source of nothing, whose NIC has lost packets. */
#include <weir/plugin.h>

static int missing_poll(struct weir_self *self, struct weir_packet *packets, unsigned max,
			int timeout_ms, int64_t *ret_mark_ns)
{
	(void)self, (void)packets, (void)max, (void)timeout_ms, (void)ret_mark_ns;
	return WEIR_END;
}

static void missing_witness(struct weir_self *self)
{
	weir_witness(self, 0, 7);
}

static const struct weir_output outputs[] = {{"out", WEIR_LOSS, WEIR_PACKETS, "none"}, {0}};
static const struct weir_counter counters[] = {{"missed", WEIR_IS_NIC, "by the NIC"}, {0}};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SOURCE,
	.name = "missing",
	.version = "1",
	.summary = "loses packets in the NIC",
	.example = "missing -> null",
	.outputs = outputs,
	.counters = counters,
	.poll = missing_poll,
	.witness = missing_witness,
};
