/*
 * test_capfile.c: the encoders, judged by libpcap and by bytes written out by hand from the drafts,
 * and the reader, on files built here in both byte orders.
 */
#include <weir/capfile.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <glib.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S 1000000000

/* ---- What a test made, freed at its end ---- */

static GSList *garbage; /* struct item * */

struct item {
	gpointer object;
	GDestroyNotify free;
};

static gpointer later(gpointer object, GDestroyNotify free_object)
{
	struct item *item = g_new(struct item, 1);
	*item = (struct item){object, free_object};
	garbage = g_slist_prepend(garbage, item);
	return object;
}

static void free_item(gpointer data)
{
	struct item *item = data;
	item->free(item->object);
	g_free(item);
}

static void free_string(gpointer string)
{
	g_string_free(string, TRUE);
}

static void clean_up(void)
{
	g_slist_free_full(g_steal_pointer(&garbage), free_item);
}

TestSuite(capfile, .fini = clean_up);

/* ---- Building files ---- */

struct file {
	GByteArray *bytes;
	bool big; /* byte order */
};

static struct file file_new(bool big)
{
	return (struct file){later(g_byte_array_new(), (GDestroyNotify)g_byte_array_unref), big};
}

static void add16(struct file *file, unsigned value)
{
	uint8_t high = (uint8_t)(value >> 8), low = (uint8_t)value;
	uint8_t bytes[2] = {file->big ? high : low, file->big ? low : high};
	g_byte_array_append(file->bytes, bytes, 2);
}

static void add32(struct file *file, uint32_t value)
{
	uint32_t v = file->big ? GUINT32_TO_BE(value) : GUINT32_TO_LE(value);
	g_byte_array_append(file->bytes, (uint8_t *)&v, 4);
}

static void add_text(struct file *file, const char *text)
{
	g_byte_array_append(file->bytes, (const uint8_t *)text, (guint)strlen(text));
}

static void pad(struct file *file)
{
	while (file->bytes->len % 4)
		g_byte_array_append(file->bytes, (const uint8_t *)"", 1);
}

static void add_pcap_header(struct file *file, uint32_t magic, unsigned major, unsigned minor)
{
	add32(file, magic);
	add16(file, major);
	add16(file, minor);
	add32(file, 0);
	add32(file, 0);
	add32(file, 65535);
	add32(file, 1);
}

static void add_record(struct file *file, uint32_t s, uint32_t fraction, uint32_t caplen,
		       uint32_t wirelen, const char *data)
{
	add32(file, s);
	add32(file, fraction);
	add32(file, caplen);
	add32(file, wirelen);
	add_text(file, data);
}

static guint begin_block(struct file *file, uint32_t type)
{
	guint start = file->bytes->len;
	add32(file, type);
	add32(file, 0);
	return start;
}

static void end_block(struct file *file, guint start)
{
	pad(file);
	struct file length = file_new(file->big);
	add32(&length, file->bytes->len + 4 - start);
	memcpy(file->bytes->data + start + 4, length.bytes->data, 4);
	g_byte_array_append(file->bytes, length.bytes->data, 4);
}

static void add_section(struct file *file)
{
	guint start = begin_block(file, 0x0a0d0d0a);
	add32(file, 0x1a2b3c4d);
	add16(file, 1);
	add16(file, 0);
	add32(file, UINT32_MAX);
	add32(file, UINT32_MAX);
	end_block(file, start);
}

