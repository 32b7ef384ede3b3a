/*
 * table.h: whether what a plugin says of itself makes sense.
 */
#ifndef WEIR_TABLE_H
#define WEIR_TABLE_H

#include <weir/plugin.h>
#include <glib.h>

/* False with an error (WEIR_LOADER_REFUSED) that does not yet say which file it is about.  Looks at
 * versions and sizes first, so that nothing is read that is not there. */
bool weir_table_check_version(const struct weir_plugin *plugin, GError **error);
/* The rest, of a plugin whose version is right: names, ranges, fallbacks, places in config,
 * callbacks. */
bool weir_table_check(const struct weir_plugin *plugin, const char *name, GError **error);

#endif
