/*
 * socket.c: opens the packet sockets of a lane, and says what would work where the kernel refuses.
 */
#include "afpacket.h"
#include "clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const unsigned fanout_types[] = {
	[AFPACKET_FANOUT_HASH] = PACKET_FANOUT_HASH,
	[AFPACKET_FANOUT_RND] = PACKET_FANOUT_RND,
	[AFPACKET_FANOUT_LB] = PACKET_FANOUT_LB,
	[AFPACKET_FANOUT_CPU] = PACKET_FANOUT_CPU,
	[AFPACKET_FANOUT_QM] = PACKET_FANOUT_QM,
	[AFPACKET_FANOUT_ROLLOVER] = PACKET_FANOUT_ROLLOVER,
};

/* ---- Steps: 0 or -errno ---- */

/* With protocol 0 it hears nothing yet. */
static int make_socket(struct weir_self *self, struct link *link, struct ring *ring)
{
	(void)self, (void)link;
	ring->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	return ring->fd < 0 ? -errno : 0;
}

static int make_ring(struct weir_self *self, struct link *link, struct ring *ring)
{
	const struct afpacket_node *node = self->node;
	struct ring_geometry geometry = afpacket_geometry(self->config, node->link_count);

	(void)link;
	return ring_open(ring, ring->fd, &geometry);
}

static int choose_clock(struct weir_self *self, struct link *link, struct ring *ring)
{
	const struct afpacket_config *config = self->config;
	int source = SOF_TIMESTAMPING_RAW_HARDWARE;

	if (config->timestamps != AFPACKET_HARDWARE)
		return 0;
	ring->foreign_clock = true;
	if (setsockopt(ring->fd, SOL_PACKET, PACKET_TIMESTAMP, &source, sizeof(source)))
		return -errno;
	return clock_switch_on(ring->fd, link->name);
}

static int ask_for_busy_poll(struct weir_self *self, struct link *link, struct ring *ring)
{
	const struct afpacket_config *config = self->config;
	int us = (int)(config->busy_poll_ns / 1000), yes = 1;

	(void)link;
	if (us == 0)
		return 0;
	return setsockopt(ring->fd, SOL_SOCKET, SO_BUSY_POLL, &us, sizeof(us)) ||
			       setsockopt(ring->fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &yes,
					  sizeof(yes))
		       ? -errno
		       : 0;
}

static int drop_all(struct weir_self *self, struct link *link, struct ring *ring)
{
	(void)self, (void)link;
	return program_attach_drop_all(ring->fd);
}