/* resolution, offset_s: the options if_tsresol and if_tsoffset; 0xff and 0: without. */
static void add_interface(struct file *file, unsigned linktype, uint32_t snaplen,
			  unsigned resolution, int64_t offset_s, const char *name)
{
	guint start = begin_block(file, 1);
	add16(file, linktype);
	add16(file, 0);
	add32(file, snaplen);
	if (name) {
		add16(file, 2);
		add16(file, (unsigned)strlen(name));
		add_text(file, name);
		pad(file);
	}
	if (resolution != 0xff) {
		add16(file, 9);
		add16(file, 1);
		g_byte_array_append(file->bytes, (uint8_t[]){(uint8_t)resolution, 0, 0, 0}, 4);
	}
	if (offset_s) {
		add16(file, 14);
		add16(file, 8);
		add32(file, file->big ? (uint32_t)(offset_s >> 32) : (uint32_t)offset_s);
		add32(file, file->big ? (uint32_t)offset_s : (uint32_t)(offset_s >> 32));
	}
	add32(file, 0);
	end_block(file, start);
}

static void add_enhanced(struct file *file, uint32_t iface, uint64_t ticks, const char *data)
{
	guint start = begin_block(file, 6);
	add32(file, iface);
	add32(file, (uint32_t)(ticks >> 32));
	add32(file, (uint32_t)ticks);
	add32(file, (uint32_t)strlen(data));
	add32(file, (uint32_t)strlen(data));
	add_text(file, data);
	end_block(file, start);
}

/* ---- Reading them ---- */

struct result {
	GArray *packets; /* struct weir_packet, whose data are strings */
	GString *interfaces, *warnings;
	char *error;
	bool torn, open;
	struct weir_reader_totals totals;
};

static uint16_t on_interface(void *user, const struct weir_interface *interface)
{
	struct result *result = user;
	unsigned id = 0;
	for (const char *c = result->interfaces->str; *c; c++)
		id += *c == ';';
	g_string_append_printf(result->interfaces, "%s/%u/%u;", interface->name,
			       interface->linktype, interface->snaplen);
	return (uint16_t)id;
}

static void on_warning(void *user, uint64_t offset, const char *message)
{
	struct result *result = user;
	g_string_append_printf(result->warnings, "%u: %s\n", (unsigned)offset, message);
}

static void keep(struct result *result, const struct weir_packet *packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct weir_packet packet = packets[i];
		packet.data = later(g_strndup((const char *)packets[i].data, packets[i].caplen),
				    g_free);
		g_array_append_val(result->packets, packet);
	}
}

/* Hands the bytes to the reader `step` more at a time, each time in memory of exactly that size. */
static struct result read_in_steps(const uint8_t *bytes, size_t size, size_t step)
{
	struct result result = {
		.packets = later(g_array_new(FALSE, FALSE, sizeof(struct weir_packet)),
				 (GDestroyNotify)g_array_unref),
		.interfaces = later(g_string_new(""), free_string),
		.warnings = later(g_string_new(""), free_string),
	};
	struct weir_reader *reader = weir_reader_new(on_interface, on_warning, &result);
	struct weir_packet packets[3];
	enum weir_reader_status status = WEIR_READER_OK;
	size_t at = 0, end = 0, used, need = 0;
	unsigned n = 0;
	while (status != WEIR_READER_BAD && (at + need <= size || n > 0)) {
		if (n < 3)
			end = MIN(size, MAX(end + step, at + need));
		uint8_t *window = g_memdup2(bytes + at, end - at);
		status = weir_reader_read(reader, window, end - at, packets, 3, &n, &used, &need);
		keep(&result, packets, n);
		g_free(window);
		at += used;
		if (at == size)
			break;
	}
	result.torn = weir_reader_end(reader, size - at);
	result.error = later(g_strdup(weir_reader_error(reader)), g_free);
	result.open = weir_reader_is_open(reader);
	result.totals = *weir_reader_totals(reader);
	const struct weir_reader_totals *t = &result.totals;
	cr_assert_eq(t->header_bytes + t->record_bytes + t->skipped_bytes, at);
	weir_reader_free(reader);
	return result;
}

