/*
 * options.c: which word is the value of which option, and whether it fits.
 */
#include "options.h"
#include "scan.h"
#include "value.h"

#include <string.h>

struct filling {
	struct weir_node *node;
	const struct weir_plugin *plugin;
	struct weir_errors *errors;
	bool *broken; /* of each option: an error has been said about its value */
	bool *bare;   /* of each option: it was given without its key */
};

static int find_option(const struct weir_node *node, const char *name)
{
	for (unsigned i = 0; i < node->n_options; i++)
		if (!strcmp(weir_plugin_option(node->plugin, i)->name, name))
			return (int)i;
	return -1;
}

static const char **option_names(const struct weir_node *node)
{
	const char **names = g_new0(const char *, node->n_options + 1);

	for (unsigned i = 0; i < node->n_options; i++)
		names[i] = weir_plugin_option(node->plugin, i)->name;
	return names;
}

static void refuse_key(struct filling *f, const struct weir_word *word)
{
	g_autofree const char **names = option_names(f->node);
	g_autofree char *suggestion = weir_suggestion(word->key, names);
	g_autofree char *all = g_strjoinv(", ", (char **)names);
	const char *plugin = f->plugin->name;

	if (f->plugin->kind == WEIR_SOURCE && !strcmp(word->key, "filter"))
		weir_errors_add(f->errors, word->where,
				"%s has no option 'filter'; write -> bpf \"%s\": it goes into the "
				"kernel, see weir plan",
				plugin, word->text->str);
	else if (*suggestion)
		weir_errors_add(f->errors, word->where, "%s has no option '%s'%s", plugin,
				word->key, suggestion);
	else
		weir_errors_add(f->errors, word->where, "%s has no option '%s'; it has %s", plugin,
				word->key, *all ? all : "none");
}

static bool is_list(const struct weir_option *option)
{
	return option->type == WEIR_LIST || option->type == WEIR_INFILES ||
	       option->type == WEIR_SET;
}

static void give(struct filling *f, unsigned i, const struct weir_word *word)
{
	const struct weir_option *option = weir_plugin_option(f->plugin, i);
	struct weir_value *value = &f->node->values[i];
	if (value->given) {
		weir_errors_add(f->errors, word->where, "%s: option '%s' is given twice",
				f->plugin->name, option->name);
		return;
	}
	value->text = g_strdup(is_list(option) ? word->list->str : word->text->str);
	value->given = true;
	value->where = word->where;
	f->broken[i] = word->broken;
	f->bare[i] = word->key == NULL;
}

/* ---- Bare words: one, and before the options ---- */

/* The bare words from the nth word on; g_free(). */
static char *join_bare(const GPtrArray *words, guint n, const char *separator)
{
	GString *all = g_string_new(NULL);

	for (; n < words->len; n++) {
		const struct weir_word *word = words->pdata[n];

		if (!word->key)
			g_string_append_printf(all, "%s%s", all->len ? separator : "",
					       word->text->str);
	}
	return g_string_free(all, FALSE);
}

static void refuse_second(struct filling *f, const GPtrArray *words, const struct weir_word *second)
{
	const struct weir_option *main_option = weir_plugin_option(f->plugin, 0);
	bool list = is_list(main_option);
	g_autofree char *all = join_bare(words, 0, list ? "," : " ");
	g_autofree char *rest = join_bare(words, 1, " ");
	g_autofree char *filter =
		f->plugin->kind == WEIR_SOURCE
			? g_strdup_printf("; a filter stands behind it: -> bpf \"%s\"", rest)
			: g_strdup("");

	if (list)
		weir_errors_add(f->errors, second->where,
				"%s takes one bare word, its %s: several are written %s %s%s",
				f->plugin->name, main_option->name, f->plugin->name, all, filter);
	else
		weir_errors_add(
			f->errors, second->where,
			"%s takes one bare word, its %s: put several words in quotes: %s \"%s\"%s",
			f->plugin->name, main_option->name, f->plugin->name, all, filter);
}

