/*
 * sender.c: the loop of the sender's thread.
 *
 * PUB gives every subscriber what it has room for and drops the rest, so a packet counts as sent
 * once libzmq has it, and each subscriber computes its own loss from the headers.  PUSH has to
 * know: there a packet counts as sent once libzmq has written its message and given back the
 * memory.
 */
#include "sender.h"

#include <weir/capfile.h>
#include <weir/stream.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define HEARTBEAT_NS NS_PER_S
#define LOOK_NS      (100 * NS_PER_MS) /* while it lingers, for whether it still should */

/* Messages in a row before the sender listens to its peers again. */
#define SEND_BURST 64

/* Bodies of one lane between its first packet and libzmq: enough for the time until a sender wakes
 * up whose processor is busy with something else, which is 10 ms and more. */
#define RESERVED_MIN       4u
#define RESERVED_BYTES_MAX (16u << 20)

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

void sender_wake(struct sender *sender)
{
	uint64_t one = 1;

	if (write(sender->wake_fd, &one, sizeof(one)) != sizeof(one))
		return; /* the counter is at its limit: it is awake */
}

/* ---- Opening ---- */

static unsigned reserved_max(const struct config *config)
{
	uint64_t bytes = config->hwm_bytes < RESERVED_BYTES_MAX ? config->hwm_bytes
								: RESERVED_BYTES_MAX;
	uint64_t bodies = bytes / config->batch_bytes;

	return bodies > RESERVED_MIN ? (unsigned)bodies : RESERVED_MIN;
}

bool sender_open(struct sender *sender, struct weir_self *self)
{
	const struct config *config = self->config;
	struct weir_section section = {.application = "Weir " WEIR_VERSION};

	sender->self = self;
	sender->config = config;
	sender->last = &sender->first;
	sender->reserved_max = reserved_max(config);
	sender->section_len = weir_pcapng_section(sender->section, &section);
	pthread_mutex_init(&sender->lock, NULL);
	body_pool_init(&sender->pool, config->batch_bytes + WEIR_PCAPNG_INTERFACE_MAX +
					      WEIR_PCAPNG_PACKET_MAX + WEIR_MAX_CAPLEN);
	atomic_store(&sender->ready, config->wait_for == 0);
	sender->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (sender->wake_fd < 0 ||
	    getrandom(&sender->publisher, sizeof(sender->publisher), 0) < 0) {
		weir_error(self, NULL, "cannot make a sender: %s", strerror(errno));
		return false;
	}
	return socket_open(sender);
}

/* ---- Sending: the sender's thread from here on, but for body_released() ---- */

static void settle(struct body *body, bool delivered)
{
	struct topic *topic = body->topic;
	unsigned outcome = delivered ? SENT : ABANDONED;

	weir_settle(topic->self, outcome, body->packets, body->captured_bytes);
	if (delivered)
		return;
	if (atomic_load(&body->announced))
		weir_count(topic->self, UNDELIVERED, body->packets);
	else
		atomic_fetch_add(&topic->unsent, body->packets);
}

/* libzmq has written the message, or given it up; on its thread or on ours. */
static void body_released(void *bytes, void *hint)
{
	struct body *body = hint;
	struct sender *sender = body->topic->sender;

	(void)bytes;
	if (!atomic_load(&body->announced))
		settle(body, false);
	else if (sender->config->mode == MODE_PUSH)
		settle(body, !atomic_load(&sender->abandoned));
	body_free(body);
	if (atomic_fetch_sub(&sender->outstanding, 1) == 1 && atomic_load(&sender->closing))
		sender_wake(sender);
}

/* The first two frames. False: no room. */
static bool send_head(struct topic *topic, uint32_t packets, uint32_t flags)
{
	struct sender *sender = topic->sender;
	struct weir_stream_header header = {
		.publisher = sender->publisher,
		.number = topic->number,
		.before = topic->before,
		.count = packets,
		.flags = flags | (sender->config->mode == MODE_PUSH ? WEIR_STREAM_PUSHED : 0u),
		.unsent = atomic_load(&topic->unsent),
		.sent_ns = clock_ns(CLOCK_REALTIME),
	};
	uint8_t bytes[WEIR_STREAM_HEADER];
	int more = ZMQ_SNDMORE | ZMQ_DONTWAIT;

	weir_stream_encode(bytes, &header);
	if (zmq_send(sender->socket, topic->name, topic->name_len, more) < 0)
		return false;
	if (zmq_send(sender->socket, bytes, sizeof(bytes), more) >= 0)
		return true;
	/* The peer went between two frames: libzmq swallows the rest of this message, which has to
	 * come to an end before the next one. */
	zmq_send(sender->socket, "", 0, ZMQ_DONTWAIT);
	return false;
}

static void sent(struct topic *topic, uint32_t packets, size_t body_len)
{
	topic->number++;
	topic->before += packets;
	topic->sent_mono_ns = clock_ns(CLOCK_MONOTONIC);
	weir_count(topic->self, ANNOUNCED, packets);
	weir_count(topic->self, packets ? MESSAGES : HEARTBEATS, 1);
	weir_count(topic->self, STREAM_BYTES, topic->name_len + WEIR_STREAM_HEADER + body_len);
}

