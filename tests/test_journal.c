/* The ledger file: lines, differences, losses that begin and end, writers in many threads. */
#include "journal.h"

#include "fields.h"
#include "ledgers.h"

#include <glib/gstdio.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

static struct small_run run;
static char *folder, *path;
static struct weir_journal *journal;
static GPtrArray *lines; /* JsonObject * */

static void set_up(void)
{
	small_run_init(&run);
	folder = g_dir_make_tmp("weir-journal-XXXXXX", NULL);
	path = g_build_filename(folder, "ledger", NULL);
	journal = weir_journal_open(path, NULL);
	lines = g_ptr_array_new_with_free_func((GDestroyNotify)json_object_unref);
	cr_assert_not_null(journal);
}

static void tear_down(void)
{
	weir_journal_close(journal);
	g_ptr_array_unref(lines);
	g_unlink(path);
	g_rmdir(folder);
	g_free(path);
	g_free(folder);
	small_run_clear(&run);
}

TestSuite(journal, .init = set_up, .fini = tear_down);

/* All lines so far, each of which must be JSON. */
static void read_lines(void)
{
	char *text = NULL, **each;

	g_ptr_array_set_size(lines, 0);
	cr_assert(g_file_get_contents(path, &text, NULL, NULL));
	cr_assert(g_str_has_suffix(text, "\n"));
	text[strlen(text) - 1] = '\0';
	each = g_strsplit(text, "\n", -1);
	for (char **line = each; *line; line++) {
		JsonNode *root = json_from_string(*line, NULL);

		cr_assert_not_null(root, "no JSON: %s", *line);
		g_ptr_array_add(lines, json_node_dup_object(root));
		json_node_unref(root);
	}
	g_strfreev(each);
	g_free(text);
}

static JsonObject *line(unsigned index)
{
	cr_assert_lt(index, lines->len, "there are %u lines", lines->len);
	return lines->pdata[index];
}

static const char *text_of(JsonObject *object, const char *name)
{
	cr_assert(json_object_has_member(object, name), "no member %s", name);
	return json_object_get_string_member(object, name);
}

static gint64 number_at(JsonObject *object, const char *path_text)
{
	char **names = g_strsplit(path_text, "/", -1);
	gint64 number;
	char **name = names;

	for (; name[1]; name++) {
		cr_assert(json_object_has_member(object, *name), "no %s of %s", *name, path_text);
		object = json_object_get_object_member(object, *name);
	}
	cr_assert(json_object_has_member(object, *name), "no %s of %s", *name, path_text);
	number = json_object_get_int_member(object, *name);
	g_strfreev(names);
	return number;
}

Test(journal, tells_what_ran_and_how_it_ended)
{
	small_run_count(&run, 1000);
	weir_journal_started(journal, run.graph);
	weir_journal_ended(journal, small_run_end(&run));
	read_lines();
	cr_expect_str_eq(text_of(line(0), "event"), "run-started");
	cr_expect_str_eq(text_of(line(0), "pipeline"), SMALL_RUN_TEXT);
	cr_expect_str_eq(text_of(line(0), "version"), WEIR_VERSION);
	cr_expect_str_eq(text_of(line(1), "event"), "run-ended");
	cr_expect_str_eq(text_of(line(1), "end"), "2001-09-09T01:46:42.500000Z");
	cr_expect_eq(json_object_get_boolean_member(line(1), "balanced"), TRUE);
	cr_expect_str_eq(text_of(line(0), "run"), text_of(line(1), "run"));
}

Test(journal, holds_events_with_their_place)
{
	weir_journal_event(journal, "disk", 3, "file-closed", "a \"name\"\n");
	weir_journal_event(journal, NULL, -1, "other", NULL);
	weir_journal_event(NULL, NULL, -1, "nowhere", NULL);
	read_lines();
	cr_assert_eq(lines->len, 2);
	cr_expect_str_eq(text_of(line(0), "node"), "disk");
	cr_expect_eq(json_object_get_int_member(line(0), "lane"), 3);
	cr_expect_str_eq(text_of(line(0), "event"), "file-closed");
	cr_expect_str_eq(text_of(line(0), "detail"), "a \"name\"\n");
	cr_expect_eq(json_object_get_size(line(1)), 3, "time, run and event alone");
}

