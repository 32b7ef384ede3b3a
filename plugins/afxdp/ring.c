/*
 * ring.c: see ring.h.
 *
 * The kernel's side of this is net/xdp/xsk.c.
 */
#include "ring.h"

#include "shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* Of Linux 6.6, which the headers of Debian 12 do not know. */
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif

/* Of Linux 5.11. */
#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL 69
#define SO_BUSY_POLL_BUDGET 70
#endif
#define BUSY_POLL_BUDGET 64

#define BUSY_TRIES    200
#define BUSY_PAUSE_NS 10000000L
#define JOINED_BYTES  (1u << 20)
#define CAPLEN_MAX    262144u
#define PEEK          1024u

/* ---- Opening ---- */

static int bind_once(struct ring *ring, const char *interface, uint16_t flags)
{
	const struct xsk_socket_config config = {
		.rx_size = ring->umem.ring_size,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = (uint16_t)(flags | XDP_USE_NEED_WAKEUP),
	};

	ring->whole = flags & XDP_USE_SG;
	return xsk_socket__create(&ring->socket, interface, ring->queue, ring->umem.handle,
				  &ring->rx, NULL, &config);
}

/* The best way that driver and kernel know: frames of several chunks came to zero-copy drivers one
 * by one, and to the kernel with Linux 6.6. */
static int bind_best(struct ring *ring, const char *interface, const struct ring_choice *choice)
{
	const struct {
		bool wanted;
		uint16_t flags;
	} ways[] = {
		{choice->zerocopy, XDP_ZEROCOPY | XDP_USE_SG},
		{choice->zerocopy && choice->fits, XDP_ZEROCOPY},
		{choice->copy, XDP_COPY | XDP_USE_SG},
		{choice->copy, XDP_COPY},
	};
	int failure = -EOPNOTSUPP;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!ways[i].wanted)
			continue;
		failure = bind_once(ring, interface, ways[i].flags);
		if (failure != -EOPNOTSUPP && failure != -EINVAL)
			break;
	}
	return failure;
}

/* The kernel lets go of a queue a moment after the socket before has been closed. */
static int bind_queue(struct ring *ring, const char *interface, const struct ring_choice *choice)
{
	const struct timespec pause = {.tv_nsec = BUSY_PAUSE_NS};
	int failure = bind_best(ring, interface, choice);

	for (int i = 0; i < BUSY_TRIES && failure == -EBUSY; i++) {
		nanosleep(&pause, NULL);
		failure = bind_best(ring, interface, choice);
	}
	return failure;
}

static bool is_zerocopy(const struct ring *ring)
{
	struct xdp_options options = {0};
	socklen_t size = sizeof(options);

	return !getsockopt(ring_fd(ring), SOL_XDP, XDP_OPTIONS, &options, &size) &&
	       options.flags & XDP_OPTIONS_ZEROCOPY;
}

int ring_set_busy_poll(const struct ring *ring, int64_t ns)
{
	const int prefer = 1, us = (int)(ns / 1000), budget = BUSY_POLL_BUDGET;
	int fd = ring_fd(ring);

	if (setsockopt(fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &prefer, sizeof(prefer)) ||
	    setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &us, sizeof(us)) ||
	    setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget, sizeof(budget)))
		return -errno;
	return 0;
}

int ring_open(struct ring *ring, const char *interface, uint32_t queue,
	      const struct ring_choice *choice)
{
	*ring = (struct ring){.queue = queue};
	int failure = umem_open(&ring->umem, choice->chunks, choice->chunk_bytes);

	if (failure)
		return failure;
	ring->joined = malloc(JOINED_BYTES);
	if (!ring->joined)
		return -ENOMEM;
	failure = bind_queue(ring, interface, choice);
	if (!failure)
		ring->zerocopy = is_zerocopy(ring);
	return failure;
}

void ring_close(struct ring *ring)
{
	xsk_socket__delete(ring->socket);
	ring->socket = NULL;
	umem_close(&ring->umem);
	free(ring->joined);
	ring->joined = NULL;
}

int ring_fd(const struct ring *ring)
{
	return ring->socket ? xsk_socket__fd(ring->socket) : -1;
}

/* ---- Frames ---- */

static const struct xdp_desc *nth(const struct ring *ring, uint32_t at)
{
	return xsk_ring_cons__rx_desc(&ring->rx, at);
}

