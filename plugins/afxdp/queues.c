/*
 * queues.c: see queues.h.
 */
#include "queues.h"

#include <stdlib.h>
#include <string.h>

static bool has(const struct queues *queues, unsigned long number)
{
	for (unsigned i = 0; i < queues->count; i++) {
		if (queues->numbers[i] == number)
			return true;
	}
	return false;
}

static const char *add(struct queues *queues, unsigned long number)
{
	if (has(queues, number))
		return "gives a queue twice";
	if (queues->count == QUEUES_MAX || number > UINT16_MAX)
		return "is more than 256 queues";
	queues->numbers[queues->count++] = (uint16_t)number;
	return NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A number, or two with a '-' between them. */
static bool read_range(const char *word, unsigned long *ret_first, unsigned long *ret_last)
{
	char *end;

	if (!is_digit(*word))
		return false;
	*ret_first = *ret_last = strtoul(word, &end, 10);
	if (*end == '-' && is_digit(end[1]))
		*ret_last = strtoul(end + 1, &end, 10);
	return *end == '\0' && *ret_first <= *ret_last;
}

static const char *add_word(struct queues *queues, const char *word)
{
	unsigned long first, last;
	const char *wrong = NULL;

	if (!read_range(word, &first, &last))
		return "takes all, or numbers and ranges such as 0,2-5";
	for (unsigned long i = first; i <= last && !wrong; i++)
		wrong = add(queues, i);
	return wrong;
}

const char *queues_choose(const char *const *words, unsigned there, struct queues *ret)
{
	const char *wrong = NULL;

	*ret = (struct queues){0};
	if (!words || !words[0])
		return "takes at least one queue";
	if (strcmp(words[0], "all") == 0 && !words[1]) {
		for (unsigned i = 0; i < there && !wrong; i++)
			wrong = add(ret, i);
		return wrong;
	}
	for (unsigned i = 0; words[i] && !wrong; i++)
		wrong = add_word(ret, words[i]);
	return wrong;
}
