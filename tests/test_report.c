/* The JSON report and the ledger for people. */
#include "fields.h"
#include "ledgers.h"

#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct small_run run;

static void set_up(void)
{
	small_run_init(&run);
	small_run_count(&run, 1000);
}

static void tear_down(void)
{
	small_run_clear(&run);
}

TestSuite(report, .init = set_up, .fini = tear_down);

static JsonObject *parse(const struct weir_report *report)
{
	char *text = weir_report_json(report);
	JsonNode *root = json_from_string(text, NULL);
	JsonObject *object;

	cr_assert_not_null(root, "no JSON: %s", text);
	object = json_node_dup_object(root);
	json_node_unref(root);
	g_free(text);
	return object;
}

static JsonObject *node_in(JsonObject *report, unsigned index)
{
	return json_array_get_object_element(json_object_get_array_member(report, "nodes"), index);
}

static JsonObject *child(JsonObject *object, const char *name)
{
	cr_assert(json_object_has_member(object, name), "no member %s", name);
	return json_object_get_object_member(object, name);
}

static void check_count(JsonObject *count, gint64 packets, gint64 captured, gint64 wire)
{
	cr_expect_eq(json_object_get_int_member(count, "packets"), packets);
	cr_expect_eq(json_object_get_int_member(count, "captured_bytes"), captured);
	cr_expect_eq(json_object_get_int_member(count, "wire_bytes"), wire);
}

static void check_text(JsonObject *object, const char *name, const char *expected)
{
	const char *found = json_object_get_string_member(object, name);

	cr_assert_not_null(found, "no text %s", name);
	cr_expect_str_eq(found, expected);
}

Test(report, says_what_ran_and_when)
{
	JsonObject *report = parse(small_run_end(&run));
	JsonArray *threads = json_object_get_array_member(report, "threads");

	check_text(report, "version", WEIR_VERSION);
	check_text(report, "host", g_get_host_name());
	check_text(report, "start", "2001-09-09T01:46:40.000000Z");
	check_text(report, "end", "2001-09-09T01:46:42.500000Z");
	check_text(report, "source", "small.weir");
	check_text(report, "pipeline", SMALL_RUN_TEXT);
	cr_expect_eq(json_object_get_double_member(report, "cpu_seconds"), 2.0);
	cr_assert_eq(json_array_get_length(threads), 2);
	check_text(json_array_get_object_element(threads, 1), "name", "tap/1");
	cr_expect_eq(json_object_get_double_member(json_array_get_object_element(threads, 0),
						   "cpu_seconds"),
		     1.5);
	json_object_unref(report);
}

Test(report, counts_nodes_in_total_and_per_lane)
{
	JsonObject *report = parse(small_run_end(&run));
	JsonObject *keys = node_in(report, KEYS);
	JsonArray *lanes = json_object_get_array_member(keys, "lanes");

	check_text(keys, "name", "keys");
	check_text(keys, "kind", "stage");
	check_text(keys, "plugin", "keys-plugin");
	check_count(child(keys, "in"), 1100, 110000, 165000);
	check_count(child(child(keys, "outputs"), "match"), 550, 55000, 82500);
	check_text(child(child(keys, "outputs"), "match"), "means", "pass");
	check_text(child(child(keys, "outputs"), "rest"), "means", "discard");
	check_text(child(child(keys, "outputs"), "unfit"), "means", "loss");
	cr_assert_eq(json_array_get_length(lanes), 2);
	check_count(child(json_array_get_object_element(lanes, 0), "in"), 1000, 100000, 150000);
	check_count(child(json_array_get_object_element(lanes, 1), "in"), 100, 10000, 15000);
	json_object_unref(report);
}

Test(report, lists_effective_options)
{
	JsonObject *report = parse(small_run_end(&run));
	JsonObject *tap = node_in(report, TAP), *options = child(tap, "options");

	check_text(tap, "plugin_version", "1.2");
	check_text(options, "interface", "eth0");
	check_text(options, "mode", "quick");
	cr_expect(json_object_get_null_member(options, "extra"));
	json_object_unref(report);
}

Test(report, leaves_out_what_is_not_known)
{
	JsonObject *report, *tap, *disk;

	set_counter(&run.rows[TAP][0], TAP_DROPS, 0);
	report = parse(small_run_end(&run));
	tap = node_in(report, TAP);
	disk = node_in(report, DISK);
	cr_expect_not(json_object_has_member(report, "nic"));
	cr_expect_not(json_object_has_member(tap, "in"));
	cr_expect_not(json_object_has_member(tap, "made"));
	cr_expect_not(json_object_has_member(tap, "held"));
	cr_expect_eq(json_object_get_int_member(child(tap, "counters"), "drops"), 0);
	cr_expect_not(json_object_has_member(child(tap, "counters"), "never-set"));
	cr_expect_not(
		json_object_has_member(child(child(disk, "outputs"), "written"), "wire_bytes"));
	json_object_unref(report);
}

