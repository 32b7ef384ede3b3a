/*
 * errors.c: collects the errors of a text in its order, and finds the word that was meant.
 */
#include "errors.h"

#include <stdbool.h>
#include <string.h>

#define LONGEST 64u /* longer words are nobody's typing error */

struct weir_errors *weir_errors_new(const char *source)
{
	struct weir_errors *errors = g_new0(struct weir_errors, 1);

	errors->source = g_strdup(source);
	errors->messages = g_ptr_array_new_with_free_func(g_free);
	errors->places = g_array_new(FALSE, FALSE, sizeof(struct weir_position));
	return errors;
}

void weir_errors_free(struct weir_errors *errors)
{
	if (!errors)
		return;
	g_free(errors->source);
	g_ptr_array_unref(errors->messages);
	g_array_unref(errors->places);
	g_free(errors);
}

/* line 0 becomes the largest number: nowhere comes after everywhere. */
static bool after(struct weir_position a, struct weir_position b)
{
	if (a.line != b.line)
		return a.line - 1 > b.line - 1;
	return a.column > b.column;
}

void weir_errors_add(struct weir_errors *errors, struct weir_position where, const char *format,
		     ...)
{
	g_autofree char *message = NULL;
	va_list values;
	guint i = errors->places->len;
	char *line;

	va_start(values, format);
	message = g_strdup_vprintf(format, values);
	va_end(values);
	if (where.line)
		line = g_strdup_printf("%s:%u:%u: %s", errors->source, where.line, where.column,
				       message);
	else
		line = g_strdup_printf("%s: %s", errors->source, message);
	while (i > 0 && after(g_array_index(errors->places, struct weir_position, i - 1), where))
		i--;
	g_array_insert_val(errors->places, i, where);
	g_ptr_array_insert(errors->messages, (gint)i, line);
}

/* Insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][LONGEST + 1];
	size_t *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t j = 0; j <= b_len; j++)
		last[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *oldest = before;

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			row[j] = last[j - 1] + (a[i - 1] != b[j - 1]);
			row[j] = MIN(row[j], MIN(last[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = MIN(row[j], before[j - 2] + 1);
		}
		before = last;
		last = row;
		row = oldest;
	}
	return last[b_len];
}

const char *weir_nearest(const char *word, const char *const *known)
{
	size_t len = strlen(word),
	       best = MIN(MAX(len / 3, 1) + 1, len); /* something is left of it */
	const char *nearest = NULL;

	if (len > LONGEST)
		return NULL;
	for (; *known; known++) {
		size_t known_len = strlen(*known);
		size_t found;

		if (known_len > LONGEST)
			continue;
		found = distance(word, len, *known, known_len);
		if (found < best) {
			best = found;
			nearest = *known;
		}
	}
	return nearest;
}

char *weir_suggestion(const char *word, const char *const *known)
{
	const char *nearest = weir_nearest(word, known);

	return nearest ? g_strdup_printf("; did you mean '%s'?", nearest) : g_strdup("");
}
