/*
 * zap.c: answers with status 200 or 400 by the peer's public key.
 */
#include "zap.h"

#include <stdlib.h>

#define ENDPOINT "inproc://zeromq.zap.01"

/* The frames of a question. */
enum { VERSION, REQUEST, DOMAIN_NAME, ADDRESS, IDENTITY, MECHANISM, CREDENTIALS, N_FRAMES };

static bool add_key(struct zap *zap, const uint8_t key[CURVE_BYTES])
{
	uint8_t(*grown)[CURVE_BYTES] = realloc(zap->keys, (zap->n_keys + 1) * sizeof(*grown));

	if (!grown)
		return false;
	zap->keys = grown;
	memcpy(zap->keys[zap->n_keys++], key, CURVE_BYTES);
	return true;
}

static bool read_keys(struct zap *zap, const char *path)
{
	struct curve_file file = {.self = zap->self, .option = "curve-allow", .path = path};
	uint8_t key[CURVE_BYTES];
	bool bad = false;

	if (!curve_open(&file, false))
		bad = true;
	while (!bad && curve_next(&file, key, &bad))
		bad = !add_key(zap, key) && !curve_refuse(&file, "out of memory");
	if (!bad && zap->n_keys == 0)
		bad = !curve_refuse(&file, "no key in it: nobody could connect");
	curve_close(&file);
	return !bad;
}

bool zap_open(struct zap *zap, void *context, struct weir_self *self, const char *path)
{
	zap->self = self;
	if (!read_keys(zap, path))
		return false;
	zap->socket = zmq_socket(context, ZMQ_REP);
	if (zap->socket && zmq_bind(zap->socket, ENDPOINT) == 0)
		return true;
	weir_error(self, NULL, "ZeroMQ cannot check keys: %s", zmq_strerror(errno));
	return false;
}

static bool is_allowed(const struct zap *zap, zmq_msg_t *frames)
{
	const uint8_t *key = zmq_msg_data(&frames[CREDENTIALS]);

	if (zmq_msg_size(&frames[MECHANISM]) != 5 ||
	    memcmp(zmq_msg_data(&frames[MECHANISM]), "CURVE", 5) != 0 ||
	    zmq_msg_size(&frames[CREDENTIALS]) != CURVE_BYTES)
		return false;
	for (unsigned i = 0; i < zap->n_keys; i++)
		if (memcmp(zap->keys[i], key, CURVE_BYTES) == 0)
			return true;
	return false;
}

static void tell_refused(struct zap *zap, zmq_msg_t *frames)
{
	char text[CURVE_TEXT + 1] = "none";

	zap->refused++;
	if (zmq_msg_size(&frames[CREDENTIALS]) == CURVE_BYTES)
		zmq_z85_encode(text, zmq_msg_data(&frames[CREDENTIALS]), CURVE_BYTES);
	weir_log(zap->self, WEIR_WARN, "a peer at %.*s is refused, whose key %s is not allowed",
		 (int)zmq_msg_size(&frames[ADDRESS]), (char *)zmq_msg_data(&frames[ADDRESS]), text);
}

/* All frames of one question; false: there is none. */
static bool receive(struct zap *zap, zmq_msg_t *frames)
{
	unsigned n = 0;
	bool more;

	do {
		zmq_msg_t *frame = &frames[n < N_FRAMES ? n : N_FRAMES - 1];

		if (zmq_msg_recv(frame, zap->socket, ZMQ_DONTWAIT) < 0)
			return false;
		more = zmq_msg_more(frame);
		n++;
	} while (more);
	return true;
}

static void send_text(struct zap *zap, const char *text, int flags)
{
	zmq_send(zap->socket, text, strlen(text), flags);
}

static void reply(struct zap *zap, zmq_msg_t *frames, bool allowed)
{
	send_text(zap, "1.0", ZMQ_SNDMORE);
	zmq_msg_send(&frames[REQUEST], zap->socket, ZMQ_SNDMORE);
	send_text(zap, allowed ? "200" : "400", ZMQ_SNDMORE);
	send_text(zap, allowed ? "OK" : "this key is not allowed", ZMQ_SNDMORE);
	send_text(zap, "", ZMQ_SNDMORE); /* user */
	send_text(zap, "", 0);           /* metadata */
}

void zap_answer(struct zap *zap)
{
	zmq_msg_t frames[N_FRAMES];

	if (!zap->socket)
		return;
	for (unsigned i = 0; i < N_FRAMES; i++)
		zmq_msg_init(&frames[i]);
	while (receive(zap, frames)) {
		bool allowed = is_allowed(zap, frames);

		if (!allowed)
			tell_refused(zap, frames);
		reply(zap, frames, allowed);
	}
	for (unsigned i = 0; i < N_FRAMES; i++)
		zmq_msg_close(&frames[i]);
}

void zap_close(struct zap *zap)
{
	if (zap->socket)
		zmq_close(zap->socket);
	free(zap->keys);
	memset(zap, 0, sizeof(*zap));
}
