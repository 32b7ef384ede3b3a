/*
 * receiver.h: the sockets on which the messages of all publishers come in.
 */
#ifndef ZMQ_SOURCE_RECEIVER_H
#define ZMQ_SOURCE_RECEIVER_H

#include "link.h"
#include "message.h"

#include <weir/plugin.h>
#include <zmq.h>

enum { MODE_SUB, MODE_PULL };

struct config {
	const char *const *endpoints;
	bool connect, insecure, until_end;
	uint32_t mode;
	const char *topic;
	const char *curve_secret;
	const char *const *curve_server;
	uint64_t hwm_bytes;
};

struct receiver {
	void *context;
	struct link *links;    /* one an endpoint */
	zmq_pollitem_t *items; /* their sockets */
	unsigned n_links, turn;
	int64_t tell_ns;            /* when to say next what is new of them */
	zmq_msg_t frames[N_FRAMES]; /* of the last message */
	bool has_frames;
};

/* Main thread. False after weir_error(); close takes what is half open. */
bool receiver_open(struct receiver *receiver, struct weir_self *self);
void receiver_close(struct receiver *receiver);

/* The frames of one message, of which libzmq delivers all or none; those before are given up.
 * False: there is none, or it has another number of frames and has been swallowed; then *ret_bad is
 * set. */
bool receiver_next(struct receiver *receiver, bool *ret_bad);
bool receiver_wait(struct receiver *receiver, int timeout_ms);

/* Looks after the connections, and says what is new of them. */
void receiver_hear(struct receiver *receiver, struct weir_self *self, int64_t mono_ns);

/* Messages that may wait for each publisher. */
int receiver_hwm(const struct config *config);
unsigned receiver_length(const char *const *list); /* NULL is empty */

#endif
