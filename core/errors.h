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
	char *source;        /* what messages call the text: the file's name, "-" or "-e" */
	GPtrArray *messages; /* char *, complete lines without a newline */
};

struct weir_errors *weir_errors_new(const char *source);
void weir_errors_free(struct weir_errors *errors);

/* Adds "source:line:column: message", or "source: message" where line is 0. */
void weir_errors_add(struct weir_errors *errors, struct weir_position where, const char *format,
		     ...) G_GNUC_PRINTF(3, 4);

/* The known word nearest to `word` within a third of its length (at least 1), or NULL; known is
 * NULL-terminated. */
const char *weir_nearest(const char *word, const char *const *known);

#endif
