/*
 * Offsets are counted by hand from the formats' specifications; test_layers.c compares real packets
 * with tshark.
 */
#include <weir/dissect.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "packets.h"

enum { ETHERNET = 1, KINDS = WEIR_F_IP4 | WEIR_F_IP6 | WEIR_F_FRAGMENT };

struct row {
	char name[40];
	uint32_t linktype;
	char hex[700];
	uint16_t l3, l4, flags;
	uint8_t proto;
};

#define F4 WEIR_F_IP4
#define F6 WEIR_F_IP6
#define FF WEIR_F_FRAGMENT

static struct row rows[] = {
	{"IPv4 TCP", 1, ETH_IP4 IP4("0028", "0000", "06") TCP, 14, 34, F4, 6},
	{"IPv4 UDP", 1, ETH_IP4 IP4("001c", "4000", "11") UDP, 14, 34, F4, 17},
	{"IPv4 SCTP", 1, ETH_IP4 IP4("0020", "0000", "84") "0400 0050 00000000 00000000", 14, 34,
	 F4, 132},
	{"IPv4 ICMP", 1, ETH_IP4 IP4("001c", "0000", "01") "0800 0000 0001 0001", 14, 34, F4, 1},
	{"IPv4 options", 1, ETH_IP4 "4600002c 12340000 40060000 0a000001 0a000002 01010101" TCP, 14,
	 38, F4, 6},
	{"IPv4 options cut", 1, ETH_IP4 "4f000050 12340000 40060000 0a000001 0a000002" TCP, 14, 0,
	 F4, 6},
	{"IPv4 AH", 1,
	 ETH_IP4 IP4("0040", "0000",
		     "33") "06040000 00000001 00000001 000000000000000000000000" TCP,
	 14, 58, F4, 6},
	{"IPv4 first fragment", 1, ETH_IP4 IP4("0028", "2000", "06") TCP, 14, 34, F4 | FF, 6},
	{"IPv4 later fragment", 1, ETH_IP4 IP4("0028", "0010", "06") TCP, 14, 0, F4 | FF, 6},
	{"IPv4 TCP cut", 1, ETH_IP4 IP4("0028", "0000", "06") "0400 0050 00000001", 14, 0, F4, 6},
	{"IPv4 ends before the padding", 1, ETH_IP4 IP4("0014", "0000", "11") UDP, 14, 0, F4, 17},
	{"IPv4 without a length", 1, ETH_IP4 IP4("0000", "0000", "11") UDP, 14, 34, F4, 17},
	{"IPv4 length above the frame", 1, ETH_IP4 IP4("ffff", "0000", "11") UDP, 14, 34, F4, 17},
	{"IPv4 header too short", 1, ETH_IP4 "44000014 12340000 40060000 0a000001 0a000002", 0, 0,
	 0, 0},
	{"IPv4 header cut", 1, ETH_IP4 "45000014 12340000 40060000 0a000001 0a0000", 0, 0, 0, 0},
	{"IPv4 by type, not by version", 1, ETH_IP4 IP6("0014", "06") TCP, 0, 0, 0, 0},
	{"IPv6 TCP", 1, ETH_IP6 IP6("0014", "06") TCP, 14, 54, F6, 6},
	{"IPv6 hop-by-hop, destination", 1,
	 ETH_IP6 IP6("002c", "00") "3c00010400000000 0601010c000000000000000000000000" TCP, 14, 78,
	 F6, 6},
	{"IPv6 routing", 1, ETH_IP6 IP6("002c", "2b") "06020001 00000000" A6 TCP, 14, 78, F6, 6},
	{"IPv6 AH", 1,
	 ETH_IP6 IP6("002c", "33") "06040000 00000001 00000001 000000000000000000000000" TCP, 14,
	 78, F6, 6},
	{"IPv6 first fragment", 1, ETH_IP6 IP6("001c", "2c") "06000001 00000001" TCP, 14, 62,
	 F6 | FF, 6},
	{"IPv6 later fragment", 1, ETH_IP6 IP6("001c", "2c") "06000008 00000001" TCP, 14, 0,
	 F6 | FF, 6},
	{"IPv6 atomic fragment", 1, ETH_IP6 IP6("001c", "2c") "06000000 00000001" TCP, 14, 62, F6,
	 6},
	{"IPv6 no next header", 1, ETH_IP6 IP6("0008", "3b") "0000000000000000", 14, 0, F6, 59},
	{"IPv6 extension cut", 1, ETH_IP6 IP6("0008", "00") "06000104", 14, 0, F6, 0},
	{"IPv6 extension beyond the end", 1, ETH_IP6 IP6("0014", "00") "06ff0104 00000000" TCP, 14,
	 0, F6, 6},
	{"IPv6 header cut", 1, ETH_IP6 "6000000000140640" A6, 0, 0, 0, 0},
	{"VLAN", 1, MACS VLAN_7 "0800" IP4("001c", "0000", "11") UDP, 18, 38, F4, 17},
	{"QinQ", 1, MACS QINQ_9 VLAN_7 "86dd" IP6("0014", "06") TCP, 22, 62, F6, 6},
	{"VLAN cut", 1, MACS "8100 00", 0, 0, 0, 0},
	{"MPLS", 1, MACS "8847 0001 0040 0001 0140" IP4("001c", "0000", "11") UDP, 22, 42, F4, 17},
	{"MPLS, IPv6", 1, MACS "8847 0000 2140" IP6("0014", "06") TCP, 18, 58, F6, 6},
	{"MPLS without a bottom", 1, MACS "8847 0001 0040 0001 0040", 0, 0, 0, 0},
	{"PPPoE", 1, MACS "8864 1100 0001 001e 0021" IP4("001c", "0000", "11") UDP, 22, 42, F4, 17},
	{"PPPoE, IPv6", 1, MACS VLAN_7 "8864 1100 0001 003e 0057" IP6("0014", "06") TCP, 26, 66, F6,
	 6},
	{"PPPoE, LCP", 1, MACS "8864 1100 0001 0006 c021 09000004", 0, 0, 0, 0},
	{"SNAP", 1, MACS "0024 aaaa03 000000 0800" IP4("001c", "0000", "11") UDP, 22, 42, F4, 17},
	{"LLC", 1, MACS "0026 424203 0000000000", 0, 0, 0, 0},
	{"ARP", 1, MACS "0806 0001080006040001 020000000002 0a000001 000000000000 0a000002", 14, 0,
	 0, 0},
	{"Ethernet cut", 1, MACS "08", 0, 0, 0, 0},
	{"nothing", 1, "", 0, 0, 0, 0},
	{"raw IPv4", 101, IP4("001c", "0000", "11") UDP, 0, 20, F4, 17},
	{"raw IPv6", 12, IP6("0014", "06") TCP, 0, 40, F6, 6},
	{"raw, empty", 101, "", 0, 0, 0, 0},
	{"LINKTYPE_IPV4", 228, IP4("001c", "0000", "11") UDP, 0, 20, F4, 17},
	{"LINKTYPE_IPV6", 229, IP6("0014", "06") TCP, 0, 40, F6, 6},
	{"LINKTYPE_IPV6 that is not", 229, IP4("001c", "0000", "11") UDP TCP, 0, 0, 0, 0},
	{"SLL", 113, "0000 0001 0006 020000000001 0000 0800" IP4("001c", "0000", "11") UDP, 16, 36,
	 F4, 17},
	{"SLL, VLAN", 113,
	 "0000 0001 0006 020000000001 0000 8100 0007 0800" IP4("001c", "0000", "11") UDP, 20, 40,
	 F4, 17},
	{"SLL2", 276, "86dd 0000 00000002 0001 00 06 0200000000010000" IP6("0014", "06") TCP, 20,
	 60, F6, 6},
	{"NULL, little-endian", 0, "02000000" IP4("001c", "0000", "11") UDP, 4, 24, F4, 17},
	{"NULL, big-endian", 0, "0000001e" IP6("0014", "06") TCP, 4, 44, F6, 6},
	{"LOOP", 108, "00000018" IP6("0014", "06") TCP, 4, 44, F6, 6},
	{"NULL, ISO", 0, "07000000" IP4("001c", "0000", "11") UDP, 0, 0, 0, 0},
	{"PPP", 9, "ff03 0021" IP4("001c", "0000", "11") UDP, 4, 24, F4, 17},
	{"PPP, compressed", 9, "21" IP4("001c", "0000", "11") UDP, 1, 21, F4, 17},
	{"C-HDLC", 104, "0f00 0800" IP4("001c", "0000", "11") UDP, 4, 24, F4, 17},
	{"unknown link type", 195, ETH_IP4 IP4("001c", "0000", "11") UDP, 0, 0, 0, 0},
};