int afpacket_bind(int fd, int index)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = index,
	};
	return bind(fd, (const struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

static int bind_link(struct weir_self *self, struct link *link, struct ring *ring)
{
	(void)self;
	ring->iface = link->iface;
	ring->index = link->index;
	return afpacket_bind(ring->fd, link->index);
}

/* By membership, so that it ends with the socket, however the process ends. */
int afpacket_add_promiscuity(const struct afpacket_config *config, int fd, int index)
{
	struct packet_mreq membership = {.mr_ifindex = index, .mr_type = PACKET_MR_PROMISC};

	if (!config->promisc)
		return 0;
	return setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof(membership))
		       ? -errno
		       : 0;
}

static int be_promiscuous(struct weir_self *self, struct link *link, struct ring *ring)
{
	return afpacket_add_promiscuity(self->config, ring->fd, link->index);
}

bool afpacket_is_grouped(const struct afpacket_config *config)
{
	return config->lanes > 1 || config->defrag;
}

/* The first member has the kernel choose an id that is free in this network namespace; the others
 * join it. */
static int join_group(struct weir_self *self, struct link *link, struct ring *ring)
{
	const struct afpacket_config *config = self->config;
	unsigned flags = config->defrag ? PACKET_FANOUT_FLAG_DEFRAG : 0;
	unsigned id = link->group < 0 ? 0 : (unsigned)link->group;
	unsigned argument;
	socklen_t size = sizeof(argument);

	if (!afpacket_is_grouped(config))
		return 0;
	if (link->group < 0)
		flags |= PACKET_FANOUT_FLAG_UNIQUEID;
	argument = id | (fanout_types[config->fanout] | flags) << 16;
	if (setsockopt(ring->fd, SOL_PACKET, PACKET_FANOUT, &argument, size) ||
	    getsockopt(ring->fd, SOL_PACKET, PACKET_FANOUT, &argument, &size))
		return -errno;
	link->group = (int)(argument & 0xffff);
	return 0;
}

static int (*const steps[])(struct weir_self *, struct link *, struct ring *) = {
	[SOCKET_MAKE] = make_socket,       [SOCKET_RING] = make_ring,
	[SOCKET_CLOCK] = choose_clock,     [SOCKET_BUSY_POLL] = ask_for_busy_poll,
	[SOCKET_FILTER] = drop_all,        [SOCKET_BIND] = bind_link,
	[SOCKET_PROMISC] = be_promiscuous, [SOCKET_GROUP] = join_group,
};

int afpacket_socket_make(struct weir_self *self, struct link *link, struct ring *ring,
			 enum socket_step *ret_step)
{
	int failure = 0;

	*ring = (struct ring){.fd = -1};
	for (unsigned step = 0; step < sizeof(steps) / sizeof(steps[0]) && !failure; step++) {
		failure = steps[step](self, link, ring);
		*ret_step = step;
	}
	return failure;
}

/* ---- What would work instead ---- */

static void explain_socket(struct weir_self *self, int failure)
{
	if (failure == -EPERM)
		weir_error(self, NULL,
			   "a packet socket needs the capability CAP_NET_RAW: run as root, or "
			   "'setcap cap_net_raw=ep' on the program");
	else
		weir_error(self, NULL, "cannot open a packet socket: %s", strerror(-failure));
}

static void explain_ring(struct weir_self *self, int failure)
{
	const struct afpacket_config *config = self->config;
	const struct afpacket_node *node = self->node;
	struct ring_geometry geometry = afpacket_geometry(config, node->link_count);

	if (failure == -ENOMEM)
		weir_error(self, "ring",
			   "ring=%lluKiB: the kernel has no memory for %u blocks of %u KiB here; a "
			   "smaller ring= would work",
			   (unsigned long long)config->ring_bytes / 1024, geometry.block_count,
			   geometry.block_bytes / 1024);
	else
		weir_error(self, "ring",
			   "ring=%lluKiB: the kernel refuses %u blocks of %u KiB: %s; a smaller "
			   "ring= or a block-size= of 1MiB would work",
			   (unsigned long long)config->ring_bytes / 1024, geometry.block_count,
			   geometry.block_bytes / 1024, strerror(-failure));
}

static void explain_clock(struct weir_self *self, const struct link *link, int failure)
{
	if (failure == -EPERM)
		weir_error(self, "timestamps",
			   "timestamps=hardware: to switch on the clock of %s needs the capability "
			   "CAP_NET_ADMIN; 'hwstamp_ctl -i %s -r 1' beforehand, or "
			   "timestamps=software, would work",
			   link->name, link->name);
	else if (failure == -EOPNOTSUPP)
		weir_error(self, "timestamps",
			   "timestamps=hardware: %s has no clock that stamps all packets received, "
			   "see 'ethtool -T %s'; timestamps=software would work",
			   link->name, link->name);
	else
		weir_error(self, "timestamps", "timestamps=hardware: %s refuses: %s", link->name,
			   strerror(-failure));
}

static void explain_busy_poll(struct weir_self *self, int failure)
{
	if (failure == -EPERM)
		weir_error(self, "busy-poll",
			   "busy-poll= needs the capability CAP_NET_ADMIN, beside CAP_NET_RAW");
	else
		weir_error(self, "busy-poll", "busy-poll=: the kernel refuses: %s",
			   strerror(-failure));
}

static void explain(struct weir_self *self, const struct link *link, enum socket_step step,
		    int failure)
{
	const char *why = strerror(-failure);

	if (step == SOCKET_MAKE)
		explain_socket(self, failure);
	else if (step == SOCKET_RING)
		explain_ring(self, failure);
	else if (step == SOCKET_CLOCK)
		explain_clock(self, link, failure);
	else if (step == SOCKET_BUSY_POLL)
		explain_busy_poll(self, failure);
	else if (step == SOCKET_PROMISC)
		weir_error(self, "promisc",
			   "promisc=yes: %s does not become promiscuous: %s; promisc=no would work",
			   link->name, why);
	else if (step == SOCKET_GROUP)
		weir_error(self, "fanout",
			   "lane %u cannot join the fanout group of %s: %s; lanes=1 would work, "
			   "which needs none",
			   self->lane_index, link->name, why);
	else
		weir_error(self, "interface", "interface=%s: cannot bind a packet socket to it: %s",
			   link->name, why);
}

/* ---- Life ---- */

bool afpacket_socket_open(struct weir_self *self, unsigned link_index)
{
	struct afpacket_node *node = self->node;
	struct afpacket_lane *lane = self->lane;
	struct link *link = &node->links[link_index];
	enum socket_step step;
	int failure = afpacket_socket_make(self, link, &lane->rings[link_index], &step);

	if (failure)
		explain(self, link, step, failure);
	return failure == 0;
}

int afpacket_socket_start(struct weir_self *self, const struct link *link, const struct ring *ring)
{
	struct program_halves halves = afpacket_halves(self->node);
	enum program_direction direction = afpacket_direction(self->config, link);
	struct program program;
	int failure = -ENOMEM;

	if (program_new(direction, &halves, &program))
		failure = program_attach(ring->fd, &program);
	program_free(&program);
	return failure;
}

void afpacket_socket_close(struct ring *ring)
{
	ring_close(ring);
	if (ring->fd >= 0)
		close(ring->fd);
	ring->fd = -1;
}
