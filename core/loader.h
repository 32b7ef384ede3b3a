/*
 * loader.h: finds plugins by name in the search path, and refuses what does not fit before any of
 * its callbacks runs.  Nothing is ever unloaded: threads and TLS destructors of libraries may
 * outlive a run.
 */
#ifndef WEIR_LOADER_H
#define WEIR_LOADER_H

#include <weir/plugin.h>
#include <glib.h>

struct weir_loader;

/* path: folders, searched in order, NULL-terminated; copied. The core's own `queue` is always
 * there. */
struct weir_loader *weir_loader_new(const char *const *path);
void weir_loader_free(struct weir_loader *loader);

/* Where plugins are looked for: extra (may be NULL) first, then $WEIR_PLUGIN_PATH (colons), then
 * the folder plugins/ beside libweir.so or weir/plugins/ below it. Free with g_strfreev(). */
char **weir_loader_default_path(const char *const *extra);

/* A plugin that is part of the program: core's own, a test's. */
void weir_loader_add(struct weir_loader *loader, const struct weir_plugin *plugin);

/* Where plugins are looked for, as the end of a message that one is not there; g_free(). */
char *weir_loader_where(const struct weir_loader *loader);

/* NULL with an error, whose domain is WEIR_LOADER_ERROR and code says whether none was found or one
 * was refused. */
const struct weir_plugin *weir_loader_find(struct weir_loader *loader, const char *name,
					   GError **error);

#define WEIR_LOADER_ERROR weir_loader_error_quark()
GQuark weir_loader_error_quark(void);
enum { WEIR_LOADER_NOT_FOUND, WEIR_LOADER_REFUSED };

/* The names of all files in the path that could be plugins, and of the built-in ones, sorted;
 * g_strfreev(). */
char **weir_loader_names(struct weir_loader *loader);
/* The file that a plugin came from, NULL for a built-in one. */
const char *weir_loader_file(struct weir_loader *loader, const char *name);

#endif