ParameterizedTestParameters(dissect, finds)
{
	return cr_make_param_array(struct row, rows, sizeof(rows) / sizeof(rows[0]));
}

ParameterizedTest(struct row *row, dissect, finds)
{
	struct weir_packet packet = packet_of(row->hex);
	weir_dissect(&packet, row->linktype);
	cr_expect_eq(packet.l3, row->l3, "%s: l3 is %u, not %u", row->name, packet.l3, row->l3);
	cr_expect_eq(packet.l4, row->l4, "%s: l4 is %u, not %u", row->name, packet.l4, row->l4);
	cr_expect_eq(packet.proto, row->proto, "%s: proto is %u, not %u", row->name, packet.proto,
		     row->proto);
	cr_expect_eq(packet.flags & KINDS, row->flags, "%s: flags are %x, not %x", row->name,
		     packet.flags & KINDS, row->flags);
	cr_expect(packet.flags & WEIR_F_DISSECTED);
	packet_free(&packet);
}

/* Every prefix of every packet above: with a sanitizer, any read beyond caplen ends the test. */
Test(dissect, reads_nothing_beyond_caplen)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weir_packet whole = packet_of(rows[i].hex);
		for (uint32_t n = 0; n < whole.caplen; n++) {
			struct weir_packet cut = {.caplen = n, .wirelen = whole.wirelen};
			uint8_t *exact = malloc(n ? n : 1);
			memcpy(exact, whole.data, n);
			cut.data = exact;
			weir_dissect(&cut, rows[i].linktype);
			cr_assert_leq(cut.l3, n);
			cr_assert_leq(cut.l4, n);
			cr_assert_neq(weir_flow(&cut, rows[i].linktype), 0);
			free(exact);
		}
		packet_free(&whole);
	}
}

