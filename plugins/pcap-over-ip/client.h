/*
 * client.h: a connection of the pcap-over-ip sink: a header, and then the chunks that it has room
 * for.  All of it is the server's thread's.
 */
#ifndef PCAP_OVER_IP_CLIENT_H
#define PCAP_OVER_IP_CLIENT_H

#include "feed.h"
#include "watched.h"

/* Of the queue of a client. */
struct portion {
	struct portion *next;
	struct chunk *chunk;
};

struct client {
	struct watched watched;
	struct client *next; /* of the same feed */
	struct feed *feed;
	char name[64]; /* its address */
	struct portion *oldest, **newest_end;
	uint64_t queued_bytes, queued_max;
	uint8_t header[WEIR_PCAP_HEADER];
	size_t header_len, header_done; /* 0: the link type is not known yet */
	size_t done;                    /* bytes of the oldest chunk that it has got */
	uint64_t sent, lost;            /* packets */
	int64_t progress_ns;            /* CLOCK_MONOTONIC: when it last took or wanted nothing */
	bool wants_room, is_watched_for_room;
	const char *gone; /* why it is to be removed; NULL: it is not */
};

struct client *client_new(struct feed *feed, int fd, const char *name, uint64_t queued_max);
/* Gives back what it has not got, writes its line into the ledger file, closes. */
void client_free(struct client *client);

bool client_has_room(const struct client *client, const struct chunk *chunk);
/* Queues the chunk, or counts its packets as lost for this client. */
void client_offer(struct client *client, struct chunk *chunk);

static inline bool client_is_idle(const struct client *client)
{
	return !client->oldest && client->header_done == client->header_len;
}

/* Each sets client->gone where that is over.  flush: sends as much as the socket takes. */
void client_flush(struct client *client, enum weir_precision precision, int64_t now_ns);
void client_hear(struct client *client);

#endif
