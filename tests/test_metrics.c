/* Prometheus text: names, labels, values, and that each family is said once, before its samples. */
#include "fields.h"
#include "ledgers.h"

static struct small_run run;
static char *text;

static void set_up(void)
{
	small_run_init(&run);
	small_run_count(&run, 1000);
}

static void tear_down(void)
{
	g_free(text);
	small_run_clear(&run);
}

TestSuite(metrics, .init = set_up, .fini = tear_down);

static void check_line(const char *line)
{
	char *framed = g_strdup_printf("\n%s\n", line);

	cr_expect_not_null(strstr(text, framed), "no line %s in:\n%s", line, text);
	g_free(framed);
}

Test(metrics, count_each_lane)
{
	text = weir_report_metrics(small_run_look(&run));
	check_line("weir_node_in_packets_total{pipeline=\"small.weir\",node=\"keys\",lane=\"0\"} "
		   "1000");
	check_line("weir_node_in_captured_bytes_total{pipeline=\"small.weir\",node=\"keys\","
		   "lane=\"1\"} 10000");
	check_line("weir_output_packets_total{pipeline=\"small.weir\",node=\"keys\","
		   "output=\"match\",lane=\"0\"} 500");
	check_line("weir_output_captured_bytes_total{pipeline=\"small.weir\",node=\"disk\","
		   "output=\"written\",lane=\"1\"} 5000");
	check_line("weir_counter{pipeline=\"small.weir\",node=\"tap\",counter=\"taken\","
		   "lane=\"0\"} 1000");
	check_line("weir_thread_cpu_seconds_total{pipeline=\"small.weir\",thread=\"tap/1\"} "
		   "0.250000");
	check_line("weir_cpu_seconds_total{pipeline=\"small.weir\"} 2.000000");
	check_line("weir_run_start_time_seconds{pipeline=\"small.weir\"} 1000000000.000000");
	cr_expect_null(strstr(text, "lane=\"\""));
	cr_expect_null(strstr(text, "never-set"));
	cr_expect_null(
		strstr(text, "weir_node_in_packets_total{pipeline=\"small.weir\",node=\"tap\""));
}

Test(metrics, say_what_was_lost)
{
	set_counter(&run.rows[TAP][1], TAP_DROPS, 7);
	text = weir_report_metrics(small_run_look(&run));
	check_line("weir_lost_packets_total{pipeline=\"small.weir\"} 7");
	check_line(
		"weir_loss_packets_total{pipeline=\"small.weir\",node=\"tap\",what=\"drops\"} 7");
	cr_expect_null(strstr(text, "weir_nic_lost"), "unknown is absent, not 0");
	g_free(text);
	set_counter(&run.rows[TAP][1], TAP_MISSED, 0);
	text = weir_report_metrics(small_run_look(&run));
	check_line("weir_nic_lost_packets_total{pipeline=\"small.weir\"} 0");
}

Test(metrics, tell_an_ended_run_from_a_running_one)
{
	text = weir_report_metrics(small_run_look(&run));
	cr_expect_null(strstr(text, "weir_balanced"));
	cr_expect_null(strstr(text, "weir_run_end_time_seconds"));
	g_free(text);
	text = weir_report_metrics(small_run_end(&run));
	check_line("weir_balanced{pipeline=\"small.weir\"} 1");
	check_line("weir_run_end_time_seconds{pipeline=\"small.weir\"} 1000000002.500000");
}

Test(metrics, show_what_the_node_counted_outside_its_lanes)
{
	set_counter(&run.rows[DISK][2], 0, 12);
	text = weir_report_metrics(small_run_look(&run));
	check_line("weir_counter{pipeline=\"small.weir\",node=\"disk\",counter=\"size-bytes\"} 12");
}

Test(metrics, escape_label_values)
{
	g_free(run.graph->source);
	run.graph->source = g_strdup("a\\b\"c\nd\xff");
	text = weir_report_metrics(small_run_look(&run));
	check_line("weir_lost_packets_total{pipeline=\"a\\\\b\\\"c\\nd\xef\xbf\xbd\"} 0");
}

static char *name_of(const char *line)
{
	return g_strndup(line, strcspn(line, "{ "));
}

/* promtool's rules: HELP, then TYPE, then all samples of that family. */
Test(metrics, have_the_names_of_the_golden_list)
{
	GHashTable *names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	char **lines, *family = NULL;

	set_counter(&run.rows[TAP][1], TAP_DROPS, 7);
	set_counter(&run.rows[TAP][1], TAP_MISSED, 7);
	text = weir_report_metrics(small_run_end(&run));
	cr_expect(g_str_has_suffix(text, "\n"));
	lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; **line; line++) {
		char *name = name_of(**line == '#' ? *line + strlen("# HELP ") : *line);

		if (g_str_has_prefix(*line, "# HELP ")) {
			cr_expect(g_hash_table_add(names, g_strdup(name)), "%s twice", name);
			g_free(family);
			family = g_strdup(name);
		}
		cr_expect_str_eq(name, family, "%s among the samples of %s", name, family);
		g_free(name);
	}
	check_golden(names, "metrics-names");
	g_free(family);
	g_strfreev(lines);
	g_hash_table_unref(names);
}
