/*
 * afpacket.c: the afpacket source: packets from network interfaces, through rings that the kernel
 * fills (packet(7), TPACKET_V3).
 */
#include "afpacket.h"

#include "memory.h"
#include "processors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- Opening ---- */

static bool add_link(struct weir_self *self, const char *name)
{
	struct afpacket_node *node = self->node;
	struct link *link = &node->links[node->link_count];

	*link = (struct link){.name = name, .group = -1};
	if (!link_find(self, link))
		return false;
	link->iface = weir_interface_add(
		self, &(struct weir_interface){.name = name, .linktype = link->linktype});
	if (link->iface == UINT16_MAX) {
		weir_error(self, "interface", "interface=%s is one too many", name);
		return false;
	}
	node->link_count++;
	return true;
}

static bool afpacket_open(struct weir_self *self)
{
	const struct afpacket_config *config = self->config;
	struct afpacket_node *node = self->node;
	unsigned count = 0;
	bool good = memory_check(self, "ring", config->ring_bytes) &
		    processors_find(self, config->cpus);

	pthread_mutex_init(&node->lock, NULL);
	while (config->interfaces[count])
		count++;
	node->links = calloc(count, sizeof(*node->links));
	node->lanes = calloc((size_t)config->lanes, sizeof(struct afpacket_lane *));
	if (!node->links || !node->lanes) {
		weir_error(self, NULL, "out of memory");
		return false;
	}
	for (unsigned i = 0; i < count; i++)
		good &= add_link(self, config->interfaces[i]);
	if (good)
		weir_nic_warn_offloads(self, config->interfaces, config->direction != PROGRAM_IN,
				       config->promisc);
	return good;
}

enum program_direction afpacket_direction(const struct afpacket_config *config,
					  const struct link *link)
{
	/* lo hands each packet over twice: as it goes out, and as it comes in. */
	if (link->is_loopback && config->direction == PROGRAM_BOTH)
		return PROGRAM_IN;
	return (enum program_direction)config->direction;
}

static bool afpacket_lane_open(struct weir_self *self)
{
	struct afpacket_node *node = self->node;
	struct afpacket_lane *lane = self->lane;

	lane->rings = calloc(node->link_count, sizeof(*lane->rings));
	if (!lane->rings) {
		weir_error(self, NULL, "out of memory");
		return false;
	}
	lane->ring_count = node->link_count;
	for (unsigned i = 0; i < lane->ring_count; i++)
		lane->rings[i].fd = -1;
	for (unsigned i = 0; i < lane->ring_count; i++) {
		if (!afpacket_socket_open(self, i))
			return false;
	}
	node->lanes[self->lane_index] = lane;
	return true;
}

static bool start_link(struct weir_self *self, unsigned at)
{
	struct afpacket_node *node = self->node;
	const struct link *link = &node->links[at];

	for (unsigned l = 0; l < self->lane_count; l++) {
		int failure = afpacket_socket_start(self, link, &node->lanes[l]->rings[at]);

		if (!failure)
			continue;
		weir_error(self, NULL, "the kernel does not take the filter for %s: %s", link->name,
			   strerror(-failure));
		return false;
	}
	return true;
}

static bool afpacket_start(struct weir_self *self)
{
	const struct afpacket_config *config = self->config;
	struct afpacket_node *node = self->node;

	node->nics = weir_nics_start(self, AFPACKET_NIC, config->interfaces);
	if (!node->nics)
		return false;
	for (unsigned i = 0; i < node->link_count; i++) {
		if (!start_link(self, i))
			return false;
	}
	return true;
}

static void afpacket_lane_close(struct weir_self *self)
{
	struct afpacket_lane *lane = self->lane;

	for (unsigned i = 0; i < lane->ring_count; i++)
		afpacket_socket_close(&lane->rings[i]);
	free(lane->rings);
}

static void afpacket_close(struct weir_self *self)
{
	struct afpacket_node *node = self->node;

	weir_nics_end(node->nics);
	free(node->links);
	free(node->lanes);
	program_halves_free(&node->wanted);
}

/* ---- Words ---- */

/* A line for each interface; what a name that is not there would be is not known. */
static char *afpacket_describe(struct weir_self *self)
{
	const struct afpacket_config *config = self->config;
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	for (unsigned i = 0; to && config->interfaces[i]; i++) {
		char *queues = weir_nic_queues(config->interfaces[i]);

		fprintf(to, "%s: %s\n", config->interfaces[i],
			queues ? queues : "no such interface here");
		free(queues);
	}
	if (to)
		fclose(to);
	return text;
}

/* ---- Tables ---- */

#define AT(member) offsetof(struct afpacket_config, member)

