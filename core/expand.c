/*
 * expand.c: fills in the names of files: strftime's letters, %{iface}, %{lane}, %{node}, %{seq}.
 *
 * What is filled in never adds a folder: a slash in an interface's name or from %D becomes "-".
 */
#include <weir/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000

static const char letters[] = "aAbBcCdDeFgGhHIjklmMpPrRsSTuUVwWxXyYzZ";

/* What a pattern is filled in from. */
struct filling {
	const struct weir_self *self;
	const char *iface;
	uint64_t seq;
	int64_t seconds;
	struct tm time;
};

static void put(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc(*text == '/' ? '-' : *text, out);
}

static void put_letter(FILE *out, const struct filling *filling, char letter)
{
	char format[] = {'%', letter, 0};
	char text[128] = "";

	/* strftime's own %s takes struct tm for local time, which it may not be. */
	if (letter == 's')
		snprintf(text, sizeof(text), "%lld", (long long)filling->seconds);
	else
		strftime(text, sizeof(text), format, &filling->time);
	put(out, text);
}

static bool is_name(const char *name, size_t len, const char *wanted)
{
	return strlen(wanted) == len && memcmp(name, wanted, len) == 0;
}

static bool put_name(FILE *out, const struct filling *filling, const char *name, size_t len)
{
	if (is_name(name, len, "iface"))
		put(out, filling->iface ? filling->iface : "none");
	else if (is_name(name, len, "lane"))
		fprintf(out, "%u", filling->self->lane_index);
	else if (is_name(name, len, "node"))
		put(out, filling->self->name);
	else if (is_name(name, len, "seq"))
		fprintf(out, "%05llu", (unsigned long long)filling->seq);
	else
		return false;
	return true;
}

/* Where the directive that starts at `percent` ends; NULL: it is none. */
static const char *directive_end(const char *percent)
{
	const char *brace;

	if (percent[1] == '{') {
		brace = strchr(percent, '}');
		return brace ? brace + 1 : NULL;
	}
	if (percent[1] != '\0' && (percent[1] == '%' || strchr(letters, percent[1])))
		return percent + 2;
	return NULL;
}

static bool put_directive(FILE *out, const struct filling *filling, const char *percent,
			  const char *end)
{
	if (percent[1] == '{')
		return put_name(out, filling, percent + 2, (size_t)(end - percent) - 3);
	if (percent[1] == '%')
		fputc('%', out);
	else
		put_letter(out, filling, percent[1]);
	return true;
}

static bool fill(FILE *out, const struct filling *filling, const char *pattern)
{
	const char *end;

	while (*pattern) {
		if (*pattern != '%') {
			fputc(*pattern++, out);
			continue;
		}
		end = directive_end(pattern);
		if (!end || !put_directive(out, filling, pattern, end))
			return false;
		pattern = end;
	}
	return true;
}

static int64_t whole_seconds(int64_t ts_ns)
{
	return ts_ns / NS_PER_S - (ts_ns % NS_PER_S < 0);
}

char *weir_expand(struct weir_self *self, const char *pattern, int64_t ts_ns, bool local,
		  const char *iface, uint64_t seq)
{
	struct filling filling = {self, iface, seq, whole_seconds(ts_ns), {0}};
	time_t seconds = (time_t)filling.seconds;
	char *text = NULL;
	size_t len;
	FILE *out;
	bool ok;

	if (!pattern)
		return NULL;
	if (local)
		localtime_r(&seconds, &filling.time);
	else
		gmtime_r(&seconds, &filling.time);
	out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	ok = fill(out, &filling, pattern);
	if (fclose(out) == 0 && ok)
		return text;
	free(text);
	return NULL;
}

bool weir_pattern_has(const char *pattern, const char *name)
{
	const char *end;

	for (; pattern && (pattern = strchr(pattern, '%')); pattern = end) {
		end = directive_end(pattern);
		if (!end)
			return false;
		if (pattern[1] == '{' && is_name(pattern + 2, (size_t)(end - pattern) - 3, name))
			return true;
		if (pattern[1] != '{' && pattern[1] != '%' && strcmp(name, "time") == 0)
			return true;
	}
	return false;
}