/* Tags, labels and extension headers without an end cost a bounded time, and are no packet. */
Test(dissect, gives_up_on_endless_headers)
{
	enum { SIZE = 262144 };
	static const uint16_t types[] = {0x8100, 0x8847};
	uint8_t *data = calloc(1, SIZE);

	for (unsigned t = 0; t < 2; t++) {
		for (uint32_t at = 12; at + 4 <= SIZE; at += 4) {
			data[at] = (uint8_t)(types[t] >> 8);
			data[at + 1] = (uint8_t)types[t];
		}
		struct weir_packet packet = {.data = data, .caplen = SIZE, .wirelen = SIZE};
		weir_dissect(&packet, ETHERNET);
		cr_expect_eq(packet.l3, 0);
	}
	memset(data, 0, SIZE); /* a hop-by-hop header that is followed by another, 8,000 times */
	data[0] = 0x60;
	struct weir_packet packet = {.data = data, .caplen = SIZE, .wirelen = SIZE};
	weir_dissect(&packet, 229);
	cr_expect_eq(packet.flags & KINDS, WEIR_F_IP6);
	cr_expect_eq(packet.l4, 0);
	free(data);
}

Test(dissect, is_done_once)
{
	struct weir_packet packet = packet_of(ETH_IP4 IP4("001c", "0000", "11") UDP);
	weir_dissect(&packet, ETHERNET);
	packet.l4 = 99;
	weir_dissect(&packet, ETHERNET);
	cr_expect_eq(packet.l4, 99);
	packet.flags &= (uint16_t)~WEIR_F_DISSECTED; /* as who moves data does */
	packet.flags |= WEIR_F_FRAGMENT | WEIR_F_IP6;
	weir_dissect(&packet, ETHERNET);
	cr_expect_eq(packet.l4, 34);
	cr_expect_eq(packet.flags & KINDS, WEIR_F_IP4);
	packet_free(&packet);
}

Test(dissect, counts_vlan_tags)
{
	static const struct {
		const char *hex;
		uint32_t linktype, size, at;
	} cases[] = {
		{ETH_IP4 UDP, ETHERNET, 0, 0},
		{MACS VLAN_7 "0800" UDP, ETHERNET, 4, 12},
		{MACS QINQ_9 VLAN_7 "0800" UDP, ETHERNET, 8, 12},
		{MACS VLAN_7 "8100 00", ETHERNET, 4, 12}, /* the second one is cut */
		{MACS "81", ETHERNET, 0, 0},
		{"0000 0001 0006 020000000001 0000 8100 0007 0800" UDP, 113, 4, 14},
		{"8100 0000 00000002 0001 00 06 0200000000010000 0007 0800" UDP, 276, 0, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_packet packet = packet_of(cases[i].hex);
		uint32_t at = 0;
		uint32_t size = weir_vlan_tags(&packet, cases[i].linktype, &at);
		cr_expect_eq(size, cases[i].size, "%zu: %u bytes of tags", i, size);
		cr_expect(size == 0 || at == cases[i].at, "%zu: tags at %u", i, at);
		packet_free(&packet);
	}
}
