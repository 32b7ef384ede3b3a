/* instance.c: memory of nodes, which core owns so that plugins cannot forget to free it. */
#include "instance.h"

struct weir_context *weir_context_new(struct weir_errors *errors,
				      const struct weir_listener *listener)
{
	struct weir_context *context = g_new0(struct weir_context, 1);

	context->interfaces = weir_interfaces_new();
	context->errors = errors;
	context->listener = *listener;
	context->last_logged = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	pthread_mutex_init(&context->lock, NULL);
	return context;
}

void weir_context_free(struct weir_context *context)
{
	if (!context)
		return;
	weir_interfaces_free(context->interfaces);
	g_hash_table_unref(context->last_logged);
	g_free(context->pipeline_sha256);
	pthread_mutex_destroy(&context->lock);
	g_free(context);
}

char **weir_context_messages(struct weir_context *context)
{
	const GPtrArray *messages = context->errors->messages;
	char **copy;

	pthread_mutex_lock(&context->lock);
	copy = g_new0(char *, messages->len + 1);
	for (unsigned i = 0; i < messages->len; i++)
		copy[i] = g_strdup(messages->pdata[i]);
	pthread_mutex_unlock(&context->lock);
	return copy;
}

void weir_context_fail(struct weir_context *context)
{
	__atomic_store_n(&context->failed, true, __ATOMIC_RELAXED);
	context->listener.ending(context->listener.user);
}

struct weir_instance *weir_instance_new(const struct weir_node *node, struct weir_context *context)
{
	struct weir_instance *instance = g_new0(struct weir_instance, 1);

	instance->node = node;
	instance->context = context;
	instance->seat.instance = instance;
	instance->seat.self.config = node->config;
	instance->seat.self.name = node->name;
	instance->seat.self.node = g_malloc0(node->plugin->node_size);
	weir_instance_set_lanes(instance, 0);
	return instance;
}

static void clear_rows(struct weir_instance *instance)
{
	for (unsigned i = 0; instance->rows && i <= instance->n_lanes; i++)
		weir_row_clear(&instance->rows[i]);
	free(instance->rows);
}

void weir_instance_set_lanes(struct weir_instance *instance, unsigned n_lanes)
{
	clear_rows(instance);
	instance->n_lanes = n_lanes;
	instance->rows = aligned_alloc(64, (n_lanes + 1) * sizeof(*instance->rows));
	g_assert(instance->rows);
	for (unsigned i = 0; i <= n_lanes; i++)
		weir_row_init(&instance->rows[i], instance->node);
	instance->seat.row = &instance->rows[n_lanes];
	instance->seat.self.lane_count = n_lanes;
}

void weir_instance_free(struct weir_instance *instance)
{
	if (!instance)
		return;
	clear_rows(instance);
	g_free(instance->seat.self.node);
	g_free(instance);
}

void weir_fault(struct weir_seat *seat, const char *format, ...)
{
	g_autofree char *what = NULL;
	va_list args;

	va_start(args, format);
	what = g_strdup_vprintf(format, args);
	va_end(args);
	__atomic_fetch_add(&seat->row->faults, 1, __ATOMIC_RELAXED);
	weir_log(&seat->self, WEIR_WARN, "a fault of plugin '%s': %s",
		 seat->instance->node->plugin->name, what);
}

uint32_t weir_instance_affinity(struct weir_instance *instance)
{
	const struct weir_plugin *plugin = instance->node->plugin;
	uint32_t kind = plugin->affinity ? plugin->affinity(&instance->seat.self)
					 : plugin->lanes_kind;

	if (kind <= WEIR_LANES_ONE)
		return kind;
	weir_errors_add(instance->context->errors, instance->node->where,
			"%s: a fault of plugin '%s': affinity() returned %u", instance->node->name,
			plugin->name, kind);
	return WEIR_LANES_ONE;
}