/* The same, whatever the steps. */
static struct result read_file(const struct file *file)
{
	struct result whole = read_in_steps(file->bytes->data, file->bytes->len, SIZE_MAX / 2);
	for (size_t step = 1; step < 64; step += 5) {
		struct result other = read_in_steps(file->bytes->data, file->bytes->len, step);
		cr_assert_eq(other.packets->len, whole.packets->len, "step %zu", step);
		cr_assert_str_eq(other.interfaces->str, whole.interfaces->str);
		cr_assert_str_eq(other.warnings->str, whole.warnings->str);
		cr_assert_eq(g_strcmp0(other.error, whole.error), 0, "step %zu: %s", step,
			     other.error);
		cr_assert_eq(other.torn, whole.torn);
	}
	return whole;
}

static const struct weir_packet *packet_of(const struct result *result, unsigned i)
{
	cr_assert_lt(i, result->packets->len, "%u packets: %s", result->packets->len,
		     result->error);
	return &g_array_index(result->packets, struct weir_packet, i);
}

static void expect_packet(const struct result *result, unsigned i, int64_t ts_ns, const char *data)
{
	const struct weir_packet *packet = packet_of(result, i);
	cr_expect_eq(packet->ts_ns, ts_ns, "packet %u: %lld", i, (long long)packet->ts_ns);
	cr_expect_eq(packet->caplen, strlen(data));
	cr_expect_str_eq((const char *)packet->data, data);
}

/* ---- Classic pcap ---- */

struct magic {
	uint32_t magic;
	bool big;
	int64_t ns_per_fraction;
	unsigned extra; /* bytes more in a record's header */
};

ParameterizedTestParameters(capfile, magics)
{
	static struct magic magics[] = {
		{0xa1b2c3d4, false, 1000, 0}, {0xa1b2c3d4, true, 1000, 0},
		{0xa1b23c4d, false, 1, 0},    {0xa1b23c4d, true, 1, 0},
		{0xa1b2cd34, false, 1000, 8}, {0xa1b2cd34, true, 1000, 8},
	};
	return cr_make_param_array(struct magic, magics, G_N_ELEMENTS(magics));
}

ParameterizedTest(struct magic *magic, capfile, magics)
{
	struct file file = file_new(magic->big);
	add_pcap_header(&file, magic->magic, 2, 4);
	for (unsigned i = 0; i < 5; i++) {
		add_record(&file, 0xfffffff0 + i, 123 + i, 5, 6 + i, "");
		for (unsigned j = 0; j < magic->extra; j++)
			add_text(&file, "x");
		add_text(&file, "hello");
	}
	struct result result = read_file(&file);
	cr_assert_null(result.error);
	cr_assert_eq(result.packets->len, 5);
	for (unsigned i = 0; i < 5; i++) {
		int64_t s = INT64_C(0xfffffff0) + i;
		expect_packet(&result, i, s * NS_PER_S + (123 + i) * magic->ns_per_fraction,
			      "hello");
		cr_expect_eq(packet_of(&result, i)->wirelen, 6 + i);
		cr_expect_eq(packet_of(&result, i)->queue, UINT16_MAX);
	}
	cr_expect_str_eq(result.interfaces->str, "/1/65535;");
}

Test(capfile, fraction_carries_and_wirelen_is_never_below_caplen)
{
	struct file file = file_new(false);
	add_pcap_header(&file, 0xa1b2c3d4, 2, 4);
	add_record(&file, 1, 4294967295, 2, 0, "ab");
	struct result result = read_file(&file);
	expect_packet(&result, 0, 1 * INT64_C(1000000000) + INT64_C(4294967295) * 1000, "ab");
	cr_expect_eq(packet_of(&result, 0)->wirelen, 2);
}

Test(capfile, old_minor_versions_have_lengths_the_other_way_round)
{
	struct file file = file_new(false);
	add_pcap_header(&file, 0xa1b2c3d4, 2, 2);
	add_record(&file, 1, 0, 100, 2, "ab"); /* wirelen, caplen */
	add_record(&file, 2, 0, 100, 3, "abc");
	struct result result = read_file(&file);
	expect_packet(&result, 1, 2 * INT64_C(1000000000), "abc");
	cr_expect_eq(packet_of(&result, 1)->wirelen, 100);
	cr_expect_str_empty(result.warnings->str);
}