Test(report, sums_what_was_lost)
{
	JsonObject *report, *loss;

	set_counter(&run.rows[TAP][0], TAP_DROPS, 7);
	set_counter(&run.rows[TAP][1], TAP_MISSED, 3);
	count_of(&run.rows[KEYS][0].out[KEYS_UNFIT], 2);
	report = parse(small_run_end(&run));
	cr_expect_eq(json_object_get_int_member(report, "lost"), 9);
	cr_expect_eq(json_object_get_int_member(report, "nic"), 3);
	cr_assert_eq(json_array_get_length(json_object_get_array_member(report, "losses")), 2);
	loss = json_array_get_object_element(json_object_get_array_member(report, "losses"), 1);
	check_text(loss, "node", "keys");
	check_text(loss, "what", "unfit");
	cr_expect_eq(json_object_get_int_member(loss, "packets"), 2);
	json_object_unref(report);
}

Test(report, balanced_is_unknown_while_it_runs)
{
	JsonObject *report = parse(small_run_look(&run));

	cr_expect(json_object_get_null_member(report, "balanced"));
	cr_expect(json_object_get_null_member(report, "end"));
	json_object_unref(report);
	report = parse(small_run_end(&run));
	cr_expect_eq(json_object_get_boolean_member(report, "balanced"), TRUE);
	cr_expect_eq(json_array_get_length(json_object_get_array_member(report, "problems")), 0);
	json_object_unref(report);
}

Test(report, names_the_equation_that_fails)
{
	JsonObject *report;

	run.rows[DISK][0].out[DISK_WRITTEN].packets -= 4;
	report = parse(small_run_end(&run));
	cr_expect_eq(json_object_get_boolean_member(report, "balanced"), FALSE);
	cr_expect_str_eq(
		json_array_get_string_element(json_object_get_array_member(report, "problems"), 0),
		"disk: 4 packets are still pending");
	cr_expect_eq(json_object_get_int_member(node_in(report, DISK), "pending"), 4);
	json_object_unref(report);
}

Test(report, replaces_what_is_not_utf8)
{
	const char *const messages[] = {"caf\xe9", NULL};
	JsonObject *report;

	run.report.messages = messages;
	report = parse(small_run_end(&run));
	cr_expect_str_eq(
		json_array_get_string_element(json_object_get_array_member(report, "errors"), 0),
		"caf\xef\xbf\xbd");
	json_object_unref(report);
}

/* ---- What is done in the kernel ---- */

/* tap does in the kernel what keys does. */
static void push_down(void)
{
	static struct weir_push push = {.what = (char *)"keys"};
	static const struct weir_push nothing = {.why_not = (char *)"it does not want to"};
	static const void *all[] = {&nothing, &push};
	static const GPtrArray pushes = {(void **)all, G_N_ELEMENTS(all)};

	push.source = run.graph->nodes->pdata[TAP];
	run.report.pushes = &pushes;
}

Test(report, what_the_kernel_kept_out_may_be_unknown)
{
	JsonObject *report;

	push_down();
	report = parse(small_run_end(&run));
	check_text(node_in(report, TAP), "pushed_down", "keys");
	cr_expect(json_object_get_null_member(node_in(report, TAP), "kept_out"));
	cr_expect_not(json_object_has_member(node_in(report, KEYS), "pushed_down"));
	json_object_unref(report);

	set_counter(&run.rows[TAP][0], TAP_KEPT_OUT, 70);
	set_counter(&run.rows[TAP][1], TAP_KEPT_OUT, 7);
	report = parse(small_run_end(&run));
	cr_expect_eq(json_object_get_int_member(node_in(report, TAP), "kept_out"), 77);
	json_object_unref(report);
}

/* ---- Fields ---- */

/* Everything that a report can hold at once. */
Test(report, has_the_fields_of_the_golden_list)
{
	const char *const messages[] = {"something", NULL};
	GHashTable *fields = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	JsonNode *root = json_node_alloc();

	run.report.messages = messages;
	push_down();
	set_counter(&run.rows[TAP][0], TAP_DROPS, 7);
	set_counter(&run.rows[TAP][0], TAP_MISSED, 7);
	run.rows[KEYS][0].made = 1;
	run.rows[KEYS][0].absorbed = 2;
	run.rows[DISK][0].in.packets += 3;
	json_node_init_object(root, NULL);
	json_node_take_object(root, parse(small_run_end(&run)));
	add_fields(fields, "", root);
	check_golden(fields, "report-fields");
	json_node_unref(root);
	g_hash_table_unref(fields);
}

/* ---- For people ---- */

static char *printed(const struct weir_report *report)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	weir_report_print(report, to);
	fclose(to);
	return text;
}

