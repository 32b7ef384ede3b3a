/*
 * sender.h: the thread that sends the frames of one lane out of an interface.
 *
 * A thread, so that an interface that is slow, or a pace, holds up no lane.  sendmmsg() and not a
 * TPACKET transmit ring: over veth both sent 0.5 million frames of 64 bytes a second for the same
 * processor time, and this one has no frame size to be chosen and says at once what became of a
 * frame.
 */
#ifndef INJECT_SENDER_H
#define INJECT_SENDER_H

#include "ring.h"

#include <weir/plugin.h>

#include <linux/if_packet.h>
#include <pthread.h>

/* In the order of the table of outcomes. */
enum outcome { SENT, RING_FULL, TOO_LONG, CONGESTED, LINK_DOWN, REFUSED, OTHER_LINKTYPE, UNSENT };

/* In the order of the table of counters. */
enum counter { KERNEL_TOOK, RETRIES, INTERFACE_SENT, INTERFACE_DROPPED };

struct pace {
	double ns_per_unit; /* 0: as they come */
	bool counts_bits;
	double units;
	int64_t start_ns; /* CLOCK_MONOTONIC */
};

struct sender {
	struct weir_self *self; /* of the lane */
	const char *interface;
	int64_t linger_ns;
	struct pace pace;
	struct ring ring;
	int fd; /* -1: not open */
	struct sockaddr_ll to;
	pthread_t thread;
	bool started;
	int wake_fd;         /* -1: not open */
	int asleep, closing; /* atomic */

	/* The thread's. */
	bool is_down;
	int64_t looked_ns; /* for the interface, after it was gone */
	int64_t stuck_ns;  /* since when the kernel has no room; 0: it has */
	int64_t closing_ns;
};

/* Main thread.  Each returns false after weir_error(); close takes what is half open, sends what is
 * left as long as linger_ns allows, and settles everything. */
bool sender_open(struct sender *sender, struct weir_self *self, uint64_t ring_bytes);
bool sender_start(struct sender *sender, struct weir_self *self);
void sender_close(struct sender *sender);

/* The lane: there are frames in the ring. */
void sender_publish(struct sender *sender);

#endif
