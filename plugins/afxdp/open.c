/*
 * open.c: opens a node and its lanes, and says what would work where the kernel refuses.
 */
#include "afxdp.h"

#include "privileges.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ETHERNET     1  /* LINKTYPE_ETHERNET */
#define HEADER_BYTES 22 /* Ethernet's, with two VLAN tags, which the MTU does not count */

#define OURS_TRIES    200
#define OURS_PAUSE_NS 10000000L

static void refuse(struct weir_self *self, const char *option, const char *what, int failure)
{
	char missing[64];

	privileges_missing(missing, sizeof(missing));
	if ((failure == -EPERM || failure == -EACCES) && *missing)
		weir_error(self, NULL,
			   "%s is refused, for lack of %s: run as root, or 'setcap "
			   "cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock=ep' on the program",
			   what, missing);
	else
		weir_error(self, option, "%s is refused: %s", what, strerror(-failure));
}

/* ---- The interface ---- */

static bool find_link(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	struct afxdp_node *node = self->node;

	node->link = (struct link){.name = config->interface, .group = -1};
	if (!link_find(self, &node->link))
		return false;
	if (node->link.linktype != ETHERNET) {
		weir_error(self, "interface",
			   "interface=%s is no Ethernet interface, and XDP knows no others; "
			   "afpacket would work",
			   config->interface);
		return false;
	}
	node->link.iface = weir_interface_add(
		self, &(struct weir_interface){.name = config->interface, .linktype = ETHERNET});
	return node->link.iface != UINT16_MAX;
}

static bool check_queues(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	const struct afxdp_node *node = self->node;
	bool good = true;

	for (unsigned i = 0; i < node->queues.count; i++) {
		if (node->queues.numbers[i] < node->device.queues)
			continue;
		weir_error(self, "queues", "%s has no queue %u, only 0 to %u", config->interface,
			   node->queues.numbers[i], node->device.queues - 1);
		good = false;
	}
	return good;
}

int afxdp_add_promiscuity(int fd, int index)
{
	struct packet_mreq membership = {.mr_ifindex = index, .mr_type = PACKET_MR_PROMISC};
	return setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof(membership))
		       ? -errno
		       : 0;
}

/* XDP has no promiscuity of its own.  By membership, so that it ends with the socket, however the
 * process ends. */
static bool open_packet_socket(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	struct afxdp_node *node = self->node;

	node->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (node->fd < 0) {
		refuse(self, NULL, "a packet socket", -errno);
		return false;
	}
	int failure = config->promisc ? afxdp_add_promiscuity(node->fd, node->link.index) : 0;
	if (failure)
		weir_error(self, "promisc",
			   "promisc=yes: %s does not become promiscuous: %s; promisc=no would work",
			   node->link.name, strerror(-failure));
	return failure == 0;
}

/* ---- The program ---- */

/* That of a weir that has just ended is still there for a moment. */
static uint32_t find_foreign(int index)
{
	const struct timespec pause = {.tv_nsec = OURS_PAUSE_NS};
	bool ours;
	uint32_t id = program_present(index, &ours);

	for (int i = 0; i < OURS_TRIES && id && ours; i++) {
		nanosleep(&pause, NULL);
		id = program_present(index, &ours);
	}
	return id;
}

static bool refuse_foreign(struct weir_self *self)
{
	const struct afxdp_node *node = self->node;
	uint32_t id = find_foreign(node->link.index);

	if (!id)
		return true;
	weir_error(self, "interface",
		   "an XDP program is on %s already, of id %u ('bpftool prog show id %u'); 'ip "
		   "link set %s xdp off' takes it off if nobody needs it",
		   node->link.name, id, id, node->link.name);
	return false;
}

static bool load_program(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	struct afxdp_node *node = self->node;
	const struct program_choice choice = {
		.queue_count = node->device.queues_max,
		.drop_unwanted = config->rest == AFXDP_DROP,
		.stamp_frames = config->timestamps == AFXDP_BY_PROGRAM,
	};
	int failure = program_load(&node->program, &choice);

	if (failure)
		refuse(self, NULL, "loading the XDP program", failure);
	return failure == 0;
}

int afxdp_attach(const struct afxdp_config *config, struct afxdp_node *node)
{
	bool wants_skb = config->mode == AFXDP_SKB;
	int failure = wants_skb ? 0 : program_attach(&node->program, node->link.index, true);

	node->native_failure = failure;
	if (wants_skb ||
	    (config->mode == AFXDP_AUTO && failure && failure != -EBUSY && failure != -EPERM))
		failure = program_attach(&node->program, node->link.index, false);
	if (!failure)
		node->attached++;
	return failure;
}

static const char *mode_name(const struct afxdp_config *config)
{
	static const char *const names[] = {"auto", "skb", "native", "zerocopy"};
	return names[config->mode];
}

static bool attach_program(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	struct afxdp_node *node = self->node;
	int failure = afxdp_attach(config, node);

	if (failure == -EPERM)
		refuse(self, NULL, "attaching an XDP program", failure);
	else if (failure)
		weir_error(self, "mode", "mode=%s: %s takes no XDP program: %s%s",
			   mode_name(config), node->link.name, strerror(-failure),
			   config->mode >= AFXDP_NATIVE ? "; mode=skb would work" : "");
	return failure == 0;
}

