/* services.c: what core does for plugins: the other half of weir/plugin.h. */
#include <weir/plugin.h>

#include "arena.h"
#include "lane.h"

#include <string.h>

static struct weir_context *context_of(struct weir_self *self)
{
	return weir_seat_of(self)->instance->context;
}

static const struct weir_plugin *plugin_of(struct weir_self *self)
{
	return weir_seat_of(self)->instance->node->plugin;
}

/* For calls that only callbacks of a lane may make; false: it is a fault. */
static bool in_lane(struct weir_self *self, const char *call)
{
	if (weir_seat_of(self)->lane)
		return true;
	weir_fault(weir_seat_of(self), "%s() where there is no lane", call);
	return false;
}

static char *format_text(const char *format, va_list args)
{
	return format ? g_strdup_vprintf(format, args) : g_strdup("(NULL)");
}

/* ---- Words ---- */

static struct weir_position place_of(const struct weir_node *node, const char *option)
{
	for (unsigned i = 0; option && i < node->n_options; i++) {
		if (strcmp(weir_plugin_option(node->plugin, i)->name, option) == 0)
			return node->values[i].where;
	}
	return node->where;
}

void weir_error(struct weir_self *self, const char *option, const char *format, ...)
{
	const struct weir_node *node = weir_seat_of(self)->instance->node;
	struct weir_context *context = context_of(self);
	g_autofree char *text = NULL;
	va_list args;

	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	pthread_mutex_lock(&context->lock);
	weir_errors_add(context->errors, place_of(node, option), "%s: %s", node->name, text);
	pthread_mutex_unlock(&context->lock);
}

/* At most one line a second for each format of a node; *ret_hidden: how many were held back since
 * the last. */
static bool may_log(struct weir_context *context, const struct weir_self *self, const char *format,
		    unsigned *ret_hidden)
{
	struct last {
		int64_t us;
		unsigned hidden;
	} * last;
	g_autofree char *key = g_strdup_printf("%s %s", self->name, format);
	int64_t now_us = g_get_monotonic_time();
	bool may;

	pthread_mutex_lock(&context->lock);
	last = g_hash_table_lookup(context->last_logged, key);
	may = !last || now_us - last->us >= G_USEC_PER_SEC;
	if (!last) {
		last = g_new0(struct last, 1);
		g_hash_table_insert(context->last_logged, g_steal_pointer(&key), last);
	}
	*ret_hidden = may ? last->hidden : 0;
	last->hidden = may ? 0 : last->hidden + 1;
	last->us = may ? now_us : last->us;
	pthread_mutex_unlock(&context->lock);
	return may;
}

void weir_log(struct weir_self *self, int level, const char *format, ...)
{
	struct weir_context *context = context_of(self);
	g_autofree char *text = NULL;
	g_autofree char *with_hidden = NULL;
	unsigned hidden;
	va_list args;

	if (!may_log(context, self, format, &hidden))
		return;
	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	if (hidden)
		with_hidden = g_strdup_printf("%s (and %u more such lines)", text, hidden);
	context->listener.log(context->listener.user, weir_seat_of(self), level,
			      with_hidden ? with_hidden : text);
}

void weir_event(struct weir_self *self, const char *event, const char *format, ...)
{
	struct weir_context *context = context_of(self);
	g_autofree char *text = NULL;
	va_list args;

	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	context->listener.event(context->listener.user, weir_seat_of(self), event, text);
}

/* ---- Interfaces ---- */

uint16_t weir_interface_add(struct weir_self *self, const struct weir_interface *interface)
{
	if (!interface) {
		weir_fault(weir_seat_of(self), "%s() of no interface", __func__);
		return UINT16_MAX;
	}
	return weir_interfaces_add(context_of(self)->interfaces, weir_seat_of(self)->instance->node,
				   interface);
}

const struct weir_interface *weir_interface(struct weir_self *self, uint16_t iface)
{
	return weir_interfaces_get(context_of(self)->interfaces, iface);
}

static void add_upstream(const struct weir_node *node, GHashTable *seen)
{
	if (!g_hash_table_add(seen, (gpointer)node))
		return;
	for (unsigned i = 0; i < node->in->len; i++)
		add_upstream(((struct weir_edge *)node->in->pdata[i])->from, seen);
}

unsigned weir_interfaces_upstream(struct weir_self *self, uint16_t *ret_ids, unsigned max)
{
	const struct weir_interfaces *interfaces = context_of(self)->interfaces;
	g_autoptr(GHashTable) upstream = g_hash_table_new(NULL, NULL);
	unsigned count = weir_interfaces_count(interfaces), found = 0;

	add_upstream(weir_seat_of(self)->instance->node, upstream);
	for (unsigned id = 0; id < count; id++) {
		if (!g_hash_table_contains(upstream,
					   weir_interfaces_node(interfaces, (uint16_t)id)))
			continue;
		if (found < max)
			ret_ids[found] = (uint16_t)id;
		found++;
	}
	return found;
}

/* ---- Packets ---- */

void weir_emit(struct weir_self *self, unsigned output, const struct weir_packet *packet)
{
	struct weir_seat *seat = weir_seat_of(self);

	if (!in_lane(self, __func__))
		return;
	if (output >= seat->instance->node->n_outputs)
		weir_fault(seat, "%s() to output %u, which is not in its table", __func__, output);
	else if (!((struct weir_post *)seat)->may_emit)
		weir_fault(seat, "%s() outside of transform() and tick()", __func__);
	else
		weir_post_emit((struct weir_post *)seat, output, packet);
}

