/*
 * zmq-redial.h: connects again where libzmq no longer does, for the zmq sink and zmq-source.
 *
 * After a connection that broke libzmq tries again by itself, and says so right behind what went
 * wrong (ZMQ_EVENT_CONNECT_RETRIED).  After a peer that broke the protocol or refused our key it
 * gives up for good (session_base.cpp, engine_error()): a collector that runs for months would then
 * stay deaf though the list of keys has long been corrected.
 */
#ifndef WEIR_ZMQ_REDIAL_H
#define WEIR_ZMQ_REDIAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

/* No detail: a sink that cannot read what we say hangs up, as for another key than its own. */
#define REDIAL_REFUSED                                                                             \
	(ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |                   \
	 ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
#define REDIAL_EVENTS                                                                              \
	(ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |      \
	 REDIAL_REFUSED)

/* The side that refuses logs and counts each time. */
#define REDIAL_NS 5000000000LL

struct redial {
	char *endpoint;
	int64_t due_ns; /* 0: there is a connection, or libzmq tries */
};

/* endpoint is copied.  False: out of memory. */
static inline bool redial_init(struct redial *redial, const char *endpoint)
{
	*redial = (struct redial){.endpoint = strdup(endpoint)};
	return redial->endpoint;
}

static inline void redial_clear(struct redial *redial)
{
	free(redial->endpoint);
	redial->endpoint = NULL;
}

/* event: of this endpoint.  The thread that owns the socket, as all here. */
static inline void redial_take_in(struct redial *redial, unsigned event, int64_t mono_ns)
{
	unsigned bad = ZMQ_EVENT_DISCONNECTED | REDIAL_REFUSED;

	redial->due_ns = event & bad ? mono_ns + REDIAL_NS : 0;
}

/* On the same socket, which may hold messages of before. */
static inline void redial_if_due(struct redial *redial, void *socket, int64_t mono_ns)
{
	if (!redial->due_ns || mono_ns < redial->due_ns)
		return;
	redial->due_ns = 0;
	zmq_disconnect(socket, redial->endpoint);
	zmq_connect(socket, redial->endpoint);
}

#endif
