/* Each stage by itself, a batch at a time. */
#include "harness.h"

#include <criterion/criterion.h>

/* Ethernet, IPv4 and UDP, to port `port`; all else is equal. */
static const uint8_t *frame(unsigned port)
{
	static uint8_t frames[4][60];
	static unsigned next;
	uint8_t *bytes = frames[next++ % 4];
	static const uint8_t head[] = {2, 0, 0, 0, 0,  1,  2, 0, 0,  0, 0, 2, 8,  0, 0x45, 0, 0, 46,
				       0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0,    2, 4, 0};

	memcpy(bytes, head, sizeof(head));
	bytes[36] = (uint8_t)(port >> 8);
	bytes[37] = (uint8_t)port;
	bytes[39] = 26;
	return bytes;
}

static struct weir_packet packet(unsigned port, int64_t ts_ns)
{
	return (struct weir_packet){
		.data = frame(port), .ts_ns = ts_ns, .caplen = 60, .wirelen = 60};
}

static const struct weir_packet *nth(const GPtrArray *packets, unsigned n)
{
	return packets->pdata[n];
}

Test(stages, snaplen_cuts_what_is_longer)
{
	struct weir_packet in[] = {packet(53, 1), packet(53, 2)};

	in[1].caplen = 20;
	struct harness *harness = harness_run("snaplen 42", 1, in, 2, 2);
	const GPtrArray *out = harness_output(harness, "out");

	cr_assert_eq(harness->status, 0);
	cr_assert_eq(out->len, 2);
	cr_assert_eq(nth(out, 0)->caplen, 42);
	cr_assert_eq(nth(out, 0)->wirelen, 60);
	cr_assert_eq(nth(out, 1)->caplen, 20);
	harness_free(harness);
}

Test(stages, bpf_divides_and_keeps_the_order)
{
	struct weir_packet in[] = {packet(53, 1), packet(80, 2), packet(53, 3), packet(80, 4)};
	struct harness *harness = harness_run("bpf 'udp port 53'", 1, in, 4, 4);
	const GPtrArray *match = harness_output(harness, "match"),
			*rest = harness_output(harness, "rest");

	cr_assert_eq(harness->status, 0);
	cr_assert_eq(match->len, 2);
	cr_assert_eq(rest->len, 2);
	cr_assert_eq(nth(match, 0)->ts_ns, 1);
	cr_assert_eq(nth(match, 1)->ts_ns, 3);
	cr_assert_eq(nth(rest, 0)->ts_ns, 2);
	cr_assert_eq(nth(rest, 1)->ts_ns, 4);
	harness_free(harness);
}

Test(stages, bpf_refuses_a_filter_that_does_not_compile_and_says_so)
{
	struct weir_packet in[] = {packet(53, 1)};
	struct harness *harness = harness_run("bpf 'udp prot 53'", 1, in, 1, 1);

	cr_assert_eq(harness->status, 2);
	cr_assert_eq(harness->messages->len, 1);
	cr_assert(strstr(harness->messages->pdata[0], "syntax error"), "%s",
		  (char *)harness->messages->pdata[0]);
	harness_free(harness);
}

Test(stages, dedup_remembers_across_batches)
{
	struct weir_packet in[] = {packet(53, 1000), packet(80, 2000), packet(53, 3000)};
	struct harness *harness = harness_run("dedup", 1, in, 3, 1);

	cr_assert_eq(harness->status, 0);
	cr_assert_eq(harness_output(harness, "unique")->len, 2);
	cr_assert_eq(harness_output(harness, "duplicate")->len, 1);
	cr_assert_eq(nth(harness_output(harness, "duplicate"), 0)->ts_ns, 3000);
	harness_free(harness);
}
