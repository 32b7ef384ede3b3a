/*
 * socket.c: opens the packet sockets of a lane, and says what would work where the kernel refuses.
 */
#include "afpacket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
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

/* With protocol 0 it hears nothing yet. */
static int open_socket(struct weir_self *self)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		return fd;
	if (errno == EPERM)
		weir_error(self, NULL,
			   "a packet socket needs the capability CAP_NET_RAW: run as root, or "
			   "'setcap cap_net_raw=ep' on the program");
	else
		weir_error(self, NULL, "cannot open a packet socket: %s", strerror(errno));
	return -1;
}

static bool make_ring(struct weir_self *self, struct ring *ring, int fd)
{
	const struct afpacket_config *config = self->config;
	const struct afpacket_node *node = self->node;
	struct ring_geometry geometry = afpacket_geometry(config, node->link_count);
	int failure = ring_open(ring, fd, &geometry);

	if (failure == -ENOMEM)
		weir_error(self, "ring",
			   "ring=%lluKiB: the kernel has no memory for %u blocks of %u KiB here; a "
			   "smaller ring= would work",
			   (unsigned long long)config->ring_bytes / 1024, geometry.block_count,
			   geometry.block_bytes / 1024);
	else if (failure)
		weir_error(self, "ring",
			   "ring=%lluKiB: the kernel refuses %u blocks of %u KiB: %s; a smaller "
			   "ring= or a block-size= of 1MiB would work",
			   (unsigned long long)config->ring_bytes / 1024, geometry.block_count,
			   geometry.block_bytes / 1024, strerror(-failure));
	return failure == 0;
}

static int bind_to(int fd, int index)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = index,
	};
	return bind(fd, (const struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

/* By membership, so that it ends with the socket, however the process ends. */
static int add_promiscuity(int fd, int index)
{
	struct packet_mreq membership = {.mr_ifindex = index, .mr_type = PACKET_MR_PROMISC};
	return setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof(membership))
		       ? -errno
		       : 0;
}

static bool bind_link(struct weir_self *self, const struct link *link, int fd)
{
	const struct afpacket_config *config = self->config;
	int failure = program_attach_drop_all(fd);

	if (!failure)
		failure = bind_to(fd, link->index);
	if (failure) {
		weir_error(self, "interface", "interface=%s: cannot bind a packet socket to it: %s",
			   link->name, strerror(-failure));
		return false;
	}
	failure = config->promisc ? add_promiscuity(fd, link->index) : 0;
	if (failure)
		weir_error(self, "promisc",
			   "promisc=yes: %s does not become promiscuous: %s; promisc=no would work",
			   link->name, strerror(-failure));
	return failure == 0;
}

bool afpacket_is_grouped(const struct afpacket_config *config)
{
	return config->lanes > 1 || config->defrag;
}

/* The first member has the kernel choose an id that is free in this network namespace; the others
 * join it. */
static bool join_group(struct weir_self *self, struct link *link, int fd)
{
	const struct afpacket_config *config = self->config;
	unsigned flags = config->defrag ? PACKET_FANOUT_FLAG_DEFRAG : 0;
	unsigned id = link->group < 0 ? 0 : (unsigned)link->group;
	if (link->group < 0)
		flags |= PACKET_FANOUT_FLAG_UNIQUEID;
	unsigned argument = id | (fanout_types[config->fanout] | flags) << 16;
	socklen_t size = sizeof(argument);

	if (setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &argument, size) ||
	    getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &argument, &size)) {
		weir_error(self, "fanout",
			   "lane %u cannot join the fanout group of %s: %s; lanes=1 would work, "
			   "which needs none",
			   self->lane_index, link->name, strerror(errno));
		return false;
	}
	link->group = (int)(argument & 0xffff);
	return true;
}

bool afpacket_socket_open(struct weir_self *self, unsigned link_index)
{
	struct afpacket_node *node = self->node;
	struct afpacket_lane *lane = self->lane;
	struct link *link = &node->links[link_index];
	struct ring *ring = &lane->rings[link_index];
	int fd = open_socket(self);

	if (fd < 0)
		return false;
	ring->fd = fd;
	if (!make_ring(self, ring, fd) || !bind_link(self, link, fd))
		return false;
	ring->iface = link->iface;
	return !afpacket_is_grouped(self->config) || join_group(self, link, fd);
}

bool afpacket_socket_start(struct weir_self *self, const struct link *link, struct ring *ring)
{
	const struct afpacket_node *node = self->node;
	struct program program;
	enum program_direction direction = afpacket_direction(self->config, link);
	int failure = -ENOMEM;

	if (program_new(direction, node->wanted, node->wanted_len, &program))
		failure = program_attach(ring->fd, &program);
	program_free(&program);
	if (failure)
		weir_error(self, NULL, "the kernel does not take the filter for %s: %s", link->name,
			   strerror(-failure));
	return failure == 0;
}

/* ---- A link that goes and comes back ---- */

/* A format of its own each, since a log line of one format is held back for a second. */
static void say(struct weir_self *self, const struct link *link, enum link_state state)
{
	/* One lane speaks for all. */
	if (self->lane_index)
		return;
	if (state == LINK_UP)
		weir_log(self, WEIR_INFORM, "%s is up again", link->name);
	else if (state == LINK_DOWN)
		weir_log(self, WEIR_WARN, "%s went down; waiting for it to come up", link->name);
	else if (!afpacket_is_grouped(self->config))
		weir_log(self, WEIR_WARN, "%s was removed; waiting for one of that name",
			 link->name);
	else
		weir_log(self, WEIR_WARN,
			 "%s was removed, and a socket of a fanout group cannot be bound again: "
			 "nothing more will come from it in this run",
			 link->name);
	weir_event(self, state == LINK_UP ? "link-up" : "link-down", "%s", link->name);
}

void afpacket_watch_error(struct weir_self *self, unsigned link_index)
{
	struct afpacket_node *node = self->node;
	struct afpacket_lane *lane = self->lane;
	struct ring *ring = &lane->rings[link_index];
	int failure = 0;
	socklen_t size = sizeof(failure);

	/* Reading the error clears it; else poll() would return at once from now on. */
	getsockopt(ring->fd, SOL_SOCKET, SO_ERROR, &failure, &size);
	if (failure != ENETDOWN || ring->away)
		return;
	ring->away = true;
	enum link_state state = link_state(ring->fd, &node->links[link_index]);
	say(self, &node->links[link_index], state == LINK_GONE ? LINK_GONE : LINK_DOWN);
}

static bool bind_again(struct weir_self *self, struct link *link, int fd)
{
	const struct afpacket_config *config = self->config;
	int index = link_index(fd, link->name);

	if (!index || afpacket_is_grouped(config) || bind_to(fd, index))
		return false;
	link->index = index;
	if (config->promisc)
		add_promiscuity(fd, index);
	return link_state(fd, link) == LINK_UP;
}

void afpacket_watch_return(struct weir_self *self, unsigned at)
{
	struct afpacket_node *node = self->node;
	struct afpacket_lane *lane = self->lane;
	struct ring *ring = &lane->rings[at];
	struct link *link = &node->links[at];
	enum link_state state;

	if (!ring->away)
		return;
	state = link_state(ring->fd, link);
	if (state == LINK_DOWN || (state == LINK_GONE && !bind_again(self, link, ring->fd)))
		return;
	ring->away = false;
	say(self, link, LINK_UP);
}
