/*
 * watched.h: what epoll tells of.
 */
#ifndef PCAP_OVER_IP_WATCHED_H
#define PCAP_OVER_IP_WATCHED_H

enum watched_kind { WATCHED_WAKE, WATCHED_LISTENER, WATCHED_CLIENT };

/* The first member of what it is about. */
struct watched {
	enum watched_kind kind;
	int fd;
};

#endif
