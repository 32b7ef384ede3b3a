/*
 * value.h: typed option values: sizes, times, rates, choices, lists.
 */
#ifndef WEIR_VALUE_H
#define WEIR_VALUE_H

#include <weir/plugin.h>
#include <glib.h>

/*
 * Stores what text means for that option at its offset in config.  memory, whose free function is
 * g_free, keeps what config then points to.  On failure the error says what was expected.  In lists
 * "\," is a comma that separates nothing.
 */
bool weir_value_store(const struct weir_option *option, const char *text, void *config,
		      GPtrArray *memory, GError **error);

/* What a value of this option looks like, in words, range included: "a number in 1..256"; g_free().
 */
char *weir_value_expected(const struct weir_option *option);

/* "number", "size" and so on; NULL: there is no such type. */
const char *weir_value_type_name(uint32_t type);
/* The bytes that a value takes up in config; 0: there is no such type. */
size_t weir_value_size(uint32_t type);

#define WEIR_VALUE_ERROR weir_value_error_quark()
GQuark weir_value_error_quark(void);

#endif
