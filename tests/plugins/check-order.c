/* check-order: a sink that counts packets which come after younger ones, and may be slow. */
#include <weir/plugin.h>

#include <time.h>

struct config {
	int64_t delay_ns;
};

struct lane {
	int64_t last_ns;
};

static void check_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	const struct config *config = self->config;
	struct timespec delay = {config->delay_ns / 1000000000, config->delay_ns % 1000000000};
	struct lane *lane = self->lane;

	for (unsigned i = 0; i < n; i++) {
		if (packets[i].ts_ns < lane->last_ns)
			weir_count(self, 0, 1);
		lane->last_ns = packets[i].ts_ns;
	}
	if (config->delay_ns)
		nanosleep(&delay, NULL);
}

static const struct weir_option options[] = {
	{"delay", WEIR_TIME, offsetof(struct config, delay_ns), "0s", NULL, "Sleep a batch."},
	{0},
};
static const struct weir_output outputs[] = {{"seen", WEIR_PASS, WEIR_PACKETS, "all"}, {0}};
static const struct weir_counter counters[] = {
	{"backwards", WEIR_INFO, "older than the one before"}, {0}};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SINK,
	.lanes_kind = WEIR_LANES_ANY,
	.name = "check-order",
	.version = "1",
	.summary = "Counts steps back in time",
	.example = "numbers -> check-order",
	.options = options,
	.outputs = outputs,
	.counters = counters,
	.config_size = sizeof(struct config),
	.lane_size = sizeof(struct lane),
	.judge = check_judge,
};
