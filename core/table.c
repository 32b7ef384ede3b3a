/*
 * table.c: a plugin's constant, looked at before any of its callbacks runs.
 */
#include "table.h"
#include "graph.h"
#include "loader.h"
#include "scan.h"
#include "value.h"

#include <string.h>

#define MAX_OUTPUTS 254u /* a verdict is a byte, and WEIR_PENDING is one of them */

/* What the first version of the interface had; a plugin may have more, and core may. */
#define FIRST_SIZE (offsetof(struct weir_plugin, memory) + sizeof(char *))

static bool refuse(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

static bool refuse(GError **error, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	if (error)
		*error = g_error_new_valist(WEIR_LOADER_ERROR, WEIR_LOADER_REFUSED, format, values);
	va_end(values);
	return false;
}

bool weir_table_check_version(const struct weir_plugin *plugin, GError **error)
{
	if (plugin->abi != WEIR_ABI)
		return refuse(error, "is built for plugin interface %u; this Weir wants %u",
			      plugin->abi, WEIR_ABI);
	if (plugin->size < FIRST_SIZE)
		return refuse(error, "its struct weir_plugin has %u bytes; this Weir wants %zu",
			      plugin->size, FIRST_SIZE);
	if (plugin->packet_size != sizeof(struct weir_packet))
		return refuse(error, "its packets have %u bytes; this Weir wants %zu",
			      plugin->packet_size, sizeof(struct weir_packet));
	if (plugin->option_size < sizeof(struct weir_option) ||
	    plugin->output_size < sizeof(struct weir_output) ||
	    plugin->counter_size < sizeof(struct weir_counter))
		return refuse(error,
			      "the entries of its tables have %u, %u and %u bytes; this Weir wants "
			      "%zu, %zu and %zu",
			      plugin->option_size, plugin->output_size, plugin->counter_size,
			      sizeof(struct weir_option), sizeof(struct weir_output),
			      sizeof(struct weir_counter));
	return true;
}

static bool is_key(const char *name)
{
	return *name && weir_key_length(name) == strlen(name);
}

/* ---- Options ---- */

/* Whether text is a value of the option's type, its range aside. */
static bool is_value(const struct weir_plugin *plugin, const struct weir_option *option,
		     const char *text)
{
	g_autofree char *config = g_malloc0(plugin->config_size);
	g_autoptr(GPtrArray) memory = g_ptr_array_new_with_free_func(g_free);
	struct weir_option unlimited = *option;

	unlimited.range = NULL;
	return weir_value_store(&unlimited, text, config, memory, NULL);
}

static bool check_words(const struct weir_option *option, GError **error)
{
	g_auto(GStrv) words = g_strsplit(option->range ? option->range : "", "|", -1);

	if (!*words || g_strv_length(words) > 32)
		return refuse(error, "option '%s' needs a range of 1 to 32 words", option->name);
	return true;
}

static bool check_range(const struct weir_plugin *plugin, const struct weir_option *option,
			GError **error)
{
	const char *dots = option->range ? strstr(option->range, "..") : NULL;
	g_autofree char *low = NULL;

	if (option->type == WEIR_CHOICE || option->type == WEIR_SET)
		return check_words(option, error);
	if (!option->range)
		return true;
	low = dots ? g_strndup(option->range, (gsize)(dots - option->range)) : NULL;
	if (!low || (*low && !is_value(plugin, option, low)) ||
	    (dots[2] && !is_value(plugin, option, dots + 2)))
		return refuse(error, "the range '%s' of option '%s' is none", option->range,
			      option->name);
	return true;
}

static bool check_fallback(const struct weir_plugin *plugin, const struct weir_option *option,
			   GError **error)
{
	g_autofree char *config = g_malloc0(plugin->config_size);
	g_autoptr(GPtrArray) memory = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GError) why = NULL;

	if (!option->fallback || !*option->fallback)
		return true;
	if (!weir_value_store(option, option->fallback, config, memory, &why))
		return refuse(error, "the fallback '%s' of option '%s' is wrong: %s",
			      option->fallback, option->name, why->message);
	return true;
}

