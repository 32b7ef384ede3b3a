/*
 * node.c: nodes, and the tables of the plugins behind them.
 */
#include "node.h"

#include <string.h>

/* Entries of a plugin's tables may be larger than core's idea of them: later fields are appended.
 */
static const void *entry(const void *table, size_t size, unsigned i)
{
	return (const char *)table + size * i;
}

const struct weir_option *weir_plugin_option(const struct weir_plugin *plugin, unsigned i)
{
	return entry(plugin->options, plugin->option_size, i);
}

const struct weir_output *weir_plugin_output(const struct weir_plugin *plugin, unsigned i)
{
	return entry(plugin->outputs, plugin->output_size, i);
}

const struct weir_counter *weir_plugin_counter(const struct weir_plugin *plugin, unsigned i)
{
	return entry(plugin->counters, plugin->counter_size, i);
}

static void count_tables(struct weir_node *node)
{
	const struct weir_plugin *plugin = node->plugin;

	while (plugin->options && weir_plugin_option(plugin, node->n_options)->name)
		node->n_options++;
	while (plugin->outputs && weir_plugin_output(plugin, node->n_outputs)->name)
		node->n_outputs++;
	while (plugin->counters && weir_plugin_counter(plugin, node->n_counters)->name)
		node->n_counters++;
}

struct weir_node *weir_node_new(char *name, const struct weir_plugin *plugin,
				struct weir_position where)
{
	struct weir_node *node = g_new0(struct weir_node, 1);

	node->name = name;
	node->plugin = plugin;
	node->where = where;
	if (plugin)
		count_tables(node);
	node->values = g_new0(struct weir_value, node->n_options);
	node->config = g_malloc0(plugin ? plugin->config_size : 0);
	node->config_memory = g_ptr_array_new_with_free_func(g_free);
	node->in = g_ptr_array_new();
	node->out = g_new0(GPtrArray *, node->n_outputs);
	for (unsigned i = 0; i < node->n_outputs; i++)
		node->out[i] = g_ptr_array_new();
	return node;
}

void weir_node_free(struct weir_node *node)
{
	if (!node)
		return;
	for (unsigned i = 0; i < node->n_options; i++)
		g_free(node->values[i].text);
	for (unsigned i = 0; i < node->n_outputs; i++)
		g_ptr_array_unref(node->out[i]);
	g_free(node->values);
	g_free(node->out);
	g_free(node->config);
	g_ptr_array_unref(node->config_memory);
	g_ptr_array_unref(node->in);
	g_free(node->name);
	g_free(node);
}

int weir_node_output(const struct weir_node *node, const char *name)
{
	for (unsigned i = 0; i < node->n_outputs; i++)
		if (!strcmp(weir_plugin_output(node->plugin, i)->name, name))
			return (int)i;
	return -1;
}
