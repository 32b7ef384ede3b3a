/* lane.c: the loop of a lane, and its waits. */
#include "lane_state.h"
#include "marks.h"
#include "queue.h"

#include <time.h>

#define NS_PER_MS    1000000LL
#define BUSY_TICK_NS (10 * NS_PER_MS)
#define IDLE_TICK_NS (100 * NS_PER_MS)
#define WITNESS_NS   (1000 * NS_PER_MS)
#define STUCK_NS     (1000 * NS_PER_MS) /* without progress */
#define GIVE_UP_NS   (500 * NS_PER_MS)  /* the same, once the run is to stop */

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int64_t weir_lane_clock(struct weir_lane *lane)
{
	lane->now_ns = clock_ns(CLOCK_MONOTONIC);
	return lane->now_ns;
}

int64_t weir_lane_now(const struct weir_lane *lane)
{
	return lane->now_ns;
}

struct weir_arena *weir_lane_arena(struct weir_lane *lane)
{
	return &lane->arena;
}

const struct weir_domain *weir_lane_domain(const struct weir_lane *lane)
{
	return lane->domain;
}

/* ---- Sleeping and waking ---- */

void weir_lane_wake(struct weir_lane *lane)
{
	pthread_mutex_lock(&lane->lock);
	lane->wake = true;
	pthread_cond_signal(&lane->woken);
	pthread_mutex_unlock(&lane->lock);
}

bool weir_lane_sleep(struct weir_lane *lane, int timeout_ms)
{
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + timeout_ms * NS_PER_MS;
	struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
	bool woken;

	pthread_mutex_lock(&lane->lock);
	while (!lane->wake && pthread_cond_timedwait(&lane->woken, &lane->lock, &until) == 0)
		;
	woken = lane->wake;
	lane->wake = false;
	pthread_mutex_unlock(&lane->lock);
	return woken;
}

static void note_wait(struct weir_lane *lane)
{
	weir_lane_clock(lane);
	if (!lane->stuck_since_ns)
		lane->stuck_since_ns = lane->now_ns;
}

static bool is_stuck_for(const struct weir_lane *lane, int64_t span_ns)
{
	return lane->stuck_since_ns && lane->now_ns - lane->stuck_since_ns > span_ns;
}

static bool is_stuck(const struct weir_lane *lane)
{
	return is_stuck_for(lane, STUCK_NS);
}

static void spread_marks(struct weir_lane *lane, int64_t mark_ns)
{
	weir_marks_spread(lane->head, lane->posts, mark_ns, !is_stuck(lane));
}

/* Lanes could wait for each other where one holds packets, or its times step back, while its rings
 * are full of younger ones.  So one that is stuck lets the others go on, and will be late. */
static void publish_marks(struct weir_lane *lane)
{
	if (lane->has_queues)
		weir_marks_publish(lane->posts,
				   is_stuck(lane) ? weir_marks_youngest(lane->posts) : INT64_MIN);
}

bool weir_lane_wait(struct weir_lane *lane, int timeout_ms)
{
	/* Once is enough: a second for each packet of a batch would add up. */
	if (lane->gave_up)
		return false;
	/* What this lane still has to push is this batch and what follows: whoever waits for older
	 * packets may go on, and so give room. */
	spread_marks(lane, MAX(lane->mark_ns, lane->oldest_ns));
	publish_marks(lane);
	note_wait(lane);
	if (weir_lane_sleep(lane, timeout_ms))
		lane->stuck_since_ns = 0;
	enum weir_stop stop = weir_context_stop(lane->context);
	lane->gave_up |= stop == WEIR_ABANDONED ||
			 (stop == WEIR_STOPPING && is_stuck_for(lane, GIVE_UP_NS));
	return !lane->gave_up;
}

/* ---- One batch ---- */

static void run_posts(struct weir_lane *lane)
{
	for (unsigned i = 0; i < lane->posts->len; i++)
		weir_post_run(lane->posts->pdata[i]);
}

