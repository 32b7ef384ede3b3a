/*
 * capdump FILE [BYTES]: the canonical dump of a capture file as weir_reader reads it, one packet a
 * line: SECONDS.NNNNNNNNN CAPLEN WIRELEN HEX.  BYTES: how much is handed to the reader at a time,
 * at first.
 *
 * Warnings, the error and a word on a torn tail go to standard error. Exit status 0: read to the
 * end (also with a torn tail); 1: an error.
 */
#include <weir/capfile.h>

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

static uint16_t add_interface(void *user, const struct weir_interface *interface)
{
	unsigned *n = user;
	fprintf(stderr, "interface %u '%s' linktype %u snaplen %u\n", *n, interface->name,
		interface->linktype, interface->snaplen);
	return (uint16_t)(*n)++;
}

static void warn(void *user, uint64_t offset, const char *message)
{
	(void)user;
	fprintf(stderr, "warning at byte %" G_GUINT64_FORMAT ": %s\n", offset, message);
}

static void print_packet(const struct weir_packet *packet)
{
	printf("%" G_GINT64_FORMAT ".%09" G_GINT64_FORMAT " %u %u ", packet->ts_ns / 1000000000,
	       packet->ts_ns % 1000000000, packet->caplen, packet->wirelen);
	for (uint32_t i = 0; i < packet->caplen; i++)
		printf("%02x", packet->data[i]);
	putchar('\n');
}

/* The sums must agree with what was used, whatever the file holds. */
static void check_totals(const struct weir_reader *reader, size_t used, size_t left)
{
	const struct weir_reader_totals *totals = weir_reader_totals(reader);
	g_assert_cmpuint(totals->header_bytes + totals->record_bytes + totals->skipped_bytes, ==,
			 used);
	fprintf(stderr, "%" G_GUINT64_FORMAT " packets, %" G_GUINT64_FORMAT " skipped, %zu left\n",
		totals->packets, totals->skipped_packets, left);
}

static int dump(const uint8_t *bytes, size_t size, size_t step)
{
	struct weir_packet packets[WEIR_BATCH];
	unsigned interfaces = 0, n;
	size_t at = 0, end = MIN(step, size), used, need;
	enum weir_reader_status status;
	struct weir_reader *reader = weir_reader_new(add_interface, warn, &interfaces);
	do {
		/* Each window is memory of its own, so that a sanitizer sees its ends. */
		g_autofree uint8_t *window = g_memdup2(bytes + at, end - at);
		status = weir_reader_read(reader, window, end - at, packets, WEIR_BATCH, &n, &used,
					  &need);
		for (unsigned i = 0; i < n; i++)
			print_packet(&packets[i]);
		at += used;
		if (at + need > size)
			break;
		end = MIN(size, MAX(at + need, n == WEIR_BATCH ? end : end + step));
	} while (status != WEIR_READER_BAD && at < size);
	check_totals(reader, at, size - at);
	if (weir_reader_end(reader, size - at))
		fprintf(stderr, "torn: %zu bytes\n", size - at);
	const char *error = weir_reader_error(reader);
	if (error)
		fprintf(stderr, "error (%s, %s): %s\n",
			weir_reader_is_open(reader) ? "in its records" : "refused",
			weir_reader_format(reader) ? weir_reader_format(reader) : "no format",
			error);
	weir_reader_free(reader);
	return error ? 1 : 0;
}

int main(int argc, char **argv)
{
	g_autofree char *bytes = NULL;
	gsize size;
	if (argc < 2 || !g_file_get_contents(argv[1], &bytes, &size, NULL))
		return 2;
	return dump((const uint8_t *)bytes, size,
		    argc > 2 ? strtoul(argv[2], NULL, 10) : 256 << 10);
}
