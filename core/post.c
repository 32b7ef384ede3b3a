/* post.c: verdicts into inboxes. */
#include "post.h"

#include "queue.h"

#include <weir/capfile.h>

#include <string.h>

struct weir_post *weir_post_new(struct weir_instance *instance, struct weir_lane *lane)
{
	struct weir_post *post = g_new0(struct weir_post, 1);

	post->seat = instance->seat;
	post->seat.lane = lane;
	post->plugin = instance->node->plugin;
	post->seat.self.lane = g_malloc0(MAX(post->plugin->lane_size, 1));
	post->n_outlets = instance->node->n_outputs;
	post->outlets = g_new0(struct weir_outlet, post->n_outlets + 1);
	post->wake_ns = post->due_ns = post->hold_ns = post->held_ns = INT64_MAX;
	post->mark_ns = INT64_MIN;
	return post;
}

void weir_post_free(struct weir_post *post)
{
	if (!post)
		return;
	for (unsigned o = 0; o < post->n_outlets; o++)
		g_free(post->outlets[o].to);
	g_free(post->outlets);
	g_free(post->in.own);
	g_free(post->seat.self.lane);
	g_free(post);
}

void weir_post_connect(struct weir_post *from, unsigned output, struct weir_post *to)
{
	struct weir_outlet *outlet = &from->outlets[output];

	outlet->to = g_renew(struct weir_post *, outlet->to, outlet->n + 1);
	outlet->to[outlet->n++] = to;
	to->n_feeders++;
}

void weir_post_ready(struct weir_post *post)
{
	post->in.capacity = WEIR_BATCH * MAX(post->n_feeders, 1);
	post->in.own = g_new(struct weir_packet, post->in.capacity);
	post->in.packets = post->in.own;
}

/* ---- Handing over ---- */

/* What a post has handed out is used up, so that it may be called again: its packets lie in memory
 * of its own, or their descriptors in its inbox. */
static void use_up(struct weir_post *post)
{
	for (unsigned o = 0; o < post->n_outlets; o++) {
		for (unsigned i = 0; i < post->outlets[o].n; i++) {
			struct weir_post *to = post->outlets[o].to[i];

			if (to->in.n == 0)
				continue;
			weir_post_run(to);
			use_up(to);
		}
	}
}

static void accept(struct weir_post *post, struct weir_packet *packets, unsigned n, bool keep)
{
	struct weir_inbox *in = &post->in;

	if (keep && post->n_feeders == 1 && in->n == 0) {
		in->packets = packets;
		in->n = n;
		return;
	}
	if (in->n + n > in->capacity) {
		weir_post_run(post);
		use_up(post);
	}
	if (in->packets != in->own) {
		memcpy(in->own, in->packets, in->n * sizeof(*in->own));
		in->packets = in->own;
	}
	memcpy(in->own + in->n, packets, n * sizeof(*in->own));
	in->n += n;
}

/* keep: the array stays as it is until the consumers have run, so that the last one may have it. */
static void deliver(struct weir_post *post, unsigned output, struct weir_packet *packets,
		    unsigned n, bool keep)
{
	const struct weir_outlet *outlet = &post->outlets[output];

	for (unsigned i = 0; i < outlet->n; i++)
		accept(outlet->to[i], packets, n, keep && i + 1 == outlet->n);
}

static struct weir_count sum(const struct weir_packet *packets, unsigned n)
{
	struct weir_count count = {.packets = n};

	for (unsigned i = 0; i < n; i++) {
		count.captured += packets[i].caplen;
		count.wire += packets[i].wirelen;
	}
	return count;
}

/* Sinks make room for no more. */
static void limit(struct weir_post *post, struct weir_packet *packet)
{
	if (packet->caplen <= WEIR_MAX_CAPLEN)
		return;
	weir_fault(&post->seat, "a packet of %u captured bytes", packet->caplen);
	packet->caplen = WEIR_MAX_CAPLEN;
}

