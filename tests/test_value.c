/*
 * Option values: each type with what it means, what it refuses, and what it says then.
 */
#include "value.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <inttypes.h>
#include <string.h>

struct number_row {
	uint32_t type;
	char range[32], text[32];
	int64_t expected;
};

struct error_row {
	uint32_t type;
	char range[32], text[32], expected[160];
};

union config {
	int64_t number;
	uint64_t size;
	struct weir_rate rate;
	struct weir_amount amount;
	uint32_t index;
	bool yes;
	const char *string;
	const char *const *list;
};

static bool store(uint32_t type, const char *range, const char *text, union config *config,
		  GPtrArray *memory, GError **error)
{
	struct weir_option option = {"x", type, 0, "", *range ? range : NULL, NULL};

	memset(config, 0, sizeof(*config));
	return weir_value_store(&option, text, config, memory, error);
}

ParameterizedTestParameters(value, numbers)
{
	static struct number_row rows[] = {
		{WEIR_NUMBER, "", "0", 0},
		{WEIR_NUMBER, "", "-5", -5},
		{WEIR_NUMBER, "", "9223372036854775807", INT64_MAX},
		{WEIR_NUMBER, "1..64", "1", 1},
		{WEIR_NUMBER, "1..64", "64", 64},
		{WEIR_NUMBER, "-3..", "-3", -3},
		{WEIR_NUMBER, "..7", "-300", -300},
		{WEIR_SIZE, "", "1500", 1500},
		{WEIR_SIZE, "", "1500B", 1500},
		{WEIR_SIZE, "", "64KiB", 65536},
		{WEIR_SIZE, "", "10MB", 10000000},
		{WEIR_SIZE, "", "1GiB", 1073741824},
		{WEIR_SIZE, "", "1GB", 1000000000},
		{WEIR_SIZE, "", "2TiB", 2199023255552},
		{WEIR_SIZE, "", "3TB", 3000000000000},
		{WEIR_SIZE, "", "1kB", 1000},
		{WEIR_SIZE, "", "2PiB", INT64_C(2) << 50},
		{WEIR_SIZE, "", "7EB", 7000000000000000000},
		{WEIR_SIZE, "4KiB..4GiB", "4096", 4096},
		{WEIR_SIZE, "4KiB..4GiB", "4GiB", 4294967296},
		{WEIR_TIME, "", "250ms", 250000000},
		{WEIR_TIME, "", "10s", 10000000000},
		{WEIR_TIME, "", "5m", 300000000000},
		{WEIR_TIME, "", "24h", 86400000000000},
		{WEIR_TIME, "", "7d", 604800000000000},
		{WEIR_TIME, "", "3us", 3000},
		{WEIR_TIME, "", "9ns", 9},
		{WEIR_TIME, "", "0", 0},
		{WEIR_TIME, "1ms..1h", "60m", 3600000000000},
		{WEIR_BOOL, "", "yes", 1},
		{WEIR_BOOL, "", "no", 0},
		{WEIR_CHOICE, "a|bb|c", "a", 0},
		{WEIR_CHOICE, "a|bb|c", "bb", 1},
		{WEIR_CHOICE, "a|bb|c", "c", 2},
		{WEIR_SET, "a|bb|c", "none", 0},
		{WEIR_SET, "a|bb|c", "c", 4},
		{WEIR_SET, "a|bb|c", "c,a", 5},
		{WEIR_SET, "a|bb|c", "bb,bb", 2},
	};
	return cr_make_param_array(struct number_row, rows, G_N_ELEMENTS(rows));
}

static int64_t read_back(uint32_t type, const union config *config)
{
	if (type == WEIR_BOOL)
		return config->yes;
	return type == WEIR_CHOICE || type == WEIR_SET ? config->index : config->number;
}

ParameterizedTest(struct number_row *row, value, numbers)
{
	union config config;
	int64_t found;

	cr_assert(store(row->type, row->range, row->text, &config, NULL, NULL), "%s", row->text);
	found = read_back(row->type, &config);
	cr_expect_eq(found, row->expected, "%s is %" PRId64 ", not %" PRId64, row->text, found,
		     row->expected);
}

#define SIZES "expected a size such as 64KiB, 10MB or 1500"
#define TIMES "expected a time such as 250ms, 10s or 24h"
#define RATES "expected a rate such as 1Gbps or 500kpps"
#define BOTH  "expected a size such as 1GiB, or percent such as 20%"

