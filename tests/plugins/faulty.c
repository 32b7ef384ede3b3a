/* faulty: asks core for what cannot be, as `fault` says. */
#include <weir/plugin.h>

#ifndef FAULTY_NAME
#define FAULTY_NAME "faulty"
#define FAULTY_KIND WEIR_STAGE
#endif

enum {
	NONE,
	EMIT,
	COUNT,
	WITNESS,
	SETTLE,
	FINISH,
	LONG,
	POLL_MANY,
	POLL_NEGATIVE,
	NO_LANE,
	NO_LANES,
	MANY_LANES,
	AFFINITY,
	NULLS,
};

struct config {
	uint32_t fault;
};

static uint32_t fault_of(struct weir_self *self)
{
	return ((const struct config *)self->config)->fault;
}

static uint32_t faulty_lanes(struct weir_self *self)
{
	uint32_t fault = fault_of(self);

	return fault == NO_LANES ? 0 : fault == MANY_LANES ? UINT32_MAX : 1;
}

static uint32_t faulty_affinity(struct weir_self *self)
{
	return fault_of(self) == AFFINITY ? 17 : WEIR_LANES_ANY;
}

static bool faulty_open(struct weir_self *self)
{
	static const struct weir_packet packet;
	struct weir_packet changed = packet;

	if (fault_of(self) != NO_LANE)
		return true;
	weir_emit(self, 0, &packet);
	weir_scratch(self, 1);
	weir_writable(self, &changed);
	weir_wake_at(self, 1);
	weir_hold(self, 1);
	weir_wait(self, 1);
	weir_notify(self);
	return true;
}

static void ask(struct weir_self *self)
{
	switch (fault_of(self)) {
	case COUNT:
		weir_count(self, 1, 1);
		weir_count(self, UINT32_MAX, 1);
		break;
	case WITNESS:
		weir_witness(self, 1, 1);
		break;
	case SETTLE:
		weir_settle(self, 2, 1, 1);
		weir_settle(self, UINT32_MAX, 1, 1);
		break;
	case FINISH:
		weir_finish(self);
		break;
	case NULLS:
		weir_log(self, WEIR_WARN, NULL);
		weir_event(self, NULL, NULL);
		weir_interface_add(self, NULL);
		weir_expand(self, NULL, 0, false, NULL, 0);
		weir_pattern_has(NULL, "lane");
	}
}

/* Emits as it should, unless that is the fault. */
static void faulty_transform(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	ask(self);
	for (unsigned i = 0; i < n; i++) {
		if (fault_of(self) == LONG)
			packets[i].caplen = packets[i].wirelen = UINT32_MAX;
		weir_emit(self, fault_of(self) == EMIT ? 2 + i : 0, &packets[i]);
	}
}

static void faulty_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	(void)n;
	ask(self);
	if (fault_of(self) == EMIT)
		weir_emit(self, 0, packets);
}

static int faulty_poll(struct weir_self *self, struct weir_packet *packets, unsigned max,
		       int timeout_ms, int64_t *ret_mark_ns)
{
	static const uint8_t bytes[WEIR_BATCH]; /* more is claimed than is there */
	unsigned *polls = self->lane;

	(void)timeout_ms, (void)ret_mark_ns;
	for (unsigned i = 0; i < max; i++)
		packets[i] = (struct weir_packet){.data = bytes, .caplen = 60, .wirelen = 60};
	ask(self);
	if (fault_of(self) == LONG)
		packets[0].caplen = packets[0].wirelen = WEIR_BATCH << 20;
	if (fault_of(self) == POLL_MANY)
		return (int)max + 1;
	return fault_of(self) == POLL_NEGATIVE ? -3 : (*polls)++ == 0 ? (int)max : WEIR_END;
}

static const struct weir_option options[] = {
	{"fault", WEIR_CHOICE, offsetof(struct config, fault), "none",
	 "none|emit|count|witness|settle|finish|long|poll-many|poll-negative|no-lane|no-lanes|"
	 "many-lanes|affinity|nulls",
	 "What it does wrong."},
	{0},
};
static const struct weir_output outputs[] = {{"out", WEIR_PASS, WEIR_PACKETS, "some"},
					     {"other", WEIR_PASS, WEIR_PACKETS, "others"},
					     {0}};
static const struct weir_counter counters[] = {{"one", WEIR_INFO, "the only one"}, {0}};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = FAULTY_KIND,
	.name = FAULTY_NAME,
	.version = "1",
	.summary = "asks for what cannot be",
	.example = FAULTY_NAME,
	.options = options,
	.outputs = outputs,
	.counters = counters,
	.config_size = sizeof(struct config),
	.lane_size = sizeof(unsigned),
	.affinity = faulty_affinity,
	.lanes = faulty_lanes,
	.open = faulty_open,
	.poll = FAULTY_KIND == WEIR_SOURCE ? faulty_poll : NULL,
	.judge = FAULTY_KIND == WEIR_SINK ? faulty_judge : NULL,
	.transform = FAULTY_KIND == WEIR_STAGE ? faulty_transform : NULL,
};
