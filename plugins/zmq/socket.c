/*
 * socket.c: a sender's context and socket: what it listens on, and whom it lets in.
 */
#include "sender.h"
#include "../zmq-endpoint.h"

#include <stdlib.h>

/* The longest subscription that a peer may send. */
#define SUBSCRIPTION_MAX 1024

static bool set_number(void *socket, int option, int value)
{
	return zmq_setsockopt(socket, option, &value, sizeof(value)) == 0;
}

static bool set_options(void *socket, const struct config *config)
{
	uint64_t messages = config->hwm_bytes / config->batch_bytes;
	int hwm = messages < 1 ? 1 : messages > INT32_MAX ? INT32_MAX : (int)messages;
	int64_t incoming_max = SUBSCRIPTION_MAX;

	if (config->mode == MODE_PUB && !set_number(socket, ZMQ_XPUB_VERBOSER, 1))
		return false;
	return set_number(socket, ZMQ_SNDHWM, hwm) && endpoint_set_common(socket) &&
	       zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &incoming_max, sizeof(incoming_max)) == 0;
}

/* The sink is the server of CURVE, whichever side listens. */
static bool set_keys(struct sender *sender)
{
	const char *path = sender->config->curve_secret;
	uint8_t secret[CURVE_BYTES];

	if (!path)
		return true;
	if (!zap_open(&sender->zap, sender->context, sender->self, sender->config->curve_allow) ||
	    !curve_read(sender->self, "curve-secret", path, true, secret))
		return false;
	if (set_number(sender->socket, ZMQ_CURVE_SERVER, 1) &&
	    zmq_setsockopt(sender->socket, ZMQ_CURVE_SECRETKEY, secret, sizeof(secret)) == 0)
		return true;
	weir_error(sender->self, "curve-secret", "this libzmq cannot encrypt: %s",
		   zmq_strerror(errno));
	return false;
}

static bool attach_pattern(struct sender *sender, const char *pattern)
{
	char *endpoint = weir_pattern_has(pattern, "lane")
				 ? weir_expand(sender->self, pattern, 0, false, NULL, 0)
				 : strdup(pattern);
	bool connect = sender->config->connect;
	bool ok = endpoint && endpoint_check(sender->self, endpoint, true) &&
		  endpoint_attach(sender->self, sender->socket, endpoint, connect);

	if (!endpoint)
		weir_error(sender->self, "endpoint", "%s is no pattern", pattern);
	if (ok && connect && !peers_expect(&sender->peers, endpoint)) {
		weir_error(sender->self, NULL, "out of memory");
		ok = false;
	}
	free(endpoint);
	return ok;
}

bool socket_open(struct sender *sender)
{
	const struct config *config = sender->config;

	sender->context = zmq_ctx_new();
	if (sender->context)
		sender->socket = zmq_socket(sender->context,
					    config->mode == MODE_PUB ? ZMQ_XPUB : ZMQ_PUSH);
	if (!sender->socket || !set_options(sender->socket, config)) {
		weir_error(sender->self, NULL, "cannot make a ZeroMQ socket: %s",
			   zmq_strerror(errno));
		return false;
	}
	if (!set_keys(sender) ||
	    !peers_open(&sender->peers, sender->context, sender->socket, sender->self))
		return false;
	for (const char *const *endpoint = config->endpoints; *endpoint; endpoint++)
		if (!attach_pattern(sender, *endpoint))
			return false;
	return true;
}

void socket_close(struct sender *sender, int64_t linger_ns)
{
	peers_close(&sender->peers);
	zap_close(&sender->zap);
	if (sender->socket) {
		set_number(sender->socket, ZMQ_LINGER, (int)(linger_ns / NS_PER_MS));
		zmq_close(sender->socket);
	}
	if (sender->context)
		zmq_ctx_term(sender->context);
	sender->socket = sender->context = NULL;
}