static const struct weir_option options[] = {
	{"interface", WEIR_LIST, AT(interfaces), NULL, NULL, "Interfaces to listen on."},
	{"lanes", WEIR_NUMBER, AT(lanes), "1", "1..256", "Threads that share the packets."},
	{"fanout", WEIR_CHOICE, AT(fanout), "hash", "hash|rnd|lb|cpu|qm|rollover",
	 "How packets are spread over lanes: hash keeps both directions of a flow together, but "
	 "not "
	 "the fragments of a packet, see defrag."},
	{"defrag", WEIR_BOOL, AT(defrag), "no", NULL,
	 "The kernel puts fragments together before it spreads packets, which changes what is "
	 "captured."},
	{"ring", WEIR_SIZE, AT(ring_bytes), "64MiB", "16KiB..1TiB",
	 "Memory that packets wait in, divided among lanes and interfaces."},
	{"block-size", WEIR_SIZE, AT(block_bytes), "1MiB", "4KiB..64MiB",
	 "Bytes that the kernel hands over at a time; a larger packet is cut."},
	{"retire", WEIR_TIME, AT(retire_ns), "20ms", "1ms..10s",
	 "How long a packet may wait in a block that does not fill up."},
	{"promisc", WEIR_BOOL, AT(promisc), "yes", NULL,
	 "Also packets for other machines; ends with the run."},
	{"direction", WEIR_CHOICE, AT(direction), "both", "both|in|out",
	 "Packets received, sent, or both; on a loopback interface both is each packet once."},
	{"cpus", WEIR_LIST, AT(cpus), "", NULL,
	 "Processors that the lanes run on, one for each, such as 2,3; auto: spread over those "
	 "that "
	 "this process may use."},
	{"busy-poll", WEIR_TIME, AT(busy_poll_ns), "", "1us..100ms",
	 "How long a lane without packets looks for some before it sleeps; needs CAP_NET_ADMIN."},
	{"timestamps", WEIR_CHOICE, AT(timestamps), "software", "software|hardware",
	 "The clock of packets received: the kernel's, or that of the NIC, which needs "
	 "CAP_NET_ADMIN "
	 "to be switched on."},
	{"on-lost", WEIR_CHOICE, AT(on_lost), "wait", "wait|exit",
	 "When an interface goes down or away while the run goes on: wait for it to come back, or "
	 "end "
	 "the run with status 1."},
	{"pushdown", WEIR_BOOL, AT(pushdown), "yes", NULL,
	 "Filters and snaplens behind this source also go into the kernel, see weir plan."},
	{0},
};

static const struct weir_output outputs[] = {
	{"out", WEIR_DISCARD, WEIR_PACKETS, "all packets"},
	{0},
};

static const struct weir_counter counters[] = {
	[AFPACKET_KERNEL_PACKETS] = {"kernel-packets", WEIR_PLUS_PACKETS,
				     "packets that passed the kernel's filter"},
	[AFPACKET_KERNEL_DROPS] = {"kernel-drops", WEIR_MINUS_PACKETS | WEIR_IS_LOSS,
				   "of these, packets that found the ring full"},
	[AFPACKET_FREEZES] = {"ring-freezes", WEIR_INFO, "times that the ring became full"},
	[AFPACKET_CUT] =
		{"cut", WEIR_INFO,
		 "packets shorter in the ring than on the wire: by a snaplen that went into "
		 "the kernel, or larger than a block"},
	[AFPACKET_TAGS] = {"tags-reinserted", WEIR_INFO,
			   "packets whose VLAN tag the kernel had taken off"},
	WEIR_NIC_ROWS,
	{0},
};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SOURCE,
	.flags = WEIR_LIVE | WEIR_MEMORY_WRITABLE,
	.name = "afpacket",
	.version = WEIR_VERSION,
	.summary = "reads packets from network interfaces, through kernel rings (AF_PACKET)",
	.example = "afpacket eth1 lanes=2 fanout=hash -> queue 256MiB lanes=1 -> pcap out.pcap",
	.options = options,
	.outputs = outputs,
	.counters = counters,
	.config_size = sizeof(struct afpacket_config),
	.node_size = sizeof(struct afpacket_node),
	.lane_size = sizeof(struct afpacket_lane),
	.check = afpacket_check,
	.affinity = afpacket_affinity,
	.lanes = afpacket_lanes,
	.open = afpacket_open,
	.want = afpacket_want,
	.lane_open = afpacket_lane_open,
	.start = afpacket_start,
	.poll = afpacket_poll,
	.stop = afpacket_stop,
	.tick = afpacket_tick,
	.witness = afpacket_witness,
	.lane_close = afpacket_lane_close,
	.close = afpacket_close,
	.processor = afpacket_processor,
	.describe = afpacket_describe,
	.needs = "CAP_NET_RAW",
	.memory = "ring",
	.pushed = afpacket_pushed,
};