/* What the parts that look at positions and ages need; skipped where no part does. */
static void prepare(struct weir_lane *lane, unsigned n)
{
	if (lane->has_merges) {
		for (unsigned i = 0; i < n; i++)
			lane->batch[i].order = (uint16_t)i;
	}
	if (lane->has_queues) {
		lane->oldest_ns = INT64_MAX;
		for (unsigned i = 0; i < n; i++)
			lane->oldest_ns = MIN(lane->oldest_ns, lane->batch[i].ts_ns);
	}
}

static void run_batch(struct weir_lane *lane, unsigned n)
{
	prepare(lane, n);
	weir_post_route(lane->head, lane->batch, n);
	run_posts(lane);
	weir_arena_reset(&lane->arena);
	lane->oldest_ns = INT64_MIN;
	lane->stuck_since_ns = 0;
}

static void tick_post(const struct weir_lane *lane, struct weir_post *post, int64_t stream_ns,
		      unsigned why)
{
	struct weir_now now = {.stream_ns = stream_ns, .mono_ns = lane->now_ns};

	if (post->wake_ns <= stream_ns) {
		post->wake_ns = INT64_MAX;
		why |= WEIR_TICK_TIME;
	}
	if (post->due_ns <= lane->now_ns) {
		post->due_ns = INT64_MAX;
		why |= WEIR_TICK_TIME;
	}
	if (why)
		weir_post_tick(post, &now, why);
}

/* Between two passes through the posts, when nothing is on its way. */
static void settle_marks(struct weir_lane *lane)
{
	weir_marks_settle(lane->posts);
	spread_marks(lane, lane->mark_ns);
}

/* Upstream first, and what a tick emits runs on at once. */
static void tick(struct weir_lane *lane, unsigned why)
{
	settle_marks(lane);
	if (__atomic_exchange_n(&lane->reopen, false, __ATOMIC_RELAXED))
		why |= WEIR_TICK_REOPEN;
	if (lane->now_ns >= lane->next_tick_ns) {
		lane->next_tick_ns = lane->now_ns + BUSY_TICK_NS;
		why |= WEIR_TICK_TIME;
	}
	tick_post(lane, lane->head, lane->mark_ns, why);
	for (unsigned i = 0; i < lane->posts->len; i++) {
		struct weir_post *post = lane->posts->pdata[i];

		weir_post_run(post);
		tick_post(lane, post, post->mark_ns, why);
	}
	weir_arena_reset(&lane->arena);
}

static void witness(struct weir_lane *lane)
{
	if (lane->head->plugin->witness)
		lane->head->plugin->witness(&lane->head->seat.self);
	for (unsigned i = 0; i < lane->posts->len; i++) {
		struct weir_post *post = lane->posts->pdata[i];

		if (post->plugin->witness)
			post->plugin->witness(&post->seat.self);
	}
	__atomic_store_n(&lane->cpu_ns, (uint64_t)clock_ns(CLOCK_THREAD_CPUTIME_ID),
			 __ATOMIC_RELAXED);
}

void weir_lane_witness(struct weir_lane *lane, const struct weir_instance *source)
{
	if (lane->head->seat.instance == source && source->node->plugin->witness)
		source->node->plugin->witness(&lane->head->seat.self);
}

/* ---- The loop ---- */

static int poll_head(struct weir_lane *lane, int timeout_ms)
{
	int64_t mark_ns = lane->mark_ns;
	int n = lane->head->plugin->poll(&lane->head->seat.self, lane->batch, lane->poll_max,
					 timeout_ms, &mark_ns);

	weir_lane_clock(lane);
	if (n < WEIR_FAILED || n > (int)lane->poll_max) {
		weir_fault(&lane->head->seat, "poll() returned %d, asked for at most %u packets", n,
			   lane->poll_max);
		return WEIR_FAILED;
	}
	if (n > 0)
		run_batch(lane, (unsigned)n);
	lane->mark_ns = MAX(lane->mark_ns, mark_ns);
	return n;
}