Test(capfile, other_major_versions_are_read_with_a_warning)
{
	struct file file = file_new(true);
	add_pcap_header(&file, 0xa1b2c3d4, 512, 1024);
	add_record(&file, 1, 0, 2, 2, "ab");
	struct result result = read_file(&file);
	cr_expect_eq(result.packets->len, 1);
	cr_expect_str_eq(result.warnings->str,
			 "0: pcap version 512.1024, read as if it were 2.4\n");
}

/* ---- pcapng ---- */

Test(capfile, sections_of_both_orders_with_interfaces_of_their_own)
{
	struct file file = file_new(true);
	add_section(&file);
	add_interface(&file, 1, 100, 6, 0, "eth0");
	add_interface(&file, 113, 0, 9, 0, "any");
	add_enhanced(&file, 1, 5000000001, "ns");
	add_enhanced(&file, 0, 5000001, "us");
	file.big = false;
	add_section(&file);
	add_interface(&file, 0, 7, 0xff, 0, NULL);
	add_enhanced(&file, 0, 6000000, "little");
	struct result result = read_file(&file);
	cr_assert_null(result.error, "%s", result.error);
	expect_packet(&result, 0, INT64_C(5000000001), "ns");
	expect_packet(&result, 1, INT64_C(5000001000), "us");
	expect_packet(&result, 2, INT64_C(6000000000), "little");
	cr_expect_eq(packet_of(&result, 0)->iface, 1);
	cr_expect_eq(packet_of(&result, 1)->iface, 0);
	cr_expect_eq(packet_of(&result, 2)->iface, 2);
	cr_expect_str_eq(result.interfaces->str, "eth0/1/100;any/113/0;/0/7;");
}

struct clock {
	unsigned resolution;
	int64_t offset_s;
	uint64_t ticks;
	int64_t ts_ns;
	char warning[32]; /* parameters go to another process: no pointers */
};

ParameterizedTestParameters(capfile, clocks)
{
	static struct clock clocks[] = {
		{0, 0, 7, INT64_C(7000000000), ""},
		{3, 0, 7001, INT64_C(7001000000), ""},
		{6, 3600, 1000001, INT64_C(3601000001000), ""},
		{6, -1, 1500000, INT64_C(500000000), ""},
		{9, 0, INT64_MAX, INT64_MAX, ""},
		{12, 0, 1999, 1, ""},
		{18, 0, UINT64_C(1000000001000000000), INT64_C(1000000001), ""},
		{0x80 | 10, 0, 1536, INT64_C(1500000000), ""},
		{0x80 | 63, 0, UINT64_C(1) << 62, INT64_C(500000000), ""},
		{0x80, 0, 3, INT64_C(3000000000), ""},
		{0, 0, UINT64_C(1) << 33 | 5, (INT64_C(1) << 33 | 5) * 1000000000, ""},
		{0, 0, UINT64_C(1) << 34 | 5, INT64_C(5000000000), "beyond the year 2262"},
		{6, INT64_MAX, 0, INT64_C(0xffffffff) * 1000000000, "beyond the year 2262"},
	};
	return cr_make_param_array(struct clock, clocks, G_N_ELEMENTS(clocks));
}

ParameterizedTest(struct clock *clock, capfile, clocks)
{
	struct file file = file_new(clock->resolution % 2);
	add_section(&file);
	add_interface(&file, 1, 0, clock->resolution, clock->offset_s, NULL);
	add_enhanced(&file, 0, clock->ticks, "data");
	add_enhanced(&file, 0, clock->ticks, "data");
	struct result result = read_file(&file);
	expect_packet(&result, 1, clock->ts_ns, "data");
	const char *said = strstr(result.warnings->str, clock->warning);
	cr_expect_not_null(said);
	cr_expect(*clock->warning || !*said);
	cr_expect(!*clock->warning || !strstr(said + 1, clock->warning), "said once");
}

