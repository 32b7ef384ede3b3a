/* test_pcap_keys.c: a key log that grows, is replaced, or is none. */
#include "../plugins/pcap/keys.c"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <glib.h>
#include <glib/gstdio.h>

#define LINE "CLIENT_RANDOM 0123456789abcdef 00112233445566778899AABBCCDDEEFF"

struct row {
	char line[128];
	bool is_key;
};

ParameterizedTestParameters(pcap_keys, lines)
{
	static struct row rows[] = {
		{LINE, true},
		{"EXPORTER_SECRET ab cd", true},
		{"A1_ 0 0", true},
		{"", false},
		{"# CLIENT_RANDOM", false},
		{"CLIENT_RANDOM", false},
		{"CLIENT_RANDOM ", false},
		{"CLIENT_RANDOM ab", false},
		{"CLIENT_RANDOM ab ", false},
		{"CLIENT_RANDOM ab cd ", false},
		{"CLIENT_RANDOM ab cd ef", false},
		{"CLIENT_RANDOM  ab cd", false},
		{" CLIENT_RANDOM ab cd", false},
		{"client_random ab cd", false},
		{"CLIENT_RANDOM ag cd", false},
		{"-----BEGIN PRIVATE KEY-----", false},
		{"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", false},
	};
	return cr_make_param_array(struct row, rows, G_N_ELEMENTS(rows));
}

ParameterizedTest(struct row *row, pcap_keys, lines)
{
	cr_expect_eq(keys_is_line(row->line, strlen(row->line)), row->is_key, "'%s'", row->line);
}

Test(pcap_keys, a_line_with_a_zero_byte_is_none)
{
	cr_expect_not(keys_is_line("A 1\0 2", 6));
	cr_expect_not(keys_is_line("A\0 1 2", 6));
}

/* ---- Following a file ---- */

struct followed {
	char *folder, *path;
	struct keys *keys;
	uint64_t at;
	int64_t now_ns;
};

static struct followed follow(void)
{
	struct followed followed = {.folder = g_dir_make_tmp("weir-keys-XXXXXX", NULL)};

	followed.path = g_build_filename(followed.folder, "keys", NULL);
	followed.keys = keys_new(followed.path);
	return followed;
}

static void leave(struct followed *followed)
{
	keys_free(followed->keys);
	g_unlink(followed->path);
	g_rmdir(followed->folder);
	g_free(followed->path);
	g_free(followed->folder);
}

static void append(const struct followed *followed, const char *text)
{
	FILE *file = fopen(followed->path, "a");

	fputs(text, file);
	fclose(file);
}

/* What comes next, ten seconds later. */
static void expect(struct followed *followed, const char *text)
{
	char lines[4096] = "";
	unsigned n_lines, wanted = 0;

	followed->now_ns += 10000000000;
	keys_read(followed->keys, followed->now_ns);
	keys_take(followed->keys, &followed->at, (uint8_t *)lines, sizeof(lines), &n_lines);
	for (const char *c = text; *c; c++)
		wanted += *c == '\n';
	cr_expect_str_eq(lines, text);
	cr_expect_eq(n_lines, wanted);
	cr_expect_eq(followed->at, keys_end(followed->keys));
}

Test(pcap_keys, come_as_the_file_grows)
{
	struct followed followed = follow();

	expect(&followed, "");
	append(&followed, "# made by a test\nA 1 2\r\nB 3");
	expect(&followed, "A 1 2\n");
	append(&followed, " 4\nC 5 6\n");
	expect(&followed, "B 3 4\nC 5 6\n");
	expect(&followed, "");
	leave(&followed);
}

Test(pcap_keys, come_from_a_file_that_has_been_replaced_or_cut)
{
	struct followed followed = follow();

	append(&followed, "A 1 2\nB 3 4\n");
	expect(&followed, "A 1 2\nB 3 4\n");
	g_unlink(followed.path);
	append(&followed, "C 5 6\n");
	expect(&followed, "C 5 6\n");
	cr_assert_eq(truncate(followed.path, 0), 0);
	expect(&followed, "");
	append(&followed, "D 7 8\n");
	expect(&followed, "D 7 8\n");
	leave(&followed);
}

Test(pcap_keys, that_are_new_are_kept_when_there_are_many)
{
	struct followed followed = follow();
	g_autofree uint8_t *lines = g_malloc(4 * KEYS_BYTES_MAX);
	FILE *file = fopen(followed.path, "w");
	unsigned n_lines, last;
	uint64_t at = 0;
	size_t len;

	for (unsigned i = 0; i < 200000; i++)
		fprintf(file, "A %08u 0123456789\n", i);
	fclose(file);
	keys_read(followed.keys, 1000000000);
	cr_expect_eq(keys_end(followed.keys), 200000 * 22);
	len = keys_take(followed.keys, &at, lines, 4 * KEYS_BYTES_MAX, &n_lines);
	cr_expect(len > KEYS_BYTES_MAX - 22 && len <= 2 * KEYS_BYTES_MAX && len == n_lines * 22);
	cr_expect_eq(sscanf((char *)lines + len - 22, "A %u", &last), 1);
	cr_expect_eq(last, 199999);
	at = 0;
	len = keys_take(followed.keys, &at, lines, 50, &n_lines);
	cr_expect(len == 44 && n_lines == 2);
	leave(&followed);
}