Test(journal, is_appended_to_by_the_next_run)
{
	struct weir_journal *next = weir_journal_open(path, NULL);

	weir_journal_event(journal, NULL, -1, "first", NULL);
	weir_journal_event(next, NULL, -1, "second", NULL);
	weir_journal_event(journal, NULL, -1, "third", NULL);
	read_lines();
	cr_assert_eq(lines->len, 3);
	cr_expect_str_neq(text_of(line(0), "run"), text_of(line(1), "run"));
	cr_expect_str_eq(text_of(line(0), "run"), text_of(line(2), "run"));
	weir_journal_close(next);
}

Test(journal, goes_on_in_a_new_file_once_the_old_one_is_renamed)
{
	char *old = g_strconcat(path, ".1", NULL);

	weir_journal_event(journal, NULL, -1, "before", NULL);
	g_rename(path, old);
	cr_expect(weir_journal_reopen(journal, NULL));
	weir_journal_event(journal, NULL, -1, "after", NULL);
	read_lines();
	cr_assert_eq(lines->len, 1);
	cr_expect_str_eq(text_of(line(0), "event"), "after");
	g_unlink(old);
	g_free(old);
	cr_expect(weir_journal_reopen(NULL, NULL));
}

Test(journal, stays_in_the_old_file_where_there_can_be_no_new_one)
{
	char *away = g_strconcat(folder, ".away", NULL);
	GError *error = NULL;

	weir_journal_event(journal, NULL, -1, "before", NULL);
	g_rename(folder, away);
	cr_expect_not(weir_journal_reopen(journal, &error));
	weir_journal_event(journal, NULL, -1, "after", NULL);
	g_rename(away, folder);
	read_lines();
	cr_expect_eq(lines->len, 2);
	g_clear_error(&error);
	g_free(away);
}

Test(journal, writes_differences_that_are_not_zero)
{
	small_run_count(&run, 1000);
	weir_journal_interval(journal, small_run_look(&run));
	small_run_count(&run, 1500);
	weir_journal_interval(journal, small_run_look(&run));
	weir_journal_interval(journal, small_run_look(&run));
	read_lines();
	cr_assert_eq(lines->len, 3);
	cr_expect_str_eq(text_of(line(0), "start"), "2001-09-09T01:46:40.000000Z");
	cr_expect_str_eq(text_of(line(1), "start"), text_of(line(0), "end"));
	cr_expect_eq(number_at(line(0), "nodes/keys/in/packets"), 1100);
	cr_expect_eq(number_at(line(1), "nodes/keys/in/packets"), 550);
	cr_expect_eq(number_at(line(1), "nodes/keys/in/captured_bytes"), 55000);
	cr_expect_eq(number_at(line(1), "nodes/keys/outputs/match/wire_bytes"), 275 * 150);
	cr_expect_eq(number_at(line(1), "nodes/tap/counters/taken"), 550);
	cr_expect_not(json_object_has_member(line(1), "lost"));
	cr_expect_not(json_object_has_member(
		json_object_get_object_member(
			json_object_get_object_member(
				json_object_get_object_member(line(1), "nodes"), "keys"),
			"outputs"),
		"unfit"));
	cr_expect_not(json_object_has_member(line(2), "nodes"), "nothing has changed");
}

Test(journal, differences_add_up_to_the_totals)
{
	static const uint64_t counts[] = {10, 10, 5000, 123450};
	gint64 sum = 0;

	for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
		small_run_count(&run, counts[i]);
		weir_journal_interval(journal, small_run_look(&run));
	}
	read_lines();
	for (unsigned i = 0; i < lines->len; i++) {
		if (json_object_has_member(line(i), "nodes"))
			sum += number_at(line(i), "nodes/disk/in/packets");
	}
	cr_expect_eq(sum, run.report.ledger->nodes[DISK].total.in.packets);
}

static void lose(uint64_t drops, uint64_t missed)
{
	set_counter(&run.rows[TAP][0], TAP_DROPS, drops);
	set_counter(&run.rows[TAP][0], TAP_MISSED, missed);
	weir_journal_interval(journal, small_run_look(&run));
}

Test(journal, says_when_a_loss_began_and_ended)
{
	lose(0, 0);
	lose(5, 0);
	lose(7, 0);
	lose(7, 0);
	lose(7, 2);
	read_lines();
	cr_assert_eq(lines->len, 5 + 3);
	cr_expect_str_eq(text_of(line(1), "event"), "loss-began");
	cr_expect_str_eq(text_of(line(1), "node"), "tap");
	cr_expect_str_eq(text_of(line(1), "what"), "drops");
	cr_expect_eq(number_at(line(1), "packets"), 5);
	cr_expect_str_eq(text_of(line(1), "after"), text_of(line(0), "end"));
	cr_expect_eq(number_at(line(2), "lost"), 5);
	cr_expect_eq(number_at(line(3), "lost"), 2);
	cr_expect_str_eq(text_of(line(4), "event"), "loss-ended");
	cr_expect_str_eq(text_of(line(4), "before"), text_of(line(3), "end"));
	cr_expect_str_eq(text_of(line(6), "what"), "missed");
	cr_expect_eq(number_at(line(7), "nic"), 2);
}

