/*
 * variables.c: --set NAME=VALUE and --set NAME.
 */
#include "variables.h"
#include "scan.h"

#include <string.h>

GHashTable *weir_variables_new(void)
{
	return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

bool weir_variables_add(GHashTable *variables, const char *spec, GError **error)
{
	const char *equals = strchr(spec, '=');
	g_autofree char *name = equals ? g_strndup(spec, (gsize)(equals - spec)) : g_strdup(spec);
	const char *value = equals ? equals + 1 : g_getenv(name);

	if (weir_name_length(name) == 0 || name[weir_name_length(name)]) {
		g_set_error(
			error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
			"--set %s: expected NAME=VALUE, or NAME to take it from the environment",
			spec);
		return false;
	}
	if (!value || !g_utf8_validate(value, -1, NULL)) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--set %s: %s", name,
			    value ? "the value is not UTF-8"
				  : "no such variable in the environment; expected NAME=VALUE");
		return false;
	}
	if (g_hash_table_contains(variables, name)) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
			    "--set %s is given twice", name);
		return false;
	}
	g_hash_table_insert(variables, g_steal_pointer(&name), g_strdup(value));
	return true;
}