ParameterizedTestParameters(value, refused)
{
	static struct error_row rows[] = {
		{WEIR_NUMBER, "", "", "expected a number"},
		{WEIR_NUMBER, "", "x", "expected a number"},
		{WEIR_NUMBER, "", "1.5", "expected a number"},
		{WEIR_NUMBER, "", " 1", "expected a number"},
		{WEIR_NUMBER, "", "+1", "expected a number"},
		{WEIR_NUMBER, "", "0x10", "expected a number"},
		{WEIR_NUMBER, "", "9223372036854775808", "expected a number"},
		{WEIR_NUMBER, "", "99999999999999999999", "expected a number"},
		{WEIR_NUMBER, "1..64", "0", "expected a number, in 1..64"},
		{WEIR_NUMBER, "1..64", "65", "expected a number, in 1..64"},
		{WEIR_NUMBER, "1..64", "-1", "expected a number, in 1..64"},
		{WEIR_SIZE, "", "1G", SIZES "; '1G' could be 1GB (decimal) or 1GiB (binary)"},
		{WEIR_SIZE, "", "64k", SIZES "; '64k' could be 64KB (decimal) or 64KiB (binary)"},
		{WEIR_SIZE, "", "-1", SIZES},
		{WEIR_SIZE, "", "GiB", SIZES},
		{WEIR_SIZE, "", "1gib", SIZES},
		{WEIR_SIZE, "", "1.5GiB", SIZES},
		{WEIR_SIZE, "", "1 GiB", SIZES},
		{WEIR_SIZE, "", "18446744073709551616", SIZES},
		{WEIR_SIZE, "", "99999999999TiB", SIZES},
		{WEIR_SIZE, "4KiB..4GiB", "4095", SIZES ", in 4KiB..4GiB"},
		{WEIR_SIZE, "4KiB..4GiB", "5GB", SIZES ", in 4KiB..4GiB"},
		{WEIR_TIME, "", "10", TIMES},
		{WEIR_TIME, "", "1y", TIMES},
		{WEIR_TIME, "", "-1s", TIMES},
		{WEIR_TIME, "", "999999999d", TIMES},
		{WEIR_TIME, "1ms..1h", "61m", TIMES ", in 1ms..1h"},
		{WEIR_RATE, "", "10", RATES},
		{WEIR_RATE, "", "1G", RATES},
		{WEIR_RATE, "", "1gbps", RATES},
		{WEIR_RATE, "", ".5Gbps", RATES},
		{WEIR_RATE, "", "1e3bps", RATES},
		{WEIR_RATE, "1kbps..1Gbps", "2Gbps", RATES ", in 1kbps..1Gbps"},
		{WEIR_AMOUNT, "", "101%", BOTH},
		{WEIR_AMOUNT, "", "-1%", BOTH},
		{WEIR_AMOUNT, "", "%", BOTH},
		{WEIR_AMOUNT, "", "1T", BOTH "; '1T' could be 1TB (decimal) or 1TiB (binary)"},
		{WEIR_AMOUNT, "1%..50%", "60%", BOTH ", in 1%..50%"},
		{WEIR_BOOL, "", "true", "expected yes or no"},
		{WEIR_BOOL, "", "", "expected yes or no"},
		{WEIR_CHOICE, "hash|rnd", "hsh", "expected one of hash, rnd; did you mean 'hash'?"},
		{WEIR_CHOICE, "hash|rnd", "", "expected one of hash, rnd"},
		{WEIR_SET, "mac|vlan", "mac,vln",
		 "expected none, or a list of mac, vlan; did you mean 'vlan'?"},
		{WEIR_SET, "mac|vlan", "mac,", "expected none, or a list of mac, vlan"},
		{WEIR_SET, "mac|vlan", "", "expected none, or a list of mac, vlan"},
		{WEIR_LIST, "", "a,,b", "expected a list such as a,b, with no empty element"},
		{WEIR_LIST, "", ",", "expected a list such as a,b, with no empty element"},
		{WEIR_INFILE, "", "", "expected the name of a file"},
		{WEIR_OUTFILE, "", "", "expected the name of a file"},
		{WEIR_ENDPOINT, "", "", "expected an endpoint"},
	};
	return cr_make_param_array(struct error_row, rows, G_N_ELEMENTS(rows));
}

