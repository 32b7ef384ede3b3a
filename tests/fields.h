/*
 * fields.h: the paths of all fields of a JSON value, to compare with a golden list.
 *
 * Members named by users and plugins (options, outputs, counters, the journal's nodes) are "*";
 * elements of arrays are "[]".
 */
#ifndef TESTS_FIELDS_H
#define TESTS_FIELDS_H

#include <criterion/criterion.h>
#include <json-glib/json-glib.h>

static inline bool names_are_foreign(const char *path)
{
	return g_str_has_suffix(path, ".options") || g_str_has_suffix(path, ".outputs") ||
	       g_str_has_suffix(path, ".counters") || g_str_has_suffix(path, "interval.nodes");
}

static inline void add_fields(GHashTable *to, const char *path, JsonNode *value);

static inline void add_members(GHashTable *to, const char *path, JsonObject *object)
{
	GList *names = json_object_get_members(object);

	for (GList *at = names; at; at = at->next) {
		char *member = g_strdup_printf("%s.%s", path,
					       names_are_foreign(path) ? "*" : (char *)at->data);

		add_fields(to, member, json_object_get_member(object, at->data));
		g_free(member);
	}
	g_list_free(names);
}

static inline void add_fields(GHashTable *to, const char *path, JsonNode *value)
{
	if (JSON_NODE_HOLDS_OBJECT(value)) {
		add_members(to, path, json_node_get_object(value));
	} else if (JSON_NODE_HOLDS_ARRAY(value)) {
		JsonArray *array = json_node_get_array(value);
		char *element = g_strconcat(path, "[]", NULL);

		for (guint i = 0; i < json_array_get_length(array); i++)
			add_fields(to, element, json_array_get_element(array, i));
		g_free(element);
	} else {
		g_hash_table_add(to, g_strdup(path));
	}
}

static inline int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Compares the keys with the lines of tests/golden/NAME, which are sorted. */
static inline void check_golden(GHashTable *found, const char *name)
{
	char *path = g_build_filename("tests", "golden", name, NULL);
	GPtrArray *keys = g_ptr_array_new();
	GString *text = g_string_new(NULL);
	GHashTableIter iter;
	char *golden = NULL;
	void *key;

	g_hash_table_iter_init(&iter, found);
	while (g_hash_table_iter_next(&iter, &key, NULL))
		g_ptr_array_add(keys, key);
	g_ptr_array_sort(keys, by_name);
	for (guint i = 0; i < keys->len; i++)
		g_string_append_printf(text, "%s\n", (char *)keys->pdata[i]);
	cr_assert(g_file_get_contents(path, &golden, NULL, NULL), "no %s; run from the top", path);
	cr_expect_str_eq(text->str, golden, "%s and what is written differ; written:\n%s", path,
			 text->str);
	g_free(golden);
	g_string_free(text, TRUE);
	g_ptr_array_unref(keys);
	g_free(path);
}

#endif