/* The same of packets that leave a post. */
static struct weir_count sum_left(struct weir_post *post, struct weir_packet *packets, unsigned n)
{
	struct weir_count count = {.packets = n};
	uint32_t longest = 0;

	for (unsigned i = 0; i < n; i++) {
		count.captured += packets[i].caplen;
		count.wire += packets[i].wirelen;
		longest = MAX(longest, packets[i].caplen);
	}
	if (longest <= WEIR_MAX_CAPLEN)
		return count;
	for (unsigned i = 0; i < n; i++)
		limit(post, &packets[i]);
	return sum(packets, n);
}

static bool all_have(unsigned verdict, const struct weir_packet *packets, unsigned n)
{
	unsigned differs = 0;

	for (unsigned i = 0; i < n; i++)
		differs |= packets[i].verdict ^ verdict;
	return differs == 0;
}

/* Moves the packets with that verdict together, at `to`, which may be packets itself.  Each is
 * copied, and the next one over it if it was none of them: verdicts follow no pattern that a
 * processor could predict. */
static unsigned gather(const struct weir_packet *packets, unsigned n, unsigned verdict,
		       struct weir_packet *to)
{
	unsigned found = 0;

	for (unsigned i = 0; i < n; i++) {
		bool belongs = packets[i].verdict == verdict;

		to[found] = packets[i];
		to[found].verdict = 0;
		found += belongs;
	}
	return found;
}

/* What a faulty plugin has said of packets that therefore went nowhere. */
static void count_astray(struct weir_post *post, unsigned n)
{
	if (n == 0)
		return;
	weir_row_add(&post->seat.row->astray, n);
	weir_log(&post->seat.self, WEIR_WARN,
		 "a fault of plugin '%s': a verdict that is none of its %u outputs",
		 post->plugin->name, post->n_outlets);
}

static unsigned count_pending(const struct weir_post *post, const struct weir_packet *packets,
			      unsigned n)
{
	unsigned pending = 0;

	if (post->plugin->kind != WEIR_SINK && post->plugin != &weir_queue_plugin)
		return 0;
	for (unsigned i = 0; i < n; i++)
		pending += packets[i].verdict == WEIR_PENDING;
	return pending;
}

void weir_post_route(struct weir_post *post, struct weir_packet *packets, unsigned n)
{
	struct weir_packet moved[WEIR_BATCH];
	struct weir_row *row = post->seat.row;
	struct weir_count count;
	unsigned left = n;

	if (all_have(0, packets, n)) {
		count = sum_left(post, packets, n);
		weir_row_count(&row->out[0], &count);
		deliver(post, 0, packets, n, true);
		return;
	}
	left -= count_pending(post, packets, n);
	if (left == 0)
		return;
	/* The default output comes last, since its packets are moved together in place. */
	for (unsigned o = post->n_outlets; o-- > 0;) {
		struct weir_packet *to = o ? moved : packets;

		count = sum_left(post, to, gather(packets, n, o, to));
		if (count.packets == 0)
			continue;
		weir_row_count(&row->out[o], &count);
		deliver(post, o, to, (unsigned)count.packets, o == 0);
		left -= (unsigned)count.packets;
	}
	count_astray(post, left);
}

/* ---- Sinks ---- */

static void add_outcome(struct weir_post *post, unsigned outcome, const struct weir_count *count)
{
	struct weir_count *to = &post->seat.row->out[outcome];

	/* weir_settle() adds to the same numbers from other threads. */
	__atomic_fetch_add(&to->packets, count->packets, __ATOMIC_RELEASE);
	__atomic_fetch_add(&to->captured, count->captured, __ATOMIC_RELEASE);
	__atomic_fetch_add(&to->wire, count->wire, __ATOMIC_RELEASE);
}

