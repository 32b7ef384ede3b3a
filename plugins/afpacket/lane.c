/*
 * lane.c: a lane of the afpacket source as it runs.
 *
 * Packets of several links come out in the order of their stamps: a ring waits for those whose
 * open block may still hold something older, which is never longer than two retire times.
 */
#include "afpacket.h"

#include <linux/membarrier.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S       1000000000LL
#define MERGE_SLEEP_MS 2

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void advance(struct afpacket_lane *lane)
{
	for (unsigned i = 0; i < lane->ring_count; i++) {
		if (lane->stopping)
			ring_drain(&lane->rings[i]);
		else
			ring_advance(&lane->rings[i]);
	}
}

/* ---- Several rings as one stream ---- */

static int64_t bound_of(const struct afpacket_lane *lane, const struct ring *ring, int64_t now)
{
	if (ring->left)
		return ring_next_ns(ring);
	return lane->stopping && ring->drained ? INT64_MAX : ring_bound_ns(ring, now);
}

/* The ring whose next packet is the oldest, and until when it stays that; NULL if that packet may
 * be one that cannot be seen yet. */
static struct ring *oldest(const struct afpacket_lane *lane, int64_t now, int64_t *ret_until_ns)
{
	struct ring *first = NULL;
	int64_t first_ns = INT64_MAX, until_ns = INT64_MAX;

	for (unsigned i = 0; i < lane->ring_count; i++) {
		int64_t bound = bound_of(lane, &lane->rings[i], now);
		if (bound < first_ns) {
			until_ns = first_ns;
			first_ns = bound;
			first = &lane->rings[i];
		} else if (bound < until_ns) {
			until_ns = bound;
		}
	}
	*ret_until_ns = until_ns;
	return first && first->left ? first : NULL;
}

static unsigned merge(struct afpacket_lane *lane, struct weir_packet *packets, unsigned max)
{
	int64_t now = clock_ns(CLOCK_REALTIME), until_ns;
	struct ring *ring;
	unsigned n = 0;

	while (n < max && (ring = oldest(lane, now, &until_ns)))
		n += ring_walk(ring, packets + n, max - n, until_ns, &lane->walked);
	return n;
}

/* ---- Callbacks ---- */

static unsigned fill(struct afpacket_lane *lane, struct weir_packet *packets, unsigned max)
{
	advance(lane);
	if (lane->ring_count == 1)
		return ring_walk(lane->rings, packets, max, INT64_MAX, &lane->walked);
	return merge(lane, packets, max);
}

static bool any_ready(const struct afpacket_lane *lane)
{
	for (unsigned i = 0; i < lane->ring_count; i++) {
		if (ring_is_ready(&lane->rings[i]))
			return true;
	}
	return false;
}

/* The kernel polls NICs only for sockets that know their NAPI instance, which packet sockets do not
 * up to 6.18, so waiting without sleeping is looking at the rings. */
static bool spin(const struct afpacket_lane *lane, int64_t busy_poll_ns)
{
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + busy_poll_ns;

	while (!any_ready(lane)) {
		if (clock_ns(CLOCK_MONOTONIC) >= until_ns)
			return false;
	}
	return true;
}

static void wait_for_block(struct weir_self *self, int timeout_ms)
{
	const struct afpacket_config *config = self->config;
	struct afpacket_lane *lane = self->lane;
	struct pollfd fds[AFPACKET_LINKS_MAX];

	if (config->busy_poll_ns && spin(lane, config->busy_poll_ns))
		return;
	for (unsigned i = 0; i < lane->ring_count; i++) {
		/* The kernel calls a ring readable as long as its last block was not given back. */
		bool waits = lane->rings[i].left > 0;
		fds[i] = (struct pollfd){.fd = waits ? -1 : lane->rings[i].fd, .events = POLLIN};
		if (waits && timeout_ms > MERGE_SLEEP_MS)
			timeout_ms = MERGE_SLEEP_MS;
	}
	if (poll(fds, lane->ring_count, timeout_ms) <= 0)
		return;
	for (unsigned i = 0; i < lane->ring_count; i++) {
		if (fds[i].revents & (POLLERR | POLLHUP | POLLNVAL))
			afpacket_watch_error(self, i);
	}
}

static int64_t mark_of(struct afpacket_lane *lane, unsigned n)
{
	/* Right behind packets of the only ring no clock is needed. */
	int64_t now = n && lane->ring_count == 1 ? 0 : clock_ns(CLOCK_REALTIME);

	for (unsigned i = 0; i < lane->ring_count; i++) {
		int64_t bound = ring_bound_ns(&lane->rings[i], now);
		if (i == 0 || bound < now)
			now = bound;
	}
	if (now > lane->mark_ns)
		lane->mark_ns = now;
	return lane->mark_ns;
}

static bool is_drained(const struct afpacket_lane *lane)
{
	for (unsigned i = 0; i < lane->ring_count; i++) {
		if (!lane->rings[i].drained)
			return false;
	}
	return lane->stopping;
}

int afpacket_poll(struct weir_self *self, struct weir_packet *packets, unsigned max, int timeout_ms,
		  int64_t *ret_mark_ns)
{
	struct afpacket_lane *lane = self->lane;
	unsigned n = fill(lane, packets, max);

	if (n == 0 && is_drained(lane))
		return lane->lost ? WEIR_FAILED : WEIR_END;
	if (n == 0 && timeout_ms != 0 && !lane->stopping) {
		wait_for_block(self, timeout_ms);
		n = fill(lane, packets, max);
	}
	int64_t mark_ns = mark_of(lane, n);
	if (mark_ns)
		*ret_mark_ns = mark_ns;
	return (int)n;
}

/* Until no processor is inside the kernel's receive function for our sockets any more. */
static void let_processors_finish(int64_t retire_ns)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0)
		return;
	/* Refused under nohz_full, and by some containers. */
	struct timespec retire = {.tv_sec = retire_ns / NS_PER_S, .tv_nsec = retire_ns % NS_PER_S};
	nanosleep(&retire, NULL);
}

void afpacket_stop(struct weir_self *self)
{
	const struct afpacket_config *config = self->config;
	struct afpacket_node *node = self->node;
	struct afpacket_lane *lane = self->lane;

	pthread_mutex_lock(&node->lock);
	for (unsigned i = 0; i < lane->ring_count; i++)
		program_attach_drop_all(lane->rings[i].fd);
	lane->stopping = true;
	pthread_mutex_unlock(&node->lock);
	let_processors_finish(config->retire_ns);
}

void afpacket_tick(struct weir_self *self, const struct weir_now *now, unsigned why)
{
	const struct afpacket_lane *lane = self->lane;

	(void)now, (void)why;
	for (unsigned i = 0; i < lane->ring_count; i++)
		afpacket_watch_return(self, i);
	if (!lane->stopping)
		afpacket_look_at_tags(self);
}

void afpacket_witness(struct weir_self *self)
{
	struct afpacket_lane *lane = self->lane;
	uint64_t packets = 0, drops = 0, freezes = 0;

	for (unsigned i = 0; i < lane->ring_count; i++) {
		struct ring *ring = &lane->rings[i];
		ring_statistics(ring);
		packets += ring->packets;
		drops += ring->drops;
		freezes += ring->freezes;
	}
	weir_witness(self, AFPACKET_KERNEL_PACKETS, packets);
	weir_witness(self, AFPACKET_KERNEL_DROPS, drops);
	weir_witness(self, AFPACKET_FREEZES, freezes);
	weir_witness(self, AFPACKET_CUT, lane->walked.cut);
	weir_witness(self, AFPACKET_TAGS, lane->walked.tags);
}
