/* format.c: headers of files. */
#include "format.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

_Static_assert(FORMAT_UNIT_MAX >= WEIR_PCAPNG_SECTION_MAX, "a section header is a unit");
_Static_assert(FORMAT_UNIT_MAX >= WEIR_PCAPNG_INTERFACE_MAX, "an interface block is a unit");

bool format_name_is_pcapng(const char *path)
{
	const char *ending = strrchr(path, '.');

	return ending && (!strcasecmp(ending, ".pcapng") || !strcasecmp(ending, ".ntar"));
}

static void describe_system(const struct format *format, char *to, size_t room)
{
	snprintf(to, room, "%s %s", format->system.sysname, format->system.release);
}

size_t format_header(const struct format *format, uint8_t *to, uint32_t linktype)
{
	char os[2 * sizeof(format->system.sysname)];
	struct weir_section section = {.hardware = format->system.machine,
				       .os = os,
				       .application = "Weir " WEIR_VERSION,
				       .comment = format->comment};

	if (!format->pcapng)
		return weir_pcap_header(to, linktype, format->precision);
	describe_system(format, os, sizeof(os));
	return weir_pcapng_section(to, &section);
}

size_t format_interface(const struct format *format, uint8_t *to,
			const struct weir_interface *interface, const char *filter)
{
	char os[2 * sizeof(format->system.sysname)];

	if (!format->pcapng)
		return 0;
	describe_system(format, os, sizeof(os));
	return weir_pcapng_interface(to, interface, filter, os);
}

bool format_describe(struct format *format, const char *pipeline, const char *sha256,
		     uint64_t max_bytes)
{
	bool whole = strlen(pipeline) <= max_bytes;

	return asprintf(&format->comment, "pipeline sha256:%s%s%s", sha256, whole ? "\n" : "",
			whole ? pipeline : "") >= 0;
}
