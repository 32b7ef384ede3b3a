/*
 * memory.c: see memory.h.
 */
#include "memory.h"

#include <stdio.h>

static uint64_t available_bytes(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "re");

	if (!file)
		return UINT64_MAX;
	while (!kib && fgets(line, sizeof(line), file))
		sscanf(line, "MemAvailable: %llu kB", &kib);
	fclose(file);
	return kib ? kib * 1024 : UINT64_MAX;
}

bool memory_check(struct weir_self *self, const char *option, uint64_t bytes)
{
	uint64_t available = available_bytes();

	if (bytes < available)
		return true;
	weir_error(self, option,
		   "%s=%lluMiB is more than the %llu MiB of memory that are available", option,
		   (unsigned long long)bytes >> 20, (unsigned long long)available >> 20);
	return false;
}
