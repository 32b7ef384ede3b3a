/*
 * inject.c: the sink that sends packets out of an Ethernet interface, for analyzers that sniff one.
 */
#include "sender.h"

#include <weir/capfile.h>
#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINKTYPE_ETHERNET 1u
#define RING_MIN          (1u << 20) /* several of the largest packets */
#define MAC_BYTES         6u
#define INTERFACES_MAX    64u
#define NS_PER_S          1000000000.0

struct config {
	const char *interface, *pace, *dst_mac;
	uint64_t ring_bytes;
	int64_t linger_ns;
};

/* What the interface has counted, with all that others sent out of it. */
struct traffic {
	uint64_t sent, dropped;
	bool is_known;
};

struct node {
	struct sender **senders; /* of the lanes that were opened */
	uint32_t n_senders;
	struct traffic before;
	struct pace pace;
	uint8_t mac[MAC_BYTES];
	bool has_mac;
};

/* ---- Options ---- */

static bool parse_pace(const char *text, struct pace *ret)
{
	struct weir_rate rate;

	*ret = (struct pace){0};
	if (strcmp(text, "max") == 0)
		return true;
	if (!weir_parse_rate(text, &rate) || !(rate.per_second > 0))
		return false;
	ret->counts_bits = !rate.packets;
	ret->ns_per_unit = NS_PER_S / rate.per_second;
	return true;
}

static bool parse_mac(const char *text, uint8_t *ret)
{
	int end = 0;

	return sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &ret[0], &ret[1], &ret[2],
		      &ret[3], &ret[4], &ret[5], &end) == 6 &&
	       text[end] == '\0' && !(ret[0] & 1);
}

static bool parse_options(struct weir_self *self, struct node *ret)
{
	const struct config *config = self->config;
	bool good = true;

	if (!parse_pace(config->pace, &ret->pace)) {
		weir_error(self, "pace", "'%s' is no pace; max, 500kpps or 1Gbps would be",
			   config->pace);
		good = false;
	}
	ret->has_mac = config->dst_mac != NULL;
	if (ret->has_mac && !parse_mac(config->dst_mac, ret->mac)) {
		weir_error(self, "dst-mac",
			   "'%s' is no unicast address; 02:00:00:00:00:01 would be",
			   config->dst_mac);
		good = false;
	}
	return good;
}

static bool inject_check(struct weir_self *self)
{
	struct node parsed;

	return parse_options(self, &parsed);
}

/* ---- The interface ---- */

static bool ask(int fd, unsigned long what, const char *name, struct ifreq *ret)
{
	*ret = (struct ifreq){0};
	snprintf(ret->ifr_name, sizeof(ret->ifr_name), "%s", name);
	return ioctl(fd, what, ret) == 0;
}

static bool look_at(struct weir_self *self, const char *name, int fd)
{
	struct ifreq request;

	if (!ask(fd, SIOCGIFFLAGS, name, &request))
		weir_error(self, "interface",
			   "there is no interface '%s' in this network namespace; 'ip link' lists "
			   "those that are",
			   name);
	else if (!(request.ifr_flags & IFF_UP))
		weir_error(self, "interface",
			   "interface=%s is down; 'ip link set %s up' would help", name, name);
	else if (ask(fd, SIOCGIFHWADDR, name, &request) &&
		 request.ifr_hwaddr.sa_family != ARPHRD_ETHER &&
		 request.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK)
		weir_error(self, "interface", "interface=%s is no Ethernet", name);
	else
		return true;
	return false;
}

static void warn_of_feedback(struct weir_self *self, const char *name)
{
	uint16_t ids[INTERFACES_MAX];
	unsigned n = weir_interfaces_upstream(self, ids, INTERFACES_MAX);

	for (unsigned i = 0; i < n && i < INTERFACES_MAX; i++) {
		const struct weir_interface *from = weir_interface(self, ids[i]);
		if (strcmp(from->name, name) != 0)
			continue;
		weir_log(self, WEIR_WARN,
			 "it sends out of %s, which this pipeline captures: unless it captures "
			 "direction=in only, each packet comes back, and is sent again",
			 name);
		return;
	}
}

