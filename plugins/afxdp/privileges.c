/*
 * privileges.c: see privileges.h.
 */
#include "privileges.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	unsigned number;
	const char *name;
} needed[] = {
	{CAP_NET_ADMIN, "CAP_NET_ADMIN"},
	{CAP_NET_RAW, "CAP_NET_RAW"},
	{CAP_BPF, "CAP_BPF"},
};

static bool has(const struct __user_cap_data_struct *data, unsigned capability)
{
	return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

void privileges_missing(char *to, size_t size)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	*to = '\0';
	if (syscall(SYS_capget, &header, data))
		return;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		size_t used = strlen(to);
		if (!has(data, needed[i].number))
			snprintf(to + used, size - used, "%s%s", used ? ", " : "", needed[i].name);
	}
}
