/*
 * processors.c: see processors.h.
 */
#include "processors.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

static bool is_auto(const char *const *cpus)
{
	return strcmp(cpus[0], "auto") == 0 && !cpus[1];
}

static bool parse_processor(const char *text, int *ret)
{
	char *end;
	long number = strtol(text, &end, 10);

	*ret = (int)number;
	return end != text && *end == '\0' && number >= 0 && number < CPU_SETSIZE;
}

bool processors_check(struct weir_self *self, const char *const *cpus, unsigned lanes)
{
	unsigned n = 0;
	int processor;

	if (!cpus || is_auto(cpus))
		return true;
	for (; cpus[n]; n++) {
		if (parse_processor(cpus[n], &processor))
			continue;
		weir_error(self, "cpus", "'%s' is no number of a processor; cpus=auto would work",
			   cpus[n]);
		return false;
	}
	if (n == lanes)
		return true;
	weir_error(
		self, "cpus",
		"cpus= names %u processor%s for %u lane%s; one for each, or cpus=auto, would work",
		n, n == 1 ? "" : "s", lanes, lanes == 1 ? "" : "s");
	return false;
}

/* The n-th of those that this process may use, beginning anew behind the last. */
static int nth_allowed(const cpu_set_t *allowed, unsigned n)
{
	unsigned count = (unsigned)CPU_COUNT(allowed);
	int processor = -1;

	for (unsigned left = count ? n % count + 1 : 0; left > 0; left--) {
		do
			processor++;
		while (!CPU_ISSET((size_t)processor, allowed));
	}
	return processor;
}

int processors_of(const char *const *cpus, unsigned lane)
{
	cpu_set_t allowed;
	int processor;

	if (!cpus)
		return -1;
	if (!is_auto(cpus))
		return parse_processor(cpus[lane], &processor) ? processor : -1;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return -1;
	return nth_allowed(&allowed, lane);
}

bool processors_find(struct weir_self *self, const char *const *cpus)
{
	cpu_set_t allowed;
	int processor;

	if (!cpus || is_auto(cpus) || sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return true;
	for (unsigned i = 0; cpus[i]; i++) {
		if (parse_processor(cpus[i], &processor) && CPU_ISSET((size_t)processor, &allowed))
			continue;
		weir_error(self, "cpus",
			   "processor %s is not there, or not for this process: it may use %d; "
			   "'taskset -pc $$' lists them, cpus=auto would work",
			   cpus[i], CPU_COUNT(&allowed));
		return false;
	}
	return true;
}
