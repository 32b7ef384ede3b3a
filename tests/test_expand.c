/* test_expand.c: names of files.  Right values are from date(1): date -u -d @1700000000 +… */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <weir/plugin.h>
#include <stdlib.h>
#include <string.h>

#define TS_NS INT64_C(1700000000987654321)

struct row {
	char pattern[48], expected[48];
};

static char *expand(const char *pattern, int64_t ts_ns, bool local)
{
	struct weir_self self = {.name = "disk", .lane_index = 3, .lane_count = 4};

	return weir_expand(&self, pattern, ts_ns, local, "eth0/1", 7);
}

ParameterizedTestParameters(expand, fills_in)
{
	static struct row rows[] = {
		{"plain.pcap", "plain.pcap"},
		{"", ""},
		{"/a/%Y%m%d-%H%M%S.pcap", "/a/20231114-221320.pcap"},
		{"%F_%T", "2023-11-14_22:13:20"},
		{"%s.pcap", "1700000000.pcap"},
		{"%j %u %V %y %b", "318 2 46 23 Nov"},
		{"%D", "11-14-23"},
		{"%%d", "%d"},
		{"%{lane}/%{node}", "3/disk"},
		{"%{iface}", "eth0-1"},
		{"x-%{seq}.pcapng", "x-00007.pcapng"},
	};
	return cr_make_param_array(struct row, rows, sizeof(rows) / sizeof(rows[0]));
}

ParameterizedTest(struct row *row, expand, fills_in)
{
	char *text = expand(row->pattern, TS_NS, false);

	cr_assert_str_eq(text, row->expected);
	free(text);
}

ParameterizedTestParameters(expand, refuses)
{
	static struct row rows[] = {{"%", ""},      {"a%", ""},       {"%!", ""},
				    {"%{lane", ""}, {"%{lanes}", ""}, {"%{}", ""},
				    {"%5d", ""},    {"%N", ""},       {"%n", ""}};
	return cr_make_param_array(struct row, rows, sizeof(rows) / sizeof(rows[0]));
}

ParameterizedTest(struct row *row, expand, refuses)
{
	cr_assert_null(expand(row->pattern, TS_NS, false), "%s is no pattern", row->pattern);
}

Test(expand, time_before_1970)
{
	char *text = expand("%F %T %s", -1, false);

	cr_assert_str_eq(text, "1969-12-31 23:59:59 -1");
	free(text);
}

Test(expand, local_time)
{
	char *text;

	setenv("TZ", "IST-5:30", 1);
	text = expand("%F %T %z %s", TS_NS, true);
	cr_assert_str_eq(text, "2023-11-15 03:43:20 +0530 1700000000");
	free(text);
	text = expand("%T", TS_NS, false);
	cr_assert_str_eq(text, "22:13:20");
	free(text);
}

Test(expand, no_interface)
{
	struct weir_self self = {.name = "disk"};
	char *text = weir_expand(&self, "%{iface}", 0, false, NULL, 0);

	cr_assert_str_eq(text, "none");
	free(text);
}

Test(expand, pattern_has)
{
	cr_assert(weir_pattern_has("/a/%{lane}.pcap", "lane"));
	cr_assert(weir_pattern_has("%H-%{lane}.pcap", "time"));
	cr_assert(weir_pattern_has("%{node}%{seq}", "seq"));
	cr_assert_not(weir_pattern_has("/a/%%{lane}.pcap", "lane"));
	cr_assert_not(weir_pattern_has("/a/%{lane}.pcap", "time"));
	cr_assert_not(weir_pattern_has("/a/%%H", "time"));
	cr_assert_not(weir_pattern_has("lane", "lane"));
	cr_assert_not(weir_pattern_has("%{lane", "lane"));
}
