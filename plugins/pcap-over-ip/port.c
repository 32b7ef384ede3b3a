/*
 * port.c: see port.h.
 */
#include "port.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Many that come at once shall not have to try again, which takes them a second. */
#define BACKLOG 4096

static int listen_at(const struct addrinfo *address)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

void port_print(char *text, size_t size, const struct sockaddr_storage *address,
		socklen_t address_size)
{
	char host[48] = "?", port[8] = "?";

	getnameinfo((const struct sockaddr *)address, address_size, host, sizeof(host), port,
		    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, size, address->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static void tell_port(struct weir_self *lane, int fd)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	char text[64];

	if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		return;
	port_print(text, sizeof(text), &address, size);
	weir_log(lane, WEIR_INFORM, "listens on %s", text);
}

int port_open(struct weir_self *lane, const struct tcp_endpoint *endpoint)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	unsigned port = endpoint->port ? endpoint->port + lane->lane_index : 0;
	struct addrinfo *found = NULL;
	char text[16];
	int fd = -1;

	snprintf(text, sizeof(text), "%u", port);
	int failure = getaddrinfo(endpoint->host, text, &hints, &found);
	if (failure == 0)
		fd = listen_at(found);
	if (failure)
		weir_error(lane, "endpoint", "%s: %s", endpoint->host, gai_strerror(failure));
	else if (fd < 0)
		weir_error(lane, "endpoint", "cannot listen on %s, port %u: %s", endpoint->host,
			   port, strerror(errno));
	else if (port == 0)
		tell_port(lane, fd);
	if (found)
		freeaddrinfo(found);
	return fd;
}
