/* Numbers and columns for people. */
#include "cells.h"
#include "human.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

struct row {
	double value;
	char expected[24];
};

static void check(char *found, const char *expected)
{
	cr_expect_str_eq(found, expected, "«%s» is not «%s»", found, expected);
	g_free(found);
}

ParameterizedTestParameters(human, counts)
{
	static struct row rows[] = {{0, "0"},
				    {7, "7"},
				    {999, "999"},
				    {1000, "1,000"},
				    {123456, "123,456"},
				    {1234567, "1,234,567"}};

	return cr_make_param_array(struct row, rows, sizeof(rows) / sizeof(*rows));
}

ParameterizedTest(struct row *row, human, counts)
{
	check(weir_human_count((uint64_t)row->value), row->expected);
}

Test(human, the_largest_count)
{
	check(weir_human_count(UINT64_MAX), "18,446,744,073,709,551,615");
	check(weir_human_bytes(UINT64_MAX), "16384 PiB");
}

ParameterizedTestParameters(human, bytes)
{
	static struct row rows[] = {{0, "0 B"},
				    {1023, "1023 B"},
				    {1024, "1 KiB"},
				    {1536, "1.50 KiB"},
				    {10240 + 512, "10.5 KiB"},
				    {1048575, "1.00 MiB"},
				    {268435456, "256 MiB"},
				    {1099511627776, "1 TiB"}};

	return cr_make_param_array(struct row, rows, sizeof(rows) / sizeof(*rows));
}

ParameterizedTest(struct row *row, human, bytes)
{
	check(weir_human_bytes((uint64_t)row->value), row->expected);
}

ParameterizedTestParameters(human, rates)
{
	static struct row rows[] = {{0, "0 pps"},          {0.25, "0.25 pps"},
				    {12.34, "12.3 pps"},   {999.4, "999 pps"},
				    {999.7, "1.00 kpps"},  {1460000, "1.46 Mpps"},
				    {9.999e6, "10.0 Mpps"}};

	return cr_make_param_array(struct row, rows, sizeof(rows) / sizeof(*rows));
}

ParameterizedTest(struct row *row, human, rates)
{
	check(weir_human_rate(row->value, "pps"), row->expected);
}

ParameterizedTestParameters(human, times)
{
	static struct row rows[] = {{0.254, "0.25 s"},   {59.5, "59.50 s"}, {60, "1 m 0 s"},
				    {3599, "59 m 59 s"}, {3600, "1 h 0 m"}, {90061, "25 h 1 m"}};

	return cr_make_param_array(struct row, rows, sizeof(rows) / sizeof(*rows));
}

ParameterizedTest(struct row *row, human, times)
{
	check(weir_human_time(row->value), row->expected);
}

Test(cells, columns_are_as_wide_as_their_widest_cell)
{
	struct weir_cells *cells = weir_cells_new("<>");

	weir_cells_add(cells, "é");
	weir_cells_add(cells, "12,345");
	weir_cells_add(cells, "longer");
	weir_cells_take(cells, g_strdup("7"));
	check(weir_cells_text(cells, "  "), "  é       12,345\n"
					    "  longer       7\n");
	weir_cells_free(cells);
}

Test(cells, rows_end_without_blanks)
{
	struct weir_cells *cells = weir_cells_new("<<<");
	const char *const texts[] = {"a", "b", "long", "a", "", NULL};

	for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++)
		weir_cells_add(cells, texts[i]);
	check(weir_cells_text(cells, ""), "a  b  long\na\n");
	weir_cells_free(cells);
	weir_cells_free(NULL);
}
