/*
 * peers.c: counts completed handshakes, not accepted connections: a port scanner is no consumer.
 */
#include "peers.h"
#include "../zmq-monitor.h"

#include <stdlib.h>

bool peers_open(struct peers *peers, void *context, void *socket, struct weir_self *self)
{
	peers->self = self;
	peers->socket = socket;
	peers->monitor = monitor_open(self, context, socket, REDIAL_EVENTS);
	return peers->monitor;
}

bool peers_expect(struct peers *peers, const char *endpoint)
{
	size_t size = (peers->n_redials + 1) * sizeof(*peers->redials);
	struct redial *grown = realloc(peers->redials, size);

	if (!grown)
		return false;
	peers->redials = grown;
	return redial_init(&peers->redials[peers->n_redials++], endpoint);
}

static bool has_port_of(const struct redial *redial, const char *endpoint)
{
	const char *port = strrchr(endpoint, ':');

	return port && strcmp(strrchr(redial->endpoint, ':'), port) == 0;
}

/* libzmq says of a host's name now the name and now its address: then the port has to do, where it
 * is that of one endpoint.  NULL: of none, or nobody knows which. */
static struct redial *redial_of(struct peers *peers, const char *endpoint)
{
	struct redial *found = NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < peers->n_redials; i++) {
		struct redial *redial = &peers->redials[i];

		if (strcmp(redial->endpoint, endpoint) == 0)
			return redial;
		if (has_port_of(redial, endpoint)) {
			found = redial;
			n++;
		}
	}
	return n == 1 ? found : NULL;
}

static void came(struct peers *peers)
{
	unsigned now = atomic_fetch_add(&peers->connected, 1) + 1;

	weir_event(peers->self, "consumer-came", "%u connected", now);
}

static void went(struct peers *peers)
{
	unsigned before = atomic_load(&peers->connected);

	if (peers->refused > 0) {
		peers->refused--;
		return;
	}
	if (before == 0)
		return;
	atomic_store(&peers->connected, before - 1);
	weir_event(peers->self, "consumer-went", "%u connected", before - 1);
}

static void refused(struct peers *peers, unsigned event)
{
	peers->refused++;
	peers->failed++;
	if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
		return; /* zap.c has told */
	weir_log(peers->self, WEIR_WARN,
		 "a connection became no peer: it has another key for this sink, or none, or does "
		 "not speak ZeroMQ");
}

static void take_in(struct peers *peers, const char *endpoint, unsigned event, int64_t mono_ns)
{
	struct redial *redial = redial_of(peers, endpoint);

	if (redial)
		redial_take_in(redial, event, mono_ns);
	if (event & REDIAL_REFUSED)
		refused(peers, event);
	else if (event & ZMQ_EVENT_DISCONNECTED)
		went(peers);
	else if (event & ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
		came(peers);
}

void peers_hear(struct peers *peers, int64_t mono_ns)
{
	char endpoint[256];
	unsigned event;

	while ((event = monitor_next(peers->monitor, endpoint, sizeof(endpoint))))
		take_in(peers, endpoint, event, mono_ns);
	for (unsigned i = 0; i < peers->n_redials; i++)
		redial_if_due(&peers->redials[i], peers->socket, mono_ns);
}

void peers_close(struct peers *peers)
{
	monitor_close(peers->monitor, peers->socket);
	peers->monitor = NULL;
	for (unsigned i = 0; i < peers->n_redials; i++)
		redial_clear(&peers->redials[i]);
	free(peers->redials);
	peers->redials = NULL;
	peers->n_redials = 0;
}
