/*
 * peers.c: counts completed handshakes, not accepted connections: a port scanner is no consumer.
 */
#include "peers.h"
#include "../zmq-monitor.h"

#define FAILED                                                                                     \
	(ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |              \
	 ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
#define HEARD (ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | FAILED)

bool peers_open(struct peers *peers, void *context, void *socket, struct weir_self *self)
{
	peers->self = self;
	peers->socket = socket;
	peers->monitor = monitor_open(self, context, socket, HEARD);
	return peers->monitor;
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

static void take_in(struct peers *peers, unsigned event)
{
	if (event & FAILED)
		peers->refused++, peers->failed++;
	else if (event & ZMQ_EVENT_DISCONNECTED)
		went(peers);
	else if (event & ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
		came(peers);
}

void peers_hear(struct peers *peers)
{
	char endpoint[256];
	unsigned event;

	while ((event = monitor_next(peers->monitor, endpoint, sizeof(endpoint))))
		take_in(peers, event);
}

void peers_close(struct peers *peers)
{
	monitor_close(peers->monitor, peers->socket);
	peers->monitor = NULL;
}
