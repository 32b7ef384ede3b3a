/* human.c: numbers as people read them. */
#include "human.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

char *weir_human_count(uint64_t count)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	GString *text = g_string_new(NULL);

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			g_string_append_c(text, ',');
		g_string_append_c(text, digits[i]);
	}
	return g_string_free(text, FALSE);
}

/* A prefix is worth `step` times the one before it; the last one takes whatever is left. */
static char *scaled(double value, double step, const char *const *prefixes, const char *unit)
{
	int decimals;

	while (prefixes[1] && value >= step - 0.5) {
		value /= step;
		prefixes++;
	}
	decimals = value == floor(value) || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	return g_strdup_printf("%.*f %s%s", decimals, value, *prefixes, unit);
}

char *weir_human_bytes(uint64_t bytes)
{
	static const char *const prefixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", NULL};

	return scaled((double)bytes, 1024, prefixes, "B");
}

char *weir_human_rate(double per_second, const char *unit)
{
	static const char *const prefixes[] = {"", "k", "M", "G", "T", NULL};

	return scaled(per_second, 1000, prefixes, unit);
}

char *weir_human_time(double seconds)
{
	uint64_t whole = (uint64_t)seconds;

	if (seconds < 60)
		return g_strdup_printf("%.2f s", seconds);
	if (whole < 3600)
		return g_strdup_printf("%d m %d s", (int)(whole / 60), (int)(whole % 60));
	return g_strdup_printf("%" PRIu64 " h %d m", whole / 3600, (int)(whole % 3600 / 60));
}
