/*
 * post.h: a node's place in one lane, and how a batch gets from post to post.
 *
 * Descriptors are handed on by pointer where a consumer is the only one, or the last, to take them;
 * else they are copied.  Counting is done here, at both ends of every edge, once a batch.
 */
#ifndef WEIR_POST_H
#define WEIR_POST_H

#include "instance.h"

struct weir_post;

struct weir_outlet {
	struct weir_post **to; /* consumers in this lane */
	unsigned n;
	struct weir_count emitted; /* by weir_emit(), not yet in the row */
};

struct weir_inbox {
	struct weir_packet *packets; /* own, or the array of the one node that feeds this one */
	unsigned n;
	struct weir_packet *own; /* room for capacity descriptors */
	unsigned capacity;
};

struct weir_post {
	struct weir_seat seat; /* first */
	const struct weir_plugin *plugin;
	struct weir_inbox in;
	unsigned n_feeders; /* edges that lead here in this lane */
	struct weir_outlet *outlets;
	unsigned n_outlets;
	bool may_emit;        /* transform() or tick() runs */
	bool shared;          /* another branch can see the bytes of packets here */
	int64_t wake_ns;      /* stream time for which tick() was asked; INT64_MAX: none */
	int64_t due_ns;       /* the same by CLOCK_MONOTONIC */
	int64_t mark_ns;      /* no later packet that comes in is older, see marks.h */
	int64_t next_mark_ns; /* the same, while it is being made out */
	int64_t hold_ns;      /* time of the oldest packet that the plugin holds; INT64_MAX: none */
	int64_t held_ns;      /* the least that it was since all that was emitted had arrived */
	uint16_t first_order, last_order; /* that packets may have which are emitted now */
};

/* zero-filled state of the plugin, an inbox, no outlets yet. */
struct weir_post *weir_post_new(struct weir_instance *instance, struct weir_lane *lane);
void weir_post_free(struct weir_post *post);
/* An edge within the lane. */
void weir_post_connect(struct weir_post *from, unsigned output, struct weir_post *to);
/* Allocates the inbox once all edges are known. */
void weir_post_ready(struct weir_post *post);

/* Sends a batch on whose verdicts are set; the array belongs to its receivers until they have run.
 */
void weir_post_route(struct weir_post *post, struct weir_packet *packets, unsigned n);
/* Runs what is in the inbox. */
void weir_post_run(struct weir_post *post);
/* Calls tick(), if it has one; what it emits is in the inboxes behind it. */
void weir_post_tick(struct weir_post *post, const struct weir_now *now, unsigned why);
/* Copies one descriptor to the consumers of an output. */
void weir_post_emit(struct weir_post *post, unsigned output, const struct weir_packet *packet);
/* Puts what was emitted into the row. */
void weir_post_publish(struct weir_post *post);

#endif
