/*
 * receiver.c: connects, with the keys of both sides, and takes messages in frame by frame.
 */
#include "receiver.h"
#include "../zmq-curve.h"
#include "../zmq-endpoint.h"

#include <stdlib.h>

/* A message of the sink is its batch and at most one packet and a few headers more. */
#define MESSAGE_MAX   (32 << 20)
#define MESSAGE_BYTES (256u << 10) /* what hwm counts a message as */

/* More than the second for which core keeps back lines of one kind. */
#define TELL_NS 1050000000LL

/* Of libzmq, for a link: its own, and both ends of its monitor. */
#define SOCKETS_EACH 3

unsigned receiver_length(const char *const *list)
{
	unsigned n = 0;

	while (list && list[n])
		n++;
	return n;
}

static bool set_number(void *socket, int option, int value)
{
	return zmq_setsockopt(socket, option, &value, sizeof(value)) == 0;
}

int receiver_hwm(const struct config *config)
{
	uint64_t messages = config->hwm_bytes / MESSAGE_BYTES;

	return messages < 1 ? 1 : messages > INT32_MAX ? INT32_MAX : (int)messages;
}

static bool set_options(void *socket, const struct config *config)
{
	const char *topic = config->topic ? config->topic : "";
	int64_t message_max = MESSAGE_MAX;

	if (config->mode == MODE_SUB &&
	    zmq_setsockopt(socket, ZMQ_SUBSCRIBE, topic, strlen(topic)) != 0)
		return false;
	return set_number(socket, ZMQ_RCVHWM, receiver_hwm(config)) &&
	       endpoint_set_common(socket) &&
	       zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &message_max, sizeof(message_max)) == 0;
}

static bool set_keys(void *socket, struct weir_self *self, unsigned endpoint)
{
	const struct config *config = self->config;
	char public_text[CURVE_TEXT + 1];
	uint8_t secret[CURVE_BYTES], server[CURVE_BYTES];

	if (!config->curve_secret)
		return true;
	if (receiver_length(config->curve_server) == 1)
		endpoint = 0;
	if (!curve_read(self, "curve-secret", config->curve_secret, true, secret) ||
	    !curve_read(self, "curve-server", config->curve_server[endpoint], false, server))
		return false;
	if (curve_public(secret, public_text) &&
	    zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, public_text, CURVE_TEXT) == 0 &&
	    zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret, sizeof(secret)) == 0 &&
	    zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server, sizeof(server)) == 0)
		return true;
	weir_error(self, "curve-secret", "this libzmq cannot encrypt: %s", zmq_strerror(errno));
	return false;
}

static bool open_link(struct receiver *receiver, struct weir_self *self, unsigned i)
{
	const struct config *config = self->config;
	struct link *link = &receiver->links[i];

	link->socket = zmq_socket(receiver->context, config->mode == MODE_SUB ? ZMQ_SUB : ZMQ_PULL);
	if (!link->socket || !set_options(link->socket, config) ||
	    !redial_init(&link->redial, config->endpoints[i])) {
		weir_error(self, NULL, "cannot make a ZeroMQ socket: %s", zmq_strerror(errno));
		return false;
	}
	receiver->items[i] = (zmq_pollitem_t){.socket = link->socket, .events = ZMQ_POLLIN};
	return (!config->connect || link_watch(link, self, receiver->context)) &&
	       set_keys(link->socket, self, i) &&
	       endpoint_attach(self, link->socket, config->endpoints[i], config->connect);
}

bool receiver_open(struct receiver *receiver, struct weir_self *self)
{
	const struct config *config = self->config;

	receiver->n_links = receiver_length(config->endpoints);
	receiver->context = zmq_ctx_new();
	receiver->links = calloc(receiver->n_links, sizeof(*receiver->links));
	receiver->items = calloc(receiver->n_links, sizeof(*receiver->items));
	if (!receiver->context || !receiver->links || !receiver->items) {
		weir_error(self, NULL, "out of memory");
		return false;
	}
	zmq_ctx_set(receiver->context, ZMQ_MAX_SOCKETS,
		    (int)receiver->n_links * SOCKETS_EACH + ZMQ_MAX_SOCKETS_DFLT);
	for (unsigned i = 0; i < receiver->n_links; i++)
		if (!open_link(receiver, self, i))
			return false;
	return true;
}

static void drop_frames(struct receiver *receiver)
{
	if (!receiver->has_frames)
		return;
	for (unsigned i = 0; i < N_FRAMES; i++)
		zmq_msg_close(&receiver->frames[i]);
	receiver->has_frames = false;
}

static void swallow(void *socket)
{
	zmq_msg_t frame;

	zmq_msg_init(&frame);
	do
		zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT);
	while (zmq_msg_more(&frame));
	zmq_msg_close(&frame);
}

/* The frames of the next message of a socket; 0: none, more than N_FRAMES: too many. */
static unsigned receive(struct receiver *receiver, void *socket)
{
	unsigned n = 0;
	bool more = true;

	while (more && n < N_FRAMES) {
		if (zmq_msg_recv(&receiver->frames[n], socket, ZMQ_DONTWAIT) < 0)
			return n;
		more = zmq_msg_more(&receiver->frames[n++]);
	}
	if (more)
		swallow(socket);
	return more ? N_FRAMES + 1 : n;
}

bool receiver_next(struct receiver *receiver, bool *ret_bad)
{
	unsigned n = 0;

	drop_frames(receiver);
	for (unsigned i = 0; i < N_FRAMES; i++)
		zmq_msg_init(&receiver->frames[i]);
	receiver->has_frames = true;
	for (unsigned i = 0; i < receiver->n_links && n == 0; i++) {
		receiver->turn = (receiver->turn + 1) % receiver->n_links;
		n = receive(receiver, receiver->links[receiver->turn].socket);
	}
	*ret_bad = n > 0 && n != N_FRAMES;
	return n == N_FRAMES;
}

bool receiver_wait(struct receiver *receiver, int timeout_ms)
{
	return zmq_poll(receiver->items, (int)receiver->n_links, timeout_ms) > 0;
}

void receiver_hear(struct receiver *receiver, struct weir_self *self, int64_t mono_ns)
{
	for (unsigned i = 0; i < receiver->n_links; i++)
		link_hear(&receiver->links[i], mono_ns);
	if (mono_ns < receiver->tell_ns)
		return;
	links_tell(receiver->links, receiver->n_links, self, mono_ns);
	receiver->tell_ns = mono_ns + TELL_NS;
}

void receiver_close(struct receiver *receiver)
{
	drop_frames(receiver);
	for (unsigned i = 0; receiver->links && i < receiver->n_links; i++)
		link_close(&receiver->links[i]);
	free(receiver->links);
	free(receiver->items);
	if (receiver->context)
		zmq_ctx_term(receiver->context);
	*receiver = (struct receiver){0};
}
