/*
 * json.h: how the report and the ledger file write numbers, times and foreign text.
 *
 * Strings come from pipeline texts, paths and plugins: what is not UTF-8 in them is replaced, since
 * JSON can hold nothing else.
 */
#ifndef WEIR_JSON_H
#define WEIR_JSON_H

#include <json-glib/json-glib.h>
#include <stdint.h>

/* NULL becomes null. */
void weir_json_set_text(JsonObject *object, const char *name, const char *text);
void weir_json_set_count(JsonObject *object, const char *name, uint64_t count);
/* RFC 3339 in UTC with microseconds; 0 becomes null. */
void weir_json_set_time(JsonObject *object, const char *name, int64_t unix_us);
/* Takes the child; one without members is left out. */
void weir_json_set_filled(JsonObject *object, const char *name, JsonObject *child);

/* version (Weir's), host, kernel. */
void weir_json_set_machine(JsonObject *object);

/* The object as text, which is taken; pretty: indented, else one line. No newline at the end;
 * g_free(). */
char *weir_json_text(JsonObject *object, gboolean pretty);

/* "2026-12-01T00:46:04.123456Z"; g_free(). */
char *weir_time_text(int64_t unix_us);

#endif
