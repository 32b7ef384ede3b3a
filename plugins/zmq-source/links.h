/*
 * links.h: with which publishers there is a connection, to say so where there is none.
 */
#ifndef ZMQ_SOURCE_LINKS_H
#define ZMQ_SOURCE_LINKS_H

#include <weir/plugin.h>

struct link;

struct links {
	void *socket, *monitor;
	struct link *rows;
	unsigned n, max;
};

/* max: endpoints that will be connected to.  False after weir_error(); close takes what is half
 * open. */
bool links_open(struct links *links, struct weir_self *self, void *context, void *socket,
		unsigned max);
void links_close(struct links *links); /* takes a zeroed one */

/* Says once which publishers have not been reached for a second, and when they are.  Lane. */
void links_hear(struct links *links, struct weir_self *self, int64_t mono_ns);

#endif
