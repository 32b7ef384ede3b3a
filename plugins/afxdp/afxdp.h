/*
 * afxdp.h: what the files of the afxdp source share: its options, its node, its lanes.
 *
 * A node takes queues of one interface, one in each lane: each has a socket, a ring and a UMEM of
 * its own, so lanes share nothing but the XDP program and its maps.
 */
#ifndef AFXDP_H
#define AFXDP_H

#include "device.h"
#include "program.h"
#include "queues.h"
#include "ring.h"

#include "../afpacket/link.h"

#include <weir/nic.h>
#include <pthread.h>

/* In the order of the option `mode`. */
enum afxdp_mode { AFXDP_AUTO, AFXDP_SKB, AFXDP_NATIVE, AFXDP_ZEROCOPY };

/* In the orders of the options of those names. */
enum afxdp_timestamps { AFXDP_BY_PROGRAM, AFXDP_WHEN_READ };
enum afxdp_rest { AFXDP_PASS, AFXDP_DROP };
enum afxdp_on_lost { AFXDP_WAIT, AFXDP_EXIT };

struct afxdp_config {
	const char *interface;
	const char *const *queues;
	uint32_t mode;       /* enum afxdp_mode */
	uint64_t umem_bytes; /* of the whole node */
	uint64_t chunk_bytes;
	int64_t gather_ns;
	int64_t busy_poll_ns;
	uint32_t timestamps; /* enum afxdp_timestamps */
	uint32_t rest;       /* enum afxdp_rest */
	uint32_t on_lost;    /* enum afxdp_on_lost */
	const char *const *cpus;
	bool promisc;
	bool pushdown;
};

/* In the order of the table of counters. */
enum afxdp_counter {
	AFXDP_REDIRECTED,
	AFXDP_RX_DROPPED,
	AFXDP_RX_RING_FULL,
	AFXDP_FILL_EMPTY,
	AFXDP_INVALID_DESCS,
	AFXDP_PASSED,
	AFXDP_PASSED_UNSERVED,
	AFXDP_PROGRAM_DROPPED,
	AFXDP_JOINED,
	AFXDP_NIC, /* WEIR_NIC_COUNTERS of them */
};

struct afxdp_lane {
	struct ring ring;
	struct xdp_statistics closed; /* of sockets before this one */
	bool stopping;
	bool lost;             /* the interface, for which the run ends */
	bool away;             /* its socket has lost the interface */
	unsigned bound;        /* node->attached when its socket was opened */
	uint64_t joins_closed; /* of rings before this one */

	uint64_t lost_seen;    /* of what the kernel lost, what packets have been told of */
	uint32_t lost_before;  /* to tell the next packet */
	int64_t rested_ns;     /* CLOCK_MONOTONIC when it last slept */
	uint64_t since_rested; /* chunks walked since */
	int64_t next_look_ns;  /* when to ask for the state of the link */
};

struct afxdp_node {
	struct weir_self *self; /* of the node: its own row of counters */
	struct queues queues;
	struct link link;
	struct device device;
	struct program program;
	int native_failure; /* of attaching it to the driver; 0: none, or not tried */
	int fd; /* a packet socket: promiscuity ends with it, and it can be asked about links */
	struct afxdp_lane **lanes; /* those that were opened */
	struct weir_nics *nics;
	char push_words[160];
	pthread_mutex_t lock;  /* while lanes run: of link.index, program and what follows */
	enum link_state state; /* that was said last */
	int tried;             /* index of the last interface that the program was to go to again */
	unsigned attached;     /* how often it was attached */
	unsigned returned;     /* lanes that have opened their rings on it again */
};

/* ---- open.c: the main thread, and once more for an interface that came back ---- */

/* false after weir_error(), half open. */
bool afxdp_open_node(struct weir_self *self);
bool afxdp_open_lane(struct weir_self *self);

/* 0 or -errno. */
int afxdp_add_promiscuity(int fd, int index);
int afxdp_attach(const struct afxdp_config *config, struct afxdp_node *node);
int afxdp_open_ring(const struct afxdp_config *config, const struct afxdp_node *node,
		    struct ring *ring, uint32_t queue);

/* ---- pushdown.c: callbacks of the main thread ---- */

const char *afxdp_want(struct weir_self *self, const struct weir_insn *wanted, uint32_t len);
const char *afxdp_pushed(struct weir_self *self);

/* ---- watch.c: a link that goes and comes back; the lane's thread ---- */

/* The socket has an error: says once what became of the link. */
void afxdp_watch_error(struct weir_self *self);
/* Every so often: says once that it went or came back, and opens the ring on it again. */
void afxdp_watch(struct weir_self *self, int64_t mono_ns);

/* ---- lane.c, statistics.c: callbacks of the lane's thread ---- */

int afxdp_poll(struct weir_self *self, struct weir_packet *packets, unsigned max, int timeout_ms,
	       int64_t *ret_mark_ns);
void afxdp_stop(struct weir_self *self);
void afxdp_tick(struct weir_self *self, const struct weir_now *now, unsigned why);
void afxdp_witness(struct weir_self *self);

/* What the kernel has counted of a lane's sockets. */
struct xdp_statistics afxdp_statistics(const struct afxdp_lane *lane);

#endif
