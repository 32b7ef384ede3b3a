/*
 * zap.h: who may connect to a socket with CURVE: libzmq asks, the allow-list answers.
 *
 * https://rfc.zeromq.org/spec/27. Without a handler libzmq lets everybody in.
 */
#ifndef ZMQ_ZAP_H
#define ZMQ_ZAP_H

#include "../zmq-curve.h"

#include <weir/plugin.h>

struct zap {
	struct weir_self *self;
	void *socket; /* where the questions of this context come in; NULL: no CURVE */
	uint8_t (*keys)[CURVE_BYTES];
	unsigned n_keys;
	uint64_t refused;
};

/* Before the context has a socket that others can connect to.  path: of the public keys. False
 * after weir_error(). */
bool zap_open(struct zap *zap, void *context, struct weir_self *self, const char *path);
/* Answers what has been asked; the thread that owns the sockets of this context. */
void zap_answer(struct zap *zap);
void zap_close(struct zap *zap); /* takes a zeroed one */

#endif
