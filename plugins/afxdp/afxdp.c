/*
 * afxdp.c: the afxdp source: packets from the queues of an interface, by AF_XDP sockets and an XDP
 * program of its own.
 */
#include "afxdp.h"

#include "../afpacket/memory.h"
#include "../afpacket/processors.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A frame of 64 KiB takes up to 37 of the smaller ones. */
#define CHUNKS_MIN 64u

/* ---- Values that do not fit together ---- */

static bool check_interface(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;

	if (strlen(config->interface) < IFNAMSIZ)
		return true;
	weir_error(self, "interface", "'%s' is too long for an interface's name",
		   config->interface);
	return false;
}

static bool check_queues(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	struct afxdp_node *node = self->node;
	const char *wrong;

	node->device = device_ask(config->interface);
	wrong = queues_choose(config->queues, node->device.queues, &node->queues);
	if (wrong)
		weir_error(self, "queues", "queues= %s", wrong);
	return !wrong;
}

static bool check_chunks(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	const struct afxdp_node *node = self->node;
	uint64_t least = (uint64_t)CHUNKS_MIN * config->chunk_bytes * node->queues.count;

	if (config->chunk_bytes & (config->chunk_bytes - 1) ||
	    config->chunk_bytes > (uint64_t)sysconf(_SC_PAGESIZE)) {
		weir_error(self, "chunk", "chunk=%llu: chunks are of 2KiB or 4KiB",
			   (unsigned long long)config->chunk_bytes);
		return false;
	}
	if (config->umem_bytes < least) {
		weir_error(self, "umem",
			   "umem=%lluKiB gives each of %u queues less than %u chunks; umem=%lluKiB "
			   "would work",
			   (unsigned long long)config->umem_bytes / 1024, node->queues.count,
			   CHUNKS_MIN, (unsigned long long)least / 1024);
		return false;
	}
	return true;
}

static bool check_processors(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	const struct afxdp_node *node = self->node;

	return processors_check(self, config->cpus, node->queues.count);
}

static bool afxdp_check(struct weir_self *self)
{
	bool good = check_interface(self);

	return check_queues(self) && check_chunks(self) && check_processors(self) && good;
}

static uint32_t afxdp_affinity(struct weir_self *self)
{
	const struct afxdp_node *node = self->node;

	/* NICs hash the two directions of a flow apart unless they are told otherwise. */
	return node->queues.count == 1 ? WEIR_LANES_ONE : WEIR_LANES_ANY;
}

static uint32_t afxdp_lanes(struct weir_self *self)
{
	const struct afxdp_node *node = self->node;
	return node->queues.count;
}

static int afxdp_processor(struct weir_self *self, uint32_t lane)
{
	const struct afxdp_config *config = self->config;
	return processors_of(config->cpus, lane);
}

static char *afxdp_describe(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	char *queues = weir_nic_queues(config->interface), *text = NULL;

	if (asprintf(&text, "%s: %s\n", config->interface,
		     queues ? queues : "no such interface here") < 0)
		text = NULL;
	free(queues);
	return text;
}

/* ---- Life ---- */

static bool afxdp_open(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	struct afxdp_node *node = self->node;

	node->self = self;
	node->fd = -1;
	pthread_mutex_init(&node->lock, NULL);
	node->lanes = calloc(node->queues.count, sizeof(struct afxdp_lane *));
	if (!node->lanes) {
		weir_error(self, NULL, "out of memory");
		return false;
	}
	bool good = memory_check(self, "umem", config->umem_bytes) &
		    processors_find(self, config->cpus);
	return good && afxdp_open_node(self);
}

static bool afxdp_start(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	struct afxdp_node *node = self->node;
	const char *const interfaces[] = {config->interface, NULL};

	node->nics = weir_nics_start(self, AFXDP_NIC, interfaces);
	if (!node->nics)
		return false;
	for (unsigned i = 0; i < node->queues.count; i++) {
		const struct ring *ring = &node->lanes[i]->ring;
		int failure = program_serve(&node->program, ring->queue, ring_fd(ring));
		if (failure) {
			weir_error(self, NULL, "queue %u gets no frames: %s", ring->queue,
				   strerror(-failure));
			return false;
		}
	}
	return true;
}

static void afxdp_lane_close(struct weir_self *self)
{
	struct afxdp_lane *lane = self->lane;
	ring_close(&lane->ring);
}

static void afxdp_close(struct weir_self *self)
{
	struct afxdp_node *node = self->node;

	weir_nics_end(node->nics);
	program_close(&node->program);
	if (node->self && node->fd >= 0)
		close(node->fd);
	if (node->self)
		pthread_mutex_destroy(&node->lock);
	free(node->lanes);
}

/* ---- Tables ---- */

#define AT(member) offsetof(struct afxdp_config, member)

