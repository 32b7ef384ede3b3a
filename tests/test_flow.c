#include <weir/dissect.h>

#include <criterion/criterion.h>

#include "packets.h"

enum { ETHERNET = 1, RAW = 101 };

static uint32_t flow_of(const char *hex, uint32_t linktype)
{
	struct weir_packet packet = packet_of(hex);
	uint32_t flow = weir_flow(&packet, linktype);
	packet_free(&packet);
	return flow;
}

#define UDP4     IP4("001c", "0000", "11") UDP
#define UDP4_REV IP4_REV("001c", "0000", "11") UDP_REV
#define TCP6     IP6("0014", "06") TCP
#define TCP6_REV IP6_REV("0014", "06") TCP_REV

Test(flow, is_the_same_in_both_directions)
{
	cr_expect_eq(flow_of(ETH_IP4 UDP4, ETHERNET), flow_of(ETH_IP4 UDP4_REV, ETHERNET));
	cr_expect_eq(flow_of(ETH_IP6 TCP6, ETHERNET), flow_of(ETH_IP6 TCP6_REV, ETHERNET));
	cr_expect_eq(flow_of(MACS "88cc 00", ETHERNET), flow_of(MACS_REV "88cc 01", ETHERNET));
}

Test(flow, counts_addresses_ports_and_protocol)
{
	uint32_t flow = flow_of(ETH_IP4 UDP4, ETHERNET);
	cr_expect_neq(flow,
		      flow_of(ETH_IP4 IP4("001c", "0000", "06") UDP "000000005000ffff00000000",
			      ETHERNET));
	cr_expect_neq(flow,
		      flow_of(ETH_IP4 IP4("001c", "0000", "11") "0401 0035 0008 0000", ETHERNET));
	cr_expect_neq(flow, flow_of(ETH_IP4 "4500001c 12340000 40110000 0a000001 0a000003" UDP,
				    ETHERNET));
	/* The ports belong to their addresses: 1:1024 -> 2:53 is not 1:53 -> 2:1024. */
	cr_expect_neq(flow, flow_of(ETH_IP4 IP4("001c", "0000", "11") UDP_REV, ETHERNET));
}

Test(flow, ignores_the_link_layer_of_ip)
{
	uint32_t flow = flow_of(ETH_IP4 UDP4, ETHERNET);
	cr_expect_eq(flow, flow_of("02aa00000001 02bb00000001 0800" UDP4, ETHERNET));
	cr_expect_eq(flow, flow_of(MACS VLAN_7 "0800" UDP4, ETHERNET));
	cr_expect_eq(flow, flow_of(MACS QINQ_9 VLAN_7 "0800" UDP4, ETHERNET));
	cr_expect_eq(flow, flow_of(MACS "8847 0001 0140" UDP4, ETHERNET));
	cr_expect_eq(flow, flow_of(UDP4, RAW));
	/* Another TTL and checksum, as behind a router. */
	cr_expect_eq(flow,
		     flow_of(ETH_IP4 "4500001c 12340000 3f11abcd 0a000001 0a000002" UDP, ETHERNET));
}

Test(flow, keeps_a_fragmented_datagram_together)
{
	uint32_t first = flow_of(ETH_IP4 IP4("001c", "2000", "11") UDP, ETHERNET);
	cr_expect_eq(first, flow_of(ETH_IP4 IP4("0018", "0001", "11") "01020304", ETHERNET));
	cr_expect_neq(first, flow_of(ETH_IP4 UDP4, ETHERNET));

	/* The first one shows that TCP follows its destination options, the second does not. */
	uint32_t first6 = flow_of(
		ETH_IP6 IP6("0024", "2c") "3c000001 00000001 0600010400000000" TCP, ETHERNET);
	cr_expect_eq(first6,
		     flow_of(ETH_IP6 IP6("000c", "2c") "3c000018 00000001 01020304", ETHERNET));
	/* A packet in one fragment is whole. */
	cr_expect_eq(flow_of(ETH_IP6 TCP6, ETHERNET),
		     flow_of(ETH_IP6 IP6("001c", "2c") "06000000 00000001" TCP, ETHERNET));
}

Test(flow, without_ip_is_by_link_addresses_and_type)
{
	uint32_t flow = flow_of(MACS "88cc 00", ETHERNET);
	cr_expect_eq(flow, flow_of(MACS VLAN_7 "88cc 07", ETHERNET));
	cr_expect_neq(flow, flow_of(MACS "88f7 00", ETHERNET));
	cr_expect_neq(flow, flow_of("020000000001 020000000003 88cc 00", ETHERNET));
	cr_expect_eq(flow_of("41", 195), flow_of("4142", 195));
	cr_expect_neq(flow_of("", ETHERNET), 0);
}

Test(flow, is_computed_once)
{
	struct weir_packet packet = packet_of(ETH_IP4 UDP4);
	packet.flow = 42;
	cr_expect_eq(weir_flow(&packet, ETHERNET), 42);
	packet.flow = 0;
	uint32_t flow = weir_flow(&packet, ETHERNET);
	cr_expect_eq(packet.flow, flow);
	packet_free(&packet);
}

/* Pearson's chi-square of counts that should be equal; with 255 degrees of freedom it is above 330
 * once in a thousand good hashes. */
static double chi_square(const unsigned *counts, unsigned bins, double expected)
{
	double sum = 0;
	for (unsigned i = 0; i < bins; i++)
		sum += (counts[i] - expected) * (counts[i] - expected) / expected;
	return sum;
}

/* Neighbouring addresses and ports, as networks have them, fill low and high bits evenly. */
Test(flow, spreads_neighbours_evenly)
{
	enum { FLOWS = 65536, BINS = 256 };
	unsigned low[BINS] = {0}, high[BINS] = {0};
	struct weir_packet packet = packet_of(ETH_IP4 UDP4);
	uint8_t *bytes = (uint8_t *)(uintptr_t)packet.data;

	for (unsigned i = 0; i < FLOWS; i++) {
		bytes[29] = (uint8_t)i;        /* the last byte of the source's address */
		bytes[35] = (uint8_t)(i >> 8); /* and of its port */
		packet.flow = 0;
		uint32_t flow = weir_flow(&packet, ETHERNET);
		low[flow % BINS]++;
		high[flow >> 24]++;
	}
	cr_expect_lt(chi_square(low, BINS, (double)FLOWS / BINS), 330);
	cr_expect_lt(chi_square(high, BINS, (double)FLOWS / BINS), 330);
	packet_free(&packet);
}
