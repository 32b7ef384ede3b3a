/* numbers: a source of numbered UDP packets, for tests of what is behind it. */
#include <weir/plugin.h>

#include <string.h>
#include <time.h>

struct config {
	int64_t count, lanes, gap_ns, start_ns, pps;
	uint64_t bytes;
	bool shuffle;
};

struct lane {
	int64_t sent, begun_ns;
	uint8_t frames[WEIR_BATCH][65536];
};

static uint32_t numbers_lanes(struct weir_self *self)
{
	return (uint32_t)((const struct config *)self->config)->lanes;
}

static bool numbers_open(struct weir_self *self)
{
	const struct weir_interface interface = {.name = "numbers0", .linktype = 1, .snaplen = 0};

	return weir_interface_add(self, &interface) != UINT16_MAX;
}

/* Ethernet, IPv4, UDP; the number is the source address, so that flows differ, and the first
 * payload bytes. */
static void fill(uint8_t *frame, uint32_t number, uint32_t bytes)
{
	static const uint8_t head[42] = {2, 0, 0,    0, 0, 1, 2, 0, 0, 0, 0,  2,
					 8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17};
	uint16_t total = (uint16_t)(bytes - 14);

	memset(frame, 0, bytes);
	memcpy(frame, head, sizeof(head));
	frame[16] = (uint8_t)(total >> 8);
	frame[17] = (uint8_t)total;
	frame[26] = 10;
	memcpy(frame + 27,
	       (uint8_t[]){(uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number}, 3);
	memcpy(frame + 30, (uint8_t[]){192, 0, 2, 1}, 4);
	memcpy(frame + 34, (uint8_t[]){4, 0, 0, 53}, 4);
	frame[38] = (uint8_t)((total - 20) >> 8);
	frame[39] = (uint8_t)(total - 20);
	memcpy(frame + 42, &number, sizeof(number));
}

/* How many may have been sent by now. */
static int64_t due(const struct config *config, struct lane *lane)
{
	struct timespec now;
	int64_t now_ns, due;

	if (config->pps == 0)
		return config->count;
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
	if (!lane->begun_ns)
		lane->begun_ns = now_ns;
	due = (now_ns - lane->begun_ns) / (1000000000LL / config->pps) + 1;
	return due < config->count ? due : config->count;
}

static int numbers_poll(struct weir_self *self, struct weir_packet *packets, unsigned max,
			int timeout_ms, int64_t *ret_mark_ns)
{
	const struct config *config = self->config;
	struct lane *lane = self->lane;
	unsigned n = 0;

	if (config->pps && timeout_ms > 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	for (int64_t until = due(config, lane); n < max && lane->sent < until; n++, lane->sent++) {
		int64_t number = lane->sent * config->lanes + self->lane_index;

		fill(lane->frames[n], (uint32_t)number, (uint32_t)config->bytes);
		packets[n] = (struct weir_packet){.data = lane->frames[n],
						  .ts_ns = config->start_ns +
							   number * config->gap_ns,
						  .caplen = (uint32_t)config->bytes,
						  .wirelen = (uint32_t)config->bytes,
						  .queue = UINT16_MAX};
		*ret_mark_ns = packets[n].ts_ns;
	}
	return n || lane->sent < config->count ? (int)n : WEIR_END;
}

static void numbers_witness(struct weir_self *self)
{
	weir_witness(self, 0, (uint64_t)((struct lane *)self->lane)->sent);
}

static const struct weir_option options[] = {
	{"count", WEIR_NUMBER, offsetof(struct config, count), "1000", "0..1000000000",
	 "Packets a lane."},
	{"lanes", WEIR_NUMBER, offsetof(struct config, lanes), "1", "1..64", "Lanes."},
	{"gap", WEIR_TIME, offsetof(struct config, gap_ns), "1us", NULL, "Between two packets."},
	{"start", WEIR_TIME, offsetof(struct config, start_ns), "0s", NULL,
	 "Of the first packet, after 1970."},
	{"pps", WEIR_NUMBER, offsetof(struct config, pps), "0", "0..1000000",
	 "Packets a second of each lane; 0: as fast as can be."},
	{"bytes", WEIR_SIZE, offsetof(struct config, bytes), "64", "46..65535", "Of each packet."},
	{0},
};

static const struct weir_output outputs[] = {{"out", WEIR_LOSS, WEIR_PACKETS, "all"}, {0}};
static const struct weir_counter counters[] = {{"made", WEIR_PLUS_PACKETS, "packets made"}, {0}};

#ifndef NUMBERS_NAME
#define NUMBERS_NAME  "numbers"
#define NUMBERS_FLAGS 0
#endif

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SOURCE,
	.lanes_kind = WEIR_LANES_FLOW,
	.flags = NUMBERS_FLAGS,
	.name = NUMBERS_NAME,
	.version = "1",
	.summary = "Numbered packets",
	.example = NUMBERS_NAME " count=10 -> null",
	.options = options,
	.outputs = outputs,
	.counters = counters,
	.config_size = sizeof(struct config),
	.lane_size = sizeof(struct lane),
	.lanes = numbers_lanes,
	.open = numbers_open,
	.poll = numbers_poll,
	.witness = numbers_witness,
};
