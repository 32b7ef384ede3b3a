/* finisher: a sink that wants no more after some packets, and counts what comes all the same. */
#include <weir/plugin.h>

struct config {
	int64_t after;
};

struct lane {
	int64_t seen;
};

static void finisher_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	const struct config *config = self->config;
	struct lane *lane = self->lane;

	for (unsigned i = 0; i < n; i++)
		packets[i].verdict = ++lane->seen > config->after;
	if (lane->seen >= config->after)
		weir_finish(self);
}

static const struct weir_option options[] = {
	{"after", WEIR_NUMBER, offsetof(struct config, after), "1000", "1..1000000000", "Packets."},
	{0},
};
static const struct weir_output outputs[] = {{"taken", WEIR_PASS, WEIR_PACKETS, "wanted"},
					     {"after-end", WEIR_DISCARD, WEIR_PACKETS, "too late"},
					     {0}};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SINK,
	.lanes_kind = WEIR_LANES_ANY,
	.name = "finisher",
	.version = "1",
	.summary = "Finishes after some packets",
	.example = "numbers -> finisher after=10",
	.options = options,
	.outputs = outputs,
	.config_size = sizeof(struct config),
	.lane_size = sizeof(struct lane),
	.judge = finisher_judge,
};
