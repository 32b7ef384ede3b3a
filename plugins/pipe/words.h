/*
 * words.h: a command line as the words that a program is started with.
 */
#ifndef PIPE_WORDS_H
#define PIPE_WORDS_H

#include <stdbool.h>

/*
 * Parts the text at blanks, like the pipeline language: '…' keeps all, in "…" a backslash keeps a
 * quote or a backslash, elsewhere any character.  No shell: nothing else means anything.  A
 * NULL-terminated array for words_free(); NULL: out of memory, or *ret_wrong says what is wrong.
 */
char **words_split(const char *text, const char **ret_wrong);
void words_free(char **words); /* takes NULL */

#endif
