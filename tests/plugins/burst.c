/* burst: a stage that makes many packets of each, from memory that it uses anew at every call. */
#include <weir/plugin.h>

#include <string.h>

#define COPIES 700u

struct lane {
	uint8_t bytes[COPIES][64];
};

static void burst_transform(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	struct lane *lane = self->lane;

	(void)n;
	for (unsigned i = 0; i < COPIES; i++) {
		struct weir_packet packet = packets[0];

		memset(lane->bytes[i], 0xff, sizeof(lane->bytes[i]));
		memcpy(lane->bytes[i], packet.data, 42);
		packet.data = lane->bytes[i];
		packet.caplen = packet.wirelen = 42 + i % 22;
		packet.ts_ns += packet.ts_ns < INT64_MAX - i ? i : 0;
		weir_emit(self, 0, &packet);
	}
	weir_made(self, COPIES);
	weir_absorbed(self, n);
}

static const struct weir_output outputs[] = {{"out", WEIR_PASS, WEIR_PACKETS, "made"}, {0}};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_STAGE,
	.name = "burst",
	.version = "1",
	.summary = "Makes 700 packets of each batch",
	.example = "numbers -> burst -> null",
	.outputs = outputs,
	.lane_size = sizeof(struct lane),
	.transform = burst_transform,
};