static const struct weir_option options[] = {
	{"interface", WEIR_STRING, AT(interface), NULL, NULL, "The interface to listen on."},
	{"queues", WEIR_LIST, AT(queues), "all", NULL,
	 "Queues to take, such as 0,2-5, each in a lane of its own; frames of the others go to the "
	 "host's stack."},
	{"mode", WEIR_CHOICE, AT(mode), "auto", "auto|skb|native|zerocopy",
	 "skb: by the kernel's generic code; native: by the driver, which copies; zerocopy: the "
	 "NIC writes where packets are read; auto: the best that works."},
	{"umem", WEIR_SIZE, AT(umem_bytes), "64MiB", "128KiB..1TiB",
	 "Locked memory that packets wait in, divided among queues."},
	{"chunk", WEIR_SIZE, AT(chunk_bytes), "2KiB", "2KiB..4KiB",
	 "Memory is used in pieces of that size, 2KiB or 4KiB, less 256 bytes; a larger frame "
	 "takes several."},
	{"gather", WEIR_TIME, AT(gather_ns), "1ms", "0ms..50ms",
	 "How long a lane that has read everything sleeps in the midst of traffic, so that packets "
	 "gather; less where memory would fill up meanwhile."},
	{"busy-poll", WEIR_TIME, AT(busy_poll_ns), "", "1us..100ms",
	 "How long a lane without packets drives the NIC's queue itself before it sleeps, instead "
	 "of "
	 "letting packets gather."},
	{"timestamps", WEIR_CHOICE, AT(timestamps), "program", "program|read",
	 "Time of a packet by the system's clock: when the XDP program saw it, or when it was "
	 "read, "
	 "which costs less."},
	{"rest", WEIR_CHOICE, AT(rest), "pass", "pass|drop",
	 "Frames that no part of the pipeline wants: to the host's stack, or nowhere."},
	{"promisc", WEIR_BOOL, AT(promisc), "yes", NULL,
	 "Also packets for other machines; ends with the run."},
	{"cpus", WEIR_LIST, AT(cpus), "", NULL,
	 "Processors that the lanes run on, one for each, such as 2,3; auto: spread over those "
	 "that "
	 "this process may use."},
	{"on-lost", WEIR_CHOICE, AT(on_lost), "wait", "wait|exit",
	 "When the interface goes down or away while the run goes on: wait for it to come back, or "
	 "end the run with status 1."},
	{"pushdown", WEIR_BOOL, AT(pushdown), "yes", NULL,
	 "Filters behind this source also go into the XDP program, see weir plan."},
	{0},
};

static const struct weir_output outputs[] = {
	{"out", WEIR_DISCARD, WEIR_PACKETS, "all packets; the host's stack does not get them"},
	{0},
};

static const struct weir_counter counters[] = {
	[AFXDP_REDIRECTED] = {"redirected", WEIR_PLUS_PACKETS,
			      "packets that the XDP program sent to the sockets"},
	[AFXDP_RX_DROPPED] = {"rx-dropped", WEIR_MINUS_PACKETS | WEIR_IS_LOSS,
			      "of these, packets that found no free chunk, or were larger than a "
			      "chunk on a kernel that does not use several"},
	[AFXDP_RX_RING_FULL] = {"rx-ring-full", WEIR_MINUS_PACKETS | WEIR_IS_LOSS,
				"of these, packets that found the ring full"},
	[AFXDP_FILL_EMPTY] = {"fill-empty", WEIR_INFO,
			      "times that the kernel found no free chunk in the fill ring "
			      "(rx_fill_ring_empty_descs)"},
	[AFXDP_INVALID_DESCS] = {"invalid-descs", WEIR_INFO,
				 "chunks that the kernel did not take back (rx_invalid_descs)"},
	[AFXDP_PASSED] = {"passed", WEIR_INFO | WEIR_IS_KEPT_OUT,
			  "packets that nobody wants, passed to the host's stack"},
	[AFXDP_PASSED_UNSERVED] = {"passed-unserved", WEIR_INFO,
				   "packets passed to the host's stack since their queue had no "
				   "socket: left out by queues=, or before the start, or after the "
				   "stop"},
	[AFXDP_PROGRAM_DROPPED] = {"program-dropped", WEIR_INFO | WEIR_IS_KEPT_OUT,
				   "packets that nobody wants, dropped by rest=drop"},
	[AFXDP_JOINED] = {"joined", WEIR_INFO, "packets that were in several chunks"},
	WEIR_NIC_ROWS,
	{0},
};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SOURCE,
	.flags = WEIR_LIVE | WEIR_MEMORY_WRITABLE,
	.name = "afxdp",
	.version = WEIR_VERSION,
	.summary =
		"takes packets from the queues of an interface, before the host's stack (AF_XDP)",
	.example = "afxdp eth1 queues=0-3 -> queue 256MiB lanes=1 -> pcap out.pcap",
	.options = options,
	.outputs = outputs,
	.counters = counters,
	.config_size = sizeof(struct afxdp_config),
	.node_size = sizeof(struct afxdp_node),
	.lane_size = sizeof(struct afxdp_lane),
	.check = afxdp_check,
	.affinity = afxdp_affinity,
	.lanes = afxdp_lanes,
	.open = afxdp_open,
	.want = afxdp_want,
	.lane_open = afxdp_open_lane,
	.start = afxdp_start,
	.poll = afxdp_poll,
	.stop = afxdp_stop,
	.tick = afxdp_tick,
	.witness = afxdp_witness,
	.lane_close = afxdp_lane_close,
	.close = afxdp_close,
	.processor = afxdp_processor,
	.describe = afxdp_describe,
	.pushed = afxdp_pushed,
	.needs =
		"CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF; with umem= above RLIMIT_MEMLOCK CAP_IPC_LOCK",
	.memory = "umem",
};