/* A message without packets. */
static bool send_bare(struct topic *topic, uint32_t flags)
{
	struct sender *sender = topic->sender;

	if (!send_head(topic, 0, flags) ||
	    zmq_send(sender->socket, sender->section, sender->section_len, ZMQ_DONTWAIT) < 0)
		return false;
	sent(topic, 0, sender->section_len);
	return true;
}

static bool send_held(struct sender *sender)
{
	struct body *body = sender->held;
	struct topic *topic = body->topic;
	uint32_t packets = body->packets;
	uint64_t captured_bytes = body->captured_bytes;
	size_t len = body->len;

	if (!send_head(topic, packets, 0))
		return false;
	atomic_store(&body->announced, true);
	if (zmq_msg_send(&sender->frame, sender->socket, ZMQ_DONTWAIT) < 0) {
		atomic_store(&body->announced, false);
		return false;
	}
	sender->held = NULL; /* and the body may be somebody else's by now */
	sent(topic, packets, len);
	if (sender->config->mode == MODE_PUB)
		weir_settle(topic->self, SENT, packets, captured_bytes);
	topic_unreserve(topic);
	return true;
}

static void hold(struct sender *sender, struct body *body)
{
	atomic_fetch_add(&sender->outstanding, 1);
	if (zmq_msg_init_data(&sender->frame, body->bytes, body->len, body_released, body) == 0)
		sender->held = body;
	else
		body_released(body->bytes, body); /* out of memory */
}

static void give_up_all(struct sender *sender)
{
	for (;;) {
		if (sender->held)
			zmq_msg_close(&sender->frame);
		sender->held = NULL;
		struct body *body = sender_take_over(sender);
		if (!body)
			return;
		hold(sender, body);
	}
}

static void send_heartbeats(struct sender *sender)
{
	int64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (!atomic_load(&sender->ready))
		return;
	for (struct topic *topic = sender->topics; topic; topic = topic->next)
		if (now_ns - topic->sent_mono_ns >= HEARTBEAT_NS &&
		    !send_bare(topic, WEIR_STREAM_HEARTBEAT))
			topic->sent_mono_ns = now_ns; /* nobody listens: again in a second */
}

/* ---- The loop ---- */

/* A subscription counts if it lets one of our topics through. */
static bool concerns_us(struct sender *sender, const uint8_t *prefix, size_t len)
{
	for (struct topic *topic = sender->topics; topic; topic = topic->next)
		if (len <= topic->name_len && memcmp(prefix, topic->name, len) == 0)
			return true;
	return false;
}

/* A byte 1 or 0, and the prefix that somebody begins or ceases to want. */
static void hear_subscriptions(struct sender *sender)
{
	uint8_t message[512];
	int len;

	while ((len = zmq_recv(sender->socket, message, sizeof(message), ZMQ_DONTWAIT)) >= 0) {
		if (len < 1 || (size_t)len > sizeof(message) ||
		    !concerns_us(sender, message + 1, (size_t)len - 1))
			continue;
		if (message[0] == 1)
			sender->subscriptions++;
		else if (message[0] == 0 && sender->subscriptions > 0)
			sender->subscriptions--;
	}
}

static void hear(struct sender *sender)
{
	bool push = sender->config->mode == MODE_PUSH;
	unsigned present;

	peers_hear(&sender->peers, clock_ns(CLOCK_MONOTONIC));
	zap_answer(&sender->zap);
	if (!push)
		hear_subscriptions(sender);
	present = push ? atomic_load(&sender->peers.connected) : sender->subscriptions;
	sender->was_heard |= sender->subscriptions > 0;
	weir_witness(sender->self, PEERS, atomic_load(&sender->peers.connected));
	weir_witness(sender->self, FAILED_HANDSHAKES, sender->peers.failed);
	weir_witness(sender->self, REFUSED_KEYS, sender->zap.refused);
	if (atomic_load(&sender->ready) || present < (uint64_t)sender->config->wait_for)
		return;
	atomic_store_explicit(&sender->ready, true, memory_order_release);
	for (struct topic *topic = sender->topics; topic; topic = topic->next)
		weir_notify(topic->self);
}

/* True: everything handed over so far is libzmq's. */
static bool send_all(struct sender *sender)
{
	for (unsigned n = 1;; n++) {
		if (sender->held && !send_held(sender))
			return false;
		if (n % SEND_BURST == 0)
			hear(sender);
		struct body *body = sender_take_over(sender);
		if (!body)
			return true;
		hold(sender, body);
	}
}

