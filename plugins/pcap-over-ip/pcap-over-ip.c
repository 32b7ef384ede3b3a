/*
 * pcap-over-ip.c: the sink that streams classic pcap to whoever connects, as Wireshark, Arkime and
 * others read it from a TCP port.
 */
#include "server.h"

#include <stdlib.h>

#define LINKTYPE_ETHERNET 1u
#define PORTS             65536u

struct node {
	struct server server;
	bool has_server;
};

static uint32_t linktype_of(struct weir_self *self, uint16_t id)
{
	const struct weir_interface *interface = weir_interface(self, id);

	return interface ? interface->linktype : LINKTYPE_ETHERNET;
}

/* ---- Opening and closing ---- */

static bool poi_check(struct weir_self *self)
{
	const struct config *config = self->config;

	bool good = tcp_endpoint_check(self, config->endpoint, config->insecure);

	if (config->wait_for > config->max_clients) {
		weir_error(self, "wait-for", "there can be no %lld clients with max-clients=%lld",
			   (long long)config->wait_for, (long long)config->max_clients);
		good = false;
	}
	return good;
}

static bool poi_open(struct weir_self *self)
{
	struct node *node = self->node;

	node->has_server = true;
	return server_open(&node->server, self);
}

static bool check_ports(struct weir_self *self, unsigned first)
{
	if (first == 0 && self->lane_count > 1)
		weir_error(self, "endpoint", "several lanes need a port to count from, not 0");
	else if (first + self->lane_index >= PORTS)
		weir_error(self, "endpoint", "there is no port %u for lane %u",
			   first + self->lane_index, self->lane_index);
	else
		return true;
	return false;
}

static bool poi_lane_open(struct weir_self *self)
{
	const struct config *config = self->config;
	struct server *server = &((struct node *)self->node)->server;
	struct feed *feed = self->lane;

	feed_init(feed, self, server, config->buffer_bytes);
	if (!check_ports(self, server->endpoint.port))
		return false;
	if (!server->feeds)
		server->feeds = calloc(self->lane_count, sizeof(struct feed *));
	if (!server->feeds) {
		weir_error(self, NULL, "out of memory");
		return false;
	}
	server->feeds[server->n_feeds++] = feed;
	return server_listen(server, feed, self);
}

static bool poi_start(struct weir_self *self)
{
	return server_start(&((struct node *)self->node)->server, self);
}

/* All lanes have one server, so the first one to be closed closes it. */
static void poi_lane_close(struct weir_self *self)
{
	struct node *node = self->node;

	if (node->has_server)
		server_close(&node->server);
}

static void poi_close(struct weir_self *self)
{
	struct node *node = self->node;

	if (node->has_server)
		server_close(&node->server);
	free(node->server.feeds);
}

/* ---- The lane ---- */

/* Behind a live source nothing waits, which is asked of core once, before anything is published. */
static void ask_whether_to_wait(struct weir_self *self, struct feed *feed)
{
	const struct config *config = self->config;

	feed->has_asked = true;
	__atomic_store_n(&feed->waits, weir_wait(self, 0), __ATOMIC_RELAXED);
	if (feed_waits(feed) && feed_clients(feed) < (uint64_t)config->wait_for)
		weir_log(self, WEIR_INFORM, "wait-for=%lld: the file waits for clients",
			 (long long)config->wait_for);
}

static uint8_t take(struct weir_self *self, const struct weir_packet *packet)
{
	const struct config *config = self->config;
	struct feed *feed = self->lane;
	uint32_t linktype = linktype_of(self, packet->iface);
	struct chunk *chunk;

	if (!feed->has_asked)
		ask_whether_to_wait(self, feed);
	if (!feed->has_begun)
		feed_begin(feed, linktype);
	if (feed_linktype_known(feed) != linktype + 1) {
		weir_log(self, WEIR_WARN,
			 "a classic pcap stream holds one link type, and packets of another came");
		return OTHER_LINKTYPE;
	}
	if (feed_clients(feed) == 0 && !feed_waits(feed))
		return NO_CLIENT;
	while (!(chunk = feed_reserve(feed, WEIR_PCAP_RECORD + packet->caplen))) {
		if (!feed_waits(feed) || !weir_wait(self, 100))
			return feed_clients(feed) ? BUFFER_FULL : NO_CLIENT;
	}
	chunk->len += weir_pcap_record(chunk->bytes + chunk->len, packet,
				       (enum weir_precision)config->precision);
	chunk->sum.packets++;
	chunk->sum.packet_bytes += packet->caplen;
	return WEIR_PENDING;
}

static void poi_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		packets[i].verdict = take(self, &packets[i]);
}

