/*
 * describe.c: the tables of plugins as text.
 */
#include "describe.h"
#include "errors.h"
#include "graph.h"
#include "inspect.h"
#include "value.h"

#include <string.h>

#define COLUMN 26 /* where help starts */

static const char *kind_name(uint32_t kind)
{
	static const char *const names[] = {NULL, "source", "stage", "sink"};

	return names[kind];
}

static void line(GString *text, const char *left, const char *right)
{
	glong width = g_utf8_strlen(left, -1);

	g_string_append_printf(text, "  %s", left);
	if (width >= COLUMN) {
		g_string_append_c(text, '\n');
		width = -2;
	}
	g_string_append_printf(text, "%*s%s\n", (int)(COLUMN - width), "", right);
}

/* ---- One plugin ---- */

static const char *placeholder(const struct weir_option *option)
{
	static const char *const words[] = {
		[WEIR_STRING] = "TEXT",
		[WEIR_INFILE] = "FILE",
		[WEIR_OUTFILE] = "FILE",
		[WEIR_ENDPOINT] = "ENDPOINT",
		[WEIR_ENDPOINTS] = "ENDPOINT,…",
		[WEIR_NUMBER] = "NUMBER",
		[WEIR_SIZE] = "SIZE",
		[WEIR_TIME] = "TIME",
		[WEIR_RATE] = "RATE",
		[WEIR_AMOUNT] = "SIZE|PERCENT",
		[WEIR_BOOL] = "yes|no",
		[WEIR_CHOICE] = "CHOICE",
		[WEIR_SET] = "SET",
		[WEIR_LIST] = "A,B,…",
		[WEIR_INFILES] = "FILE,FILE,…",
	};

	if ((option->type == WEIR_CHOICE || option->type == WEIR_SET) && option->range)
		return option->range;
	return words[option->type];
}

static void describe_option(GString *text, const struct weir_option *option, bool is_main)
{
	g_autofree char *left = g_strdup_printf("%s%s%s%s%s", is_main ? "[" : "", option->name,
						is_main ? "=]" : "=", placeholder(option),
						option->type == WEIR_SET ? " (a list)" : "");
	g_autoptr(GString) right = g_string_new(option->help ? option->help : "");
	const char *separator = " [";

	if (option->range && strstr(option->range, "..")) {
		g_string_append_printf(right, "%s%s", separator, option->range);
		separator = "; ";
	}
	if (!option->fallback)
		g_string_append_printf(right, "%smust be given]", separator);
	else if (*option->fallback)
		g_string_append_printf(right, "%sdefault %s]", separator, option->fallback);
	else if (*separator == ';')
		g_string_append_c(right, ']');
	line(text, left, right->str);
}

static void describe_options(GString *text, const struct weir_plugin *plugin)
{
	if (!plugin->options || !weir_plugin_option(plugin, 0)->name)
		return;
	g_string_append(text, "\nOptions\n");
	for (unsigned i = 0; weir_plugin_option(plugin, i)->name; i++)
		describe_option(text, weir_plugin_option(plugin, i), i == 0);
}

static void describe_outputs(GString *text, const struct weir_plugin *plugin)
{
	static const char *const meanings[] = {
		[WEIR_PASS] = "passed", [WEIR_DISCARD] = "discarded", [WEIR_LOSS] = "lost"};
	bool is_sink = plugin->kind == WEIR_SINK;

	g_string_append(text, is_sink ? "\nOutcomes\n" : "\nOutputs\n");
	for (unsigned i = 0; weir_plugin_output(plugin, i)->name; i++) {
		const struct weir_output *output = weir_plugin_output(plugin, i);
		g_autofree char *right = g_strdup_printf(
			"%s [%s%s%s]", output->help ? output->help : "",
			i == 0 && !is_sink ? "the default; " : "",
			is_sink ? "counts as " : "unconnected: ", meanings[output->unconnected]);

		line(text, output->name, right);
	}
}

