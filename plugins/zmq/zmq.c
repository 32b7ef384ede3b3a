/*
 * zmq.c: publishes packets over ZeroMQ, in messages of the format of docs/stream.md.
 *
 * A lane packs its packets into bodies (here); one thread a node sends them (sender.c).
 */
#include "sender.h"
#include "../zmq-endpoint.h"

#include <weir/capfile.h>
#include <stdlib.h>

/* How a lane knows an interface. */
enum { UNKNOWN, FITS, OTHER };

struct iface {
	uint64_t body; /* the last body that describes it */
	uint32_t index;
	uint32_t kind;
};

struct node {
	struct sender *senders;
};

struct lane {
	struct topic *topic;
	struct body *body; /* being filled, NULL: none */
	uint64_t n_bodies;
	uint32_t n_described; /* interfaces in it */
	int64_t due_ns;       /* by now->mono_ns, when the body is to go as it is */
	struct iface *ifaces; /* by the id of the interface */
	uint32_t n_ifaces;
	bool has_linktype, warned;
	uint32_t linktype;
};

static bool has_lane(const struct config *config)
{
	return weir_pattern_has(config->endpoints[0], "lane");
}

static bool check_endpoints(struct weir_self *self)
{
	const struct config *config = self->config;
	bool safe = config->insecure || config->curve_secret;
	bool good = true;

	for (const char *const *endpoint = config->endpoints; *endpoint; endpoint++) {
		good &= endpoint_check(self, *endpoint, safe);
		if (weir_pattern_has(*endpoint, "lane") != has_lane(config)) {
			weir_error(self, "endpoint", "%%{lane} stands in all endpoints or in none");
			good = false;
		}
	}
	return good;
}

static bool zmq_check(struct weir_self *self)
{
	const struct config *config = self->config;
	bool good = true;

	if (config->name && (strchr(config->name, '/') || strlen(config->name) > 200)) {
		weir_error(self, "name", "a topic's name has at most 200 characters and no slash");
		good = false;
	}
	if (config->curve_secret && !config->curve_allow) {
		weir_error(self, "curve-secret",
			   "encryption alone lets everybody in: say who may connect with "
			   "curve-allow=FILE");
		good = false;
	}
	if (config->curve_allow && !config->curve_secret) {
		weir_error(self, "curve-allow", "keys are checked with curve-secret=FILE only");
		good = false;
	}
	return check_endpoints(self) && good;
}

static bool add_sender(struct weir_self *self)
{
	const struct config *config = self->config;
	struct node *node = self->node;
	struct sender *sender = calloc(1, sizeof(*sender));

	if (!sender) {
		weir_error(self, NULL, "out of memory");
		return false;
	}
	sender->wake_fd = -1;
	sender->next = node->senders;
	node->senders = sender;
	return endpoint_descriptors(self, config->endpoints) && sender_open(sender, self);
}

static bool zmq_open(struct weir_self *self)
{
	return has_lane(self->config) || add_sender(self);
}

static bool zmq_lane_open(struct weir_self *self)
{
	const struct node *node = self->node;
	struct lane *lane = self->lane;

	if (has_lane(self->config) && !add_sender(self))
		return false;
	lane->topic = sender_topic(node->senders, self);
	return lane->topic != NULL;
}

static bool zmq_start(struct weir_self *self)
{
	const struct config *config = self->config;
	const struct node *node = self->node;
	bool good = true;

	for (struct sender *sender = node->senders; sender && good; sender = sender->next)
		good = sender_start(sender);
	if (config->wait_for > 0 && good)
		weir_log(self, WEIR_INFORM,
			 config->mode == MODE_PUB
				 ? "wait-for=%lld: nothing is sent before so many subscriptions to "
				   "%s/"
				 : "wait-for=%lld: nothing is sent before so many workers of %s",
			 (long long)config->wait_for, config->name ? config->name : self->name);
	return good;
}

/* ---- Filling bodies ---- */

static struct iface *grow(struct lane *lane, uint16_t id)
{
	uint32_t n = (uint32_t)id + 16;
	struct iface *ifaces = realloc(lane->ifaces, n * sizeof(*ifaces));

	if (!ifaces)
		return NULL;
	memset(ifaces + lane->n_ifaces, 0, (n - lane->n_ifaces) * sizeof(*ifaces));
	lane->ifaces = ifaces;
	lane->n_ifaces = n;
	return &ifaces[id];
}

/* A subscriber that joins bodies into one file gets one that every reader opens: a topic has the
 * link type of its first packet. */
