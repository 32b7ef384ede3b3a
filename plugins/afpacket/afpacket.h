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

#include <weir/nic.h>
#include <pthread.h>
#include <stdatomic.h>

/* In the order of the option `fanout`. */
enum afpacket_fanout {
	AFPACKET_FANOUT_HASH,
	AFPACKET_FANOUT_RND,
	AFPACKET_FANOUT_LB,
	AFPACKET_FANOUT_CPU,
	AFPACKET_FANOUT_QM,
	AFPACKET_FANOUT_ROLLOVER,
};

/* In the order of the option `timestamps`. */
enum afpacket_timestamps { AFPACKET_SOFTWARE, AFPACKET_HARDWARE };

/* In the order of the option `on-lost`. */
enum afpacket_on_lost { AFPACKET_WAIT, AFPACKET_EXIT };

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
	const char *const *cpus;
	int64_t busy_poll_ns;
	uint32_t timestamps; /* enum afpacket_timestamps */
	uint32_t on_lost;    /* enum afpacket_on_lost */
	bool pushdown;
};

/* In the order of the table of counters. */
enum afpacket_counter {
	AFPACKET_KERNEL_PACKETS,
	AFPACKET_KERNEL_DROPS,
	AFPACKET_FREEZES,
	AFPACKET_CUT,
	AFPACKET_TAGS,
	AFPACKET_NIC, /* WEIR_NIC_COUNTERS of them */
};

#define AFPACKET_LINKS_MAX 64

struct afpacket_lane {
	struct ring *rings; /* one for each link */
	unsigned ring_count;
	struct ring_walked walked; /* so far */
	int64_t mark_ns;
	bool stopping;  /* changed under the node's lock */
	bool lost;      /* a link, which ends the run */
	bool tags_seen; /* enough tagged frames have been passed up */
};

struct afpacket_node {
	struct link *links;
	unsigned link_count;
	struct afpacket_lane **lanes; /* those that were opened */
	struct program_halves wanted; /* what the graph wants of a packet */
	char push_words[200];         /* what came of it */
	atomic_bool tags_seen;        /* by some lane */
	struct weir_nics *nics;
	pthread_mutex_t lock; /* of what lanes do together while they run: groups made anew */
};

/* ---- config.c ---- */

/* The rings of a lane: how many blocks each gets of the node's ring= */
struct ring_geometry afpacket_geometry(const struct afpacket_config *config, unsigned link_count);

bool afpacket_check(struct weir_self *self);
uint32_t afpacket_affinity(struct weir_self *self);
uint32_t afpacket_lanes(struct weir_self *self);
int afpacket_processor(struct weir_self *self, uint32_t lane);

/* ---- afpacket.c ---- */

/* The direction that a link's filter asks for: lo shows each packet twice. */
enum program_direction afpacket_direction(const struct afpacket_config *config,
					  const struct link *link);

/* ---- pushdown.c ---- */

/* What the graph wants goes into the kernel, where that can be; what of it, in words. */
const char *afpacket_want(struct weir_self *self, const struct weir_insn *wanted, uint32_t len);
const char *afpacket_pushed(struct weir_self *self);

/* What the sockets' programs are made of now; borrowed.  Where no tagged frame matches, the first
 * ones are passed up all the same, so that the stages can say what they miss. Any thread. */
struct program_halves afpacket_halves(const struct afpacket_node *node);
/* Lane thread: keeps them out once there have been enough. */
void afpacket_look_at_tags(struct weir_self *self);

/* ---- socket.c: functions return 0 or -errno where nothing else is said ---- */

/* What opening a socket consists of, in the order that loses nothing and lets nothing foreign in.
 */
enum socket_step {
	SOCKET_MAKE,
	SOCKET_RING,
	SOCKET_CLOCK,
	SOCKET_BUSY_POLL,
	SOCKET_FILTER, /* that drops all */
	SOCKET_BIND,
	SOCKET_PROMISC,
	SOCKET_GROUP,
};

/* Whether the sockets of a link are members of a fanout group. */
bool afpacket_is_grouped(const struct afpacket_config *config);

/* A lane's socket on one link; half open after a failure, which was at *ret_step. */
int afpacket_socket_make(struct weir_self *self, struct link *link, struct ring *ring,
			 enum socket_step *ret_step);
/* The same for the lane's ring of that link; false after weir_error(). */
bool afpacket_socket_open(struct weir_self *self, unsigned link_index);
/* Swaps in the filter that the graph wants: packets come in from here on. */
int afpacket_socket_start(struct weir_self *self, const struct link *link, const struct ring *ring);
void afpacket_socket_close(struct ring *ring);

int afpacket_bind(int fd, int index);
int afpacket_add_promiscuity(const struct afpacket_config *config, int fd, int index);

/* ---- watch.c: lane's thread ---- */

/* Says once that a link went or came back, and follows its name to another interface. */
void afpacket_watch_error(struct weir_self *self, unsigned link_index);
void afpacket_watch_return(struct weir_self *self, unsigned link_index);

/* ---- lane.c: callbacks of the lane's thread ---- */

int afpacket_poll(struct weir_self *self, struct weir_packet *packets, unsigned max, int timeout_ms,
		  int64_t *ret_mark_ns);
void afpacket_stop(struct weir_self *self);
void afpacket_tick(struct weir_self *self, const struct weir_now *now, unsigned why);
void afpacket_witness(struct weir_self *self);

#endif