/* Tells a source to stop; false: it need not be polled again. */
static bool tell_to_stop(struct weir_lane *lane)
{
	if (lane->head->plugin == &weir_queue_plugin)
		return true;
	if (!lane->head->plugin->stop)
		return false;
	lane->head->plugin->stop(&lane->head->seat.self);
	return true;
}

/* When the clock is to wake some post; INT64_MAX: never. */
static int64_t next_due_ns(const struct weir_lane *lane)
{
	int64_t due_ns = lane->head->due_ns;

	for (unsigned i = 0; i < lane->posts->len; i++)
		due_ns = MIN(due_ns, ((const struct weir_post *)lane->posts->pdata[i])->due_ns);
	return due_ns;
}

/* How long poll() may wait: briefly after traffic, so that what it left in buffers goes out in
 * time. */
static int poll_timeout_ms(const struct weir_lane *lane, int64_t last_packet_ns, bool stopping)
{
	int64_t timeout_ns;

	if (stopping)
		return lane->head->plugin == &weir_queue_plugin ? 10 : 0;
	timeout_ns = lane->now_ns - last_packet_ns < IDLE_TICK_NS ? BUSY_TICK_NS : IDLE_TICK_NS;
	timeout_ns = CLAMP(next_due_ns(lane) - lane->now_ns, 0, timeout_ns);
	return (int)((timeout_ns + NS_PER_MS - 1) / NS_PER_MS);
}

static void loop(struct weir_lane *lane)
{
	int64_t last_packet_ns = weir_lane_clock(lane);
	bool stopping = false;

	for (;;) {
		enum weir_stop stop = weir_context_stop(lane->context);
		int n;

		if (stop == WEIR_ABANDONED)
			return;
		if (stop == WEIR_STOPPING && !stopping) {
			stopping = true;
			if (!tell_to_stop(lane))
				return;
		}
		n = poll_head(lane, poll_timeout_ms(lane, last_packet_ns, stopping));
		if (n < 0) {
			if (n == WEIR_FAILED)
				weir_context_fail(lane->context);
			return;
		}
		if (n > 0)
			last_packet_ns = lane->now_ns;
		else
			note_wait(lane);
		tick(lane, n == 0 ? WEIR_TICK_IDLE : 0);
		settle_marks(lane);
		publish_marks(lane);
		if (lane->now_ns >= lane->next_witness_ns) {
			lane->next_witness_ns = lane->now_ns + WITNESS_NS;
			witness(lane);
		}
	}
}

static void drain_abandoned(struct weir_lane *lane)
{
	struct weir_queue_seat *seat = lane->head->seat.self.lane;
	struct weir_count count = {0};
	int64_t mark_ns;
	int n;

	if (lane->head->plugin != &weir_queue_plugin)
		return;
	seat->merge.window_ns = 0;
	while ((n = weir_merge_take(&seat->merge, lane->batch, WEIR_BATCH, lane->now_ns,
				    &mark_ns)) >= 0) {
		for (int i = 0; i < n; i++) {
			count.captured += lane->batch[i].caplen;
			count.wire += lane->batch[i].wirelen;
		}
		count.packets += (uint64_t)n;
		if (n == 0)
			weir_lane_sleep(lane, 10);
	}
	weir_row_count(&lane->head->seat.row->out[WEIR_QUEUE_ABANDONED], &count);
}

void *weir_lane_main(void *user)
{
	struct weir_lane *lane = user;

	loop(lane);
	if (weir_context_stop(lane->context) == WEIR_ABANDONED)
		drain_abandoned(lane);
	weir_lane_clock(lane);
	tick(lane, WEIR_TICK_END);
	weir_marks_end(lane->posts);
	witness(lane);
	__atomic_store_n(&lane->ended, true, __ATOMIC_RELEASE);
	lane->context->listener.lane_ended(lane->context->listener.user);
	return NULL;
}
