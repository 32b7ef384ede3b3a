/* json.c: members of JSON objects, and an object as text. */
#include "json.h"

#include <stdbool.h>
#include <string.h>
#include <sys/utsname.h>

char *weir_time_text(int64_t unix_us)
{
	g_autoptr(GDateTime) whole = g_date_time_new_from_unix_utc(unix_us / G_USEC_PER_SEC);
	g_autofree char *seconds = g_date_time_format(whole, "%Y-%m-%dT%H:%M:%S");

	return g_strdup_printf("%s.%06dZ", seconds, (int)(unix_us % G_USEC_PER_SEC));
}

void weir_json_set_text(JsonObject *object, const char *name, const char *text)
{
	g_autofree char *valid = text ? g_utf8_make_valid(text, -1) : NULL;

	if (valid)
		json_object_set_string_member(object, name, valid);
	else
		json_object_set_null_member(object, name);
}

void weir_json_set_count(JsonObject *object, const char *name, uint64_t count)
{
	json_object_set_int_member(object, name, (gint64)count);
}

void weir_json_set_time(JsonObject *object, const char *name, int64_t unix_us)
{
	g_autofree char *text = unix_us ? weir_time_text(unix_us) : NULL;

	weir_json_set_text(object, name, text);
}

void weir_json_set_filled(JsonObject *object, const char *name, JsonObject *child)
{
	if (json_object_get_size(child) > 0)
		json_object_set_object_member(object, name, child);
	else
		json_object_unref(child);
}

void weir_json_set_machine(JsonObject *object)
{
	struct utsname machine = {0};

	uname(&machine);
	weir_json_set_text(object, "version", WEIR_VERSION);
	weir_json_set_text(object, "host", machine.nodename);
	weir_json_set_text(object, "kernel", machine.release);
}

/* JSON-GLib fills an empty object with the blanks of its indentation. */
static void close_empty_objects(char *text)
{
	bool quoted = false;
	char *to = text;

	for (const char *at = text; *at; at++) {
		size_t blanks;

		if (quoted && *at == '\\')
			*to++ = *at++;
		else if (*at == '"')
			quoted = !quoted;
		*to++ = *at;
		blanks = strspn(at + 1, " \n");
		if (*at == '{' && !quoted && at[1 + blanks] == '}')
			at += blanks;
	}
	*to = '\0';
}

char *weir_json_text(JsonObject *object, gboolean pretty)
{
	JsonNode *root = json_node_alloc();
	char *text;

	json_node_init_object(root, object);
	json_object_unref(object);
	text = json_to_string(root, pretty);
	json_node_unref(root);
	close_empty_objects(text);
	return text;
}
