/*
 * port.h: the port that a lane listens on.
 */
#ifndef PCAP_OVER_IP_PORT_H
#define PCAP_OVER_IP_PORT_H

#include "../tcp-endpoint.h"

#include <sys/socket.h>

/* Listens on the endpoint's port, and so many above it as the lane's number; -1 after weir_error().
 */
int port_open(struct weir_self *lane, const struct tcp_endpoint *endpoint);

/* "127.0.0.1:57012" of a socket's address. */
void port_print(char *text, size_t size, const struct sockaddr_storage *address,
		socklen_t address_size);

#endif
