/* test_capfile_blocks.c: blocks that hold no packet, byte by byte as draft-ietf-opsawg-pcapng has
 * them. */
#include <criterion/criterion.h>
#include <weir/capfile.h>
#include <string.h>

/* What Weir does not know is left out. */
static const struct weir_statistics some = {
	.start_ns = 0x0102030405060708,
	.end_ns = 0x1112131415161718,
	.received = 5,
	.missed = UINT64_MAX,
	.dropped = 2,
	.accepted = 3,
	.delivered = UINT64_MAX,
};

Test(capfile_blocks, statistics)
{
	static const uint8_t wanted[] =
		{
			5,    0,    0,    0,    88,   0,    0,    0,    7,    0,
			0,    0,    0x34, 0x33, 0x32, 0x31, 0x38, 0x37, 0x36, 0x35, /* time */
			2,    0,    8,    0,    0x04, 0x03, 0x02, 0x01, 0x08, 0x07,
			0x06, 0x05, /* start */
			3,    0,    8,    0,    0x14, 0x13, 0x12, 0x11, 0x18, 0x17,
			0x16, 0x15, /* end */
			4,    0,    8,    0,    5,    0,    0,    0,    0,    0,
			0,    0, /* ifrecv */
			6,    0,    8,    0,    3,    0,    0,    0,    0,    0,
			0,    0, /* filteraccept */
			7,    0,    8,    0,    2,    0,    0,    0,    0,    0,
			0,    0, /* osdrop */
			0,    0,    0,    0,    88,   0,    0,    0,
		};
	uint8_t block[WEIR_PCAPNG_STATISTICS_MAX];
	size_t size = weir_pcapng_statistics(block, 7, 0x3132333435363738, &some);

	cr_assert_eq(size, sizeof(wanted));
	cr_expect_arr_eq(block, wanted, sizeof(wanted));
}

Test(capfile_blocks, statistics_have_room_for_all)
{
	const struct weir_statistics all = {0};
	uint8_t block[WEIR_PCAPNG_STATISTICS_MAX];

	cr_expect_eq(weir_pcapng_statistics(block, 0, 0, &all), WEIR_PCAPNG_STATISTICS_MAX);
}

Test(capfile_blocks, keys)
{
	static const uint8_t wanted[] = {10,  0,    0, 0, 28, 0, 0,   0,   'K', 'S',
					 'L', 'T',  6, 0, 0,  0, 'A', ' ', '1', ' ',
					 '2', '\n', 0, 0, 28, 0, 0,   0};
	uint8_t block[sizeof(wanted)];

	memset(block, 0xff, sizeof(block));
	cr_assert_eq(weir_pcapng_tls_keys(block, (const uint8_t *)"A 1 2\n", 6), sizeof(wanted));
	cr_expect_arr_eq(block, wanted, sizeof(wanted));
	cr_expect_eq(weir_pcapng_tls_keys_size(6), sizeof(wanted));
}

Test(capfile_blocks, comments_may_be_long)
{
	static char text[WEIR_PCAPNG_COMMENT_MAX + 100];
	static uint8_t block[WEIR_PCAPNG_SECTION_MAX];
	const struct weir_section section = {.comment = text};
	size_t size;

	memset(text, 'x', sizeof(text) - 1);
	size = weir_pcapng_section(block, &section);
	cr_expect_eq(size, 28 + 4 + WEIR_PCAPNG_COMMENT_MAX + 4);
	text[60000] = '\0';
	cr_expect_eq(weir_pcapng_section(block, &section), 28 + 4 + 60000 + 4);
}

Test(capfile_blocks, are_no_packets_to_who_steps_over_them)
{
	uint8_t bytes[512];
	struct weir_extent extent = {0};
	size_t size = weir_pcapng_statistics(bytes, 0, 1, &some);

	size += weir_pcapng_tls_keys(bytes + size, (const uint8_t *)"A 1 2\n", 6);
	cr_assert_eq(weir_capfile_walk(bytes, 0, size, true, &extent), size);
	cr_expect_eq(extent.header_bytes, size);
	cr_expect_eq(extent.packets, 0);
}
