/*
 * client.c: see client.h.
 */
#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct client *client_new(struct feed *feed, int fd, const char *name, uint64_t queued_max)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->watched = (struct watched){WATCHED_CLIENT, fd};
	client->feed = feed;
	client->newest_end = &client->oldest;
	client->queued_max = queued_max;
	snprintf(client->name, sizeof(client->name), "%s", name);
	weir_event(feed->self, "consumer-came", "%s", client->name);
	return client;
}

/* ---- Chunks ---- */

bool client_has_room(const struct client *client, const struct chunk *chunk)
{
	return !client->oldest || client->queued_bytes + chunk->len <= client->queued_max;
}

static void lose(struct client *client, uint64_t packets)
{
	client->lost += packets;
	weir_count(client->feed->self, CLIENT_LOST, packets);
}

void client_offer(struct client *client, struct chunk *chunk)
{
	struct portion *portion = client_has_room(client, chunk) ? malloc(sizeof(*portion)) : NULL;

	if (!portion) {
		weir_log(client->feed->self, WEIR_WARN, "client %s is too slow, and loses packets",
			 client->name);
		lose(client, chunk->sum.packets);
		return;
	}
	*portion = (struct portion){.chunk = chunk};
	*client->newest_end = portion;
	client->newest_end = &portion->next;
	client->queued_bytes += chunk->len;
	chunk->refs++;
}

static void count_bytes(struct weir_self *self, const struct weir_extent *got, size_t torn)
{
	weir_count(self, RECORD_BYTES, got->record_bytes);
	weir_count(self, TORN_BYTES, torn);
}

/* The client is done with its oldest chunk, of which it has got client->done bytes. */
static void drop_oldest(struct client *client)
{
	struct portion *portion = client->oldest;
	struct chunk *chunk = portion->chunk;
	struct weir_extent got = {0};
	size_t whole = weir_capfile_walk(chunk->bytes, 0, client->done, false, &got);

	count_bytes(client->feed->self, &got, client->done - whole);
	weir_count(client->feed->self, CLIENT_SENT, got.packets);
	client->sent += got.packets;
	if (got.packets < chunk->sum.packets)
		lose(client, chunk->sum.packets - got.packets);
	if (got.packets > chunk->delivered) {
		chunk->delivered = got.packets;
		chunk->delivered_bytes = got.packet_bytes;
	}
	client->oldest = portion->next;
	if (!client->oldest)
		client->newest_end = &client->oldest;
	client->queued_bytes -= chunk->len;
	client->done = 0;
	free(portion);
	if (--chunk->refs == 0)
		feed_give_back(chunk, CLIENT_GONE);
}

/* ---- The connection ---- */

/* Some of the bytes; how many, 0 if the socket has no room. */
static size_t send_some(struct client *client, const uint8_t *bytes, size_t len, int64_t now_ns)
{
	ssize_t n = send(client->watched.fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0) {
		client->progress_ns = now_ns;
		weir_count(client->feed->self, TCP_BYTES, (uint64_t)n);
		return (size_t)n;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		client->gone = strerror(errno);
	return 0;
}

static bool flush_header(struct client *client, enum weir_precision precision, int64_t now_ns)
{
	uint32_t linktype_known = feed_linktype_known(client->feed);

	if (client->header_len == 0 && linktype_known > 0)
		client->header_len = weir_pcap_header(client->header, linktype_known - 1,
						      precision);
	if (client->header_done < client->header_len) {
		size_t n = send_some(client, client->header + client->header_done,
				     client->header_len - client->header_done, now_ns);
		client->header_done += n;
		weir_count(client->feed->self, HEADER_BYTES, n);
	}
	return client->header_len > 0 && client->header_done == client->header_len;
}

void client_flush(struct client *client, enum weir_precision precision, int64_t now_ns)
{
	if (client_is_idle(client))
		client->progress_ns = now_ns;
	client->wants_room = false;
	if (client->gone || !flush_header(client, precision, now_ns))
		return;
	while (client->oldest && !client->gone) {
		const struct chunk *chunk = client->oldest->chunk;
		size_t n = send_some(client, chunk->bytes + client->done, chunk->len - client->done,
				     now_ns);
		client->done += n;
		if (client->done == chunk->len)
			drop_oldest(client);
		else if (n == 0)
			break;
	}
	client->wants_room = client->oldest != NULL;
}

/* Nobody has anything to say here; but the end of it says that the client has gone. */
void client_hear(struct client *client)
{
	uint8_t ignored[4096];
	ssize_t n = recv(client->watched.fd, ignored, sizeof(ignored), MSG_DONTWAIT);

	if (n > 0)
		weir_count(client->feed->self, IGNORED_BYTES, (uint64_t)n);
	else if (n == 0)
		client->gone = "it closed the connection";
	else if (errno != EAGAIN && errno != EINTR)
		client->gone = strerror(errno);
}

void client_free(struct client *client)
{
	struct weir_self *self = client->feed->self;

	while (client->oldest)
		drop_oldest(client);
	weir_event(self, "consumer-went", "%s: %s; packets sent %llu, lost %llu", client->name,
		   client->gone ? client->gone : "the run ended", (unsigned long long)client->sent,
		   (unsigned long long)client->lost);
	close(client->watched.fd);
	free(client);
}