Test(capfile, a_clock_that_cannot_be_read_refuses_its_interface_alone)
{
	struct file file = file_new(false);
	add_section(&file);
	add_interface(&file, 1, 0, 19, 0, "fine");
	add_interface(&file, 1, 0, 0x80 | 64, 0, "finer");
	add_interface(&file, 1, 0, 6, 0, "good");
	for (unsigned i = 0; i < 3; i++)
		add_enhanced(&file, i, 1, "data");
	struct result result = read_file(&file);
	cr_assert_null(result.error);
	cr_expect_eq(result.packets->len, 1);
	cr_expect_eq(result.totals.skipped_packets, 2);
	cr_expect_str_eq(result.interfaces->str, "good/1/0;");
	cr_expect(strstr(result.warnings->str, "10^-19") && strstr(result.warnings->str, "2^-64"));
}

Test(capfile, simple_and_obsolete_packet_blocks)
{
	struct file file = file_new(true);
	add_section(&file);
	add_interface(&file, 1, 3, 6, 0, NULL);
	guint start = begin_block(&file, 3);
	add32(&file, 100); /* on the wire; cut at the snaplen */
	add_text(&file, "abc");
	end_block(&file, start);
	start = begin_block(&file, 2);
	add16(&file, 0);
	add16(&file, 17); /* drops */
	add32(&file, 0);
	add32(&file, 2000000);
	add32(&file, 5);
	add32(&file, 9);
	add_text(&file, "older");
	end_block(&file, start);
	struct result result = read_file(&file);
	expect_packet(&result, 0, 0, "abc");
	cr_expect_eq(packet_of(&result, 0)->wirelen, 100);
	expect_packet(&result, 1, INT64_C(2000000000), "older");
	cr_expect_eq(packet_of(&result, 1)->wirelen, 9);
	cr_expect_eq(packet_of(&result, 1)->dropped, 17);
}

Test(capfile, blocks_without_packets_are_skipped_and_long_ones_not_held)
{
	struct file file = file_new(false);
	add_section(&file);
	add_interface(&file, 1, 0, 6, 0, NULL);
	guint start = begin_block(&file, 0x0bad);
	add_text(&file, "text");
	end_block(&file, start);
	start = begin_block(&file, 5);
	g_byte_array_set_size(file.bytes, file.bytes->len + (3 << 20));
	end_block(&file, start);
	add_enhanced(&file, 0, 1, "data");
	struct result result = read_in_steps(file.bytes->data, file.bytes->len, 100000);
	cr_assert_null(result.error);
	cr_expect_eq(result.packets->len, 1);
	cr_expect_eq(result.totals.skipped_bytes, (3 << 20) + 12 + 16);
}

Test(capfile, damaged_options_are_ignored)
{
	struct file file = file_new(false);
	add_section(&file);
	guint start = begin_block(&file, 1);
	add32(&file, 1);
	add32(&file, 0);
	add32(&file, 2 << 16 | 9); /* if_tsresol of two bytes */
	add32(&file, 0x0909);
	add32(&file, 60000u << 16 | 2); /* if_name longer than the block */
	end_block(&file, start);
	start = begin_block(&file, 6);
	for (unsigned i = 0; i < 3; i++)
		add32(&file, i == 2);
	add32(&file, 4);
	add32(&file, 4);
	add_text(&file, "data");
	add32(&file, 1 << 16 | 2); /* epb_flags of one byte */
	add32(&file, 2);
	end_block(&file, start);
	struct result result = read_file(&file);
	cr_assert_null(result.error);
	expect_packet(&result, 0, 1000, "data");
	cr_expect_eq(packet_of(&result, 0)->flags, 0);
}

