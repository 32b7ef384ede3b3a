/*
 * words.c: splitting at blanks outside of quotes.
 */
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* One quoted piece, `*at` behind its opening quote; false: it does not end. */
static bool take_quoted(FILE *out, const char **at, char quote)
{
	for (; **at && **at != quote; ++*at) {
		if (quote == '"' && **at == '\\' && ((*at)[1] == '"' || (*at)[1] == '\\'))
			++*at;
		fputc(**at, out);
	}
	if (!**at)
		return false;
	++*at;
	return true;
}

static bool take_word(FILE *out, const char **at)
{
	while (**at && !is_blank(**at)) {
		char c = *(*at)++;

		if (c == '\'' || c == '"') {
			if (!take_quoted(out, at, c))
				return false;
			continue;
		}
		if (c == '\\' && **at)
			c = *(*at)++;
		fputc(c, out);
	}
	return true;
}

static char *next_word(const char **at, const char **ret_wrong)
{
	char *word = NULL;
	size_t len;
	FILE *out = open_memstream(&word, &len);

	if (!out)
		return NULL;
	if (!take_word(out, at))
		*ret_wrong = "a quote is not closed";
	fclose(out);
	return word;
}

static bool append(char ***words, size_t n, char *word)
{
	char **grown = realloc(*words, (n + 2) * sizeof(*grown));

	if (!grown || !word) {
		*words = grown ? grown : *words;
		free(word);
		return false;
	}
	grown[n] = word;
	grown[n + 1] = NULL;
	*words = grown;
	return true;
}

char **words_split(const char *text, const char **ret_wrong)
{
	char **words = calloc(1, sizeof(*words));
	size_t n = 0;

	*ret_wrong = NULL;
	while (words && !*ret_wrong) {
		text += strspn(text, " \t\n");
		if (!*text)
			break;
		if (!append(&words, n++, next_word(&text, ret_wrong)))
			*ret_wrong = "out of memory";
	}
	if (words && n == 0)
		*ret_wrong = "no program is named";
	if (!*ret_wrong)
		return words;
	words_free(words);
	return NULL;
}

void words_free(char **words)
{
	for (char **word = words; word && *word; word++)
		free(*word);
	free(words);
}