ParameterizedTest(struct error_row *row, value, refused)
{
	static const union config zero;
	union config config;
	GError *error = NULL;

	cr_assert_not(store(row->type, row->range, row->text, &config, NULL, &error), "%s",
		      row->text);
	cr_expect_str_eq(error->message, row->expected, "%s: %s; not: %s", row->text,
			 error->message, row->expected);
	cr_expect(!memcmp(&config, &zero, sizeof(zero)), "%s left something behind", row->text);
	g_error_free(error);
}

Test(value, rates)
{
	union config config;

	cr_assert(store(WEIR_RATE, "", "1Gbps", &config, NULL, NULL));
	cr_expect(config.rate.per_second == 1e9 && config.rate.packets == 0);
	cr_assert(store(WEIR_RATE, "", "500kpps", &config, NULL, NULL));
	cr_expect(config.rate.per_second == 5e5 && config.rate.packets == 1);
	cr_assert(store(WEIR_RATE, "", "2.5Mbps", &config, NULL, NULL));
	cr_expect(config.rate.per_second == 2.5e6 && config.rate.packets == 0);
	cr_assert(store(WEIR_RATE, "1kbps..1Gbps", "5Gpps", &config, NULL, NULL));
}

Test(value, amounts)
{
	union config config;

	cr_assert(store(WEIR_AMOUNT, "", "20%", &config, NULL, NULL));
	cr_expect(config.amount.percent == 20 && config.amount.bytes == 0);
	cr_assert(store(WEIR_AMOUNT, "", "0.5%", &config, NULL, NULL));
	cr_expect(config.amount.percent == 0.5 && config.amount.bytes == 0);
	cr_assert(store(WEIR_AMOUNT, "1%..50%", "3GiB", &config, NULL, NULL));
	cr_expect(config.amount.percent == 0 && config.amount.bytes == UINT64_C(3) << 30);
}

static void check_list(const char *text, const char *expected)
{
	GPtrArray *memory = g_ptr_array_new_with_free_func(g_free);
	union config config;
	char *joined;

	cr_assert(store(WEIR_LIST, "", text, &config, memory, NULL));
	joined = config.list ? g_strjoinv("|", (char **)config.list) : g_strdup("(none)");
	cr_expect_str_eq(joined, expected, "%s is %s", text, joined);
	g_free(joined);
	g_ptr_array_unref(memory);
}

Test(value, lists)
{
	check_list("", "(none)");
	check_list("a", "a");
	check_list("a,b,c", "a|b|c");
	check_list("a\\,b,c", "a,b|c");
	check_list("a\\b,\\,", "a\\b|,");
	check_list("p q,r", "p q|r");
}

Test(value, lists_that_must_be_given_are_not_empty)
{
	struct weir_option option = {"x", WEIR_LIST, 0, NULL, NULL, NULL};
	g_autoptr(GError) error = NULL;
	union config config = {0};

	cr_assert(!weir_value_store(&option, "", &config, NULL, &error));
	cr_expect_str_eq(error->message, "expected a list such as a,b");
}

Test(value, strings)
{
	GPtrArray *memory = g_ptr_array_new_with_free_func(g_free);
	union config config;

	cr_assert(store(WEIR_STRING, "", "host 10.0.0.5", &config, memory, NULL));
	cr_expect_str_eq(config.string, "host 10.0.0.5");
	cr_assert(store(WEIR_STRING, "", "", &config, memory, NULL));
	cr_expect_str_eq(config.string, "");
	cr_assert(store(WEIR_OUTFILE, "", "/a/%Y", &config, memory, NULL));
	cr_expect_str_eq(config.string, "/a/%Y");
	g_ptr_array_unref(memory);
}

Test(value, what_plugins_call)
{
	uint64_t bytes = 7;
	int64_t ns = 7;
	struct weir_rate rate = {.per_second = 7};

	cr_expect(weir_parse_size("1MiB", &bytes) && bytes == 1048576);
	cr_expect(weir_parse_time("2h", &ns) && ns == 7200000000000);
	cr_expect(weir_parse_rate("3pps", &rate) && rate.per_second == 3 && rate.packets == 1);
	cr_expect(!weir_parse_size("1M", &bytes) && bytes == 1048576);
	cr_expect(!weir_parse_time("1", &ns) && ns == 7200000000000);
	cr_expect(!weir_parse_rate("x2", &rate) && rate.per_second == 3);
}