static void describe_counters(GString *text, const struct weir_plugin *plugin)
{
	if (!plugin->counters || !weir_plugin_counter(plugin, 0)->name)
		return;
	g_string_append(text, "\nCounters\n");
	for (unsigned i = 0; weir_plugin_counter(plugin, i)->name; i++) {
		const struct weir_counter *counter = weir_plugin_counter(plugin, i);
		g_autofree char *right = g_strdup_printf(
			"%s%s", counter->help ? counter->help : "",
			counter->role & WEIR_IS_LOSS       ? " [loss]"
			: counter->role & WEIR_IS_NIC      ? " [lost by the NIC]"
			: counter->role & WEIR_IS_KEPT_OUT ? " [kept out]"
							   : "");

		line(text, counter->name, right);
	}
}

static char *describe(const struct weir_plugin *plugin, const char *file)
{
	GString *text = g_string_new(NULL);

	g_string_append_printf(text, "%s, a %s: %s\nversion %s, %s%s%s\n\nExample\n  %s\n",
			       plugin->name, kind_name(plugin->kind), plugin->summary,
			       plugin->version, file ? file : "part of Weir",
			       plugin->needs ? "\nneeds " : "", plugin->needs ? plugin->needs : "",
			       plugin->example);
	describe_options(text, plugin);
	describe_outputs(text, plugin);
	describe_counters(text, plugin);
	return g_string_free(text, FALSE);
}

char *weir_describe_plugin(struct weir_loader *loader, const char *name, GError **error)
{
	g_autoptr(GError) why = NULL;
	char *text = weir_inspect(loader, name, describe, &why);
	g_auto(GStrv) names = NULL;
	g_autofree char *suggestion = NULL;

	if (text)
		return text;
	names = weir_loader_names(loader);
	if (why->code == WEIR_LOADER_NOT_FOUND)
		suggestion = weir_nearest(name, (const char *const *)names)
				     ? weir_suggestion(name, (const char *const *)names)
				     : weir_loader_where(loader);
	g_set_error(error, why->domain, why->code, "%s%s", why->message,
		    suggestion ? suggestion : "");
	return NULL;
}

/* ---- All of them ---- */

/* The kind as a digit before the line, for the parent to sort by. */
static char *describe_briefly(const struct weir_plugin *plugin, const char *file)
{
	(void)file;
	return g_strdup_printf("%u%s", plugin->kind, plugin->summary);
}

static void describe_kind(GString *text, uint32_t kind, char *const *names, char *const *briefs)
{
	bool any = false;

	for (unsigned i = 0; names[i]; i++) {
		if (!briefs[i] || (uint32_t)(briefs[i][0] - '0') != kind)
			continue;
		if (!any)
			g_string_append_printf(text, "%s%c%ss\n", text->len ? "\n" : "",
					       g_ascii_toupper(kind_name(kind)[0]),
					       kind_name(kind) + 1);
		line(text, names[i], briefs[i] + 1);
		any = true;
	}
}

char *weir_describe_all(struct weir_loader *loader)
{
	g_auto(GStrv) names = weir_loader_names(loader);
	guint n = g_strv_length(names);
	char **briefs = g_new0(char *, n);
	g_autoptr(GString) refused = g_string_new(NULL);
	GString *text = g_string_new(NULL);

	for (guint i = 0; i < n; i++) {
		g_autoptr(GError) error = NULL;

		briefs[i] = weir_inspect(loader, names[i], describe_briefly, &error);
		if (!briefs[i])
			g_string_append_printf(refused, "  %s\n", error->message);
	}
	for (uint32_t kind = WEIR_SOURCE; kind <= WEIR_SINK; kind++)
		describe_kind(text, kind, names, briefs);
	if (refused->len)
		g_string_append_printf(text, "%sRefused\n%s", text->len ? "\n" : "", refused->str);
	for (guint i = 0; i < n; i++)
		g_free(briefs[i]);
	g_free(briefs);
	return g_string_free(text, FALSE);
}
