/*
 * capfile_read.c: reads capture files from memory, of whatever format (weir/capfile.h).
 *
 * The reader holds no bytes: what it cannot finish it leaves to the caller, and says how much it
 * needs.  So the same code reads files in chunks, pipes as they come, and messages whole.
 */
#include "capfile_read.h"

#include <glib.h>
#include <stdio.h>

#define MAGIC_BYTES 4u

struct weir_reader *weir_reader_new(weir_reader_interface on_interface,
				    weir_reader_warning on_warning, void *user)
{
	struct weir_reader *reader = g_try_new0(struct weir_reader, 1);
	if (!reader)
		return NULL;
	reader->on_interface = on_interface;
	reader->on_warning = on_warning;
	reader->user = user;
	return reader;
}

void weir_reader_free(struct weir_reader *reader)
{
	if (!reader)
		return;
	g_free(reader->ng.clocks);
	g_free(reader);
}

static uint64_t offset_of(const struct weir_reader *reader, const struct weir_reader_call *call)
{
	return reader->offset + (uint64_t)(call->at - call->start);
}

enum weir_reader_status weir_reader_fail(struct weir_reader *reader,
					 const struct weir_reader_call *call, const char *format,
					 ...)
{
	int n = snprintf(reader->error, sizeof(reader->error), "at byte %" G_GUINT64_FORMAT ": ",
			 offset_of(reader, call));
	va_list args;
	va_start(args, format);
	vsnprintf(reader->error + n, sizeof(reader->error) - (size_t)n, format, args);
	va_end(args);
	return WEIR_READER_BAD;
}

void weir_reader_warn(struct weir_reader *reader, const struct weir_reader_call *call,
		      const char *format, ...)
{
	if (!reader->on_warning)
		return;
	char message[256];
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	reader->on_warning(reader->user, offset_of(reader, call), message);
}

/* Foreign text ends up in reports and on terminals: valid UTF-8 without control characters. */
static char *clean_text(const char *text)
{
	char *clean = g_utf8_make_valid(text, -1);
	for (char *c = clean; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return clean;
}

uint16_t weir_reader_declare(struct weir_reader *reader, const char *name, const char *description,
			     uint32_t linktype, uint32_t snaplen)
{
	if (!reader->on_interface)
		return 0;
	g_autofree char *clean_name = clean_text(name ? name : "");
	g_autofree char *clean_description = description ? clean_text(description) : NULL;
	const struct weir_interface interface = {
		.name = clean_name,
		.description = clean_description,
		.linktype = linktype,
		.snaplen = snaplen,
	};
	return reader->on_interface(reader->user, &interface);
}

/* ---- What a file is ---- */

static const struct {
	const char *name;
	uint8_t len, bytes[8];
} foreign[] = {
	{"gzip", 2, {0x1f, 0x8b}},
	{"zstd", 4, {0x28, 0xb5, 0x2f, 0xfd}},
	{"lz4", 4, {0x04, 0x22, 0x4d, 0x18}},
	{"xz", 6, {0xfd, '7', 'z', 'X', 'Z', 0}},
	{"bzip2", 3, {'B', 'Z', 'h'}},
	{"zip", 4, {'P', 'K', 3, 4}},
	{"PNG", 4, {0x89, 'P', 'N', 'G'}},
	{"JPEG", 3, {0xff, 0xd8, 0xff}},
	{"GIF", 4, {'G', 'I', 'F', '8'}},
	{"PDF", 4, {'%', 'P', 'D', 'F'}},
	{"ELF", 4, {0x7f, 'E', 'L', 'F'}},
	{"snoop", 5, {'s', 'n', 'o', 'o', 'p'}},
};

static bool is_text(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < MIN(len, 64); i++)
		if (!g_ascii_isprint((char)bytes[i]) && !g_ascii_isspace((char)bytes[i]))
			return false;
	return true;
}

static const char *foreign_name(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < G_N_ELEMENTS(foreign); i++)
		if (memcmp(bytes, foreign[i].bytes, MIN(len, foreign[i].len)) == 0)
			return foreign[i].name;
	return is_text(bytes, len) ? "text" : "unknown";
}

