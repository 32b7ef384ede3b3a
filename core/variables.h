/*
 * variables.h: what --set says, from which ${name} in a pipeline text is filled in.
 */
#ifndef WEIR_VARIABLES_H
#define WEIR_VARIABLES_H

#include <glib.h>
#include <stdbool.h>

/* An empty table of names and values, both owned by it; g_hash_table_unref(). */
GHashTable *weir_variables_new(void);

/* Adds what one --set says: NAME=VALUE, or NAME to take the value from the environment. */
bool weir_variables_add(GHashTable *variables, const char *spec, GError **error);

#endif