static uint64_t read_number(const char *name, const char *what, bool *ret_is_known)
{
	char path[128];
	unsigned long long number = 0;

	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/%s", name, what);
	FILE *file = fopen(path, "re");
	*ret_is_known = file && fscanf(file, "%llu", &number) == 1;
	if (file)
		fclose(file);
	return number;
}

static struct traffic read_traffic(const char *name)
{
	struct traffic traffic;

	traffic.sent = read_number(name, "tx_packets", &traffic.is_known);
	traffic.dropped = read_number(name, "tx_dropped", &traffic.is_known);
	return traffic;
}

/* ---- Opening and closing ---- */

static bool inject_open(struct weir_self *self)
{
	const struct config *config = self->config;
	struct node *node = self->node;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		weir_error(self, NULL, "cannot open a socket: %s", strerror(errno));
		return false;
	}
	bool good = look_at(self, config->interface, fd) && parse_options(self, node);
	close(fd);
	if (!good)
		return false;
	warn_of_feedback(self, config->interface);
	node->before = read_traffic(config->interface);
	return true;
}

static bool inject_lane_open(struct weir_self *self)
{
	const struct config *config = self->config;
	struct node *node = self->node;
	struct sender *sender = self->lane;
	uint64_t ring_bytes = config->ring_bytes / self->lane_count;

	sender->fd = sender->wake_fd = -1;
	sender->interface = config->interface;
	sender->linger_ns = config->linger_ns;
	sender->pace = node->pace;
	sender->pace.ns_per_unit *= self->lane_count;
	if (ring_bytes < RING_MIN) {
		weir_error(self, "ring", "ring=%lluKiB gives each of %u lanes less than 1MiB",
			   (unsigned long long)config->ring_bytes / 1024, self->lane_count);
		return false;
	}
	if (!node->senders)
		node->senders = calloc(self->lane_count, sizeof(struct sender *));
	if (!node->senders) {
		weir_error(self, NULL, "out of memory");
		return false;
	}
	node->senders[node->n_senders++] = sender;
	return sender_open(sender, self, ring_bytes);
}

static bool inject_start(struct weir_self *self)
{
	struct node *node = self->node;

	for (uint32_t i = 0; i < node->n_senders; i++) {
		if (!sender_start(node->senders[i], self))
			return false;
	}
	return true;
}

static void witness_interface(struct weir_self *self)
{
	const struct config *config = self->config;
	const struct node *node = self->node;
	struct traffic now = read_traffic(config->interface);

	if (!now.is_known || !node->before.is_known || now.sent < node->before.sent)
		return;
	weir_witness(self, INTERFACE_SENT, now.sent - node->before.sent);
	weir_witness(self, INTERFACE_DROPPED, now.dropped - node->before.dropped);
}

static void inject_lane_close(struct weir_self *self)
{
	struct sender *sender = self->lane;

	if (!sender->interface)
		return;
	sender_close(sender);
	/* The interface is the node's; one lane speaks for all. */
	if (self->lane_index == 0)
		witness_interface(self);
}

static void inject_close(struct weir_self *self)
{
	struct node *node = self->node;

	free(node->senders);
}

/* ---- The lane ---- */

static bool is_ethernet(struct weir_self *self, const struct weir_packet *packet)
{
	const struct weir_interface *interface = weir_interface(self, packet->iface);

	return !interface || interface->linktype == LINKTYPE_ETHERNET;
}

static uint8_t take(struct weir_self *self, const struct weir_packet *packet)
{
	const struct node *node = self->node;
	struct sender *sender = self->lane;
	uint8_t *frame;

	if (!is_ethernet(self, packet))
		return OTHER_LINKTYPE;
	while (!(frame = ring_reserve(&sender->ring, packet->caplen))) {
		sender_publish(sender);
		if (!weir_wait(self, 100))
			return RING_FULL;
	}
	memcpy(frame, packet->data, packet->caplen);
	if (node->has_mac && packet->caplen >= MAC_BYTES)
		memcpy(frame, node->mac, MAC_BYTES);
	return WEIR_PENDING;
}