/* Until a lane or a peer has something for us, or libzmq has room and we are waiting for that. */
static void sleep_until(struct sender *sender, int64_t deadline_ns, bool want_room)
{
	int64_t left_ns = deadline_ns - clock_ns(CLOCK_MONOTONIC);
	int wanted = (sender->config->mode == MODE_PUB ? ZMQ_POLLIN : 0) |
		     (want_room ? ZMQ_POLLOUT : 0);
	zmq_pollitem_t items[] = {
		{.fd = sender->wake_fd, .events = ZMQ_POLLIN},
		{.socket = sender->peers.monitor, .events = ZMQ_POLLIN},
		{.socket = sender->socket, .events = (short)wanted},
		{.socket = sender->zap.socket, .events = ZMQ_POLLIN},
	};
	int n = sender->zap.socket ? 4 : 3;
	uint64_t wakes;

	zmq_poll(items, n, left_ns > 0 ? left_ns / NS_PER_MS + 1 : 0);
	if (items[0].revents && read(sender->wake_fd, &wakes, sizeof(wakes)) < 0)
		return; /* nobody else reads it, so this cannot be */
	hear(sender);
}

static int64_t next_heartbeat_ns(struct sender *sender)
{
	int64_t next_ns = clock_ns(CLOCK_MONOTONIC) + HEARTBEAT_NS;

	if (sender->held || !atomic_load(&sender->ready))
		return next_ns;
	for (struct topic *topic = sender->topics; topic; topic = topic->next)
		if (topic->sent_mono_ns + HEARTBEAT_NS < next_ns)
			next_ns = topic->sent_mono_ns + HEARTBEAT_NS;
	return next_ns;
}

/* Lingering is. */
static bool is_over(const struct sender *sender, int64_t deadline_ns)
{
	return weir_abandoned(sender->self) || clock_ns(CLOCK_MONOTONIC) >= deadline_ns;
}

static void linger(struct sender *sender, int64_t deadline_ns, bool want_room)
{
	int64_t look_ns = clock_ns(CLOCK_MONOTONIC) + LOOK_NS;

	sleep_until(sender, look_ns < deadline_ns ? look_ns : deadline_ns, want_room);
}

/* Nobody is waited for only to be told that nothing comes. */
static void send_ends(struct sender *sender, int64_t deadline_ns)
{
	for (struct topic *topic = sender->topics; topic; topic = topic->next)
		while (!send_bare(topic, WEIR_STREAM_END) &&
		       atomic_load(&sender->peers.connected) > 0 && !is_over(sender, deadline_ns))
			linger(sender, deadline_ns, true);
}

/* PUSH counts what nobody took. */
static void tell_unheard(struct sender *sender)
{
	uint64_t packets = 0;

	for (struct topic *topic = sender->topics; topic; topic = topic->next)
		packets += topic->before;
	if (sender->config->mode == MODE_PUSH || sender->was_heard || packets == 0)
		return;
	weir_log(sender->self, WEIR_WARN,
		 "nobody had subscribed to %s: %llu packets were sent to no one. With wait-for=1 a "
		 "file waits for a subscriber",
		 sender->topics->name, (unsigned long long)packets);
}

/* libzmq's own lingering cannot tell what it dropped, so the waiting is done here; what it still
 * has after that are the last bytes of messages already given back. */
static void finish(struct sender *sender)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + sender->config->linger_ns;
	int64_t left_ns;

	while (!send_all(sender) && !is_over(sender, deadline_ns))
		linger(sender, deadline_ns, true);
	give_up_all(sender);
	tell_unheard(sender);
	send_ends(sender, deadline_ns);
	while (atomic_load(&sender->outstanding) > 0 && !is_over(sender, deadline_ns))
		linger(sender, deadline_ns, false);
	atomic_store(&sender->abandoned, true);
	left_ns = is_over(sender, deadline_ns) ? 0 : deadline_ns - clock_ns(CLOCK_MONOTONIC);
	socket_close(sender, left_ns > 0 ? left_ns : 0);
}

static void *sender_main(void *argument)
{
	struct sender *sender = argument;

	while (!atomic_load(&sender->closing)) {
		if (send_all(sender))
			send_heartbeats(sender);
		sleep_until(sender, next_heartbeat_ns(sender), sender->held != NULL);
	}
	finish(sender);
	return NULL;
}

bool sender_start(struct sender *sender)
{
	sigset_t all, before;
	int rc;

	for (struct topic *topic = sender->topics; topic; topic = topic->next)
		topic->sent_mono_ns = clock_ns(CLOCK_MONOTONIC);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&sender->thread, NULL, sender_main, sender);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sender->started = rc == 0;
	if (rc != 0)
		weir_error(sender->self, NULL, "cannot start a thread: %s", strerror(rc));
	else
		pthread_setname_np(sender->thread, "weir-zmq");
	return sender->started;
}

void sender_end(struct sender *sender)
{
	atomic_store(&sender->closing, true);
	if (sender->started)
		sender_wake(sender);
}

void sender_close(struct sender *sender)
{
	if (sender->started)
		pthread_join(sender->thread, NULL);
	socket_close(sender, 0);
	if (sender->wake_fd >= 0)
		close(sender->wake_fd);
	while (sender->topics) {
		struct topic *topic = sender->topics;

		sender->topics = topic->next;
		free(topic);
	}
	body_pool_clear(&sender->pool);
	pthread_mutex_destroy(&sender->lock);
}