/* What other languages connect with. */
static bool is_connector(const char *text)
{
	static const char *const connectors[] = {"|", ">", "=>", "-", ">>", "→"};

	for (size_t i = 0; i < G_N_ELEMENTS(connectors); i++)
		if (strcmp(text, connectors[i]) == 0)
			return true;
	return false;
}

static void refuse_bare(struct filling *f, const GPtrArray *words, const struct weir_word *word)
{
	int option = find_option(f->node, word->text->str);

	if (!word->quoted && is_connector(word->text->str))
		weir_errors_add(f->errors, word->where, "expected '->' instead of '%s'",
				word->text->str);
	else if (f->node->n_options == 0)
		weir_errors_add(f->errors, word->where, "%s takes no argument", f->plugin->name);
	else if (option > 0)
		weir_errors_add(f->errors, word->where,
				"%s takes one bare word, its %s; '%s' is an option: write %s=…",
				f->plugin->name, weir_plugin_option(f->plugin, 0)->name,
				word->text->str, word->text->str);
	else if (words->len && ((struct weir_word *)words->pdata[0])->key)
		weir_errors_add(f->errors, word->where,
				"'%s' must stand before the options: %s %s …", word->text->str,
				f->plugin->name, word->text->str);
	else
		refuse_second(f, words, word);
}

static void give_words(struct filling *f, const GPtrArray *words)
{
	bool refused = false;

	for (guint i = 0; i < words->len; i++) {
		const struct weir_word *word = words->pdata[i];
		int option = word->key ? find_option(f->node, word->key) : 0;

		if (word->key && option < 0) {
			refuse_key(f, word);
		} else if (word->key || (i == 0 && f->node->n_options)) {
			give(f, (unsigned)option, word);
		} else if (!refused) {
			refuse_bare(f, words, word);
			refused = true;
		}
	}
	if (refused && f->node->n_options)
		f->broken[0] = true;
}

/* ---- Values ---- */

static void store(struct filling *f, unsigned i)
{
	const struct weir_option *option = weir_plugin_option(f->plugin, i);
	struct weir_value *value = &f->node->values[i];
	g_autoptr(GError) error = NULL;

	if (option->type == WEIR_OUTFILE && !strcmp(value->text, "-"))
		weir_errors_add(f->errors, value->where,
				"%s writes files, and '-' is none: for standard output use pipe -",
				f->plugin->name);
	else if (!weir_value_store(option, value->text, f->node->config, f->node->config_memory,
				   &error))
		weir_errors_add(f->errors, value->where, "%s %s%s%s: %s", f->plugin->name,
				f->bare[i] ? "" : option->name, f->bare[i] ? "" : "=",
				*value->text ? value->text : "\"\"", error->message);
}

static void settle(struct filling *f, unsigned i, struct weir_position element)
{
	const struct weir_option *option = weir_plugin_option(f->plugin, i);
	struct weir_value *value = &f->node->values[i];

	if (!value->given) {
		value->where = element;
		if (option->fallback && *option->fallback)
			value->text = g_strdup(option->fallback);
		else if (!option->fallback && !f->broken[i])
			weir_errors_add(f->errors, element, "%s needs its %s: %s", f->plugin->name,
					option->name, option->help ? option->help : "");
	}
	if (value->text && !f->broken[i])
		store(f, i);
}

void weir_options_fill(struct weir_node *node, const GPtrArray *words, struct weir_position element,
		       struct weir_errors *errors)
{
	g_autofree bool *broken = g_new0(bool, node->n_options + 1);
	g_autofree bool *bare = g_new0(bool, node->n_options + 1);
	struct filling filling = {node, node->plugin, errors, broken, bare};

	give_words(&filling, words);
	for (unsigned i = 0; i < node->n_options; i++)
		settle(&filling, i, element);
}
