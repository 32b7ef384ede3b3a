/*
 * text.h: a pipeline text as statements, terms and words: its form, before anything is known of
 * plugins.
 */
#ifndef WEIR_TEXT_H
#define WEIR_TEXT_H

#include "scan.h"

/* One place of a flow, or the right side of a definition. */
struct weir_term {
	char *name;       /* of a node or plugin */
	char *output;     /* NULL: none is named */
	GPtrArray *words; /* struct weir_word * */
	struct weir_position where;
};

struct weir_statement {
	char *name;       /* what a definition defines; NULL: a flow */
	GPtrArray *terms; /* struct weir_term *; of a definition one */
	struct weir_position where;
	bool broken; /* an error has been said, and some terms may be missing */
};

struct weir_text {
	GPtrArray *statements; /* struct weir_statement * */
	GHashTable *mentioned; /* the set of words in what could not be understood */
};

/* Reads all of the text; what is wrong with its form is in errors, and what could be read is
 * returned, for more errors to be found in it.  variables: name to value, both char *; NULL: none.
 */
struct weir_text *weir_text_parse(const char *text, GHashTable *variables,
				  struct weir_errors *errors);
void weir_text_free(struct weir_text *text);

#endif
