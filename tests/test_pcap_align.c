/* test_pcap_align.c: where intervals of rotate-time end, with clocks of the wall that jump. */
#include "../plugins/pcap/align.c"

#include <criterion/criterion.h>
#include <stdlib.h>

#define HOUR_NS (3600 * NS_PER_S)
#define DAY_NS  (24 * HOUR_NS)

/* 2026-03-29 00:00 and 2026-10-25 00:00 in Berlin: the days with 23 and with 25 hours. */
#define SPRING_NS (1774738800 * NS_PER_S)
#define AUTUMN_NS (1792879200 * NS_PER_S)

static void in_berlin(void)
{
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
}

Test(pcap_align, utc)
{
	cr_expect_eq(align_after(0, HOUR_NS, false), HOUR_NS);
	cr_expect_eq(align_after(HOUR_NS - 1, HOUR_NS, false), HOUR_NS);
	cr_expect_eq(align_after(HOUR_NS, HOUR_NS, false), 2 * HOUR_NS);
	cr_expect_eq(align_after(-1, HOUR_NS, false), 0);
	cr_expect_eq(align_after(SPRING_NS, 7 * NS_PER_S, false) % (7 * NS_PER_S), 0);
}

Test(pcap_align, days_of_the_local_clock)
{
	in_berlin();
	cr_expect_eq(align_after(SPRING_NS - DAY_NS, DAY_NS, true), SPRING_NS);
	cr_expect_eq(align_after(SPRING_NS, DAY_NS, true), SPRING_NS + 23 * HOUR_NS);
	cr_expect_eq(align_after(SPRING_NS + 22 * HOUR_NS, DAY_NS, true), SPRING_NS + 23 * HOUR_NS);
	cr_expect_eq(align_after(AUTUMN_NS, DAY_NS, true), AUTUMN_NS + 25 * HOUR_NS);
	cr_expect_eq(align_after(AUTUMN_NS + 24 * HOUR_NS, DAY_NS, true), AUTUMN_NS + 25 * HOUR_NS);
}

Test(pcap_align, hours_are_not_moved)
{
	in_berlin();
	for (int64_t at = AUTUMN_NS; at < AUTUMN_NS + DAY_NS; at += HOUR_NS)
		cr_expect_eq(align_after(at + 1, HOUR_NS, true), at + HOUR_NS);
}
