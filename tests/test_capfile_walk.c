/* test_capfile_walk.c: stepping over records, cut at every byte. */
#include <criterion/criterion.h>
#include <weir/capfile.h>
#include <string.h>

static const uint8_t data[64];

static size_t fill(uint8_t *to, bool pcapng, unsigned packets)
{
	struct weir_interface iface = {.name = "eth0", .linktype = 1};
	size_t len = pcapng ? weir_pcapng_interface(to, &iface, NULL, NULL) : 0;

	for (unsigned i = 0; i < packets; i++) {
		struct weir_packet packet = {.data = data, .caplen = i, .wirelen = i, .queue = 1};

		len += pcapng ? weir_pcapng_packet(to + len, &packet, 0, true)
			      : weir_pcap_record(to + len, &packet, WEIR_PRECISION_NS);
	}
	return len;
}

/* Wherever the bytes end, what is stepped over and what is not are the whole. */
static void check_cuts(bool pcapng)
{
	uint8_t bytes[2048];
	size_t len = fill(bytes, pcapng, 10);

	for (size_t end = 0; end <= len; end++) {
		struct weir_extent extent = {0};
		size_t cut = weir_capfile_walk(bytes, 0, end, pcapng, &extent);

		cr_assert(cut <= end);
		cr_assert_eq(extent.record_bytes + extent.header_bytes, cut);
		cr_assert_eq(weir_capfile_walk(bytes, cut, len, pcapng, &extent), len);
		cr_assert_eq(extent.packets, 10);
		cr_assert_eq(extent.packet_bytes, 45);
		cr_assert_eq(extent.record_bytes + extent.header_bytes, len);
	}
}

Test(capfile_walk, classic)
{
	check_cuts(false);
}

Test(capfile_walk, pcapng)
{
	check_cuts(true);
}

Test(capfile_walk, lengths_that_cannot_be_end_it)
{
	static const uint32_t lengths[] = {0, 4, 8, 11, 13, 68, UINT32_MAX};
	struct weir_extent extent = {0};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		uint32_t words[16] = {6, lengths[i], 0xffffffff - (uint32_t)i};

		cr_assert_eq(weir_capfile_walk((uint8_t *)words, 0, 64, true, &extent), 0);
		cr_assert_eq(weir_capfile_walk((uint8_t *)words, 0, 64, false, &extent), 0);
	}
}