static void inject_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		packets[i].verdict = take(self, &packets[i]);
	sender_publish(self->lane);
}

static void inject_tick(struct weir_self *self, const struct weir_now *now, unsigned why)
{
	struct sender *sender = self->lane;

	(void)now;
	/* Behind files a pace may take as long as it likes. */
	while ((why & WEIR_TICK_END) && !ring_is_empty(&sender->ring) && weir_wait(self, 100))
		;
}

static void inject_witness(struct weir_self *self)
{
	if (self->lane_index == 0)
		witness_interface(self);
}

/* ---- Tables ---- */

static const struct weir_option options[] = {
	{"interface", WEIR_STRING, offsetof(struct config, interface), NULL, NULL,
	 "An Ethernet interface to send out of, such as one end of a veth pair."},
	{"pace", WEIR_STRING, offsetof(struct config, pace), "max", NULL,
	 "At most so many packets or bits a second, as 500kpps or 1Gbps; max: as they come."},
	{"dst-mac", WEIR_STRING, offsetof(struct config, dst_mac), "", NULL,
	 "Destination address that each packet gets, so that a replay reaches nobody else."},
	{"ring", WEIR_SIZE, offsetof(struct config, ring_bytes), "16MiB", "1MiB..16GiB",
	 "Memory for packets that wait to be sent, rounded down to a power of two in each lane."},
	{"linger", WEIR_TIME, offsetof(struct config, linger_ns), "500ms", "0ms..1h",
	 "At the end of a live capture, how long to go on with what waits."},
	{0},
};

static const struct weir_output outcomes[] = {
	[SENT] = {"sent", WEIR_PASS, WEIR_PACKETS, "the kernel took it"},
	[RING_FULL] = {"ring-full", WEIR_LOSS, WEIR_PACKETS, "too many were waiting"},
	[TOO_LONG] = {"too-long", WEIR_LOSS, WEIR_PACKETS,
		      "longer than the interface's MTU allows"},
	[CONGESTED] = {"congested", WEIR_LOSS, WEIR_PACKETS,
		       "the kernel had no room for it for 100 ms"},
	[LINK_DOWN] = {"link-down", WEIR_LOSS, WEIR_PACKETS, "the interface was down or gone"},
	[REFUSED] = {"refused", WEIR_LOSS, WEIR_PACKETS,
		     "the kernel did not take it: shorter than an Ethernet header"},
	[OTHER_LINKTYPE] = {"other-linktype", WEIR_LOSS, WEIR_PACKETS, "no Ethernet frame"},
	[UNSENT] = {"unsent", WEIR_LOSS, WEIR_PACKETS, "still waiting when the run ended"},
	{0},
};

static const struct weir_counter counters[] = {
	[KERNEL_TOOK] = {"kernel-took", WEIR_PLUS_PACKETS, "frames that sendmmsg() has taken"},
	[RETRIES] = {"retries", WEIR_INFO, "times that the kernel had no room at first"},
	[INTERFACE_SENT] = {"interface-sent", WEIR_INFO,
			    "packets that the interface has sent meanwhile, those of others too"},
	[INTERFACE_DROPPED] = {"interface-dropped", WEIR_INFO,
			       "packets that it did not send, those of others too"},
	{0},
};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SINK,
	.name = "inject",
	.version = WEIR_VERSION,
	.summary = "sends packets out of an Ethernet interface, for analyzers that sniff it",
	.example = "tap -> queue 256MiB -> inject veth-ids",
	.options = options,
	.outputs = outcomes,
	.counters = counters,
	.config_size = sizeof(struct config),
	.node_size = sizeof(struct node),
	.lane_size = sizeof(struct sender),
	.check = inject_check,
	.open = inject_open,
	.lane_open = inject_lane_open,
	.start = inject_start,
	.judge = inject_judge,
	.tick = inject_tick,
	.witness = inject_witness,
	.lane_close = inject_lane_close,
	.close = inject_close,
	.needs = "CAP_NET_RAW",
	.memory = "ring",
};