Test(capfile, text_of_files_is_made_safe)
{
	struct file file = file_new(false);
	add_section(&file);
	add_interface(&file, 1, 0, 6, 0, "e\x1b[2J\xff");
	struct result result = read_file(&file);
	cr_expect(g_utf8_validate(result.interfaces->str, -1, NULL));
	cr_expect_null(strchr(result.interfaces->str, 0x1b));
}

/* ---- What cannot be read ---- */

struct bad {
	char bytes[32];
	size_t len;
	char error[48];
	bool open;
};

ParameterizedTestParameters(capfile, refused)
{
	static struct bad bad[] = {
		{"", 0, "is empty", false},
		{"\xd4\xc3\xb2", 3, "ends after 3 bytes", false},
		{"\xd4\xc3\xb2\xa1\2\0\4\0", 8, "ends after 8 bytes, within its header", false},
		{"\n\r\r\n\34\0\0\0\x4d\x3c\x2b\x1a", 12, "ends after 12 bytes", false},
		{"\x1f\x8b\x08\0\0\0", 6, "seems to be gzip", false},
		{"\x89PNG\r\n\x1a\n", 8, "seems to be PNG", false},
		{"(\xb5/\xfd....", 8, "seems to be zstd", false},
		{"tap = afpacket eth0", 19, "seems to be text", false},
		{"\1\2\3\4\5", 5, "begins with 01 02 03 04", false},
		{"\n\r\r\n\34\0\0\0\1\2\3\4", 12, "no known byte order", false},
		{"\n\r\r\n\0\0\0\177\x4d\x3c\x2b\x1a", 12, "claims to have 2130706432", false},
		{"\n\r\r\n\34\0\0\0\x4d\x3c\x2b\x1a\2\0\0\0\0\0\0\0\0\0\0\0\34\0\0\0", 28,
		 "pcapng version 2.0", false},
	};
	return cr_make_param_array(struct bad, bad, G_N_ELEMENTS(bad));
}

ParameterizedTest(struct bad *bad, capfile, refused)
{
	for (size_t step = 1; step < 40; step += 3) {
		struct result result = read_in_steps((const uint8_t *)bad->bytes, bad->len, step);
		cr_assert_not_null(result.error);
		/* Of what is cut shorter the kind may be less clear, but never that it is refused.
		 */
		cr_expect(step < 10 || strstr(result.error, bad->error), "%s", result.error);
		cr_expect_eq(result.open, bad->open);
		cr_expect(!result.torn);
	}
}

Test(capfile, a_record_that_cannot_be_ends_the_stream_with_its_offset)
{
	struct file file = file_new(false);
	add_pcap_header(&file, 0xa1b2c3d4, 2, 4);
	add_record(&file, 1, 0, 4, 4, "good");
	add_record(&file, 1, 0, WEIR_MAX_CAPLEN + 1, 4, "evil");
	struct result result = read_file(&file);
	cr_expect_eq(result.packets->len, 1);
	cr_expect(g_str_has_prefix(result.error, "at byte 44: "), "%s", result.error);
	cr_expect(result.open && !result.torn);
}

Test(capfile, a_packet_of_no_interface_ends_the_stream)
{
	struct file file = file_new(false);
	add_section(&file);
	add_interface(&file, 1, 0, 6, 0, NULL);
	add_enhanced(&file, 0, 0, "good");
	add_enhanced(&file, 1, 0, "evil");
	struct result result = read_file(&file);
	cr_expect_eq(result.packets->len, 1);
	cr_expect(strstr(result.error, "a packet of interface 1, where 1 are described"));
}

Test(capfile, a_captured_length_beyond_its_block_ends_the_stream)
{
	struct file file = file_new(false);
	add_section(&file);
	add_interface(&file, 1, 0, 6, 0, NULL);
	add_enhanced(&file, 0, 0, "data");
	file.bytes->data[file.bytes->len - 16] = 5;
	struct result result = read_file(&file);
	cr_expect_eq(result.packets->len, 0);
	cr_expect(strstr(result.error, "claims 5 captured bytes in a block of 36"), "%s",
		  result.error);
}