static void poi_tick(struct weir_self *self, const struct weir_now *now, unsigned why)
{
	struct feed *feed = self->lane;
	uint16_t id;

	(void)now;
	/* Who connects gets the header as soon as its link type is known. */
	if (!feed->has_begun && weir_interfaces_upstream(self, &id, 1) > 0)
		feed_begin(feed, linktype_of(self, id));
	feed_publish(feed);
	/* Behind files a client may take as long as it likes. */
	while ((why & WEIR_TICK_END) && !feed_is_drained(feed) && weir_wait(self, 100))
		;
}

/* ---- Tables ---- */

static const struct weir_option options[] = {
	{"endpoint", WEIR_ENDPOINT, offsetof(struct config, endpoint), NULL, NULL,
	 "HOST:PORT to listen on, as 127.0.0.1:57012; with several lanes the first of so many "
	 "ports."},
	{"precision", WEIR_CHOICE, offsetof(struct config, precision), "us", "ns|us",
	 "Times in the stream; every reader knows microseconds."},
	{"buffer", WEIR_SIZE, offsetof(struct config, buffer_bytes), "16MiB", "1MiB..16GiB",
	 "What may wait for each client, and in each lane for the server."},
	{"max-clients", WEIR_NUMBER, offsetof(struct config, max_clients), "64", "1..10000",
	 "More than that are turned away."},
	{"wait-for", WEIR_NUMBER, offsetof(struct config, wait_for), "1", "1..10000",
	 "Clients of a lane that files wait for before their first packet."},
	{"stall", WEIR_TIME, offsetof(struct config, stall_ns), "10s", "100ms..1d",
	 "A client that takes nothing for so long, and should, is disconnected."},
	{"linger", WEIR_TIME, offsetof(struct config, linger_ns), "500ms", "0ms..1h",
	 "At the end, how long to wait for clients that take nothing."},
	{"insecure", WEIR_BOOL, offsetof(struct config, insecure), "no", NULL,
	 "Listen where other machines can connect, though nothing is encrypted or authenticated: "
	 "'ssh -L' or stunnel to a loopback address is better."},
	{0},
};

static const struct weir_output outcomes[] = {
	[SENT] = {"sent", WEIR_PASS, WEIR_PACKETS, "at least one client has got it"},
	[CLIENT_SLOW] = {"client-slow", WEIR_LOSS, WEIR_PACKETS, "no client had room for it"},
	[CLIENT_GONE] = {"client-gone", WEIR_LOSS, WEIR_PACKETS,
			 "the clients that it waited for went away"},
	[NO_CLIENT] = {"no-client", WEIR_LOSS, WEIR_PACKETS, "nobody was connected"},
	[BUFFER_FULL] = {"buffer-full", WEIR_LOSS, WEIR_PACKETS,
			 "the server was too busy to hand it on"},
	[OTHER_LINKTYPE] = {"other-linktype", WEIR_LOSS, WEIR_PACKETS,
			    "of a second link type, which classic pcap cannot hold"},
	{0},
};

static const struct weir_counter counters[] = {
	[TCP_BYTES] = {"tcp-bytes", WEIR_PLUS_BYTES, "what send() has taken, of all clients"},
	[HEADER_BYTES] = {"header-bytes", WEIR_MINUS_BYTES, "of these, in headers"},
	[RECORD_BYTES] = {"record-bytes", WEIR_MINUS_BYTES, "in whole records"},
	[TORN_BYTES] = {"torn-bytes", WEIR_MINUS_BYTES, "in records within which a client went"},
	[CLIENT_SENT] = {"client-sent", WEIR_INFO, "packets sent, summed over clients"},
	[CLIENT_LOST] = {"client-lost", WEIR_INFO,
			 "packets that a client missed while it was connected, summed over "
			 "clients"},
	[CLIENTS] = {"clients", WEIR_INFO, "clients that are connected now"},
	[ACCEPTED] = {"accepted", WEIR_INFO, "clients that have connected so far"},
	[TURNED_AWAY] = {"turned-away", WEIR_INFO, "connections above max-clients"},
	[STALLED] = {"stalled", WEIR_INFO, "clients that were disconnected for taking nothing"},
	[IGNORED_BYTES] = {"ignored-bytes", WEIR_INFO, "what clients have sent"},
	{0},
};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SINK,
	.name = "pcap-over-ip",
	.version = WEIR_VERSION,
	.summary = "streams pcap to whoever connects to a TCP port (pcap-over-IP)",
	.example = "tap -> queue 256MiB -> pcap-over-ip 127.0.0.1:57012",
	.options = options,
	.outputs = outcomes,
	.counters = counters,
	.config_size = sizeof(struct config),
	.node_size = sizeof(struct node),
	.lane_size = sizeof(struct feed),
	.check = poi_check,
	.open = poi_open,
	.lane_open = poi_lane_open,
	.start = poi_start,
	.judge = poi_judge,
	.tick = poi_tick,
	.lane_close = poi_lane_close,
	.close = poi_close,
};
