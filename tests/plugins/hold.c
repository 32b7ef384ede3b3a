/* hold: a stage that keeps copies for 50 ms of stream time, and frees what it emitted when it is
 * called again, as the rule of lifetime allows. */
#include <weir/plugin.h>

#include <stdlib.h>
#include <string.h>

#define HOLD_NS 50000000LL

struct held {
	struct held *next;
	struct weir_packet packet;
	uint8_t bytes[];
};

struct lane {
	struct held *first, *last, *emitted;
};

static void free_list(struct held **list)
{
	while (*list) {
		struct held *held = *list;

		*list = held->next;
		memset(held->bytes, 0xee, held->packet.caplen);
		free(held);
	}
}

/* Time stands still at its end. */
static int64_t due_ns(const struct held *held)
{
	return held->packet.ts_ns > INT64_MAX - HOLD_NS ? INT64_MAX : held->packet.ts_ns + HOLD_NS;
}

static void tell(struct weir_self *self)
{
	const struct lane *lane = self->lane;

	weir_hold(self, lane->first ? lane->first->packet.ts_ns : INT64_MAX);
	if (lane->first)
		weir_wake_at(self, due_ns(lane->first));
}

static void hold_transform(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	struct lane *lane = self->lane;

	free_list(&lane->emitted);
	for (unsigned i = 0; i < n; i++) {
		struct held *held = malloc(sizeof(*held) + packets[i].caplen);

		if (!held)
			abort();
		*held = (struct held){.packet = packets[i]};
		memcpy(held->bytes, packets[i].data, packets[i].caplen);
		held->packet.data = held->bytes;
		if (lane->first)
			lane->last->next = held;
		else
			lane->first = held;
		lane->last = held;
	}
	tell(self);
}

static void hold_tick(struct weir_self *self, const struct weir_now *now, unsigned why)
{
	struct lane *lane = self->lane;

	free_list(&lane->emitted);
	while (lane->first && (why & WEIR_TICK_END || now->stream_ns >= due_ns(lane->first))) {
		struct held *held = lane->first;

		lane->first = held->next;
		weir_emit(self, 0, &held->packet);
		held->next = lane->emitted;
		lane->emitted = held;
	}
	tell(self);
}

static void hold_lane_close(struct weir_self *self)
{
	struct lane *lane = self->lane;

	free_list(&lane->emitted);
	free_list(&lane->first);
}

static const struct weir_output outputs[] = {{"out", WEIR_PASS, WEIR_PACKETS, "later"}, {0}};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_STAGE,
	.name = "hold",
	.version = "1",
	.summary = "Holds packets for 50 ms of stream time",
	.example = "numbers -> hold -> null",
	.outputs = outputs,
	.lane_size = sizeof(struct lane),
	.transform = hold_transform,
	.tick = hold_tick,
	.lane_close = hold_lane_close,
};
