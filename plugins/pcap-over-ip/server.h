/*
 * server.h: the thread that listens on a port for each lane, and hands the lanes' chunks to whoever
 * has connected.
 */
#ifndef PCAP_OVER_IP_SERVER_H
#define PCAP_OVER_IP_SERVER_H

#include "client.h"

#include "../tcp-endpoint.h"

struct config {
	const char *endpoint;
	bool insecure;
	uint32_t precision; /* enum weir_precision */
	uint64_t buffer_bytes;
	int64_t max_clients, wait_for, stall_ns, linger_ns;
};

struct server {
	const struct config *config;
	struct tcp_endpoint endpoint;
	struct feed **feeds; /* of the lanes that were opened */
	uint32_t n_feeds;
	unsigned n_clients;
	int epoll_fd; /* -1: not open */
	struct watched wake;
	pthread_t thread;
	bool started;
	int closing;        /* atomic */
	int64_t closing_ns; /* CLOCK_MONOTONIC */
};

/* Main thread.  Each returns false after weir_error(); close takes what is half open, and lets
 * clients read on as long as they do. */
bool server_open(struct server *server, struct weir_self *self);
bool server_listen(struct server *server, struct feed *feed, struct weir_self *lane);
bool server_start(struct server *server, struct weir_self *self);
void server_close(struct server *server);

/* Any thread: there is something to be done. */
void server_wake(struct server *server);

#endif
