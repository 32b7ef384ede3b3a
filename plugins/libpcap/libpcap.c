/*
 * libpcap.c: the libpcap source: packets from what libpcap knows and afpacket does not: all
 * interfaces at once, netfilter's log, USB, Bluetooth.
 */
#include "libpcap.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool libpcap_check(struct weir_self *self)
{
	const struct libpcap_config *config = self->config;
	bool good = true;

	if (strncmp(config->interface, "rpcap:", 6) == 0 ||
	    strncmp(config->interface, "rpcaps:", 7) == 0) {
		weir_error(
			self, "interface",
			"%s: Debian's libpcap is built without remote capture; a Weir there with "
			"zmq, and zmq-source here, would work",
			config->interface);
		good = false;
	}
	if (config->linktype && pcap_datalink_name_to_val(config->linktype) < 0) {
		weir_error(self, "link-type",
			   "link-type=%s is no name that libpcap knows; LINUX_SLL2 or EN10MB would "
			   "be",
			   config->linktype);
		good = false;
	}
	return good;
}

static bool libpcap_open(struct weir_self *self)
{
	const struct libpcap_config *config = self->config;
	struct libpcap_node *node = self->node;
	struct refusal why = {0};

	if (!handle_open(&node->handle, self, &why)) {
		weir_error(self, why.option, "%s", why.text);
		return false;
	}
	if (config->direction == PROGRAM_OUT && strcmp(config->interface, "lo") == 0) {
		weir_error(self, "direction",
			   "libpcap hands over what lo receives only; 'afpacket lo direction=out' "
			   "would work");
		return false;
	}
	node->iface = weir_interface_add(
		self, &(struct weir_interface){.name = config->interface,
					       .linktype = node->handle.linktype});
	return true;
}

static const char *libpcap_want(struct weir_self *self, const struct weir_insn *wanted,
				uint32_t len)
{
	const struct libpcap_config *config = self->config;
	struct libpcap_node *node = self->node;
	const struct handle *handle = &node->handle;

	if (!handle->pcap)
		return "what its device can do is known once that is open";
	if (handle->kind != HANDLE_PACKET)
		return "this device has no filter in the kernel";
	if (handle->is_cooked)
		return "libpcap makes the link-layer header of this device, and the kernel would "
		       "filter without it";
	int failure = program_attach(handle->fd, config->direction, wanted, len);
	program_attach_drop_all(handle->fd);
	if (!failure)
		node->wanted = malloc(len * sizeof(*wanted));
	if (node->wanted) {
		memcpy(node->wanted, wanted, len * sizeof(*wanted));
		node->wanted_len = len;
		return NULL;
	}
	snprintf(node->refusal, sizeof(node->refusal),
		 "the kernel does not take a program of %u instructions: %s", len,
		 strerror(-failure));
	return node->refusal;
}

static const char *libpcap_pushed(struct weir_self *self)
{
	(void)self;
	return "frames with a VLAN tag are passed up whole";
}

static bool libpcap_start(struct weir_self *self)
{
	const struct libpcap_config *config = self->config;
	struct libpcap_node *node = self->node;
	int failure = handle_start(&node->handle, config->direction, node->wanted,
				   node->wanted_len);

	if (failure)
		weir_error(self, NULL, "the kernel does not take the filter for %s: %s",
			   config->interface, strerror(-failure));
	return failure == 0;
}

static void libpcap_lane_close(struct weir_self *self)
{
	struct libpcap_lane *lane = self->lane;

	free(lane->bytes);
}

static void libpcap_close(struct weir_self *self)
{
	struct libpcap_node *node = self->node;

	handle_close(&node->handle);
	free(node->wanted);
}

/* ---- Tables ---- */

#define AT(member) offsetof(struct libpcap_config, member)

static const struct weir_option options[] = {
	{"interface", WEIR_STRING, AT(interface), NULL, NULL,
	 "A device of libpcap: any, nflog:10, usbmon1, bluetooth0, a tun device, any interface."},
	{"link-type", WEIR_STRING, AT(linktype), "", NULL,
	 "One of those that the device can have, by its name in libpcap, such as LINUX_SLL2, which "
	 "tells the interface of each packet of any; else the device's first."},
	{"ring", WEIR_SIZE, AT(ring_bytes), "64MiB", "1MiB..1GiB",
	 "Memory that packets wait in, where the device lets one choose."},
	{"retire", WEIR_TIME, AT(retire_ns), "20ms", "1ms..200ms",
	 "How long a packet may wait for others before it is handed over."},
	{"promisc", WEIR_BOOL, AT(promisc), "yes", NULL,
	 "Also packets for other machines; ends with the run. Not for any."},
	{"direction", WEIR_CHOICE, AT(direction), "both", "both|in|out",
	 "Packets received, sent, or both; on a loopback interface both is each packet once."},
	{0},
};

static const struct weir_output outputs[] = {
	{"out", WEIR_DISCARD, WEIR_PACKETS, "all packets"},
	{0},
};

static const struct weir_counter counters[] = {
	[LIBPCAP_PACKETS] = {"kernel-packets", WEIR_PLUS_PACKETS,
			     "packets that passed the kernel's filter; of devices without such a "
			     "count, those that were dropped"},
	[LIBPCAP_DROPS] = {"kernel-drops", WEIR_MINUS_PACKETS | WEIR_IS_LOSS,
			   "of these, packets that found no room; of nflog, how often that was"},
	[LIBPCAP_UNWITNESSED] = {"unwitnessed", WEIR_PLUS_PACKETS,
				 "packets of devices that do not count what they hand over"},
	[LIBPCAP_CUT] = {"cut", WEIR_INFO, "packets shorter here than on the wire"},
	[LIBPCAP_NIC] = {"nic-drops", WEIR_INFO | WEIR_IS_NIC,
			 "packets that the NIC lost (rx_missed_errors and rx_fifo_errors)"},
	{0},
};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SOURCE,
	.lanes_kind = WEIR_LANES_ONE,
	.flags = WEIR_LIVE | WEIR_MEMORY_WRITABLE,
	.name = "libpcap",
	.version = WEIR_VERSION,
	.summary =
		"reads packets from devices that only libpcap knows: any, nflog, usbmon, Bluetooth",
	.example = "libpcap any link-type=LINUX_SLL2 -> pcap all-interfaces.pcap",
	.options = options,
	.outputs = outputs,
	.counters = counters,
	.config_size = sizeof(struct libpcap_config),
	.node_size = sizeof(struct libpcap_node),
	.lane_size = sizeof(struct libpcap_lane),
	.check = libpcap_check,
	.open = libpcap_open,
	.want = libpcap_want,
	.pushed = libpcap_pushed,
	.start = libpcap_start,
	.poll = libpcap_poll,
	.stop = libpcap_stop,
	.tick = libpcap_tick,
	.witness = libpcap_witness,
	.lane_close = libpcap_lane_close,
	.close = libpcap_close,
	.needs = "CAP_NET_RAW",
	.memory = "ring",
};
