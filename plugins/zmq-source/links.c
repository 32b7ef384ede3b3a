/*
 * links.c: libzmq tries again and again without a word, also where a name does not resolve or the
 * keys are wrong.
 */
#include "links.h"
#include "../zmq-monitor.h"

#include <stdio.h>
#include <stdlib.h>

#define PATIENCE_NS 1000000000LL
#define REFUSED     (ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)

struct link {
	char endpoint[256];
	int64_t waits_since_ns; /* 0: it is connected */
	bool refused;           /* somebody is there, and not the right one */
	bool told;
};

bool links_open(struct links *links, struct weir_self *self, void *context, void *socket,
		unsigned max)
{
	links->socket = socket;
	links->max = max;
	links->rows = calloc(max, sizeof(*links->rows));
	if (!links->rows) {
		weir_error(self, NULL, "out of memory");
		return false;
	}
	links->monitor = monitor_open(self, context, socket,
				      ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
					      REFUSED);
	return links->monitor;
}

void links_close(struct links *links)
{
	monitor_close(links->monitor, links->socket);
	free(links->rows);
	*links = (struct links){0};
}

/* NULL: of none that was configured. */
static struct link *link_of(struct links *links, const char *endpoint)
{
	for (unsigned i = 0; i < links->n; i++)
		if (strcmp(links->rows[i].endpoint, endpoint) == 0)
			return &links->rows[i];
	if (links->n == links->max)
		return NULL;
	struct link *link = &links->rows[links->n++];
	snprintf(link->endpoint, sizeof(link->endpoint), "%s", endpoint);
	return link;
}

static void take_in(struct weir_self *self, struct link *link, unsigned event, int64_t mono_ns)
{
	if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
		if (link->told)
			weir_log(self, WEIR_INFORM, "connected to %s", link->endpoint);
		link->waits_since_ns = 0;
		link->told = link->refused = false;
		return;
	}
	link->refused |= (event & REFUSED) != 0;
	if (link->waits_since_ns == 0)
		link->waits_since_ns = mono_ns;
}

static bool is_news(const struct link *link, int64_t mono_ns)
{
	return link->waits_since_ns && !link->told && mono_ns - link->waits_since_ns >= PATIENCE_NS;
}

/* All of them in one line: of several lines a second of one kind only the first is shown. */
static void tell(struct links *links, struct weir_self *self, bool refused, int64_t mono_ns)
{
	char text[1024];
	int len = 0;

	for (unsigned i = 0; i < links->n && len < (int)sizeof(text); i++) {
		struct link *link = &links->rows[i];

		if (!is_news(link, mono_ns) || link->refused != refused)
			continue;
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s", len ? ", " : "",
				link->endpoint);
		link->told = true;
	}
	if (len && refused)
		weir_log(self, WEIR_WARN,
			 "no handshake with %s: are the keys of both sides right, and is it a zmq "
			 "sink? Trying on",
			 text);
	else if (len)
		weir_log(self, WEIR_WARN, "no connection to %s: trying on", text);
}

void links_hear(struct links *links, struct weir_self *self, int64_t mono_ns)
{
	char endpoint[256];
	unsigned event;

	if (!links->monitor)
		return;
	while ((event = monitor_next(links->monitor, endpoint, sizeof(endpoint)))) {
		struct link *link = link_of(links, endpoint);

		if (link)
			take_in(self, link, event, mono_ns);
	}
	tell(links, self, true, mono_ns);
	tell(links, self, false, mono_ns);
}
