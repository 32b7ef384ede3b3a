/*
 * zmq-endpoint.h: which endpoints the zmq sink and the zmq-source source accept.
 *
 * Without CURVE messages are neither encrypted nor authenticated, so then an endpoint that other
 * machines can reach has to be asked for by name.
 */
#ifndef WEIR_ZMQ_ENDPOINT_H
#define WEIR_ZMQ_ENDPOINT_H

#include <weir/plugin.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <string.h>
#include <sys/resource.h>
#include <zmq.h>

/* What a context, its sockets, its monitor and a few dozen peers need.  libzmq calls abort() where
 * a descriptor for its own use cannot be had. */
#define ENDPOINT_DESCRIPTORS 64

/* The host of "tcp://[source;]host:port" without brackets; "" if there is none that fits. */
static inline void endpoint_host(const char *endpoint, char *ret, size_t size)
{
	const char *host = endpoint + strlen("tcp://");
	const char *local_end = strchr(host, ';');
	const char *port;
	size_t len;

	if (local_end)
		host = local_end + 1;
	port = strrchr(host, ':');
	len = port ? (size_t)(port - host) : 0;
	if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	}
	ret[0] = '\0';
	if (len < size) {
		memcpy(ret, host, len);
		ret[len] = '\0';
	}
}

static inline bool endpoint_is_loopback(const char *endpoint)
{
	char host[256];
	uint8_t address[4];

	endpoint_host(endpoint, host, sizeof(host));
	if (strcmp(host, "localhost") == 0 || strcmp(host, "lo") == 0 || strcmp(host, "::1") == 0)
		return true;
	return inet_pton(AF_INET, host, address) == 1 && address[0] == 127;
}

/* Options that both sides set alike.  A peer whose machine has vanished is noticed by TCP's own
 * probes within a minute: ZeroMQ's heartbeats would also end a peer that is only too slow to read
 * them. */
static inline bool endpoint_set_common(void *socket)
{
	static const struct {
		int option, value;
	} rows[] = {
		{ZMQ_LINGER, 0},
		{ZMQ_RECONNECT_IVL_MAX, 1000},
		{ZMQ_TCP_KEEPALIVE, 1},
		{ZMQ_TCP_KEEPALIVE_IDLE, 30},
		{ZMQ_TCP_KEEPALIVE_CNT, 3},
		{ZMQ_TCP_KEEPALIVE_INTVL, 10},
		{ZMQ_HANDSHAKE_IVL, 5000},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (zmq_setsockopt(socket, rows[i].option, &rows[i].value, sizeof(int)) != 0)
			return false;
	return true;
}

/* For names libzmq asks for one family only, so IPv6 is switched on for literal addresses alone. */
static inline bool endpoint_is_ipv6(const char *endpoint)
{
	return strstr(endpoint, "://[") != NULL;
}

/* Says by weir_error() what is wrong with an endpoint of option "endpoint".  safe: it is encrypted,
 * or the user accepts that it is not. */
static inline bool endpoint_check(struct weir_self *self, const char *endpoint, bool safe)
{
	if (strncmp(endpoint, "ipc://", 6) == 0 && endpoint[6] != '\0')
		return true;
	if (strncmp(endpoint, "tcp://", 6) != 0 || strrchr(endpoint, ':') == endpoint + 3) {
		weir_error(self, "endpoint", "%s is no tcp://HOST:PORT or ipc://PATH", endpoint);
		return false;
	}
	if (safe || endpoint_is_loopback(endpoint))
		return true;
	weir_error(self, "endpoint",
		   "%s goes beyond this machine, and the stream is neither encrypted nor "
		   "authenticated: whoever is on the way can read and forge every packet. Say "
		   "curve-secret=FILE (see weir keygen), use a loopback address or ipc://, or say "
		   "insecure=yes",
		   endpoint);
	return false;
}

/* Says by weir_error() if this process may not open the descriptors that libzmq will need. */
static inline bool endpoint_descriptors(struct weir_self *self)
{
	struct rlimit limit;
	rlim_t used = 0;
	DIR *open_now = opendir("/proc/self/fd");

	if (open_now) {
		while (readdir(open_now))
			used++;
		closedir(open_now);
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= used + ENDPOINT_DESCRIPTORS)
		return true;
	weir_error(self, NULL,
		   "the limit of %lu open files leaves too few descriptors for ZeroMQ: raise it to "
		   "%lu or more (ulimit -n, LimitNOFILE=)",
		   (unsigned long)limit.rlim_cur, (unsigned long)used + ENDPOINT_DESCRIPTORS);
	return false;
}

#endif
