/*
 * times.c: moments as users write them.
 */
#include "replay.h"

#include <ctype.h>
#include <stdlib.h>
#include <time.h>

/* ".25" and the like, up to nanoseconds; what is finer is left out. */
static const char *parse_fraction(const char *text, int64_t *ret_ns)
{
	int64_t unit = NS_PER_S;
	*ret_ns = 0;
	if (*text != '.' || !isdigit((unsigned char)text[1]))
		return text;
	for (text++; isdigit((unsigned char)*text); text++) {
		unit /= 10;
		*ret_ns += (*text - '0') * unit;
	}
	return text;
}

/* "+01:00"; *ret_s is how far ahead of UTC that is. NULL: not of that form. */
static const char *parse_offset(const char *text, int *ret_s)
{
	for (int i = 1; i <= 5; i++)
		if (i == 3 ? text[i] != ':' : !isdigit((unsigned char)text[i]))
			return NULL;
	int hours = atoi(text + 1), minutes = atoi(text + 4);
	*ret_s = (hours * 60 + minutes) * 60 * (*text == '-' ? -1 : 1);
	return hours < 24 && minutes < 60 ? text + 6 : NULL;
}

/* "2026-01-02", and "03:04" or "03:04:05" after a blank or a T. */
static const char *parse_local(const char *text, struct tm *ret)
{
	text = isdigit((unsigned char)*text) ? strptime(text, "%Y-%m-%d", ret) : NULL;
	if (!text || *text == '\0')
		return text;
	if ((*text != ' ' && *text != 'T' && *text != 't') || !isdigit((unsigned char)text[1]))
		return NULL;
	text = strptime(text + 1, "%H:%M", ret);
	return text && *text == ':' ? strptime(text, ":%S", ret) : text;
}

static bool parse_moment(const char *text, int64_t *ret_ns)
{
	struct tm tm = {.tm_isdst = -1};
	int64_t fraction_ns;
	int ahead_s = 0;
	text = parse_local(text, &tm);
	if (!text)
		return false;
	text = parse_fraction(text, &fraction_ns);
	bool local = *text == '\0';
	if (*text == 'Z' || *text == 'z')
		text++;
	else if (*text == '+' || *text == '-')
		text = parse_offset(text, &ahead_s);
	if (!text || *text != '\0')
		return false;
	int64_t s = local ? mktime(&tm) : timegm(&tm) - ahead_s;
	return !__builtin_mul_overflow(s, NS_PER_S, &s) &&
	       !__builtin_add_overflow(s, fraction_ns, ret_ns);
}

static int64_t realtime_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

bool times_parse(const char *text, int64_t *ret_ns)
{
	int64_t span_ns;
	if (*text != '-')
		return parse_moment(text, ret_ns);
	if (!weir_parse_time(text + 1, &span_ns))
		return false;
	*ret_ns = realtime_ns() - span_ns;
	return true;
}
