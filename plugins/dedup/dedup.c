/*
 * dedup.c: tells packets that were seen before, a moment ago, from the first of their kind.
 *
 * mode=mirror judges as a switch makes copies: the same IP packet again within about a millisecond,
 * perhaps behind a router or with another tag.  A retransmission differs in its IP identification
 * (in IPv6, which has none, it comes later than the window).  mode=exact judges as editcap -D and
 * -w do.  Time is packet time, so that a file gives the same result as the wire did.
 *
 * Each lane compares its own packets.  Copies of an IP packet are in one lane, since the flow hash
 * sees nothing of the link layer; copies of others are only if their MAC addresses are the same.
 */
#include <weir/dissect.h>

#include <inttypes.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "key.h"
#include "window.h"

enum { MIRROR, EXACT };
enum { UNIQUE, DUPLICATE };
enum { IGNORE_ALL = IGNORE_MAC | IGNORE_VLAN | IGNORE_TTL | IGNORE_CHECKSUM };

#define MIRROR_WINDOW_NS 2000000

struct config {
	int64_t window_ns;
	int64_t packets;
	uint32_t mode;
	uint32_t ignore;
	uint64_t memory_bytes;
};

struct node {
	uint8_t secret[KEY_SECRET];
};

struct lane {
	struct window *window;
	uint64_t evicted_early;

	/* Of the interface that the last packet came from. */
	bool known;
	uint16_t iface;
	uint32_t linktype, snaplen;
};

static const struct weir_option options[] = {
	{"window", WEIR_TIME, offsetof(struct config, window_ns), "", "1us..1h",
	 "How much later a copy comes at most: by default 2ms, with mode=exact and packets= any "
	 "time."},
	{"packets", WEIR_NUMBER, offsetof(struct config, packets), "0", "0..100000000",
	 "A copy is one of this many packets in a row, the first one included; 0: of any number."},
	{"mode", WEIR_CHOICE, offsetof(struct config, mode), "mirror", "mirror|exact",
	 "mirror: the same IP packet but for `ignore`; exact: the same bytes, as editcap -D and -w "
	 "compare."},
	{"ignore", WEIR_SET, offsetof(struct config, ignore), "mac,vlan,ttl,checksum",
	 "mac|vlan|ttl|checksum",
	 "What copies may differ in: link-layer addresses, VLAN tags, TTL or hop limit, the IPv4 "
	 "header's checksum."},
	{"memory", WEIR_SIZE, offsetof(struct config, memory_bytes), "64MiB", "1MiB..16GiB",
	 "For the packets of the window, 128 bytes each; what no longer fits is counted as "
	 "evicted-early."},
	{0},
};

static const struct weir_output outputs[] = {
	[UNIQUE] = {"unique", WEIR_PASS, WEIR_PACKETS, "the first of equal packets"},
	[DUPLICATE] = {"duplicate", WEIR_DISCARD, WEIR_PACKETS, "its copies"},
	{0},
};

enum { EVICTED_EARLY };

static const struct weir_counter counters[] = {
	[EVICTED_EARLY] = {"evicted-early", WEIR_INFO,
			   "packets that were forgotten within the window for want of memory, so "
			   "that copies of them may have passed as unique"},
	{0},
};

/* ---- Setting up ---- */

static struct window_bounds bounds_of(const struct weir_self *self)
{
	const struct config *config = self->config;
	struct window_bounds bounds = {
		.span_ns = config->window_ns,
		.packets = (uint64_t)config->packets,
		.both_ways = config->mode == MIRROR,
		.max_packets = config->memory_bytes / WINDOW_PACKET_BYTES,
	};
	if (!bounds.span_ns && !(config->mode == EXACT && config->packets))
		bounds.span_ns = MIRROR_WINDOW_NS;
	return bounds;
}

static uint64_t power_of_two_above(uint64_t n)
{
	uint64_t power = 1;
	while (power < n)
		power *= 2;
	return power;
}

