/*
 * server.c: see server.h.
 */
#include "server.h"
#include "port.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S           1000000000LL
#define EVENTS             64
#define CHUNKS_A_TURN      16u
#define CONNECTIONS_A_TURN 64u
#define LOOK_MS            100 /* at stalled clients, and whether there are descriptors again */
#define PAUSE_NS           100000000LL
#define STALLED_WHY        "it took nothing for too long"

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

void server_wake(struct server *server)
{
	uint64_t one = 1;

	(void)!write(server->wake.fd, &one, sizeof(one));
}

static bool watch(struct server *server, struct watched *watched, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watched};

	return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, watched->fd, &event) == 0;
}

static void watch_for(struct server *server, struct watched *watched, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watched};

	epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, watched->fd, &event);
}

/* ---- Opening ---- */

bool server_open(struct server *server, struct weir_self *self)
{
	server->config = self->config;
	tcp_endpoint_parse(server->config->endpoint, &server->endpoint);
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	server->wake = (struct watched){WATCHED_WAKE, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	if (server->epoll_fd >= 0 && server->wake.fd >= 0 && watch(server, &server->wake, EPOLLIN))
		return true;
	weir_error(self, NULL, "cannot wait for connections: %s", strerror(errno));
	return false;
}

bool server_listen(struct server *server, struct feed *feed, struct weir_self *lane)
{
	feed->listener.fd = port_open(lane, &server->endpoint);
	return feed->listener.fd >= 0 && watch(server, &feed->listener, EPOLLIN);
}

/* ---- Connections ---- */

static void admit(struct server *server, struct feed *feed, int fd, const char *name)
{
	struct client *client = NULL;
	int one = 1;

	if (server->n_clients < (uint64_t)server->config->max_clients)
		client = client_new(feed, fd, name, server->config->buffer_bytes);
	if (!client) {
		weir_count(feed->self, TURNED_AWAY, 1);
		weir_log(feed->self, WEIR_WARN, "%s is turned away: there are %u clients", name,
			 server->n_clients);
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	client->progress_ns = clock_ns();
	client->next = feed->clients;
	feed->clients = client;
	server->n_clients++;
	__atomic_add_fetch(&feed->n_clients, 1, __ATOMIC_RELAXED);
	weir_count(feed->self, ACCEPTED, 1);
	if (!watch(server, &client->watched, EPOLLIN))
		client->gone = strerror(errno);
}

static void accept_some(struct server *server, struct feed *feed)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	char name[64];

	for (unsigned n = 0; n < CONNECTIONS_A_TURN; n++) {
		int fd = accept4(feed->listener.fd, (struct sockaddr *)&address, &size,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			break;
		port_print(name, sizeof(name), &address, size);
		admit(server, feed, fd, name);
		size = sizeof(address);
		errno = 0;
	}
	if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
		return;
	weir_log(feed->self, WEIR_WARN, "cannot take a connection now: %s", strerror(errno));
	feed->paused_ns = clock_ns();
	watch_for(server, &feed->listener, 0);
}

static void accept_again(struct server *server, struct feed *feed)
{
	if (!feed->paused_ns || clock_ns() - feed->paused_ns < PAUSE_NS)
		return;
	feed->paused_ns = 0;
	watch_for(server, &feed->listener, EPOLLIN);
}

static void remove_gone(struct server *server, struct feed *feed)
{
	struct client **link = &feed->clients;
	struct client *client;

	while ((client = *link)) {
		if (!client->gone) {
			link = &client->next;
			continue;
		}
		*link = client->next;
		server->n_clients--;
		__atomic_sub_fetch(&feed->n_clients, 1, __ATOMIC_RELAXED);
		client_free(client);
	}
}

/* ---- Chunks ---- */

static bool is_closing(const struct server *server)
{
	return __atomic_load_n(&server->closing, __ATOMIC_ACQUIRE) != 0;
}

/* Whether the lane is to wait with its oldest chunk. */
static bool must_hold(struct server *server, struct feed *feed, const struct chunk *chunk)
{
	unsigned n = feed_clients(feed);

	if (!is_closing(server)) {
		if (!feed_waits(feed))
			return false;
		feed->was_ready |= n >= (uint64_t)server->config->wait_for;
		if (n == 0 || !feed->was_ready)
			return true;
	}
	for (const struct client *client = feed->clients; client; client = client->next) {
		if (!client->gone && !client_has_room(client, chunk))
			return true;
	}
	return false;
}

static void flush_all(struct server *server, struct feed *feed)
{
	int64_t now_ns = clock_ns();

	for (struct client *client = feed->clients; client; client = client->next)
		client_flush(client, (enum weir_precision)server->config->precision, now_ns);
}

static void offer_to_all(struct feed *feed, struct chunk *chunk)
{
	bool has_clients = false;

	for (struct client *client = feed->clients; client; client = client->next) {
		if (client->gone)
			continue;
		has_clients = true;
		client_offer(client, chunk);
	}
	if (chunk->refs == 0)
		feed_give_back(chunk, has_clients ? CLIENT_SLOW : NO_CLIENT);
}

static void pump(struct server *server, struct feed *feed)
{
	struct chunk *chunk;
	unsigned n = 0;

	flush_all(server, feed);
	while ((chunk = feed_first(feed)) && !must_hold(server, feed, chunk)) {
		feed_take(feed);
		offer_to_all(feed, chunk);
		flush_all(server, feed);
		if (++n < CHUNKS_A_TURN)
			continue;
		server_wake(server);
		return;
	}
}

static void watch_clients(struct server *server, struct feed *feed)
{
	int64_t now_ns = clock_ns();

	for (struct client *client = feed->clients; client; client = client->next) {
		if (client->is_watched_for_room != client->wants_room) {
			client->is_watched_for_room = client->wants_room;
			watch_for(server, &client->watched,
				  client->wants_room ? EPOLLIN | EPOLLOUT : EPOLLIN);
		}
		if (client->gone || client_is_idle(client) ||
		    now_ns - client->progress_ns < server->config->stall_ns)
			continue;
		client->gone = STALLED_WHY;
		weir_count(feed->self, STALLED, 1);
		weir_log(feed->self, WEIR_WARN, "client %s %s and is disconnected", client->name,
			 STALLED_WHY + 3);
	}
}

/* ---- The thread ---- */

static void wait_for_events(struct server *server)
{
	struct epoll_event events[EVENTS];
	bool has_to_look = server->n_clients > 0 || is_closing(server);
	uint64_t count;

	for (uint32_t i = 0; i < server->n_feeds; i++)
		has_to_look |= server->feeds[i]->paused_ns > 0;
	int n = epoll_wait(server->epoll_fd, events, EVENTS, has_to_look ? LOOK_MS : -1);
	for (int i = 0; i < n; i++) {
		struct watched *watched = events[i].data.ptr;

		if (watched->kind == WATCHED_WAKE)
			(void)!read(watched->fd, &count, sizeof(count));
		else if (watched->kind == WATCHED_LISTENER)
			accept_some(server, (struct feed *)(void *)watched);
		else if (events[i].events & ~(uint32_t)EPOLLOUT)
			client_hear((struct client *)(void *)watched);
	}
}

/* Nobody has anything to get any more, or those who have take nothing. */
static bool is_over(struct server *server)
{
	int64_t now_ns = clock_ns(), progress_ns;
	bool is_idle = true;

	if (!is_closing(server))
		return false;
	if (!server->closing_ns)
		server->closing_ns = now_ns;
	progress_ns = server->closing_ns;
	for (uint32_t i = 0; i < server->n_feeds; i++) {
		struct feed *feed = server->feeds[i];
		for (const struct client *client = feed->clients; client; client = client->next) {
			if (client_is_idle(client))
				continue;
			is_idle = false;
			if (client->progress_ns > progress_ns)
				progress_ns = client->progress_ns;
		}
		is_idle &= feed_first(feed) == NULL;
	}
	return is_idle || now_ns - progress_ns > server->config->linger_ns ||
	       weir_abandoned(server->feeds[0]->self);
}

static void *run(void *user)
{
	struct server *server = user;

	do {
		wait_for_events(server);
		for (uint32_t i = 0; i < server->n_feeds; i++) {
			struct feed *feed = server->feeds[i];
			accept_again(server, feed);
			pump(server, feed);
			watch_clients(server, feed);
			remove_gone(server, feed);
			weir_witness(feed->self, CLIENTS, feed_clients(feed));
		}
	} while (!is_over(server));
	return NULL;
}

bool server_start(struct server *server, struct weir_self *self)
{
	sigset_t all, before;

	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	server->started = pthread_create(&server->thread, NULL, run, server) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (server->started)
		pthread_setname_np(server->thread, "weir-pcap-ip");
	else
		weir_error(self, NULL, "its thread cannot be started");
	return server->started;
}

static void disconnect_all(struct server *server, struct feed *feed)
{
	for (struct client *client = feed->clients; client; client = client->next) {
		client_hear(client); /* what has not been read would make the kernel cut it off */
		client->gone = "the run ended";
	}
	remove_gone(server, feed);
	weir_witness(feed->self, CLIENTS, 0);
	feed_clear(feed);
	if (feed->listener.fd >= 0)
		close(feed->listener.fd);
	feed->listener.fd = -1;
}

void server_close(struct server *server)
{
	if (server->started) {
		__atomic_store_n(&server->closing, 1, __ATOMIC_RELEASE);
		server_wake(server);
		pthread_join(server->thread, NULL);
		server->started = false;
	}
	for (uint32_t i = 0; i < server->n_feeds; i++)
		disconnect_all(server, server->feeds[i]);
	if (server->epoll_fd >= 0)
		close(server->epoll_fd);
	if (server->wake.fd >= 0)
		close(server->wake.fd);
	server->epoll_fd = server->wake.fd = -1;
}