static enum weir_reader_status open_foreign(struct weir_reader *reader,
					    const struct weir_reader_call *call)
{
	reader->format = foreign_name(call->at, (size_t)(call->end - call->at));
	if (strcmp(reader->format, "unknown") == 0)
		snprintf(reader->error, sizeof(reader->error),
			 "begins with %02x %02x %02x %02x, which is neither pcap nor pcapng",
			 call->at[0], call->at[1], call->at[2], call->at[3]);
	else
		snprintf(reader->error, sizeof(reader->error), "seems to be %s, not pcap or pcapng",
			 reader->format);
	return WEIR_READER_BAD;
}

static enum weir_reader_status open_format(struct weir_reader *reader,
					   struct weir_reader_call *call)
{
	if ((size_t)(call->end - call->at) < MAGIC_BYTES)
		return weir_reader_more(call, MAGIC_BYTES);
	if (weir_pcapng_is(call->at)) {
		reader->kind = WEIR_READER_PCAPNG;
		reader->format = "pcapng";
		return WEIR_READER_OK;
	}
	if (!weir_pcap_is(call->at))
		return open_foreign(reader, call);
	reader->format = "pcap";
	enum weir_reader_status status = weir_pcap_open(reader, call);
	if (status == WEIR_READER_OK)
		reader->kind = WEIR_READER_PCAP;
	return status;
}

/* ---- The stream ---- */

static enum weir_reader_status read_call(struct weir_reader *reader, struct weir_reader_call *call)
{
	if (reader->error[0])
		return WEIR_READER_BAD;
	if (call->at == call->end)
		return WEIR_READER_OK;
	if (reader->kind == WEIR_READER_UNKNOWN) {
		enum weir_reader_status status = open_format(reader, call);
		if (status != WEIR_READER_OK)
			return status;
	}
	return reader->kind == WEIR_READER_PCAP ? weir_pcap_read(reader, call)
						: weir_pcapng_read(reader, call);
}

enum weir_reader_status weir_reader_read(struct weir_reader *reader, const uint8_t *bytes,
					 size_t len, struct weir_packet *packets, unsigned max,
					 unsigned *ret_n, size_t *ret_used, size_t *ret_need)
{
	struct weir_reader_call call = {
		.start = bytes,
		.at = bytes,
		.end = bytes + len,
		.packets = packets,
		.max = max,
	};
	enum weir_reader_status status = read_call(reader, &call);
	*ret_n = call.n;
	*ret_used = (size_t)(call.at - call.start);
	*ret_need = call.need;
	reader->offset += *ret_used;
	reader->totals.packets += call.n;
	return status;
}

/* The stream ended before its first header did. */
static void end_early(struct weir_reader *reader, size_t left)
{
	uint64_t bytes = reader->offset + left;
	if (bytes == 0)
		snprintf(reader->error, sizeof(reader->error), "is empty");
	else
		snprintf(reader->error, sizeof(reader->error),
			 "ends after %" G_GUINT64_FORMAT " bytes, within %s", bytes,
			 reader->format ? "its header" : "the first word");
}

bool weir_reader_end(struct weir_reader *reader, size_t left)
{
	if (reader->error[0])
		return false;
	if (!reader->is_open)
		end_early(reader, left);
	else if (reader->ng.pass_over > 0)
		snprintf(reader->error, sizeof(reader->error),
			 "at byte %" G_GUINT64_FORMAT
			 ": ends within a block that claims to have %" G_GUINT64_FORMAT
			 " bytes more",
			 reader->offset, reader->ng.pass_over);
	return left > 0 && !reader->error[0];
}

const char *weir_reader_error(const struct weir_reader *reader)
{
	return reader->error[0] ? reader->error : NULL;
}

const struct weir_reader_totals *weir_reader_totals(const struct weir_reader *reader)
{
	return &reader->totals;
}

const char *weir_reader_format(const struct weir_reader *reader)
{
	return reader->format;
}

bool weir_reader_is_open(const struct weir_reader *reader)
{
	return reader->is_open;
}
