/*
 * sender.h: the thread that owns a socket, since sockets of libzmq belong to one thread.
 *
 * A node has one, with a topic for each lane, or one for each lane where its endpoint has %{lane}.
 *
 * Lanes fill bodies and hand them over; the sender numbers them, puts topic and header before them,
 * and gives them to libzmq.  A lane reserves its place in the hand-over before it begins a body, so
 * that a body once begun can always be handed over.
 */
#ifndef ZMQ_SENDER_H
#define ZMQ_SENDER_H

#include "body.h"
#include "peers.h"
#include "zap.h"

#include <weir/plugin.h>
#include <zmq.h>
#include <stdatomic.h>

enum { SENT, FULL, OTHER_LINKTYPE, NO_PEER, TOO_LONG, ABANDONED };
enum {
	ANNOUNCED,
	UNDELIVERED,
	MESSAGES,
	HEARTBEATS,
	STREAM_BYTES,
	PEERS,
	FAILED_HANDSHAKES,
	REFUSED_KEYS,
};
enum { MODE_PUB, MODE_PUSH };

#define NS_PER_S  1000000000
#define NS_PER_MS 1000000

struct config {
	const char *const *endpoints;
	const char *curve_secret, *curve_allow;
	bool connect, insecure;
	uint32_t mode;
	uint64_t batch_bytes, hwm_bytes;
	int64_t max_delay_ns, linger_ns, wait_for;
	const char *name;
};

/* One lane's messages. */
struct topic {
	struct topic *next;
	struct sender *sender;
	struct weir_self *self; /* of the lane */
	char name[256];
	size_t name_len;
	atomic_uint reserved; /* bodies that the lane has begun and libzmq has not got */
	atomic_ullong unsent; /* packets that will not be sent */

	/* The sender's thread alone: */
	uint64_t number, before; /* of the coming message */
	int64_t sent_mono_ns;    /* when the last one was */
};

struct sender {
	struct sender *next;
	struct weir_self *self; /* of the node, or of the lane that has an endpoint of its own */
	const struct config *config;
	uint64_t publisher;
	uint8_t section[128]; /* what each body begins with */
	size_t section_len;
	void *context, *socket;
	int wake_fd;
	struct peers peers;
	struct zap zap;
	struct topic *topics;
	struct body_pool pool;
	unsigned reserved_max; /* of each topic */

	pthread_mutex_t lock; /* of the hand-over */
	struct body *first, **last;

	pthread_t thread;
	bool started;
	atomic_bool ready;     /* enough peers have come for the first packet */
	atomic_bool closing;   /* the lanes have ended */
	atomic_bool abandoned; /* what libzmq gives back from now on was not delivered */
	atomic_uint outstanding;

	/* The sender's thread alone: */
	struct body *held; /* numbered, but libzmq had no room yet */
	zmq_msg_t frame;   /* of held */
	unsigned subscriptions;
	bool was_heard; /* there has been a subscription */
};

/* Opens the endpoints. False after weir_error(); sender_close() is due in any case. */
bool sender_open(struct sender *sender, struct weir_self *self);
/* The topic of that lane, which the sender owns; NULL after weir_error(). */
struct topic *sender_topic(struct sender *sender, struct weir_self *self);
bool sender_start(struct sender *sender);
/* end: lets it send what was handed over, for at most the linger time. close: waits for that, and
 * settles the rest; takes a half open sender. */
void sender_end(struct sender *sender);
void sender_close(struct sender *sender);

/* The sender's own thread, or the main thread before and after it. */
bool socket_open(struct sender *sender);
void socket_close(struct sender *sender, int64_t linger_ns);
struct body *sender_take_over(struct sender *sender); /* NULL: none */
void sender_wake(struct sender *sender);              /* any thread */

/* Lane: a place for one more body, or FULL or NO_PEER. */
unsigned topic_reserve(struct topic *topic);
void topic_unreserve(struct topic *topic);
void topic_hand_over(struct topic *topic, struct body *body);

#endif
