/* lane.c: the loop of a lane, and its waits. */
#include "lane.h"

#include <weir/dissect.h>

#include "arena.h"
#include "marks.h"
#include "post.h"
#include "queue.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#define BUSY_TICK_NS (10 * 1000000LL)
#define IDLE_TICK_NS (100 * 1000000LL)
#define WITNESS_NS   (1000 * 1000000LL)
#define STUCK_NS     (1000 * 1000000LL) /* without progress */

struct weir_lane {
	struct weir_context *context;
	const struct weir_domain *domain;
	char *name;
	struct weir_post *head;
	GPtrArray *posts; /* struct weir_post *, topological, without head */
	bool has_merges;  /* some post has several feeders, so positions in the batch matter */
	bool has_queues;
	unsigned poll_max; /* packets a batch */
	struct weir_arena arena;
	int64_t mark_ns, oldest_ns; /* of all that is still to come; of this batch */
	int64_t now_ns, next_tick_ns, next_witness_ns;
	int64_t stuck_since_ns; /* it waits, or has nothing to do; 0: it does not */
	bool gave_up;

	pthread_t thread;
	bool started;
	bool ended;      /* atomic */
	bool reopen;     /* atomic */
	uint64_t cpu_ns; /* atomic */

	pthread_mutex_t lock;
	pthread_cond_t woken;
	bool wake; /* under lock */

	struct weir_packet batch[WEIR_BATCH];
};

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
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + timeout_ms * 1000000LL;
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

static bool is_stuck(const struct weir_lane *lane)
{
	return lane->stuck_since_ns && lane->now_ns - lane->stuck_since_ns > STUCK_NS;
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
	if (weir_context_stop(lane->context) == WEIR_RUNNING)
		return true;
	lane->gave_up |= is_stuck(lane);
	return !lane->gave_up && weir_context_stop(lane->context) != WEIR_ABANDONED;
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

/* How long poll() may wait: briefly after traffic, so that what it left in buffers goes out in
 * time. */
static int poll_timeout_ms(const struct weir_lane *lane, int64_t last_packet_ns, bool stopping)
{
	if (stopping)
		return lane->head->plugin == &weir_queue_plugin ? 10 : 0;
	return (int)((lane->now_ns - last_packet_ns < IDLE_TICK_NS ? BUSY_TICK_NS : IDLE_TICK_NS) /
		     1000000);
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

static void *lane_main(void *user)
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

/* ---- Life ---- */

struct weir_lane *weir_lane_new(struct weir_context *context, const struct weir_domain *domain,
				unsigned index)
{
	struct weir_lane *lane = g_new0(struct weir_lane, 1);
	pthread_condattr_t monotonic;

	lane->context = context;
	lane->domain = domain;
	lane->name = g_strdup_printf("%s/%u", domain->head->node->name, index);
	lane->posts = g_ptr_array_new_with_free_func((GDestroyNotify)weir_post_free);
	lane->poll_max = WEIR_BATCH;
	lane->mark_ns = lane->oldest_ns = INT64_MIN;
	weir_arena_init(&lane->arena);
	pthread_mutex_init(&lane->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&lane->woken, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return lane;
}

void weir_lane_free(struct weir_lane *lane)
{
	if (!lane)
		return;
	weir_post_free(lane->head);
	g_ptr_array_unref(lane->posts);
	weir_arena_clear(&lane->arena);
	pthread_cond_destroy(&lane->woken);
	pthread_mutex_destroy(&lane->lock);
	g_free(lane->name);
	g_free(lane);
}

void weir_lane_add(struct weir_lane *lane, struct weir_post *post)
{
	if (!lane->head) {
		lane->head = post;
		return;
	}
	g_ptr_array_add(lane->posts, post);
}

void weir_lane_ready(struct weir_lane *lane)
{
	weir_post_ready(lane->head);
	for (unsigned i = 0; i < lane->posts->len; i++) {
		struct weir_post *post = lane->posts->pdata[i];

		weir_post_ready(post);
		lane->has_merges |= post->n_feeders > 1;
		lane->has_queues |= post->plugin == &weir_queue_plugin;
	}
}

void weir_lane_limit_batch(struct weir_lane *lane, unsigned packets)
{
	lane->poll_max = CLAMP(packets, 1, lane->poll_max);
}

unsigned weir_lane_n_posts(const struct weir_lane *lane)
{
	return lane->posts->len + 1;
}

struct weir_post *weir_lane_nth_post(const struct weir_lane *lane, unsigned n)
{
	return n ? lane->posts->pdata[n - 1] : lane->head;
}

struct weir_post *weir_lane_post(const struct weir_lane *lane, const struct weir_instance *instance)
{
	for (unsigned i = 0; i < weir_lane_n_posts(lane); i++) {
		struct weir_post *post = weir_lane_nth_post(lane, i);

		if (post->seat.instance == instance)
			return post;
	}
	return NULL;
}

/* The attributes for a thread on the processor that the source wants for this lane. */
static int choose_processor(const struct weir_lane *lane, pthread_attr_t *attributes)
{
	struct weir_self *self = &lane->head->seat.self;
	const struct weir_plugin *plugin = lane->head->plugin;
	int processor = plugin->processor ? plugin->processor(self, self->lane_index) : -1;
	cpu_set_t set;

	if (processor < 0 || processor >= CPU_SETSIZE)
		return 0;
	CPU_ZERO(&set);
	CPU_SET((size_t)processor, &set);
	return pthread_attr_setaffinity_np(attributes, sizeof(set), &set);
}

bool weir_lane_start(struct weir_lane *lane, GError **error)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int failure;

	pthread_attr_init(&attributes);
	failure = choose_processor(lane, &attributes);
	/* Signals are the main thread's: none shall interrupt a lane's system calls. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (!failure)
		failure = pthread_create(&lane->thread, &attributes, lane_main, lane);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (failure) {
		g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(failure),
			    "cannot start the thread of lane %s: %s", lane->name,
			    g_strerror(failure));
		return false;
	}
	lane->started = true;
	pthread_setname_np(lane->thread, strlen(lane->name) < 16 ? lane->name : "weir-lane");
	return true;
}

void weir_lane_skip(struct weir_lane *lane)
{
	weir_marks_end(lane->posts);
}

void weir_lane_reopen(struct weir_lane *lane)
{
	__atomic_store_n(&lane->reopen, true, __ATOMIC_RELAXED);
	weir_lane_wake(lane);
}

bool weir_lane_ended(const struct weir_lane *lane)
{
	return __atomic_load_n(&lane->ended, __ATOMIC_ACQUIRE);
}

void weir_lane_join(struct weir_lane *lane)
{
	if (lane->started)
		pthread_join(lane->thread, NULL);
	lane->started = false;
}

const char *weir_lane_name(const struct weir_lane *lane)
{
	return lane->name;
}

double weir_lane_cpu_seconds(const struct weir_lane *lane)
{
	return (double)__atomic_load_n(&lane->cpu_ns, __ATOMIC_RELAXED) / 1e9;
}

uint32_t weir_lane_flow(struct weir_lane *lane, struct weir_packet *packet)
{
	const struct weir_interface *interface = weir_interfaces_get(lane->context->interfaces,
								     packet->iface);

	return packet->flow ? packet->flow : weir_flow(packet, interface ? interface->linktype : 1);
}
