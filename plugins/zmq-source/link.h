/*
 * link.h: the way to the publishers of one endpoint.
 *
 * Each has a socket and so a monitor of its own: libzmq says of a host's name now the name and now
 * its address, so that what it says on a common socket could not be told apart.
 */
#ifndef ZMQ_SOURCE_LINK_H
#define ZMQ_SOURCE_LINK_H

#include "../zmq-redial.h"

#include <weir/plugin.h>

/* What there is to say of a link; news until it has been said. */
enum link_state { LINK_UNREACHED, LINK_CONNECTED, LINK_LOST, LINK_REFUSED, LINK_STATES };

struct link {
	struct redial redial;
	void *socket;
	void *monitor;    /* NULL: it listens */
	int64_t waits_ns; /* since when it has no connection; 0: it has one, or has not begun */
	enum link_state state;
	bool is_news;
	bool was_refused; /* since it last tried */
};

/* Of a socket that is to connect, before it does.  False after weir_error(). */
bool link_watch(struct link *link, struct weir_self *self, void *context);
void link_close(struct link *link); /* takes a zeroed one */

/* Reads what libzmq says, and connects again some seconds after it has given up.  The thread that
 * owns the socket. */
void link_hear(struct link *link, int64_t mono_ns);

/* Says of all links what is new: connections, and what has had none for a second.  To be called
 * once a second: of several lines a second of one kind only the first is shown. */
void links_tell(struct link *links, unsigned n, struct weir_self *self, int64_t mono_ns);

#endif
