/* versions.c: versions of what runs here, and of what it was built with where a library cannot say,
 * or is a plugin's. */
#include "versions.h"

#include <weir/plugin.h>

#include <glib.h>
#include <json-glib/json-glib.h>

void weir_versions_print(FILE *to)
{
	fprintf(to, "weir %s, plugin interface %u\n", WEIR_VERSION, WEIR_ABI);
	fprintf(to, "GLib %u.%u.%u\n", glib_major_version, glib_minor_version, glib_micro_version);
	fprintf(to, "JSON-GLib %d.%d.%d\n", JSON_MAJOR_VERSION, JSON_MINOR_VERSION,
		JSON_MICRO_VERSION);
	fprintf(to, "built with %s\n", WEIR_BUILT_WITH);
}
