/* wayward: gives every fourth packet a verdict that is none of its outputs. */
#include <weir/plugin.h>

struct config {
	int64_t verdict;
};

static void wayward_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	const struct config *config = self->config;
	uint64_t *seen = self->lane;

	for (unsigned i = 0; i < n; i++)
		packets[i].verdict = (*seen)++ % 4 ? (uint8_t)(i % 2) : (uint8_t)config->verdict;
}

static const struct weir_option options[] = {
	{"verdict", WEIR_NUMBER, offsetof(struct config, verdict), "2", "0..255", "The wrong one."},
	{0},
};

static const struct weir_output outputs[] = {
	{"even", WEIR_PASS, WEIR_PACKETS, "some"},
	{"odd", WEIR_PASS, WEIR_PACKETS, "others"},
	{0},
};

#ifndef WAYWARD_NAME
#define WAYWARD_NAME "wayward"
#define WAYWARD_KIND WEIR_STAGE
#endif

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WAYWARD_KIND,
	.name = WAYWARD_NAME,
	.version = "1",
	.summary = "gives wrong verdicts",
	.example = "numbers -> " WAYWARD_NAME,
	.options = options,
	.outputs = outputs,
	.config_size = sizeof(struct config),
	.lane_size = sizeof(uint64_t),
	.judge = wayward_judge,
};
