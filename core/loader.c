/*
 * loader.c: plugins by name.
 *
 * The first folder of the path that has a file of that name decides: one that is refused there is
 * not looked for in the next, or a fault would show as an old version at work.
 */
#include "loader.h"

#include "queue.h"
#include "elf.h"
#include "scan.h"
#include "table.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

G_DEFINE_QUARK(weir_loader_error, weir_loader_error)

/* What is known of one name; kept if it was refused, so that no constructor runs twice. */
struct entry {
	const struct weir_plugin *plugin; /* the copy, or the built-in one itself */
	struct weir_plugin *copy; /* as large as core knows it, NULL where the file had less */
	char *file;               /* NULL: built in */
	GError *error;
};

struct weir_loader {
	char **path;
	GHashTable *entries; /* char * to struct entry * */
};

static void entry_free(struct entry *entry)
{
	g_free(entry->copy);
	g_free(entry->file);
	g_clear_error(&entry->error);
	g_free(entry);
}

struct weir_loader *weir_loader_new(const char *const *path)
{
	struct weir_loader *loader = g_new0(struct weir_loader, 1);

	loader->path = path ? g_strdupv((char **)path) : g_new0(char *, 1);
	loader->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
						(GDestroyNotify)entry_free);
	weir_loader_add(loader, &weir_queue_plugin);
	return loader;
}

void weir_loader_free(struct weir_loader *loader)
{
	if (!loader)
		return;
	g_strfreev(loader->path);
	g_hash_table_unref(loader->entries);
	g_free(loader);
}

/* Where no plugins are installed below the library's folder, it is the build's. */
static char *own_folder(void)
{
	g_autofree char *library = weir_elf_own_path();
	g_autofree char *folder = g_path_get_dirname(library);
	char *installed = g_build_filename(folder, "weir", "plugins", NULL);

	if (g_file_test(installed, G_FILE_TEST_IS_DIR))
		return installed;
	g_free(installed);
	return g_build_filename(folder, "plugins", NULL);
}

char **weir_loader_default_path(const char *const *extra)
{
	const char *environment = secure_getenv("WEIR_PLUGIN_PATH");
	g_auto(GStrv) folders = g_strsplit(environment ? environment : "", ":", -1);
	g_autoptr(GPtrArray) path = g_ptr_array_new();

	for (; extra && *extra; extra++)
		g_ptr_array_add(path, g_strdup(*extra));
	for (char **folder = folders; *folder; folder++)
		if (**folder)
			g_ptr_array_add(path, g_strdup(*folder));
	g_ptr_array_add(path, own_folder());
	g_ptr_array_add(path, NULL);
	return (char **)g_ptr_array_steal(path, NULL);
}

/* A plugin of another 1.x may be smaller or larger than core's idea of it. */
static struct weir_plugin *copy_plugin(const struct weir_plugin *plugin)
{
	struct weir_plugin *copy = g_new0(struct weir_plugin, 1);

	memcpy(copy, plugin, MIN(plugin->size, sizeof(*copy)));
	return copy;
}

void weir_loader_add(struct weir_loader *loader, const struct weir_plugin *plugin)
{
	struct entry *entry = g_new0(struct entry, 1);
	g_autoptr(GError) error = NULL;

	if (!weir_table_check_version(plugin, &error) ||
	    !weir_table_check(plugin, plugin->name, &error))
		g_error("built-in plugin '%s': %s", plugin->name, error->message);
	entry->plugin = plugin;
	g_hash_table_replace(loader->entries, g_strdup(plugin->name), entry);
}

char *weir_loader_where(const struct weir_loader *loader)
{
	g_autofree char *folders = g_strjoinv(", ", loader->path);

	return g_strdup_printf("; plugins are looked for in %s: see weir plugins",
			       *folders ? folders : "no folder");
}

/* ---- Files ---- */