Test(report, prints_rows_that_align)
{
	char *text = printed(small_run_end(&run));

	cr_expect_str_eq(text,
			 "weir: ledger of small.weir, ended after 2.50 s, since "
			 "2001-09-09T01:46:40.000000Z\n"
			 "  node     in  captured  output   packets  captured\n"
			 "  tap                    out        1,100   107 KiB\n"
			 "  keys  1,100   107 KiB  match        550  53.7 KiB\n"
			 "                         rest         550  53.7 KiB  discarded\n"
			 "  disk    550  53.7 KiB  written      550  53.7 KiB\n"
			 "  lost 0 packets; lost by the NIC: unknown\n"
			 "  processor time 2.00 s: tap/0 1.50, tap/1 0.25\n"
			 "  balanced\n",
			 "printed:\n%s", text);
	free(text);
}

Test(report, prints_losses_by_name)
{
	char *text;

	set_counter(&run.rows[TAP][0], TAP_DROPS, 7000);
	set_counter(&run.rows[TAP][0], TAP_MISSED, 3);
	count_of(&run.rows[DISK][0].out[DISK_FULL], 2);
	text = printed(small_run_end(&run));
	cr_expect(strstr(text, "  lost 7,002 packets: tap drops 7,000, disk full 2; lost by the "
			       "NIC: 3\n"),
		  "%s", text);
	cr_expect(strstr(text, "full           2     200 B  LOST\n"), "%s", text);
	free(text);
}

Test(report, prints_what_the_kernel_kept_out)
{
	char *text;

	push_down();
	text = printed(small_run_end(&run));
	cr_expect(strstr(text, "\n  tap: kept out by the kernel: unknown, for keys\n"), "%s", text);
	free(text);
	set_counter(&run.rows[TAP][0], TAP_KEPT_OUT, 7000);
	text = printed(small_run_end(&run));
	cr_expect(strstr(text, "\n  tap: kept out by the kernel: 7,000, for keys\n"), "%s", text);
	free(text);
}

Test(report, is_loud_where_it_does_not_close)
{
	char *text;

	run.rows[KEYS][1].in.packets += 5;
	text = printed(small_run_end(&run));
	cr_expect(strstr(text, "weir: THE LEDGER DOES NOT CLOSE:\nweir:   keys: "), "%s", text);
	cr_expect_not(strstr(text, "balanced"));
	free(text);
}

Test(report, says_what_is_held_while_it_runs)
{
	char *text;

	run.rows[DISK][1].in.packets += 5;
	text = printed(small_run_look(&run));
	cr_expect(strstr(text, "running for"), "%s", text);
	cr_expect(strstr(text, "  disk: 5 packets pending\n"), "%s", text);
	cr_expect_not(strstr(text, "balanced"));
	free(text);
}

/* ---- Files ---- */

static char *folder, *path;

static void make_folder(void)
{
	folder = g_dir_make_tmp("weir-report-XXXXXX", NULL);
	path = g_build_filename(folder, "report.json", NULL);
}

static void remove_folder(void)
{
	g_unlink(path);
	cr_expect_eq(g_rmdir(folder), 0, "something is left in %s", folder);
	g_free(folder);
	g_free(path);
}

TestSuite(report_file, .init = make_folder, .fini = remove_folder);

Test(report_file, is_replaced_as_a_whole)
{
	struct stat before, after;
	char *text = NULL;

	cr_assert(weir_report_write(path, "first, which is longer", NULL));
	stat(path, &before);
	cr_assert(weir_report_write(path, "second", NULL));
	stat(path, &after);
	g_file_get_contents(path, &text, NULL, NULL);
	cr_expect_str_eq(text, "second");
	cr_expect_neq(before.st_ino, after.st_ino, "it was written in place");
	g_free(text);
}

Test(report_file, goes_through_a_link_and_into_a_device)
{
	char *link = g_build_filename(folder, "link", NULL), *text = NULL;
	struct stat now;

	cr_assert_eq(symlink(path, link), 0);
	cr_assert(weir_report_write(link, "through", NULL));
	g_file_get_contents(path, &text, NULL, NULL);
	cr_expect_str_eq(text, "through");
	g_unlink(link);
	g_free(text);
	cr_assert_eq(symlink("/dev/null", link), 0);
	cr_expect(weir_report_write(link, "nowhere", NULL));
	cr_expect(stat(link, &now) == 0 && S_ISCHR(now.st_mode));
	g_unlink(link);
	g_free(link);
}

Test(report_file, errors_say_which_file)
{
	char *missing = g_build_filename(folder, "no", "report.json", NULL);
	GError *error = NULL;

	cr_expect(weir_report_check_path(NULL, NULL));
	cr_expect(weir_report_check_path(path, NULL));
	cr_expect_not(weir_report_check_path(missing, &error));
	cr_assert_not_null(error);
	cr_expect(g_str_has_prefix(error->message, missing), "%s", error->message);
	g_clear_error(&error);
	cr_expect_not(weir_report_write("/dev/full", "x", &error));
	cr_assert_not_null(error);
	cr_expect(strstr(error->message, "/dev/full"), "%s", error->message);
	g_error_free(error);
	g_free(missing);
}