static bool check_option(const struct weir_plugin *plugin, unsigned i, GError **error)
{
	const struct weir_option *option = weir_plugin_option(plugin, i);
	size_t size = weir_value_size(option->type);

	if (!is_key(option->name))
		return refuse(error, "'%s' is no name for an option", option->name);
	for (unsigned j = 0; j < i; j++)
		if (!strcmp(weir_plugin_option(plugin, j)->name, option->name))
			return refuse(error, "option '%s' is in its table twice", option->name);
	if (size == 0)
		return refuse(error, "option '%s' is of no known type (%u)", option->name,
			      option->type);
	if (option->offset > plugin->config_size || size > plugin->config_size - option->offset)
		return refuse(error, "option '%s' lies beyond its config of %zu bytes",
			      option->name, plugin->config_size);
	if (option->offset % MIN(size, sizeof(uint64_t)))
		return refuse(error, "option '%s' lies at %u, where its type cannot", option->name,
			      option->offset);
	return check_range(plugin, option, error) && check_fallback(plugin, option, error);
}

static bool is_size(const struct weir_plugin *plugin, const char *name)
{
	for (unsigned i = 0; plugin->options && weir_plugin_option(plugin, i)->name; i++)
		if (!strcmp(weir_plugin_option(plugin, i)->name, name))
			return weir_plugin_option(plugin, i)->type == WEIR_SIZE;
	return false;
}

static bool check_memory(const struct weir_plugin *plugin, GError **error)
{
	g_auto(GStrv) names = g_strsplit(plugin->memory ? plugin->memory : "", " ", -1);

	for (char **name = names; *name; name++)
		if (!is_size(plugin, *name))
			return refuse(error,
				      "'%s', which it says is memory, is no size in its table",
				      *name);
	return true;
}

/* ---- Outputs and counters ---- */

static bool check_output(const struct weir_plugin *plugin, unsigned i, GError **error)
{
	const struct weir_output *output = weir_plugin_output(plugin, i);

	if (i >= MAX_OUTPUTS)
		return refuse(error, "it has more than %u outputs", MAX_OUTPUTS);
	if (!is_key(output->name))
		return refuse(error, "'%s' is no name for an output", output->name);
	for (unsigned j = 0; j < i; j++)
		if (!strcmp(weir_plugin_output(plugin, j)->name, output->name))
			return refuse(error, "output '%s' is in its table twice", output->name);
	if (output->unconnected > WEIR_LOSS || output->carries != WEIR_PACKETS)
		return refuse(error, "output '%s' means or carries what this Weir does not know",
			      output->name);
	return true;
}

static bool check_counter(const struct weir_plugin *plugin, unsigned i, GError **error)
{
	const struct weir_counter *counter = weir_plugin_counter(plugin, i);

	if (!is_key(counter->name))
		return refuse(error, "'%s' is no name for a counter", counter->name);
	if ((counter->role & WEIR_ROLE) > WEIR_MINUS_BYTES)
		return refuse(error, "counter '%s' has a role that this Weir does not know",
			      counter->name);
	return true;
}

static bool check_tables(const struct weir_plugin *plugin, GError **error)
{
	for (unsigned i = 0; plugin->options && weir_plugin_option(plugin, i)->name; i++)
		if (!check_option(plugin, i, error))
			return false;
	for (unsigned i = 0; plugin->outputs && weir_plugin_output(plugin, i)->name; i++)
		if (!check_output(plugin, i, error))
			return false;
	for (unsigned i = 0; plugin->counters && weir_plugin_counter(plugin, i)->name; i++)
		if (!check_counter(plugin, i, error))
			return false;
	if (!plugin->outputs || !weir_plugin_output(plugin, 0)->name)
		return refuse(error, "it has no outputs or outcomes");
	return true;
}

static bool check_callbacks(const struct weir_plugin *plugin, GError **error)
{
	switch (plugin->kind) {
	case WEIR_SOURCE:
		return plugin->poll || refuse(error, "a source needs poll()");
	case WEIR_STAGE:
		return !plugin->judge != !plugin->transform ||
		       refuse(error, "a stage needs either judge() or transform()");
	case WEIR_SINK:
		return (plugin->judge && !plugin->transform) ||
		       refuse(error, "a sink needs judge(), and has no transform()");
	default:
		return refuse(error, "it is neither source, stage nor sink (kind %u)",
			      plugin->kind);
	}
}

bool weir_table_check(const struct weir_plugin *plugin, const char *name, GError **error)
{
	if (!plugin->name || strcmp(plugin->name, name) != 0)
		return refuse(error, "it calls itself '%s'; expected '%s'",
			      plugin->name ? plugin->name : "", name);
	if (!plugin->version || !plugin->summary || !plugin->example)
		return refuse(error, "it lacks version, summary or example");
	if (plugin->lanes_kind > WEIR_LANES_ONE)
		return refuse(error, "it needs lanes of a kind that this Weir does not know (%u)",
			      plugin->lanes_kind);
	return check_callbacks(plugin, error) && check_tables(plugin, error) &&
	       check_memory(plugin, error);
}
