/*
 * tcp-endpoint.h: HOST:PORT, as the pcap-over-ip sink and the pcap-over-ip-source source take it.
 *
 * The stream has no encryption and no authentication, and the programs that read it know none; so
 * what goes beyond this machine has to be asked for by name.
 */
#ifndef WEIR_TCP_ENDPOINT_H
#define WEIR_TCP_ENDPOINT_H

#include <weir/plugin.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

struct tcp_endpoint {
	char host[256]; /* without brackets */
	uint16_t port;
};

static inline bool tcp_endpoint_parse(const char *text, struct tcp_endpoint *ret)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	char *end;

	if (len == 0 || colon[1] < '0' || colon[1] > '9')
		return false;
	unsigned long port = strtoul(colon + 1, &end, 10);
	bool has_brackets = text[0] == '[' && text[len - 1] == ']' && len > 2;
	if (has_brackets) {
		text++;
		len -= 2;
	}
	if (*end != '\0' || port > UINT16_MAX || len >= sizeof(ret->host) ||
	    (!has_brackets && memchr(text, ':', len)))
		return false;
	memcpy(ret->host, text, len);
	ret->host[len] = '\0';
	ret->port = (uint16_t)port;
	return true;
}

static inline bool tcp_endpoint_is_loopback(const struct tcp_endpoint *endpoint)
{
	uint8_t address[4];

	return strcmp(endpoint->host, "localhost") == 0 || strcmp(endpoint->host, "::1") == 0 ||
	       (inet_pton(AF_INET, endpoint->host, address) == 1 && address[0] == 127);
}

/* Says by weir_error() what is wrong with the text of option "endpoint". */
static inline bool tcp_endpoint_check(struct weir_self *self, const char *text, bool insecure)
{
	struct tcp_endpoint endpoint;

	if (!tcp_endpoint_parse(text, &endpoint)) {
		weir_error(self, "endpoint",
			   "'%s' is no HOST:PORT; 127.0.0.1:57012 or [::1]:57012 would be", text);
		return false;
	}
	if (insecure || tcp_endpoint_is_loopback(&endpoint))
		return true;
	weir_error(self, "endpoint",
		   "%s goes beyond this machine, and the stream is neither encrypted nor "
		   "authenticated: whoever is on the way can read and forge every packet. Use a "
		   "loopback address with 'ssh -L' or stunnel, or say insecure=yes",
		   text);
	return false;
}

#endif
