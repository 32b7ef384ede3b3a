/*
 * zmq-monitor.h: what libzmq says of the connections of a socket, for the zmq sink and zmq-source.
 */
#ifndef WEIR_ZMQ_MONITOR_H
#define WEIR_ZMQ_MONITOR_H

#include <weir/plugin.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

/* events: ZMQ_EVENT_ bits.  NULL after weir_error().  Before the socket is attached, so that
 * nothing is missed. */
static inline void *monitor_open(struct weir_self *self, void *context, void *socket, int events)
{
	void *monitor = zmq_socket(context, ZMQ_PAIR);
	char name[64];

	snprintf(name, sizeof(name), "inproc://monitor-%p", socket);
	if (monitor && zmq_socket_monitor(socket, name, events) == 0 &&
	    zmq_connect(monitor, name) == 0)
		return monitor;
	weir_error(self, NULL, "ZeroMQ cannot watch its connections: %s", zmq_strerror(errno));
	if (monitor)
		zmq_close(monitor);
	return NULL;
}

/* The next event, and the endpoint that it is about; 0: none now.  The thread that owns the
 * socket. */
static inline unsigned monitor_next(void *monitor, char *ret_endpoint, size_t size)
{
	uint8_t event[6]; /* u16 event, u32 value, in the machine's order */
	uint16_t number;
	int len;

	if (zmq_recv(monitor, event, sizeof(event), ZMQ_DONTWAIT) != sizeof(event))
		return 0;
	len = zmq_recv(monitor, ret_endpoint, size - 1, ZMQ_DONTWAIT);
	ret_endpoint[len < 0 ? 0 : (size_t)len < size ? (size_t)len : size - 1] = '\0';
	memcpy(&number, event, sizeof(number));
	return number;
}

/* NULL is closed. */
static inline void monitor_close(void *monitor, void *socket)
{
	if (!monitor)
		return;
	zmq_socket_monitor(socket, NULL, 0);
	zmq_close(monitor);
}

#endif
