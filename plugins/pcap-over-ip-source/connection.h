/*
 * connection.h: a TCP connection that is made again and again, without waiting for it.
 */
#ifndef PCAP_OVER_IP_SOURCE_CONNECTION_H
#define PCAP_OVER_IP_SOURCE_CONNECTION_H

#include "../tcp-endpoint.h"

#include <sys/types.h>

struct connection {
	struct tcp_endpoint endpoint;
	int fd; /* -1: none */
	bool is_up;
	unsigned nth;                               /* of the host's addresses */
	bool has_more;                              /* addresses that were not tried */
	int64_t retry_ns, next_try_ns, deadline_ns; /* CLOCK_MONOTONIC */
	char why[128];                              /* the last failure */
};

/* Waits up to timeout_ms until there is something to read; makes the connection where there is
 * none. *ret_came: it has just come up.  False: there is nothing to read, or it has failed: see
 * why. */
bool connection_wait(struct connection *connection, int timeout_ms, bool *ret_came);
/* Bytes; 0: the other side has closed; -1: nothing there; -2: it has failed, and is over. */
ssize_t connection_read(struct connection *connection, uint8_t *to, size_t size);
void connection_close(struct connection *connection);

#endif
