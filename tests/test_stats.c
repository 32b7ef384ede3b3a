/* Rates between two looks at a ledger. */
#include "stats.h"

#include "ledgers.h"

static struct small_run run;
static struct weir_stats *stats;

static void set_up(void)
{
	small_run_init(&run);
	stats = weir_stats_new(run.graph);
}

static void tear_down(void)
{
	weir_stats_free(stats);
	small_run_clear(&run);
}

TestSuite(stats, .init = set_up, .fini = tear_down);

/* The time that the run had taken is the clock's, unless it has ended. */
static const struct weir_report *look(void)
{
	run.report.end_us = SMALL_RUN_START_US + 2500000;
	return small_run_look(&run);
}

static void check(char *found, const char *expected)
{
	cr_expect_str_eq(found, expected, "found\n%s\nexpected\n%s", found, expected);
	g_free(found);
}

Test(stats, a_line_has_the_rates_of_the_ends)
{
	small_run_count(&run, 1000);
	check(weir_stats_line(stats, look(), 2),
	      "weir: 2.50 s: tap 550 pps 440 kbps; disk 275 pps 220 kbps; lost 0\n");
	small_run_count(&run, 2000);
	check(weir_stats_line(stats, look(), 0.5),
	      "weir: 2.50 s: tap 2.20 kpps 1.76 Mbps; disk 1.10 kpps 880 kbps; lost 0\n");
	check(weir_stats_line(stats, look(), 0.5),
	      "weir: 2.50 s: tap 0 pps 0 bps; disk 0 pps 0 bps; lost 0\n");
}

Test(stats, a_line_names_what_was_lost_since_the_last)
{
	set_counter(&run.rows[TAP][0], TAP_DROPS, 5);
	g_free(weir_stats_line(stats, look(), 1));
	set_counter(&run.rows[TAP][0], TAP_DROPS, 1005);
	set_counter(&run.rows[TAP][0], TAP_MISSED, 1);
	count_of(&run.rows[KEYS][0].out[KEYS_UNFIT], 2);
	check(weir_stats_line(stats, look(), 1), "weir: 2.50 s: tap 0 pps 0 bps; disk 0 pps 0 bps; "
						 "lost 1,007 (now: tap drops 1,000, keys unfit 2), "
						 "nic 1\n");
	check(weir_stats_line(stats, look(), 1),
	      "weir: 2.50 s: tap 0 pps 0 bps; disk 0 pps 0 bps; lost 1,007, nic 1\n");
}

Test(stats, a_table_has_every_way_that_packets_took)
{
	small_run_count(&run, 1000);
	check(weir_stats_table(stats, look(), 1),
	      "weir: 2.50 s: lost 0\n"
	      "  node  output   packets/s  captured/s  packets\n"
	      "  tap   out      1.10 kpps    880 kbps    1,100\n"
	      "  keys  match      550 pps    440 kbps      550\n"
	      "        rest       550 pps    440 kbps      550\n"
	      "  disk  written    550 pps    440 kbps      550\n");
}

Test(stats, what_is_no_terminal_gets_lines)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	weir_stats_show(stats, look(), to);
	weir_stats_interrupt(stats);
	weir_stats_interrupt(NULL);
	fclose(to);
	cr_expect(g_str_has_prefix(text, "weir: 2.50 s: tap 0 pps"), "%s", text);
	cr_expect_null(strchr(text, '\033'));
	free(text);
}
