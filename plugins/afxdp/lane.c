/*
 * lane.c: a lane of the afxdp source as it runs.
 *
 * A lane that looks at an empty ring all the time is woken for every few packets, slows the sender
 * that fills the ring and starves the fill ring.  So once it has read everything it lets packets
 * gather for a moment; only after a moment without any does it wait to be woken.
 */
#include "afxdp.h"

#include <linux/membarrier.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

/* Processors that run the program for one queue stamp before they take the ring's lock. */
#define STEP_BACK_NS 50000
/* From a packet's stamp until it is in the ring, with much room. */
#define IN_FLIGHT_NS NS_PER_MS
/* Under nohz_full membarrier(2) is refused; a driver's poll is over long before. */
#define DRIVER_NS (10 * NS_PER_MS)

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void sleep_ns(int64_t ns)
{
	struct timespec time = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
	nanosleep(&time, NULL);
}

/* ---- Reading ---- */

static unsigned walk(struct weir_self *self, struct weir_packet *packets, unsigned max,
		     int64_t *ret_mark_ns)
{
	const struct afxdp_node *node = self->node;
	struct afxdp_lane *lane = self->lane;
	int64_t now_ns = clock_ns(CLOCK_REALTIME);
	/* Only behind a frame it is known whether its driver has room for stamps. */
	bool ready = ring_ready(&lane->ring);
	const struct ring_view view = {
		.stamped = program_stamps(&node->program),
		.ahead_ns = now_ns - clock_ns(CLOCK_MONOTONIC),
		.now_ns = now_ns,
		.iface = node->link.iface,
	};
	unsigned n = ready ? ring_walk(&lane->ring, packets, max, &view) : 0;

	if (n && lane->lost_before) {
		packets[0].dropped = lane->lost_before;
		lane->lost_before = 0;
	}
	lane->since_rested += lane->ring.held;
	if (!view.stamped)
		*ret_mark_ns = now_ns;
	else
		*ret_mark_ns = n ? packets[n - 1].ts_ns - STEP_BACK_NS : now_ns - IN_FLIGHT_NS;
	return n;
}

/* ---- Waiting ---- */

/* As long as half of the chunks will not be used up meanwhile, by the rate since the last time. */
static int64_t rest_ns(const struct afxdp_config *config, struct afxdp_lane *lane)
{
	int64_t now_ns = clock_ns(CLOCK_MONOTONIC), since_ns = now_ns - lane->rested_ns;
	int64_t walked = (int64_t)lane->since_rested;

	if (since_ns > NS_PER_S)
		since_ns = NS_PER_S;
	int64_t most_ns = since_ns * (lane->ring.umem.chunks / 2) / walked;
	lane->rested_ns = now_ns;
	lane->since_rested = 0;
	return most_ns < config->gather_ns ? most_ns : config->gather_ns;
}

static void note_losses(struct afxdp_lane *lane)
{
	struct xdp_statistics statistics = afxdp_statistics(lane);
	uint64_t lost = statistics.rx_dropped + statistics.rx_ring_full;

	lane->lost_before += (uint32_t)(lost - lane->lost_seen);
	lane->lost_seen = lost;
}

/* false: for so long nothing came. */
static bool drive(struct afxdp_lane *lane, int64_t busy_poll_ns)
{
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + busy_poll_ns;

	while (!ring_ready(&lane->ring)) {
		if (clock_ns(CLOCK_MONOTONIC) >= until_ns)
			return false;
		ring_wake_driver(&lane->ring, true);
	}
	return true;
}

static bool gather(const struct afxdp_config *config, struct afxdp_lane *lane)
{
	if (!lane->since_rested || !config->gather_ns)
		return false;
	sleep_ns(rest_ns(config, lane));
	note_losses(lane);
	return ring_ready(&lane->ring);
}

static void wait_for_frames(struct weir_self *self, int timeout_ms)
{
	const struct afxdp_config *config = self->config;
	struct afxdp_lane *lane = self->lane;
	struct pollfd fd = {.fd = ring_fd(&lane->ring), .events = POLLIN};

	if (lane->away) {
		sleep_ns(timeout_ms * NS_PER_MS);
		return;
	}
	ring_wake_driver(&lane->ring, false);
	if (config->busy_poll_ns ? drive(lane, config->busy_poll_ns) : gather(config, lane))
		return;
	if (poll(&fd, 1, timeout_ms) > 0 && fd.revents & (POLLERR | POLLHUP | POLLNVAL))
		afxdp_watch_error(self);
}

/* ---- Callbacks ---- */

int afxdp_poll(struct weir_self *self, struct weir_packet *packets, unsigned max, int timeout_ms,
	       int64_t *ret_mark_ns)
{
	struct afxdp_lane *lane = self->lane;

	ring_give_back(&lane->ring);
	unsigned n = walk(self, packets, max, ret_mark_ns);
	if (n == 0 && lane->stopping)
		return lane->lost ? WEIR_FAILED : WEIR_END;
	if (n == 0 && timeout_ms != 0) {
		wait_for_frames(self, timeout_ms);
		n = walk(self, packets, max, ret_mark_ns);
	}
	return (int)n;
}

/* Until no processor is in the midst of a frame that the program has sent here. */
static void let_processors_finish(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0)
		sleep_ns(DRIVER_NS);
}

void afxdp_stop(struct weir_self *self)
{
	const struct afxdp_node *node = self->node;
	struct afxdp_lane *lane = self->lane;

	program_leave(&node->program, lane->ring.queue);
	let_processors_finish();
	lane->stopping = true;
}

void afxdp_tick(struct weir_self *self, const struct weir_now *now, unsigned why)
{
	(void)why;
	afxdp_watch(self, now->mono_ns);
}