/* ---- Node and lanes ---- */

static void warn_of_offloads(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	const struct afxdp_node *node = self->node;
	const char *name = node->link.name;
	const char *const interfaces[] = {name, NULL};

	if (node->device.tags == DEVICE_STRIPS_TAGS)
		weir_log(self, WEIR_WARN,
			 "VLAN tags are taken off before XDP sees a frame, and are lost: 'ethtool "
			 "-K %s rxvlan off'",
			 name);
	else if (node->device.tags == DEVICE_PEER_STRIPS)
		weir_log(self, WEIR_INFORM,
			 "the other end of %s may send VLAN tags beside frames, where XDP does not "
			 "see them: 'ethtool -K … txvlan off' there keeps them",
			 name);
	/* In a driver XDP comes before all else. */
	if (!node->program.native)
		weir_nic_warn_offloads(self, interfaces, false, config->promisc);
}

bool afxdp_open_node(struct weir_self *self)
{
	if (!find_link(self) || !check_queues(self) || !open_packet_socket(self) ||
	    !refuse_foreign(self))
		return false;
	umem_raise_limit();
	if (!load_program(self) || !attach_program(self))
		return false;
	warn_of_offloads(self);
	return true;
}

static bool fits_chunk(const struct afxdp_config *config, const struct afxdp_node *node)
{
	return node->device.mtu + HEADER_BYTES <= config->chunk_bytes - UMEM_HEADROOM_BYTES;
}

int afxdp_open_ring(const struct afxdp_config *config, const struct afxdp_node *node,
		    struct ring *ring, uint32_t queue)
{
	uint64_t share = config->umem_bytes / node->queues.count;
	bool native = node->program.native;
	const struct ring_choice choice = {
		.chunks = (uint32_t)(share / config->chunk_bytes),
		.chunk_bytes = (uint32_t)config->chunk_bytes,
		.zerocopy = native &&
			    (config->mode == AFXDP_ZEROCOPY || config->mode == AFXDP_AUTO),
		.copy = config->mode != AFXDP_ZEROCOPY,
		.fits = fits_chunk(config, node),
	};
	int failure = ring_open(ring, node->link.name, queue, &choice);

	if (!failure && config->busy_poll_ns)
		failure = ring_set_busy_poll(ring, config->busy_poll_ns);
	return failure;
}

static void refuse_ring(struct weir_self *self, uint32_t queue, int failure)
{
	const struct afxdp_config *config = self->config;
	const char *name = config->interface;
	uint64_t limit = umem_limit();

	if (failure == -EOPNOTSUPP && config->mode == AFXDP_ZEROCOPY)
		weir_error(self, "mode",
			   "mode=zerocopy: the driver of %s cannot do it; mode=native or mode=auto "
			   "would work",
			   name);
	else if (failure == -ENOBUFS)
		weir_error(self, "umem",
			   "umem=%lluKiB is more than this process may lock, %lluKiB: 'ulimit -l' "
			   "(RLIMIT_MEMLOCK), the capability CAP_IPC_LOCK or a smaller umem= would "
			   "help",
			   (unsigned long long)config->umem_bytes / 1024,
			   (unsigned long long)limit / 1024);
	else if (failure == -ENOMEM)
		weir_error(self, "umem",
			   "umem=%lluKiB: there is no memory for it; a smaller umem= would work",
			   (unsigned long long)config->umem_bytes / 1024);
	else if (failure == -EBUSY)
		weir_error(self, "queues", "queue %u of %s belongs to another AF_XDP socket", queue,
			   name);
	else if (failure == -EPERM)
		refuse(self, NULL, "an AF_XDP socket", failure);
	else
		weir_error(self, "interface", "interface=%s: no AF_XDP socket on queue %u: %s",
			   name, queue, strerror(-failure));
}

static void say_mode(struct weir_self *self)
{
	const struct afxdp_node *node = self->node;
	const struct afxdp_lane *lane = self->lane;
	const char *how = !node->program.native ? "skb, by the kernel's generic code"
			  : lane->ring.zerocopy ? "zerocopy"
						: "native, with a copy";

	weir_log(self, WEIR_INFORM, "%s: mode %s; %u of %u queue%s", node->link.name, how,
		 node->queues.count, node->device.queues, node->device.queues == 1 ? "" : "s");
	if (node->native_failure)
		weir_log(self, WEIR_INFORM, "%s: not native, since its driver says: %s",
			 node->link.name, strerror(-node->native_failure));
	if (!lane->ring.whole)
		weir_log(self, WEIR_WARN,
			 "%s: frames of several chunks are not handed over here: larger ones than "
			 "chunk= will be rx-dropped",
			 node->link.name);
}

bool afxdp_open_lane(struct weir_self *self)
{
	struct afxdp_node *node = self->node;
	struct afxdp_lane *lane = self->lane;
	uint32_t queue = node->queues.numbers[self->lane_index];
	int failure = afxdp_open_ring(self->config, node, &lane->ring, queue);

	if (failure) {
		refuse_ring(self, queue, failure);
		return false;
	}
	lane->bound = node->attached;
	node->lanes[self->lane_index] = lane;
	if (self->lane_index == 0)
		say_mode(self);
	return true;
}