static char *find_file(const struct weir_loader *loader, const char *name)
{
	g_autofree char *base = g_strconcat(name, ".so", NULL);

	if (weir_name_length(name) == 0 || name[weir_name_length(name)])
		return NULL;
	for (char **folder = loader->path; *folder; folder++) {
		char *file = g_build_filename(*folder, base, NULL);

		if (g_file_test(file, G_FILE_TEST_EXISTS))
			return file;
		g_free(file);
	}
	return NULL;
}

static const struct weir_plugin *open_file(const char *file, GError **error)
{
	g_autofree char *absolute = g_canonicalize_filename(file, NULL);
	const struct weir_plugin *plugin;
	void *library;

	if (!weir_elf_check(absolute, error))
		return NULL;
	library = dlopen(absolute, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *why = dlerror();

		g_set_error(error, WEIR_LOADER_ERROR, WEIR_LOADER_REFUSED, "%s%s%s",
			    strstr(why, absolute) ? "" : absolute,
			    strstr(why, absolute) ? "" : ": ", why);
		return NULL;
	}
	plugin = dlsym(library, "weir_plugin");
	if (!plugin)
		g_set_error(error, WEIR_LOADER_ERROR, WEIR_LOADER_REFUSED,
			    "%s: has no symbol 'weir_plugin'; is it a plugin?", absolute);
	return plugin;
}

static void load(struct entry *entry, const char *name)
{
	const struct weir_plugin *plugin = open_file(entry->file, &entry->error);

	if (!plugin)
		return;
	if (!weir_table_check_version(plugin, &entry->error)) {
		g_prefix_error(&entry->error, "%s: ", entry->file);
		return;
	}
	entry->plugin = entry->copy = copy_plugin(plugin);
	if (weir_table_check(entry->plugin, name, &entry->error))
		return;
	g_prefix_error(&entry->error, "%s: ", entry->file);
	entry->plugin = NULL;
}

static struct entry *find_entry(struct weir_loader *loader, const char *name)
{
	struct entry *entry = g_hash_table_lookup(loader->entries, name);
	char *file;

	if (entry)
		return entry;
	file = find_file(loader, name);
	if (!file)
		return NULL;
	entry = g_new0(struct entry, 1);
	entry->file = file;
	g_hash_table_insert(loader->entries, g_strdup(name), entry);
	load(entry, name);
	return entry;
}

const struct weir_plugin *weir_loader_find(struct weir_loader *loader, const char *name,
					   GError **error)
{
	struct entry *entry = find_entry(loader, name);

	if (!entry)
		g_set_error(error, WEIR_LOADER_ERROR, WEIR_LOADER_NOT_FOUND,
			    "there is no plugin '%s'", name);
	else if (entry->error)
		g_set_error(error, WEIR_LOADER_ERROR, WEIR_LOADER_REFUSED,
			    "plugin '%s' is refused: %s", name, entry->error->message);
	return entry ? entry->plugin : NULL;
}

const char *weir_loader_file(struct weir_loader *loader, const char *name)
{
	struct entry *entry = g_hash_table_lookup(loader->entries, name);

	return entry ? entry->file : NULL;
}

/* ---- Names ---- */

static void add_name(GHashTable *names, char *name)
{
	if (g_hash_table_contains(names, name))
		g_free(name);
	else
		g_hash_table_add(names, name);
}

static void add_names(GHashTable *names, const char *folder)
{
	g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
	const char *file;

	while (dir && (file = g_dir_read_name(dir)) != NULL) {
		size_t n = weir_name_length(file);

		if (n && !strcmp(file + n, ".so"))
			add_name(names, g_strndup(file, n));
	}
}

static int order_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char **weir_loader_names(struct weir_loader *loader)
{
	g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, NULL);
	GHashTableIter each;
	gpointer name;
	char **result;
	guint n;

	g_hash_table_iter_init(&each, loader->entries);
	while (g_hash_table_iter_next(&each, &name, NULL))
		add_name(names, g_strdup(name));
	for (char **folder = loader->path; *folder; folder++)
		add_names(names, *folder);
	result = (char **)g_hash_table_get_keys_as_array(names, &n);
	qsort(result, n, sizeof(*result), order_names);
	return result;
}
