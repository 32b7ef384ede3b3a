/*
 * peers.c: counts completed handshakes, not accepted connections: a port scanner is no consumer.
 */
#include "peers.h"

#include <zmq.h>
#include <errno.h>
#include <string.h>

#define FAILED                                                                                     \
	(ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |              \
	 ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
#define HEARD (ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | FAILED)

/* The context is the node's own, so the name is free. */
#define MONITOR "inproc://monitor"

bool peers_open(struct peers *peers, void *context, void *socket, struct weir_self *self)
{
	peers->self = self;
	peers->socket = socket;
	peers->monitor = zmq_socket(context, ZMQ_PAIR);
	if (!peers->monitor || zmq_socket_monitor(socket, MONITOR, HEARD) != 0 ||
	    zmq_connect(peers->monitor, MONITOR) != 0) {
		weir_error(self, NULL, "ZeroMQ cannot watch its connections: %s",
			   zmq_strerror(errno));
		return false;
	}
	return true;
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
	uint8_t event[6]; /* u16 event, u32 value, in the machine's order */
	char address[256];
	uint16_t number;

	while (zmq_recv(peers->monitor, event, sizeof(event), ZMQ_DONTWAIT) == sizeof(event)) {
		zmq_recv(peers->monitor, address, sizeof(address), ZMQ_DONTWAIT);
		memcpy(&number, event, sizeof(number));
		take_in(peers, number);
	}
}

void peers_close(struct peers *peers)
{
	if (!peers->monitor)
		return;
	zmq_socket_monitor(peers->socket, NULL, 0);
	zmq_close(peers->monitor);
	peers->monitor = NULL;
}