Test(capfile, a_torn_tail_is_no_error_wherever_it_is_cut)
{
	struct file file = file_new(false);
	add_pcap_header(&file, 0xa1b2c3d4, 2, 4);
	add_record(&file, 1, 0, 5, 5, "whole");
	guint whole = file.bytes->len;
	add_record(&file, 1, 0, 5, 5, "other");
	for (guint len = file.bytes->len - 1; len > whole; len--) {
		g_byte_array_set_size(file.bytes, len);
		struct result result = read_file(&file);
		cr_expect_eq(result.packets->len, 1);
		cr_expect_null(result.error);
		cr_expect(result.torn);
	}
}

/* ---- Writing ---- */

static const struct weir_packet sample = {
	.data = (const uint8_t *)"0123456789",
	.ts_ns = INT64_C(1700000000123456789),
	.caplen = 10,
	.wirelen = 1500,
	.queue = UINT16_MAX,
};

Test(capfile, pcap_header_and_record_are_these_bytes)
{
	static const uint8_t header[] = "\x4d\x3c\xb2\xa1\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\x71\0\0";
	static const uint8_t record[] = "\x00\xf1\x53\x65\x15\xcd\x5b\x07\x0a\0\0\0\xdc\5\0\0"
					"0123456789";
	uint8_t out[64];
	cr_assert_eq(weir_pcap_header(out, 113, WEIR_PRECISION_NS), 24);
	cr_expect_arr_eq(out, header, 24);
	cr_assert_eq(weir_pcap_record(out, &sample, WEIR_PRECISION_NS), 26);
	cr_expect_arr_eq(out, record, 26);
	weir_pcap_record(out, &sample, WEIR_PRECISION_US);
	cr_expect_arr_eq(out + 4, "\x40\xe2\x01\x00", 4);
}

Test(capfile, times_that_a_record_cannot_hold_are_clamped)
{
	struct weir_packet packet = sample;
	uint8_t out[64];
	packet.ts_ns = -5;
	weir_pcap_record(out, &packet, WEIR_PRECISION_NS);
	cr_expect_arr_eq(out, "\0\0\0\0\0\0\0\0", 8);
	packet.ts_ns = INT64_MAX;
	weir_pcap_record(out, &packet, WEIR_PRECISION_NS);
	cr_expect_arr_eq(out, "\xff\xff\xff\xff\xff\xc9\x9a\x3b", 8);
}

/* libpcap's view of a file: one line a packet. */
static char *by_libpcap(const uint8_t *bytes, size_t size, int *ret_linktype)
{
	char error[PCAP_ERRBUF_SIZE] = "";
	struct pcap_pkthdr *header;
	const u_char *data;
	GString *lines = g_string_new("");
	pcap_t *pcap = pcap_fopen_offline_with_tstamp_precision(
		fmemopen((void *)(uintptr_t)bytes, size, "r"), PCAP_TSTAMP_PRECISION_NANO, error);
	cr_assert_not_null(pcap, "%s", error);
	*ret_linktype = pcap_datalink(pcap);
	while (pcap_next_ex(pcap, &header, &data) == 1)
		g_string_append_printf(lines, "%lld.%09lld %u %u %.*s\n",
				       (long long)header->ts.tv_sec, (long long)header->ts.tv_usec,
				       header->caplen, header->len, (int)header->caplen, data);
	g_string_append(lines, pcap_geterr(pcap));
	pcap_close(pcap);
	return later(g_string_free(lines, FALSE), g_free);
}

static const char sample_line[] = "1700000000.123456789 10 1500 0123456789\n";

Test(capfile, libpcap_reads_our_pcap)
{
	uint8_t out[256];
	int linktype;
	size_t size = weir_pcap_header(out, 1, WEIR_PRECISION_NS);
	size += weir_pcap_record(out + size, &sample, WEIR_PRECISION_NS);
	cr_expect_str_eq(by_libpcap(out, size, &linktype), sample_line);
	cr_expect_eq(linktype, DLT_EN10MB);
}

