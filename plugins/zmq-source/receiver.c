/*
 * receiver.c: connects, with the keys of both sides, and takes messages in frame by frame.
 */
#include "receiver.h"
#include "../zmq-curve.h"
#include "../zmq-endpoint.h"

/* A message of the sink is its batch and at most one packet and a few headers more. */
#define MESSAGE_MAX   (32 << 20)
#define MESSAGE_BYTES (256u << 10) /* what hwm counts a message as */

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

static bool set_options(struct receiver *receiver, const struct config *config)
{
	const char *topic = config->topic ? config->topic : "";
	int64_t message_max = MESSAGE_MAX;

	if (config->mode == MODE_SUB &&
	    zmq_setsockopt(receiver->socket, ZMQ_SUBSCRIBE, topic, strlen(topic)) != 0)
		return false;
	return set_number(receiver->socket, ZMQ_RCVHWM, receiver_hwm(config)) &&
	       endpoint_set_common(receiver->socket) &&
	       zmq_setsockopt(receiver->socket, ZMQ_MAXMSGSIZE, &message_max,
			      sizeof(message_max)) == 0;
}

static bool set_own_key(struct receiver *receiver, struct weir_self *self)
{
	const struct config *config = self->config;
	char public_text[CURVE_TEXT + 1];
	uint8_t secret[CURVE_BYTES];

	if (!config->curve_secret)
		return true;
	if (!curve_read(self, "curve-secret", config->curve_secret, true, secret))
		return false;
	if (curve_public(secret, public_text) &&
	    zmq_setsockopt(receiver->socket, ZMQ_CURVE_PUBLICKEY, public_text, CURVE_TEXT) == 0 &&
	    zmq_setsockopt(receiver->socket, ZMQ_CURVE_SECRETKEY, secret, sizeof(secret)) == 0)
		return true;
	weir_error(self, "curve-secret", "this libzmq cannot encrypt: %s", zmq_strerror(errno));
	return false;
}

/* Holds for what is attached next. */
static bool set_server_key(struct receiver *receiver, struct weir_self *self, unsigned endpoint)
{
	const struct config *config = self->config;
	uint8_t key[CURVE_BYTES];

	if (!config->curve_server)
		return true;
	if (receiver_length(config->curve_server) == 1)
		endpoint = 0;
	return curve_read(self, "curve-server", config->curve_server[endpoint], false, key) &&
	       zmq_setsockopt(receiver->socket, ZMQ_CURVE_SERVERKEY, key, sizeof(key)) == 0;
}

bool receiver_open(struct receiver *receiver, struct weir_self *self)
{
	const struct config *config = self->config;
	int kind = config->mode == MODE_SUB ? ZMQ_SUB : ZMQ_PULL;

	receiver->context = zmq_ctx_new();
	if (receiver->context)
		receiver->socket = zmq_socket(receiver->context, kind);
	if (!receiver->socket || !set_options(receiver, config)) {
		weir_error(self, NULL, "cannot make a ZeroMQ socket: %s", zmq_strerror(errno));
		return false;
	}
	if (config->connect && !links_open(&receiver->links, self, receiver->context,
					   receiver->socket, receiver_length(config->endpoints)))
		return false;
	if (!set_own_key(receiver, self))
		return false;
	for (unsigned i = 0; config->endpoints[i]; i++)
		if (!set_server_key(receiver, self, i) ||
		    !endpoint_attach(self, receiver->socket, config->endpoints[i], config->connect))
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

bool receiver_next(struct receiver *receiver, bool *ret_bad)
{
	unsigned n = 0;
	bool more = true;

	drop_frames(receiver);
	for (unsigned i = 0; i < N_FRAMES; i++)
		zmq_msg_init(&receiver->frames[i]);
	receiver->has_frames = true;
	while (more && n < N_FRAMES) {
		if (zmq_msg_recv(&receiver->frames[n], receiver->socket, ZMQ_DONTWAIT) < 0)
			return false;
		more = zmq_msg_more(&receiver->frames[n++]);
	}
	if (more)
		swallow(receiver->socket);
	*ret_bad = more || n < N_FRAMES;
	return !*ret_bad;
}

bool receiver_wait(struct receiver *receiver, int timeout_ms)
{
	zmq_pollitem_t item = {.socket = receiver->socket, .events = ZMQ_POLLIN};

	return zmq_poll(&item, 1, timeout_ms) > 0;
}

void receiver_close(struct receiver *receiver)
{
	drop_frames(receiver);
	links_close(&receiver->links);
	if (receiver->socket)
		zmq_close(receiver->socket);
	if (receiver->context)
		zmq_ctx_term(receiver->context);
	receiver->socket = receiver->context = NULL;
}
