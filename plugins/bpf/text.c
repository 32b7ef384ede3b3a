#include "text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libpcap's jumps are too short for what a longer text would become. */
enum { MAX_TEXT = 1 << 20 };

static void blank_comments(char *text)
{
	bool comment = false;
	for (char *p = text; *p; p++) {
		comment = *p == '#' || (comment && *p != '\n');
		if (comment)
			*p = ' ';
	}
}

char *text_read(const char *path, char *why, size_t why_size)
{
	FILE *file = fopen(path, "re");
	char *text = malloc(MAX_TEXT + 1);
	char *ret = NULL;

	if (!file || !text) {
		snprintf(why, why_size, "%s: %s", path, strerror(errno));
		goto out;
	}
	size_t n = fread(text, 1, MAX_TEXT, file);
	if (ferror(file)) {
		snprintf(why, why_size, "%s: %s", path, strerror(errno));
		goto out;
	}
	if (!feof(file) || memchr(text, 0, n)) {
		snprintf(why, why_size, "%s is no text of at most 1 MiB", path);
		goto out;
	}
	text[n] = 0;
	blank_comments(text);
	ret = text;
	text = NULL;
out:
	free(text);
	if (file)
		fclose(file);
	return ret;
}
