/* lanes.c: out of the plan, once, in the main thread. */
#include "lanes.h"

#include "queue.h"

static void add_post(struct weir_lane *lane, struct weir_instance *instance, unsigned index)
{
	struct weir_post *post = weir_post_new(instance, lane);

	post->seat.self.lane_index = index;
	post->seat.row = &instance->rows[index];
	post->shared = weir_plan_shares(weir_lane_domain(lane), instance->node);
	weir_lane_add(lane, post);
}

static void connect(struct weir_lane *lane, const struct weir_instance *from, unsigned output,
		    const struct weir_plan *plan)
{
	const GPtrArray *edges = from->node->out[output];

	for (unsigned i = 0; i < edges->len; i++) {
		const struct weir_edge *edge = edges->pdata[i];

		weir_post_connect(weir_lane_post(lane, from), output,
				  weir_lane_post(lane, plan->instances[edge->to->index]));
	}
}

/* A queue's `out` leads on only where the queue is the head, its other outputs only where it is
 * fed. */
static void connect_all(struct weir_lane *lane, const struct weir_domain *domain,
			const struct weir_plan *plan)
{
	bool head_is_queue = domain->head->node->plugin == &weir_queue_plugin;

	for (unsigned o = 0; o < domain->head->node->n_outputs; o++) {
		if (!head_is_queue || o == WEIR_QUEUE_OUT)
			connect(lane, domain->head, o, plan);
	}
	for (unsigned i = 0; i < domain->nodes->len; i++) {
		const struct weir_instance *instance = domain->nodes->pdata[i];
		bool queue = instance->node->plugin == &weir_queue_plugin;

		for (unsigned o = 0; o < instance->node->n_outputs; o++) {
			if (!queue || o != WEIR_QUEUE_OUT)
				connect(lane, instance, o, plan);
		}
	}
}

static struct weir_lane *lane_new(const struct weir_plan *plan, const struct weir_domain *domain,
				  unsigned index, unsigned *next_index,
				  struct weir_context *context)
{
	struct weir_lane *lane = weir_lane_new(context, domain, index);

	add_post(lane, domain->head, index);
	for (unsigned i = 0; i < domain->nodes->len; i++) {
		struct weir_instance *instance = domain->nodes->pdata[i];

		add_post(lane, instance, next_index[instance->node->index]++);
	}
	connect_all(lane, domain, plan);
	weir_lane_ready(lane);
	return lane;
}

/* ---- Rings ---- */

static void wake(void *lane)
{
	weir_lane_wake(lane);
}

static GPtrArray *lanes_with(const GPtrArray *lanes, const struct weir_instance *queue,
			     bool as_head)
{
	GPtrArray *found = g_ptr_array_new();

	for (unsigned i = 0; i < lanes->len; i++) {
		struct weir_lane *lane = lanes->pdata[i];

		if (weir_lane_post(lane, queue) &&
		    (weir_lane_domain(lane)->head == queue) == as_head)
			g_ptr_array_add(found, lane);
	}
	return found;
}

static bool add_rings(struct weir_instance *queue, const GPtrArray *lanes)
{
	const struct weir_queue_config *config = queue->node->config;
	g_autoptr(GPtrArray) producers = lanes_with(lanes, queue, false);
	g_autoptr(GPtrArray) consumers = lanes_with(lanes, queue, true);
	uint64_t bytes = config->size / (producers->len * (uint64_t)consumers->len);

	for (unsigned p = 0; p < producers->len; p++) {
		struct weir_queue_seat *from =
			weir_lane_post(producers->pdata[p], queue)->seat.self.lane;

		from->out = g_new0(struct weir_ring *, consumers->len);
		for (unsigned c = 0; c < consumers->len; c++) {
			struct weir_queue_seat *to =
				weir_lane_post(consumers->pdata[c], queue)->seat.self.lane;
			struct weir_ring *ring = weir_ring_new(bytes, wake, producers->pdata[p],
							       consumers->pdata[c]);

			if (!ring)
				return false;
			if (!to->merge.rings)
				weir_merge_init(&to->merge, producers->len,
						weir_lane_domain(consumers->pdata[c])->live
							? config->window_ns
							: INT64_MAX);
			to->merge.rings[to->merge.n++] = ring;
			from->out[from->n_out++] = ring;
		}
	}
	return true;
}

/*
 * A lane that waits for room in one queue while another queue's consumer waits for its packets must
 * have pushed nothing but what fits: else two such lanes could wait for each other.  So its batch
 * must fit into the ring.
 */
static void limit_batches(struct weir_instance *queue, const GPtrArray *lanes)
{
	g_autoptr(GPtrArray) producers = lanes_with(lanes, queue, false);

	if (producers->len < 2)
		return;
	for (unsigned p = 0; p < producers->len; p++) {
		struct weir_self *self = &weir_lane_post(producers->pdata[p], queue)->seat.self;
		const struct weir_queue_seat *seat = self->lane;

		if (weir_queue_waits(self))
			weir_lane_limit_batch(producers->pdata[p], weir_ring_records(seat->out[0]));
	}
}

GPtrArray *weir_lanes_new(const struct weir_plan *plan, struct weir_context *context)
{
	g_autofree unsigned *next_index = g_new0(unsigned, plan->graph->nodes->len);
	g_autoptr(GPtrArray) lanes = g_ptr_array_new_with_free_func((GDestroyNotify)weir_lane_free);
	bool complete = true;

	for (unsigned d = 0; d < plan->domains->len; d++) {
		const struct weir_domain *domain = plan->domains->pdata[d];

		for (unsigned i = 0; i < domain->n_lanes; i++)
			g_ptr_array_add(lanes, lane_new(plan, domain, i, next_index, context));
	}
	for (unsigned i = 0; i < plan->graph->nodes->len; i++) {
		struct weir_instance *instance = plan->instances[i];

		if (instance->node->plugin != &weir_queue_plugin)
			continue;
		if (!add_rings(instance, lanes)) {
			weir_errors_add(context->errors, instance->node->where,
					"%s: no memory for its rings", instance->node->name);
			complete = false;
			break;
		}
		limit_batches(instance, lanes);
	}
	return complete ? g_steal_pointer(&lanes) : NULL;
}