static uint32_t kind_of(struct weir_self *self, struct lane *lane, uint16_t id)
{
	const struct weir_interface *interface = weir_interface(self, id);

	if (!interface)
		return OTHER;
	if (!lane->has_linktype) {
		lane->has_linktype = true;
		lane->linktype = interface->linktype;
	}
	if (interface->linktype == lane->linktype)
		return FITS;
	if (!lane->warned)
		weir_log(self, WEIR_WARN,
			 "%s has link type %u, and topic %s carries %u: its packets are not sent",
			 interface->name, interface->linktype, lane->topic->name, lane->linktype);
	lane->warned = true;
	return OTHER;
}

/* NULL: packets of it do not go into this topic. */
static struct iface *iface_of(struct weir_self *self, struct lane *lane, uint16_t id)
{
	struct iface *iface = id < lane->n_ifaces ? &lane->ifaces[id] : grow(lane, id);

	if (iface && iface->kind == UNKNOWN)
		iface->kind = kind_of(self, lane, id);
	return iface && iface->kind == FITS ? iface : NULL;
}

static unsigned begin_body(struct weir_self *self, struct lane *lane)
{
	struct sender *sender = lane->topic->sender;
	unsigned refusal;

	while ((refusal = topic_reserve(lane->topic)) != SENT)
		if (!weir_wait(self, 100))
			return refusal;
	lane->body = body_new(&sender->pool);
	if (!lane->body) {
		topic_unreserve(lane->topic);
		return FULL;
	}
	memcpy(lane->body->bytes, sender->section, sender->section_len);
	lane->body->len = sender->section_len;
	lane->n_bodies++;
	lane->n_described = 0;
	lane->due_ns = weir_wake_in(self, ((const struct config *)self->config)->max_delay_ns);
	return SENT;
}

static void hand_over(struct lane *lane)
{
	if (lane->body)
		topic_hand_over(lane->topic, lane->body);
	lane->body = NULL;
}

static void append(struct weir_self *self, struct lane *lane, struct iface *iface,
		   const struct weir_packet *packet)
{
	struct body *body = lane->body;

	if (iface->body != lane->n_bodies) {
		iface->body = lane->n_bodies;
		iface->index = lane->n_described++;
		body->len += weir_pcapng_interface(body->bytes + body->len,
						   weir_interface(self, packet->iface), NULL, NULL);
	}
	body->len += weir_pcapng_packet(body->bytes + body->len, packet, iface->index, true);
	body->captured_bytes += packet->caplen;
	body->packets++;
}

static unsigned take(struct weir_self *self, struct lane *lane, const struct weir_packet *packet)
{
	const struct config *config = self->config;
	struct iface *iface = iface_of(self, lane, packet->iface);
	unsigned refusal;

	if (!iface)
		return OTHER_LINKTYPE;
	if (packet->caplen > WEIR_MAX_CAPLEN)
		return TOO_LONG;
	if (!lane->body && (refusal = begin_body(self, lane)) != SENT)
		return refusal;
	append(self, lane, iface, packet);
	if (lane->body->len >= config->batch_bytes)
		hand_over(lane);
	return WEIR_PENDING;
}

static void zmq_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	struct lane *lane = self->lane;
	unsigned refused = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned verdict = take(self, lane, &packets[i]);

		packets[i].verdict = (uint8_t)verdict;
		refused += verdict != WEIR_PENDING;
	}
	if (refused)
		atomic_fetch_add(&lane->topic->unsent, refused);
}

static void zmq_tick(struct weir_self *self, const struct weir_now *now, unsigned why)
{
	struct lane *lane = self->lane;

	if ((why & WEIR_TICK_END) || now->mono_ns >= lane->due_ns)
		hand_over(lane);
	else if (lane->body)
		weir_wake_in(self, lane->due_ns - now->mono_ns);
}

/* ---- Closing ---- */

static void zmq_lane_close(struct weir_self *self)
{
	struct lane *lane = self->lane;

	hand_over(lane);
	free(lane->ifaces);
	lane->ifaces = NULL;
	lane->n_ifaces = 0;
}

static void zmq_close_node(struct weir_self *self)
{
	struct node *node = self->node;

	for (struct sender *sender = node->senders; sender; sender = sender->next)
		sender_end(sender);
	while (node->senders) {
		struct sender *sender = node->senders;

		node->senders = sender->next;
		sender_close(sender);
		free(sender);
	}
}

/* ---- Tables ---- */

