/*
 * afpacket.h: what the files of the afpacket source share: its options, its links, its lanes.
 *
 * A node listens on one or several links.  A lane has one ring for each of them; the rings of one
 * link, one in each lane, form a fanout group.
 */
#ifndef AFPACKET_H
#define AFPACKET_H

#include "link.h"
#include "program.h"
#include "ring.h"

/* In the order of the option `fanout`. */
enum afpacket_fanout {
	AFPACKET_FANOUT_HASH,
	AFPACKET_FANOUT_RND,
	AFPACKET_FANOUT_LB,
	AFPACKET_FANOUT_CPU,
	AFPACKET_FANOUT_QM,
	AFPACKET_FANOUT_ROLLOVER,
};

struct afpacket_config {
	const char *const *interfaces;
	int64_t lanes;
	uint32_t fanout; /* enum afpacket_fanout */
	bool defrag;
	uint64_t ring_bytes; /* of the whole node */
	uint64_t block_bytes;
	int64_t retire_ns;
	bool promisc;
	uint32_t direction; /* enum program_direction */
};

/* In the order of the table of counters. */
enum afpacket_counter {
	AFPACKET_KERNEL_PACKETS,
	AFPACKET_KERNEL_DROPS,
	AFPACKET_FREEZES,
	AFPACKET_CUT,
	AFPACKET_TAGS,
	AFPACKET_NIC_MISSED,
	AFPACKET_NIC_FIFO,
	AFPACKET_NIC_ERRORS,
};

#define AFPACKET_LINKS_MAX 64

struct afpacket_lane {
	struct ring *rings; /* one for each link */
	unsigned ring_count;
	struct ring_walked walked; /* so far */
	int64_t mark_ns;
	bool stopping;
};

struct afpacket_node {
	struct link *links;
	unsigned link_count;
	struct afpacket_lane **lanes; /* those that were opened */
	struct weir_insn *wanted;     /* what the graph wants of a packet; NULL: everything */
	uint32_t wanted_len;
	char refusal[160];
};

/* Whether the sockets of a link are members of a fanout group. */
bool afpacket_is_grouped(const struct afpacket_config *config);

/* The rings of a lane: how many blocks each gets of the node's ring= */
struct ring_geometry afpacket_geometry(const struct afpacket_config *config, unsigned link_count);

/* The direction that a link's filter asks for: lo shows each packet twice. */
enum program_direction afpacket_direction(const struct afpacket_config *config,
					  const struct link *link);

/* A lane's socket on one link, in the order that loses nothing and lets nothing foreign in:
 * protocol 0, ring, drop-all filter, bind, fanout.  false after weir_error(), half open. */
bool afpacket_socket_open(struct weir_self *self, unsigned link_index);

/* Swaps in the filter that the graph wants: packets come in from here on. */
bool afpacket_socket_start(struct weir_self *self, const struct link *link, struct ring *ring);

/* Lane thread: says once that a link went or came back, and binds the ring again to an interface
 * that came back under the same name. */
void afpacket_watch_error(struct weir_self *self, unsigned link_index);
void afpacket_watch_return(struct weir_self *self, unsigned link_index);

/* Callbacks of the lane's thread. */
int afpacket_poll(struct weir_self *self, struct weir_packet *packets, unsigned max, int timeout_ms,
		  int64_t *ret_mark_ns);
void afpacket_stop(struct weir_self *self);
void afpacket_tick(struct weir_self *self, const struct weir_now *now, unsigned why);
void afpacket_witness(struct weir_self *self);

#endif
