/*
 * errors.h: all the errors of a pipeline text at once, each with its place.
 */
#ifndef WEIR_ERRORS_H
#define WEIR_ERRORS_H

#include <glib.h>

/* Where something stands in a pipeline text: 1-based line and column in characters. line 0:
 * nowhere. */
struct weir_position {
	unsigned line, column;
};

struct weir_errors {
	char *source; /* what messages call the text: the file's name, "-" or "-e" */
	GPtrArray
		*messages; /* char *, complete lines without a newline, in the order of the text */
	GArray *places;    /* struct weir_position of each message */
};

struct weir_errors *weir_errors_new(const char *source);
void weir_errors_free(struct weir_errors *errors);

/* Adds "source:line:column: message", or "source: message" where line is 0.  Messages are kept in
 * the order of the text, whatever order they are found in; those without a place come last. */
void weir_errors_add(struct weir_errors *errors, struct weir_position where, const char *format,
		     ...) G_GNUC_PRINTF(3, 4);

/* The known word nearest to `word` within a third of its length (at least 1), or NULL; known is
 * NULL-terminated. */
const char *weir_nearest(const char *word, const char *const *known);

/* "; did you mean 'x'?" for the nearest of the words, or "" if none is near; g_free(). */
char *weir_suggestion(const char *word, const char *const *known);

#endif