/* The descriptors of the frame that begins there; 0: its end has not come yet. */
static uint32_t count_pieces(const struct ring *ring, uint32_t at, uint32_t most)
{
	for (uint32_t n = 0; n < most; n++) {
		if (!(nth(ring, at + n)->options & XDP_PKT_CONTD))
			return n + 1;
	}
	return 0;
}

static const uint8_t *join(struct ring *ring, uint32_t at, uint32_t pieces, uint32_t *ret_caplen)
{
	uint8_t *to = ring->joined + ring->joined_bytes;
	uint32_t used = 0;

	for (uint32_t i = 0; i < pieces; i++) {
		const struct xdp_desc *piece = nth(ring, at + i);
		uint32_t room = CAPLEN_MAX - used;
		uint32_t len = piece->len < room ? piece->len : room;
		memcpy(to + used, ring->umem.area + piece->addr, len);
		used += len;
	}
	/* The next one is aligned as a frame in a chunk is. */
	ring->joined_bytes += (used + 63) & ~63u;
	ring->joins++;
	*ret_caplen = used;
	return to;
}

static uint32_t length_of(const struct ring *ring, uint32_t at, uint32_t pieces)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < pieces; i++)
		sum += nth(ring, at + i)->len;
	return sum;
}

static int64_t stamp_ns(const uint8_t *data, const struct ring_view *view)
{
	struct stamp stamp;

	if (!view->stamped)
		return view->now_ns;
	memcpy(&stamp, data - sizeof(stamp), sizeof(stamp));
	return (int64_t)stamp.mono_ns + view->ahead_ns;
}

static void describe(struct ring *ring, uint32_t at, uint32_t pieces, struct weir_packet *packet,
		     const struct ring_view *view)
{
	const uint8_t *data = ring->umem.area + nth(ring, at)->addr;

	*packet = (struct weir_packet){
		.data = data,
		.ts_ns = stamp_ns(data, view),
		.caplen = nth(ring, at)->len,
		.wirelen = nth(ring, at)->len,
		.iface = view->iface,
		.queue = (uint16_t)ring->queue,
		.flags = WEIR_F_IN,
	};
	if (pieces == 1)
		return;
	packet->wirelen = length_of(ring, at, pieces);
	packet->data = join(ring, at, pieces, &packet->caplen);
}

unsigned ring_walk(struct ring *ring, struct weir_packet *packets, unsigned max,
		   const struct ring_view *view)
{
	uint32_t at = 0, used = 0, there;
	unsigned n = 0;

	if (!ring->socket)
		return 0;
	/* libxdp looks for more only once it has handed out all that it knows of, and would never
	 * see the rest of a frame that came in two halves. */
	ring->rx.cached_prod = __atomic_load_n(ring->rx.producer, __ATOMIC_ACQUIRE);
	there = xsk_ring_cons__peek(&ring->rx, PEEK, &at);
	while (n < max) {
		uint32_t pieces = count_pieces(ring, at + used, there - used);
		bool fits = pieces < 2 || ring->joined_bytes + CAPLEN_MAX <= JOINED_BYTES;
		if (!pieces || !fits)
			break;
		describe(ring, at + used, pieces, &packets[n++], view);
		used += pieces;
	}
	xsk_ring_cons__cancel(&ring->rx, there - used);
	ring->held_at = at;
	ring->held = used;
	return n;
}

void ring_give_back(struct ring *ring)
{
	struct xsk_ring_prod *fill = &ring->umem.fill;
	uint32_t to;

	ring->joined_bytes = 0;
	if (!ring->held || !xsk_ring_prod__reserve(fill, ring->held, &to))
		return;
	for (uint32_t i = 0; i < ring->held; i++)
		*xsk_ring_prod__fill_addr(fill, to + i) = nth(ring, ring->held_at + i)->addr;
	xsk_ring_prod__submit(fill, ring->held);
	xsk_ring_cons__release(&ring->rx, ring->held);
	ring->held = 0;
}

bool ring_ready(struct ring *ring)
{
	return ring->socket && xsk_cons_nb_avail(&ring->rx, 1) > 0;
}

void ring_wake_driver(struct ring *ring, bool always)
{
	if (always || xsk_ring_prod__needs_wakeup(&ring->umem.fill))
		recvfrom(ring_fd(ring), NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

struct xdp_statistics ring_statistics(const struct ring *ring)
{
	struct xdp_statistics statistics = {0};
	socklen_t size = sizeof(statistics);

	getsockopt(ring_fd(ring), SOL_XDP, XDP_STATISTICS, &statistics, &size);
	return statistics;
}
