/*
 * connection.c: see connection.h.
 */
#include "connection.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

/* For a host to answer, also by way of a satellite. */
#define ANSWER_NS (3 * NS_PER_S)

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

void connection_close(struct connection *connection)
{
	if (connection->fd >= 0)
		close(connection->fd);
	connection->fd = -1;
	connection->is_up = false;
	connection->next_try_ns = clock_ns() + connection->retry_ns;
}

/* The next address is tried at once, and why it failed is said of the last. */
static void fail(struct connection *connection, const char *why)
{
	connection_close(connection);
	if (connection->has_more) {
		connection->has_more = false;
		connection->nth++;
		connection->next_try_ns = 0;
		return;
	}
	connection->nth = 0;
	snprintf(connection->why, sizeof(connection->why), "%s", why);
}

static void begin(struct connection *connection)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *found = NULL, *address;
	char port[8];

	snprintf(port, sizeof(port), "%u", connection->endpoint.port);
	int failure = getaddrinfo(connection->endpoint.host, port, &hints, &found);
	if (failure) {
		fail(connection, gai_strerror(failure));
		return;
	}
	address = found;
	for (unsigned i = 0; i < connection->nth && address->ai_next; i++)
		address = address->ai_next;
	connection->has_more = address->ai_next != NULL;
	connection->deadline_ns = clock_ns() + ANSWER_NS;
	connection->fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connection->fd < 0 ||
	    (connect(connection->fd, address->ai_addr, address->ai_addrlen) != 0 &&
	     errno != EINPROGRESS))
		fail(connection, strerror(errno));
	freeaddrinfo(found);
}

/* A machine that has vanished shall be noticed though nothing is ever sent to it. */
static void keep_alive(int fd)
{
	static const struct {
		int level, option, value;
	} rows[] = {
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, 30},
		{IPPROTO_TCP, TCP_KEEPINTVL, 10},
		{IPPROTO_TCP, TCP_KEEPCNT, 3},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		setsockopt(fd, rows[i].level, rows[i].option, &rows[i].value, sizeof(int));
}

static void finish_connecting(struct connection *connection)
{
	int error = 0;
	socklen_t size = sizeof(error);

	getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &size);
	if (error) {
		fail(connection, strerror(error));
		return;
	}
	keep_alive(connection->fd);
	connection->has_more = false;
	connection->is_up = true;
}

bool connection_wait(struct connection *connection, int timeout_ms, bool *ret_came)
{
	int64_t now_ns = clock_ns(), left_ns;

	*ret_came = false;
	if (connection->fd >= 0 && !connection->is_up && now_ns > connection->deadline_ns)
		fail(connection, strerror(ETIMEDOUT));
	left_ns = connection->next_try_ns - now_ns;
	if (connection->fd < 0 && left_ns <= 0)
		begin(connection);
	if (connection->fd < 0 && left_ns > 0 && left_ns / NS_PER_MS < timeout_ms)
		timeout_ms = (int)(left_ns / NS_PER_MS) + 1;
	struct pollfd ready = {.fd = connection->fd,
			       .events = connection->is_up ? POLLIN : POLLOUT};
	if (poll(&ready, 1, timeout_ms) <= 0)
		return false;
	if (connection->is_up)
		return true;
	finish_connecting(connection);
	*ret_came = connection->is_up;
	return false;
}

ssize_t connection_read(struct connection *connection, uint8_t *to, size_t size)
{
	ssize_t n = recv(connection->fd, to, size, MSG_DONTWAIT);

	if (n >= 0)
		return n;
	if (errno == EAGAIN || errno == EINTR)
		return -1;
	fail(connection, strerror(errno));
	return -2;
}