/* Everything that a packet can say; bit i of `what` switches thing i on. */
static struct weir_packet packet_that_says(unsigned what)
{
	struct weir_packet packet = sample;
	packet.caplen = what & 3;
	packet.flags = what & 4 ? WEIR_F_IN : what & 8 ? WEIR_F_OUT : 0;
	packet.queue = what & 16 ? 7 : UINT16_MAX;
	packet.dropped = what & 32 ? 70000 : 0;
	packet.mark = what & 64 ? 0xdeadbeef : 0;
	return packet;
}

static size_t write_ng(uint8_t *out, const struct weir_packet *packet, bool extras)
{
	const struct weir_section section = {"box", "Linux", "Weir", "a comment"};
	const struct weir_interface interface = {.name = "eth0", .linktype = 1};
	size_t size = weir_pcapng_section(out, &section);
	size += weir_pcapng_interface(out + size, &interface, "tcp", "Linux 6.18");
	size_t block = weir_pcapng_packet(out + size, packet, 0, extras);
	cr_assert_eq(block, weir_pcapng_packet_size(packet, extras));
	cr_assert_leq(block, packet->caplen + WEIR_PCAPNG_PACKET_MAX);
	return size + block;
}

Test(capfile, what_packets_say_survives_pcapng)
{
	for (unsigned what = 0; what < 128; what++) {
		struct weir_packet packet = packet_that_says(what);
		uint8_t *out = g_malloc(1024);
		size_t size = write_ng(out, &packet, true);
		struct result result = read_in_steps(out, size, SIZE_MAX / 2);
		cr_assert_null(result.error, "%s", result.error);
		const struct weir_packet *read = packet_of(&result, 0);
		cr_expect_eq(read->ts_ns, packet.ts_ns);
		cr_expect_eq(read->caplen, packet.caplen);
		cr_expect_eq(read->wirelen, packet.wirelen);
		cr_expect_eq(read->flags, packet.flags);
		cr_expect_eq(read->queue, packet.queue);
		cr_expect_eq(read->dropped, packet.dropped);
		cr_expect_eq(packet.mark != 0, memmem(out, size, "mark 0xdeadbeef", 15) != NULL);
		cr_expect_str_eq(result.interfaces->str, "eth0/1/262144;");
		g_free(out);
	}
}

Test(capfile, libpcap_reads_our_pcapng)
{
	uint8_t out[1024];
	int linktype;
	for (int extras = 0; extras < 2; extras++) {
		struct weir_packet packet = sample;
		packet.mark = 5;
		packet.flags = WEIR_F_OUT;
		size_t size = write_ng(out, &packet, extras);
		cr_expect_str_eq(by_libpcap(out, size, &linktype), sample_line);
	}
}

Test(capfile, long_strings_are_cut_between_characters)
{
	g_autofree char *a = g_strnfill(4095, 'a'), *name = g_strconcat(a, "\xc3\xa4ww", NULL);
	const struct weir_interface interface = {.name = name, .description = name};
	const struct weir_section section = {name, name, name, name};
	uint8_t *out = g_malloc(WEIR_PCAPNG_SECTION_MAX + WEIR_PCAPNG_INTERFACE_MAX);
	size_t size = weir_pcapng_section(out, &section);
	cr_assert_leq(size, WEIR_PCAPNG_SECTION_MAX);
	size_t block = weir_pcapng_interface(out + size, &interface, name, name);
	cr_assert_leq(block, WEIR_PCAPNG_INTERFACE_MAX);
	struct result result = read_in_steps(out, size + block, SIZE_MAX / 2);
	cr_expect_eq(strlen(result.interfaces->str), 4095 + strlen("/0/262144;"));
	g_free(out);
}
