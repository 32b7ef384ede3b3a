/*
 * units.c: numbers with units.
 *
 * Units are as written, K being 1000 and Ki 1024; "1G" is refused, since people mean either by it.
 */
#include "units.h"

#include <glib.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{"", 1},
	{"B", 1},
	{"kB", 1000},
	{"KB", 1000},
	{"MB", 1000 * 1000},
	{"GB", 1000 * 1000 * 1000},
	{"TB", UINT64_C(1000000000000)},
	{"PB", UINT64_C(1000000000000000)},
	{"EB", UINT64_C(1000000000000000000)},
	{"KiB", UINT64_C(1) << 10},
	{"MiB", UINT64_C(1) << 20},
	{"GiB", UINT64_C(1) << 30},
	{"TiB", UINT64_C(1) << 40},
	{"PiB", UINT64_C(1) << 50},
	{"EiB", UINT64_C(1) << 60},
	{NULL, 0},
};

static const struct unit time_units[] = {
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000 * 1000},
	{"s", 1000 * 1000 * 1000},
	{"m", UINT64_C(60000000000)},
	{"h", UINT64_C(3600000000000)},
	{"d", UINT64_C(86400000000000)},
	{NULL, 0},
};

static const struct unit rate_units[] = {
	{"bps", 1},
	{"kbps", 1000},
	{"Mbps", 1000 * 1000},
	{"Gbps", 1000 * 1000 * 1000},
	{"Tbps", UINT64_C(1000000000000)},
	{"pps", 1},
	{"kpps", 1000},
	{"Mpps", 1000 * 1000},
	{"Gpps", 1000 * 1000 * 1000},
	{NULL, 0},
};

/* ---- Numbers and units ---- */

static const struct unit *find_unit(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (!strcmp(units->name, name))
			return units;
	return NULL;
}

/* Decimal digits; returns what follows them, NULL if there are none or too many. */
static const char *parse_digits(const char *text, uint64_t *ret)
{
	uint64_t value = 0;

	if (!g_ascii_isdigit(*text))
		return NULL;
	for (; g_ascii_isdigit(*text); text++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return NULL;
	*ret = value;
	return text;
}

/* Digits with at most one point between them; no exponent, no sign. */
static const char *parse_decimal(const char *text, double *ret)
{
	size_t whole = strspn(text, "0123456789"), n = whole;
	g_autofree char *digits = NULL;

	if (text[whole] == '.' && g_ascii_isdigit(text[whole + 1]))
		n += 1 + strspn(text + whole + 1, "0123456789");
	if (whole == 0)
		return NULL;
	digits = g_strndup(text, n);
	*ret = g_ascii_strtod(digits, NULL);
	return text + n;
}

static bool parse_with_unit(const char *text, const struct unit *units, uint64_t *ret)
{
	const char *rest = parse_digits(text, ret);
	const struct unit *unit = rest ? find_unit(units, rest) : NULL;

	return unit && !__builtin_mul_overflow(*ret, unit->factor, ret);
}

bool weir_parse_size(const char *text, uint64_t *ret_bytes)
{
	uint64_t bytes;

	if (!parse_with_unit(text, size_units, &bytes))
		return false;
	*ret_bytes = bytes;
	return true;
}

bool weir_parse_time(const char *text, int64_t *ret_ns)
{
	uint64_t ns = 0;

	/* Zero is the same in every unit. */
	if (strcmp(text, "0") != 0 && !parse_with_unit(text, time_units, &ns))
		return false;
	if (ns > INT64_MAX)
		return false;
	*ret_ns = (int64_t)ns;
	return true;
}

bool weir_parse_rate(const char *text, struct weir_rate *ret)
{
	double number;
	const char *rest = parse_decimal(text, &number);
	const struct unit *unit = rest ? find_unit(rate_units, rest) : NULL;

	if (!unit)
		return false;
	*ret = (struct weir_rate){.per_second = number * (double)unit->factor,
				  .packets = g_str_has_suffix(rest, "pps") ? 1 : 0};
	return true;
}

bool weir_parse_number(const char *text, int64_t *ret)
{
	bool negative = *text == '-';
	uint64_t magnitude;
	const char *rest = parse_digits(text + negative, &magnitude);

	if (!rest || *rest || magnitude > INT64_MAX)
		return false;
	*ret = negative ? -(int64_t)magnitude : (int64_t)magnitude;
	return true;
}

bool weir_parse_amount(const char *text, struct weir_amount *ret)
{
	struct weir_amount amount = {0};
	const char *rest = parse_decimal(text, &amount.percent);

	if (rest && !strcmp(rest, "%") && amount.percent <= 100) {
		*ret = amount;
		return true;
	}
	amount.percent = 0;
	if (!weir_parse_size(text, &amount.bytes))
		return false;
	*ret = amount;
	return true;
}

bool weir_is_ambiguous_size(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits && text[digits] && !text[digits + 1] && strchr("kKmMgGtTpP", text[digits]);
}