static void count_outcomes(struct weir_post *post, const struct weir_packet *packets, unsigned n)
{
	struct weir_packet same[WEIR_BATCH];
	struct weir_count count;
	unsigned left = n;

	if (all_have(WEIR_PENDING, packets, n))
		return;
	if (all_have(0, packets, n)) {
		count = sum(packets, n);
		add_outcome(post, 0, &count);
		return;
	}
	for (unsigned o = 0; o < post->n_outlets; o++) {
		count = sum(same, gather(packets, n, o, same));
		add_outcome(post, o, &count);
		left -= (unsigned)count.packets;
	}
	count_astray(post, left - count_pending(post, packets, n));
}

/* ---- Running ---- */

/* Back into the order of the source's batch: a counting sort, since positions are below WEIR_BATCH.
 */
static void restore_order(struct weir_inbox *in)
{
	unsigned at[WEIR_BATCH + 1] = {0};
	g_autofree struct weir_packet *sorted = NULL;
	bool ordered = true;

	for (unsigned i = 0; i < in->n; i++) {
		at[in->packets[i].order % WEIR_BATCH + 1]++;
		ordered &= i == 0 || in->packets[i - 1].order <= in->packets[i].order;
	}
	if (ordered)
		return;
	sorted = g_new(struct weir_packet, in->n);
	for (unsigned i = 0; i < WEIR_BATCH; i++)
		at[i + 1] += at[i];
	for (unsigned i = 0; i < in->n; i++)
		sorted[at[in->packets[i].order % WEIR_BATCH]++] = in->packets[i];
	memcpy(in->own, sorted, in->n * sizeof(*sorted));
}

static void run_batch(struct weir_post *post, struct weir_packet *packets, unsigned n)
{
	struct weir_count count = sum(packets, n);

	weir_row_count(&post->seat.row->in, &count);
	if (post->plugin->transform) {
		post->first_order = packets[0].order;
		post->last_order = packets[n - 1].order;
		post->may_emit = true;
		post->plugin->transform(&post->seat.self, packets, n);
		post->may_emit = false;
		weir_post_publish(post);
		return;
	}
	post->plugin->judge(&post->seat.self, packets, n);
	if (post->plugin->kind == WEIR_SINK)
		count_outcomes(post, packets, n);
	else
		weir_post_route(post, packets, n);
}

void weir_post_run(struct weir_post *post)
{
	struct weir_inbox in = post->in;

	if (in.n == 0)
		return;
	if (post->n_feeders > 1)
		restore_order(&in);
	post->in.n = 0;
	post->in.packets = post->in.own;
	for (unsigned i = 0; i < in.n; i += WEIR_BATCH) {
		if (i)
			use_up(post);
		run_batch(post, in.packets + i, MIN(WEIR_BATCH, in.n - i));
	}
}

void weir_post_tick(struct weir_post *post, const struct weir_now *now, unsigned why)
{
	if (!post->plugin->tick)
		return;
	use_up(post);
	post->first_order = post->last_order = 0;
	post->may_emit = true;
	post->plugin->tick(&post->seat.self, now, why);
	post->may_emit = false;
	weir_post_publish(post);
}

void weir_post_emit(struct weir_post *post, unsigned output, const struct weir_packet *packet)
{
	struct weir_packet copy = *packet;
	struct weir_outlet *outlet = &post->outlets[output];

	limit(post, &copy);
	copy.verdict = 0;
	/* What was held, or made, has a position of another batch, or none: it stays behind what
	 * was emitted before it. */
	copy.order = CLAMP(copy.order, post->first_order, MAX(post->first_order, post->last_order));
	post->first_order = copy.order;
	outlet->emitted.packets++;
	outlet->emitted.captured += copy.caplen;
	outlet->emitted.wire += copy.wirelen;
	deliver(post, output, &copy, 1, false);
}

void weir_post_publish(struct weir_post *post)
{
	for (unsigned o = 0; o < post->n_outlets; o++) {
		if (!post->outlets[o].emitted.packets)
			continue;
		weir_row_count(&post->seat.row->out[o], &post->outlets[o].emitted);
		post->outlets[o].emitted = (struct weir_count){0};
	}
}