void weir_made(struct weir_self *self, uint64_t packets)
{
	weir_row_add(&weir_seat_of(self)->row->made, packets);
}

void weir_absorbed(struct weir_self *self, uint64_t packets)
{
	weir_row_add(&weir_seat_of(self)->row->absorbed, packets);
}

void weir_hold(struct weir_self *self, int64_t oldest_ns)
{
	struct weir_post *post = (struct weir_post *)self;

	if (!in_lane(self, __func__))
		return;
	post->hold_ns = oldest_ns;
	post->held_ns = MIN(post->held_ns, oldest_ns);
}

uint8_t *weir_scratch(struct weir_self *self, size_t size)
{
	if (!in_lane(self, __func__))
		return NULL;
	return weir_arena_take(weir_lane_arena(weir_seat_of(self)->lane), size);
}

uint8_t *weir_writable(struct weir_self *self, struct weir_packet *packet)
{
	const struct weir_post *post = (struct weir_post *)self;
	uint8_t *copy;

	if (!in_lane(self, __func__))
		return NULL;
	if (!post->shared &&
	    weir_lane_domain(post->seat.lane)->head->node->plugin->flags & WEIR_MEMORY_WRITABLE)
		return (uint8_t *)packet->data;
	copy = weir_scratch(self, packet->caplen);
	if (!copy)
		return NULL;
	memcpy(copy, packet->data, packet->caplen);
	packet->data = copy;
	return copy;
}

/* ---- Time and waiting ---- */

void weir_wake_at(struct weir_self *self, int64_t stream_ns)
{
	struct weir_post *post = (struct weir_post *)self;

	if (!in_lane(self, __func__))
		return;
	post->wake_ns = MIN(post->wake_ns, stream_ns);
}

int64_t weir_wake_in(struct weir_self *self, int64_t delay_ns)
{
	struct weir_post *post = (struct weir_post *)self;
	int64_t due_ns;

	if (!in_lane(self, __func__))
		return INT64_MAX;
	due_ns = weir_lane_now(post->seat.lane) + delay_ns;
	post->due_ns = MIN(post->due_ns, due_ns);
	return due_ns;
}

bool weir_wait(struct weir_self *self, int timeout_ms)
{
	struct weir_lane *lane = weir_seat_of(self)->lane;

	return in_lane(self, __func__) && weir_lane_domain(lane)->waits &&
	       weir_lane_wait(lane, timeout_ms);
}

void weir_notify(struct weir_self *self)
{
	if (in_lane(self, __func__))
		weir_lane_wake(weir_seat_of(self)->lane);
}

bool weir_abandoned(const struct weir_self *self)
{
	const struct weir_seat *seat = (const struct weir_seat *)self;

	return weir_context_stop(seat->instance->context) == WEIR_ABANDONED;
}

void weir_finish(struct weir_self *self)
{
	struct weir_instance *instance = weir_seat_of(self)->instance;
	struct weir_context *context = instance->context;

	if (plugin_of(self)->kind != WEIR_SINK) {
		weir_fault(weir_seat_of(self), "%s() of what is no sink", __func__);
		return;
	}
	if (__atomic_exchange_n(&instance->finished, true, __ATOMIC_RELAXED))
		return;
	if (__atomic_sub_fetch(&context->unfinished_sinks, 1, __ATOMIC_RELAXED) == 0)
		context->listener.ending(context->listener.user);
}

/* ---- Numbers ---- */

void weir_settle(struct weir_self *self, unsigned outcome, uint64_t packets, uint64_t bytes)
{
	struct weir_seat *seat = weir_seat_of(self);
	struct weir_count *count;

	if (plugin_of(self)->kind != WEIR_SINK || outcome >= seat->instance->node->n_outputs) {
		weir_fault(seat, "%s() of outcome %u, which no sink's table has", __func__,
			   outcome);
		return;
	}
	count = &seat->row->out[outcome];
	__atomic_fetch_add(&count->packets, packets, __ATOMIC_RELEASE);
	__atomic_fetch_add(&count->captured, bytes, __ATOMIC_RELEASE);
}

/* NULL after a fault. */
static uint64_t *counter_of(struct weir_self *self, unsigned counter)
{
	struct weir_seat *seat = weir_seat_of(self);
	struct weir_row *row = seat->row;

	if (counter >= seat->instance->node->n_counters) {
		weir_fault(seat, "counter %u is not in its table", counter);
		return NULL;
	}
	__atomic_store_n(&row->counter_set[counter], true, __ATOMIC_RELAXED);
	return &row->counters[counter];
}

void weir_count(struct weir_self *self, unsigned counter, uint64_t n)
{
	uint64_t *at = counter_of(self, counter);

	if (at)
		__atomic_fetch_add(at, n, __ATOMIC_RELAXED);
}

void weir_witness(struct weir_self *self, unsigned counter, uint64_t value)
{
	uint64_t *at = counter_of(self, counter);

	if (at)
		__atomic_store_n(at, value, __ATOMIC_RELAXED);
}