static bool dedup_check(struct weir_self *self)
{
	const struct config *config = self->config;
	struct window_bounds bounds = bounds_of(self);
	uint64_t needed = power_of_two_above(bounds.packets) * WINDOW_PACKET_BYTES;
	bool ok = true;

	if (config->mode == EXACT && config->ignore != IGNORE_ALL) {
		weir_error(self, "ignore",
			   "mode=exact ignores nothing: ignore= is for mode=mirror");
		ok = false;
	}
	if (!bounds.span_ns && needed > config->memory_bytes) {
		weir_error(self, "memory", "packets=%" PRId64 " needs memory=%" PRIu64 "MiB",
			   config->packets, (needed >> 20) + 1);
		ok = false;
	}
	return ok;
}

/* Of so many packets in a row: only one lane has them in a row. */
static uint32_t dedup_affinity(struct weir_self *self)
{
	const struct config *config = self->config;
	return config->mode == EXACT && config->packets ? WEIR_LANES_ONE : WEIR_LANES_FLOW;
}

static bool dedup_open(struct weir_self *self)
{
	struct node *node = self->node;

	if (getrandom(node->secret, sizeof(node->secret), 0) == (ssize_t)sizeof(node->secret))
		return true;
	weir_error(self, NULL, "no random numbers: %s", strerror(errno));
	return false;
}

static bool dedup_lane_open(struct weir_self *self)
{
	struct lane *lane = self->lane;
	struct window_bounds bounds = bounds_of(self);

	bounds.max_packets /= self->lane_count;
	lane->window = window_new(&bounds);
	if (!lane->window)
		weir_error(self, "memory", "out of memory");
	return lane->window;
}

/* ---- The lane ---- */

/* Packets of an interface that nobody has declared are compared as a whole. */
static void look_up(struct weir_self *self, uint16_t iface)
{
	struct lane *lane = self->lane;
	const struct weir_interface *interface = weir_interface(self, iface);

	lane->known = true;
	lane->iface = iface;
	lane->linktype = interface ? interface->linktype : UINT32_MAX;
	lane->snaplen = interface ? interface->snaplen : 0;
}

static struct key key_of(struct weir_self *self, struct weir_packet *packet)
{
	const struct config *config = self->config;
	const struct node *node = self->node;
	struct lane *lane = self->lane;

	if (config->mode == EXACT)
		return key_exact(node->secret, packet);
	if (!lane->known || lane->iface != packet->iface)
		look_up(self, packet->iface);
	return key_mirror(node->secret, packet, lane->linktype, lane->snaplen, config->ignore);
}

/* All keys first: while one is computed, the table's memory for the one before is on its way. */
static void dedup_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	struct lane *lane = self->lane;
	struct key keys[WEIR_BATCH];

	for (unsigned i = 0; i < n; i++) {
		keys[i] = key_of(self, &packets[i]);
		window_prefetch(lane->window, keys[i]);
	}
	for (unsigned i = 0; i < n; i++)
		packets[i].verdict = window_add(lane->window, keys[i], packets[i].ts_ns) ? DUPLICATE
											 : UNIQUE;

	uint64_t evicted = window_evicted_early(lane->window);
	if (evicted != lane->evicted_early)
		weir_count(self, EVICTED_EARLY, evicted - lane->evicted_early);
	lane->evicted_early = evicted;
}

static void dedup_lane_close(struct weir_self *self)
{
	struct lane *lane = self->lane;
	window_free(lane->window);
	lane->window = NULL;
}

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_STAGE,
	.lanes_kind = WEIR_LANES_FLOW,
	.name = "dedup",
	.version = WEIR_VERSION,
	.summary = "tells copies of packets from originals",
	.example = "span -> dedup 2ms ignore=mac,vlan,ttl,checksum -> disk",
	.options = options,
	.outputs = outputs,
	.counters = counters,
	.config_size = sizeof(struct config),
	.node_size = sizeof(struct node),
	.lane_size = sizeof(struct lane),
	.check = dedup_check,
	.affinity = dedup_affinity,
	.open = dedup_open,
	.lane_open = dedup_lane_open,
	.judge = dedup_judge,
	.lane_close = dedup_lane_close,
	.memory = "memory",
};
