/*
 * peers.h: who is connected to a socket, from libzmq's monitor.
 */
#ifndef ZMQ_PEERS_H
#define ZMQ_PEERS_H

#include "../zmq-redial.h"

#include <weir/plugin.h>
#include <stdatomic.h>

struct peers {
	struct weir_self *self;
	void *socket, *monitor;
	atomic_uint connected;
	unsigned refused;       /* handshakes that failed, whose end is still to be reported */
	uint64_t failed;        /* all of them */
	struct redial *redials; /* of the endpoints that the socket connects to */
	unsigned n_redials;
};

/* False after weir_error(). self: of the node, for events. */
bool peers_open(struct peers *peers, void *context, void *socket, struct weir_self *self);
/* The socket connects to that, which is copied.  False: out of memory. */
bool peers_expect(struct peers *peers, const char *endpoint);
/* Takes in what the monitor has to say; the thread that owns the socket. */
void peers_hear(struct peers *peers, int64_t mono_ns);
void peers_close(struct peers *peers); /* takes a zeroed one */

#endif
