/*
 * scan.h: the characters of a pipeline text as words, arrows and ends.
 *
 * Quotes, escapes and variables are gone from a word when it leaves here; what they protected is
 * never looked at again.
 */
#ifndef WEIR_SCAN_H
#define WEIR_SCAN_H

#include "errors.h"

#include <stdbool.h>

struct weir_word {
	char *key;     /* of an option; NULL: a bare word */
	GString *text; /* of the value */
	GString *list; /* the same, with "\," for a comma that separates nothing */
	struct weir_position where;
	bool quoted; /* some of it was quoted, escaped or a variable: it has a value, even if empty
		      */
	bool equals; /* it starts with a bare "=", as after a blank that should not be there */
	bool broken; /* an error has been said about it */
};

void weir_word_free(struct weir_word *word);

enum weir_token {
	WEIR_TOKEN_WORD,
	WEIR_TOKEN_ARROW,
	WEIR_TOKEN_END, /* a newline or ";" */
	WEIR_TOKEN_EOF,
};

struct weir_scanner {
	const char *at; /* the next character */
	struct weir_position where;
	GHashTable *variables; /* char * to char *; NULL: none */
	GHashTable *used;      /* the set of their names that occurred */
	struct weir_errors *errors;
	bool torn; /* a quote was not closed: what came after it is lost */
};

/* What comes next, after blanks and comments.  A newline before a line that starts with "->" is
 * passed over. */
enum weir_token weir_scanner_peek(struct weir_scanner *scanner);
/* Passes over an arrow or an end. */
void weir_scanner_take(struct weir_scanner *scanner);
/* Passes over blanks, comments and newlines. */
void weir_scanner_lines(struct weir_scanner *scanner);
/* The word that peek() has announced. */
struct weir_word *weir_scanner_word(struct weir_scanner *scanner);
/* At `NAME =`: passes over it and returns the name, which is the caller's.  Else NULL. */
char *weir_scanner_definition(struct weir_scanner *scanner);

/* How many characters at the start of text are a NAME, and a KEY or OUTPUT; 0: none. */
size_t weir_name_length(const char *text);
size_t weir_key_length(const char *text);

#endif