static const struct weir_option options[] = {
	{"endpoint", WEIR_ENDPOINTS, offsetof(struct config, endpoints), NULL, NULL,
	 "Where subscribers connect, as a list: tcp://HOST:PORT or ipc://PATH. With %{lane} in it "
	 "each lane has its own, else all lanes share them."},
	{"connect", WEIR_BOOL, offsetof(struct config, connect), "no", NULL,
	 "Connect to the endpoints instead of listening on them."},
	{"mode", WEIR_CHOICE, offsetof(struct config, mode), "pub", "pub|push",
	 "pub: each subscriber gets everything that it has room for; push: each message goes to "
	 "one "
	 "worker, and what nobody takes is counted here."},
	{"batch", WEIR_SIZE, offsetof(struct config, batch_bytes), "256KiB", "1KiB..16MiB",
	 "Send a message once it has this many bytes."},
	{"max-delay", WEIR_TIME, offsetof(struct config, max_delay_ns), "10ms", "1ms..1h",
	 "Send a message once it is this old, even if it is small."},
	{"hwm", WEIR_SIZE, offsetof(struct config, hwm_bytes), "64MiB", "1KiB..64GiB",
	 "Bytes that may wait for each peer. ZeroMQ counts messages, so this is as many messages "
	 "as there are batches in it: small ones fill it with fewer bytes, and each may be "
	 "larger than batch by a packet."},
	{"linger", WEIR_TIME, offsetof(struct config, linger_ns), "1s", "0s..1h",
	 "How long the end of the run waits for peers that have not read everything."},
	{"wait-for", WEIR_NUMBER, offsetof(struct config, wait_for), "0", "0..10000",
	 "Send nothing before this many subscriptions (pub) or workers (push) are there."},
	{"name", WEIR_STRING, offsetof(struct config, name), "", NULL,
	 "The first part of the topic; the node's name if not given."},
	{"insecure", WEIR_BOOL, offsetof(struct config, insecure), "no", NULL,
	 "Allow an endpoint that other machines can reach, though nothing is encrypted."},
	{"curve-secret", WEIR_INFILE, offsetof(struct config, curve_secret), "", NULL,
	 "Encrypt, with the secret key in this file, which weir keygen has made."},
	{"curve-allow", WEIR_INFILE, offsetof(struct config, curve_allow), "", NULL,
	 "The public keys of those who may connect, one a line; needed with curve-secret."},
	{0},
};

static const struct weir_output outcomes[] = {
	{"sent", WEIR_PASS, WEIR_PACKETS, "handed to ZeroMQ (pub), written to a worker (push)"},
	{"full", WEIR_LOSS, WEIR_PACKETS, "the workers are too slow"},
	{"other-linktype", WEIR_LOSS, WEIR_PACKETS, "not of the link type of the topic"},
	{"no-peer", WEIR_LOSS, WEIR_PACKETS, "no worker, or too few subscriptions for wait-for"},
	{"too-long", WEIR_LOSS, WEIR_PACKETS, "of more than 262,144 bytes"},
	{"abandoned", WEIR_LOSS, WEIR_PACKETS, "not taken within the linger time"},
	{0},
};

static const struct weir_counter counters[] = {
	{"announced", WEIR_PLUS_PACKETS, "packets before and in the last message"},
	{"undelivered", WEIR_MINUS_PACKETS, "of these not taken within the linger time"},
	{"messages", WEIR_INFO, "messages with packets"},
	{"heartbeats", WEIR_INFO, "messages without packets"},
	{"stream-bytes", WEIR_INFO, "bytes of all frames of all messages"},
	{"peers", WEIR_INFO, "connected now"},
	{"failed-handshakes", WEIR_INFO, "connections that did not become peers"},
	{"refused-keys", WEIR_INFO, "of these whose key was not in curve-allow"},
	{0},
};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SINK,
	.lanes_kind = WEIR_LANES_ANY,
	.name = "zmq",
	.version = WEIR_VERSION,
	.summary = "sends packets to ZeroMQ subscribers in numbered batches",
	.example = "afpacket eth1 -> zmq tcp://127.0.0.1:5555",
	.options = options,
	.outputs = outcomes,
	.counters = counters,
	.config_size = sizeof(struct config),
	.node_size = sizeof(struct node),
	.lane_size = sizeof(struct lane),
	.check = zmq_check,
	.open = zmq_open,
	.lane_open = zmq_lane_open,
	.start = zmq_start,
	.judge = zmq_judge,
	.tick = zmq_tick,
	.lane_close = zmq_lane_close,
	.close = zmq_close_node,
};