Test(journal, an_unconnected_output_that_means_loss_is_one)
{
	small_run_count(&run, 100);
	weir_journal_interval(journal, small_run_look(&run));
	count_of(&run.rows[KEYS][0].out[KEYS_UNFIT], 4);
	weir_journal_interval(journal, small_run_look(&run));
	read_lines();
	cr_assert_eq(lines->len, 3, "keys.rest, which is discarded, is no loss");
	cr_expect_str_eq(text_of(line(1), "event"), "loss-began");
	cr_expect_str_eq(text_of(line(1), "what"), "unfit");
}

/* ---- Trouble ---- */

enum { WRITERS = 4, EACH = 500 };

static void *write_events(void *user)
{
	const char *name = user;

	for (int i = 0; i < EACH; i++)
		weir_journal_event(journal, name, i, "tested", "some words of detail");
	return NULL;
}

Test(journal, lines_of_many_threads_stay_whole)
{
	char *names[WRITERS] = {"a", "b", "c", "d"};
	pthread_t threads[WRITERS];
	int next[WRITERS] = {0};

	for (unsigned i = 0; i < WRITERS; i++)
		pthread_create(&threads[i], NULL, write_events, names[i]);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	read_lines();
	cr_assert_eq(lines->len, WRITERS * EACH);
	for (unsigned i = 0; i < lines->len; i++) {
		int writer = text_of(line(i), "node")[0] - 'a';

		cr_assert_eq(json_object_get_int_member(line(i), "lane"), next[writer]++);
	}
}

static void limit_file(rlim_t bytes)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A file that may not grow stands for a full disk: the first line is cut, the second one refused.
 */
Test(journal, goes_on_after_a_full_disk_and_says_so)
{
	char *text = NULL, **each;

	signal(SIGXFSZ, SIG_IGN);
	limit_file(20);
	weir_journal_event(journal, NULL, -1, "cut", NULL);
	weir_journal_event(journal, NULL, -1, "refused", NULL);
	limit_file(RLIM_INFINITY);
	weir_journal_event(journal, NULL, -1, "written", NULL);
	g_file_get_contents(path, &text, NULL, NULL);
	each = g_strsplit(text, "\n", -1);
	cr_assert_eq(g_strv_length(each), 4, "%s", text);
	cr_expect_eq(strlen(each[0]), 20);
	cr_expect(strstr(each[1], "\"event\":\"lines-missing\",\"lines\":2}"), "%s", each[1]);
	cr_expect(strstr(each[2], "\"event\":\"written\"}"), "%s", each[2]);
	g_strfreev(each);
	g_free(text);
}

Test(journal, cannot_be_opened_where_nothing_can_be)
{
	GError *error = NULL;

	cr_expect_null(weir_journal_open("/dev/null/ledger", &error));
	cr_assert_not_null(error);
	cr_expect(strstr(error->message, "/dev/null/ledger"), "%s", error->message);
	g_error_free(error);
}

Test(journal, has_the_fields_of_the_golden_list)
{
	GHashTable *fields = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

	small_run_count(&run, 1000);
	run.rows[KEYS][0].made = 1;
	run.rows[KEYS][0].absorbed = 2;
	signal(SIGXFSZ, SIG_IGN);
	limit_file(0);
	weir_journal_event(journal, NULL, -1, "refused", NULL);
	limit_file(RLIM_INFINITY);
	weir_journal_started(journal, run.graph);
	weir_journal_event(journal, "disk", 3, "any-event", "words");
	lose(5, 2);
	lose(5, 2);
	run.rows[DISK][0].in.packets += 3;
	run.report.messages = (const char *const[]){"something", NULL};
	weir_journal_ended(journal, small_run_end(&run));
	read_lines();
	for (unsigned i = 0; i < lines->len; i++) {
		JsonNode *root = json_node_init_object(json_node_alloc(), line(i));

		add_fields(fields, text_of(line(i), "event"), root);
		json_node_unref(root);
	}
	check_golden(fields, "ledger-fields");
	g_hash_table_unref(fields);
}
