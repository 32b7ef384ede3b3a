/*
 * link.c: libzmq tries again and again without a word where nobody listens or a name does not
 * resolve; here it is said.
 */
#include "link.h"
#include "../zmq-monitor.h"

#include <stdio.h>

#define PATIENCE_NS 1000000000LL

bool link_watch(struct link *link, struct weir_self *self, void *context)
{
	link->is_news = true;
	link->monitor = monitor_open(self, context, link->socket, REDIAL_EVENTS);
	return link->monitor;
}

void link_close(struct link *link)
{
	monitor_close(link->monitor, link->socket);
	if (link->socket)
		zmq_close(link->socket);
	redial_clear(&link->redial);
}

static void go_to(struct link *link, enum link_state state)
{
	if (link->state == state && state != LINK_CONNECTED)
		return;
	link->state = state;
	link->is_news = true;
}

static void take_in(struct link *link, unsigned event, int64_t mono_ns)
{
	bool tries = event == ZMQ_EVENT_CONNECT_RETRIED;

	if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
		go_to(link, LINK_CONNECTED);
	else if (event & REDIAL_REFUSED)
		go_to(link, LINK_REFUSED);
	else if (link->state == LINK_CONNECTED)
		go_to(link, LINK_LOST);
	else if (tries && link->state == LINK_REFUSED && !link->was_refused)
		go_to(link, LINK_UNREACHED);
	link->was_refused = !tries && link->state == LINK_REFUSED;
	if (link->state == LINK_CONNECTED)
		link->waits_ns = 0;
	else if (link->waits_ns == 0)
		link->waits_ns = mono_ns;
	redial_take_in(&link->redial, event, mono_ns);
}

void link_hear(struct link *link, int64_t mono_ns)
{
	char endpoint[256];
	unsigned event;

	if (!link->monitor)
		return;
	while ((event = monitor_next(link->monitor, endpoint, sizeof(endpoint))))
		take_in(link, event, mono_ns);
	redial_if_due(&link->redial, link->socket, mono_ns);
}

static bool is_due(const struct link *link, int64_t mono_ns)
{
	if (!link->is_news || link->state == LINK_CONNECTED)
		return link->is_news;
	return link->waits_ns && mono_ns - link->waits_ns >= PATIENCE_NS;
}

static void say(struct weir_self *self, enum link_state state, const char *endpoints)
{
	switch (state) {
	case LINK_CONNECTED:
		weir_log(self, WEIR_INFORM, "connected to %s", endpoints);
		return;
	case LINK_REFUSED:
		weir_log(self, WEIR_WARN,
			 "no handshake with %s: are the keys of both sides right, and is it a zmq "
			 "sink? Trying on",
			 endpoints);
		return;
	case LINK_LOST:
		weir_log(self, WEIR_INFORM, "the connection to %s has ended: trying on", endpoints);
		return;
	default:
		weir_log(self, WEIR_WARN, "no connection to %s: trying on", endpoints);
	}
}

/* All of a state in one line. */
static void tell(struct link *links, unsigned n, struct weir_self *self, enum link_state state,
		 int64_t mono_ns)
{
	char text[1024];
	int len = 0;

	for (unsigned i = 0; i < n && len < (int)sizeof(text); i++) {
		struct link *link = &links[i];

		if (link->state != state || !is_due(link, mono_ns))
			continue;
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s", len ? ", " : "",
				link->redial.endpoint);
		link->is_news = false;
	}
	if (len)
		say(self, state, text);
}

void links_tell(struct link *links, unsigned n, struct weir_self *self, int64_t mono_ns)
{
	for (enum link_state state = 0; state < LINK_STATES; state++)
		tell(links, n, self, state, mono_ns);
}
