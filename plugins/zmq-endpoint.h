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
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

/* What a context and a few dozen peers need, and what each endpoint does: a socket, a monitor and a
 * connection.  libzmq calls abort() where a descriptor for its own use cannot be had. */
#define ENDPOINT_DESCRIPTORS      64
#define ENDPOINT_DESCRIPTORS_EACH 4

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

/* libzmq takes larger numbers modulo 65,536, and 0 for a free port that it does not name.  `*` is
 * one that it names; a pattern is looked at again when it is expanded. */
static inline bool endpoint_has_port(const char *endpoint)
{
	const char *port = strrchr(endpoint, ':') + 1;
	char *end;
	unsigned long number = strtoul(port, &end, 10);

	if (strcmp(port, "*") == 0 || strchr(port, '%'))
		return true;
	return isdigit((unsigned char)*port) && *end == '\0' && number >= 1 && number <= UINT16_MAX;
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
	if (!endpoint_has_port(endpoint)) {
		weir_error(self, "endpoint", "%s has no port from 1 to 65535", endpoint);
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

/* libzmq removes what bears the name of a socket that it makes, be it a file or the socket of
 * another process.  NULL: nothing does, or a socket on which nobody listens any more; else what it
 * is. */
static inline const char *endpoint_occupant(const char *endpoint)
{
	const char *path = endpoint + strlen("ipc://");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat status;
	int fd, failure;

	if (strncmp(endpoint, "ipc://", 6) != 0 || strlen(path) >= sizeof(address.sun_path) ||
	    lstat(path, &status) != 0)
		return NULL;
	if (!S_ISSOCK(status.st_mode))
		return "there is something of that name that is no socket";
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	failure = connect(fd, (const struct sockaddr *)&address, sizeof(address)) ? errno : 0;
	if (fd >= 0)
		close(fd);
	return failure == ECONNREFUSED ? NULL : "another process listens there";
}

/* Connects a socket to an expanded endpoint or listens on it, and says by weir_error() why not, and
 * in the log which port was free. */
static inline bool endpoint_attach(struct weir_self *self, void *socket, const char *endpoint,
				   bool connect)
{
	static const char local[] = "tcp://localhost:";
	bool is_local = !connect && strncmp(endpoint, local, sizeof(local) - 1) == 0;
	/* For names libzmq asks for one family only, so it is for literal addresses alone. */
	int ipv6 = strstr(endpoint, "://[") != NULL;
	const char *problem = connect ? NULL : endpoint_occupant(endpoint);
	char found[256] = "";
	char numeric[64];
	size_t len = sizeof(found);

	if (is_local) { /* libzmq listens on numbers only */
		snprintf(numeric, sizeof(numeric), "tcp://127.0.0.1:%s",
			 endpoint + sizeof(local) - 1);
		endpoint = numeric;
	}
	if (!problem && (zmq_setsockopt(socket, ZMQ_IPV6, &ipv6, sizeof(ipv6)) != 0 ||
			 (connect ? zmq_connect : zmq_bind)(socket, endpoint) != 0))
		problem = errno == ENODEV ? "it names no address or interface of this machine"
					  : zmq_strerror(errno);
	if (problem) {
		weir_error(self, "endpoint", "cannot %s %s: %s",
			   connect ? "connect to" : "listen on", endpoint, problem);
		return false;
	}
	if (strchr(endpoint, '*') && zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, found, &len) == 0)
		weir_log(self, WEIR_INFORM, "listening on %s", found);
	return true;
}

/* Says by weir_error() if this process may not open the descriptors that libzmq will need. */
static inline bool endpoint_descriptors(struct weir_self *self, const char *const *endpoints)
{
	struct rlimit limit;
	rlim_t used = 0, needed = ENDPOINT_DESCRIPTORS;
	DIR *open_now = opendir("/proc/self/fd");

	if (open_now) {
		while (readdir(open_now))
			used++;
		closedir(open_now);
	}
	for (; *endpoints; endpoints++)
		needed += ENDPOINT_DESCRIPTORS_EACH;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= used + needed)
		return true;
	weir_error(self, NULL,
		   "the limit of %lu open files leaves too few descriptors for ZeroMQ: raise it to "
		   "%lu or more (ulimit -n, LimitNOFILE=)",
		   (unsigned long)limit.rlim_cur, (unsigned long)(used + needed));
	return false;
}

#endif
