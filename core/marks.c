/* marks.c: marks from post to post, and into rings. */
#include "marks.h"

#include "queue.h"

static void pass_on(const struct weir_post *post, int64_t mark_ns)
{
	for (unsigned o = 0; o < post->n_outlets; o++) {
		for (unsigned i = 0; i < post->outlets[o].n; i++) {
			struct weir_post *to = post->outlets[o].to[i];

			to->next_mark_ns = MIN(to->next_mark_ns, mark_ns);
		}
	}
}

void weir_marks_spread(const struct weir_post *head, const GPtrArray *posts, int64_t mark_ns,
		       bool heed_holds)
{
	for (unsigned i = 0; i < posts->len; i++)
		((struct weir_post *)posts->pdata[i])->next_mark_ns = INT64_MAX;
	pass_on(head, mark_ns);
	for (unsigned i = 0; i < posts->len; i++) {
		struct weir_post *post = posts->pdata[i];

		post->mark_ns = MAX(post->mark_ns, post->next_mark_ns);
		pass_on(post, heed_holds ? MIN(post->mark_ns, post->held_ns) : post->mark_ns);
	}
}

void weir_marks_settle(const GPtrArray *posts)
{
	for (unsigned i = 0; i < posts->len; i++) {
		struct weir_post *post = posts->pdata[i];

		post->held_ns = post->hold_ns;
	}
}

/* The seat of a queue that is fed here; NULL: the post is no queue. */
static struct weir_queue_seat *queue_at(const GPtrArray *posts, unsigned i)
{
	const struct weir_post *post = posts->pdata[i];

	return post->plugin == &weir_queue_plugin ? post->seat.self.lane : NULL;
}

int64_t weir_marks_youngest(const GPtrArray *posts)
{
	int64_t youngest_ns = INT64_MIN;

	for (unsigned i = 0; i < posts->len; i++) {
		const struct weir_queue_seat *queue = queue_at(posts, i);

		for (unsigned r = 0; queue && r < queue->n_out; r++)
			youngest_ns = MAX(youngest_ns, weir_ring_key(queue->out[r]));
	}
	return youngest_ns;
}

static void publish(const GPtrArray *posts, int64_t least_ns, bool done)
{
	for (unsigned i = 0; i < posts->len; i++) {
		const struct weir_queue_seat *queue = queue_at(posts, i);
		int64_t mark_ns = MAX(((struct weir_post *)posts->pdata[i])->mark_ns, least_ns);

		for (unsigned r = 0; queue && r < queue->n_out; r++)
			weir_ring_mark(queue->out[r], mark_ns, done);
	}
}

void weir_marks_publish(const GPtrArray *posts, int64_t least_ns)
{
	publish(posts, least_ns, false);
}

void weir_marks_end(const GPtrArray *posts)
{
	publish(posts, INT64_MAX, true);
}
