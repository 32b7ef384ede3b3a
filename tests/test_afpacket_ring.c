/*
 * A ring of memory in the kernel's layout (linux/if_packet.h), filled by hand: walking, giving
 * back, and the end of a run.
 */
#include "../plugins/afpacket/ring.c"

#include <criterion/criterion.h>
#include <stdlib.h>

#define BLOCK_BYTES 4096u
#define BLOCKS      3u
#define FRAME_BYTES 256u
#define MAC_OFFSET  96u

static _Alignas(64) uint8_t memory[BLOCKS * BLOCK_BYTES];

static struct ring new_ring(void)
{
	memset(memory, 0, sizeof(memory));
	return (struct ring){
		.fd = -1,
		.map = memory,
		.geometry = {.block_bytes = BLOCK_BYTES,
			     .block_count = BLOCKS,
			     .retire_ns = 20000000},
		.iface = 7,
		.seq = 1,
	};
}

static struct tpacket_hdr_v1 *block_header(unsigned block)
{
	return &((struct tpacket_block_desc *)(void *)(memory + block * BLOCK_BYTES))->hdr.bh1;
}

static struct tpacket3_hdr *frame_header(unsigned block, unsigned i)
{
	return (void *)(memory + block * BLOCK_BYTES + 48 + i * FRAME_BYTES);
}

/* Packets are stamped first_ns, first_ns + 1 … */
static void fill_block(unsigned block, uint64_t seq, unsigned packets, unsigned first_ns)
{
	struct tpacket_hdr_v1 *header = block_header(block);

	header->seq_num = seq;
	header->num_pkts = packets;
	header->offset_to_first_pkt = 48;
	for (unsigned i = 0; i < packets; i++) {
		struct tpacket3_hdr *frame = frame_header(block, i);
		*frame = (struct tpacket3_hdr){
			.tp_next_offset = FRAME_BYTES,
			.tp_sec = 1,
			.tp_nsec = first_ns + i,
			.tp_snaplen = 60,
			.tp_len = 60,
			.tp_mac = MAC_OFFSET,
		};
	}
}

static void close_block(unsigned block, uint32_t status)
{
	block_header(block)->block_status = TP_STATUS_USER | status;
}

static unsigned walk(struct ring *ring, struct weir_packet *packets, unsigned max)
{
	struct ring_walked walked = {0};

	memset(packets, 0, max * sizeof(*packets));
	return ring_walk(ring, packets, max, INT64_MAX, &walked);
}

Test(ring, block_goes_back_when_it_is_used_up)
{
	struct ring ring = new_ring();
	struct weir_packet packets[8];

	cr_expect_not(ring_advance(&ring));
	fill_block(0, 1, 3, 100);
	close_block(0, 0);
	cr_assert(ring_advance(&ring));
	cr_expect_eq(walk(&ring, packets, 2), 2);
	cr_expect_eq(packets[1].ts_ns, 1000000101);
	cr_expect_eq(packets[1].iface, 7);
	cr_assert(ring_advance(&ring));
	cr_expect_eq(walk(&ring, packets, 8), 1);
	cr_expect_eq(packets[0].data, (uint8_t *)frame_header(0, 2) + MAC_OFFSET);
	cr_expect_eq(block_header(0)->block_status, (uint32_t)TP_STATUS_USER,
		     "packets are borrowed");
	cr_expect_not(ring_advance(&ring));
	cr_expect_eq(block_header(0)->block_status, (uint32_t)TP_STATUS_KERNEL);
}

Test(ring, goes_round)
{
	struct ring ring = new_ring();
	struct weir_packet packets[8];

	for (unsigned i = 0; i < 7; i++) {
		fill_block(i % BLOCKS, i + 1, 1, i);
		close_block(i % BLOCKS, 0);
		cr_assert(ring_advance(&ring));
		cr_assert_eq(walk(&ring, packets, 8), 1);
		cr_assert_eq(packets[0].ts_ns, 1000000000 + i);
	}
}

Test(ring, walks_until_a_time)
{
	struct ring ring = new_ring();
	struct weir_packet packets[8] = {0};
	struct ring_walked walked = {0};

	fill_block(0, 1, 5, 100);
	close_block(0, 0);
	cr_assert(ring_advance(&ring));
	cr_expect_eq(ring_walk(&ring, packets, 8, 1000000102, &walked), 3);
	cr_expect_eq(ring_next_ns(&ring), 1000000103);
}

Test(ring, flags_and_lengths)
{
	struct ring ring = new_ring();
	struct weir_packet packets[8] = {0};
	struct ring_walked walked = {0};

	fill_block(0, 1, 3, 0);
	frame_header(0, 0)->tp_status = TP_STATUS_CSUMNOTREADY;
	struct sockaddr_ll *address = (void *)((uint8_t *)frame_header(0, 0) + 48);
	address->sll_pkttype = PACKET_OUTGOING;
	frame_header(0, 1)->tp_status = TP_STATUS_CSUM_VALID;
	((struct sockaddr_ll *)(void *)((uint8_t *)frame_header(0, 1) + 48))->sll_pkttype = 0;
	frame_header(0, 2)->tp_status = TP_STATUS_VLAN_VALID;
	frame_header(0, 2)->tp_len = 1514;
	close_block(0, 0);
	cr_assert(ring_advance(&ring));
	cr_assert_eq(ring_walk(&ring, packets, 8, INT64_MAX, &walked), 3);
	cr_expect_eq(packets[0].flags, WEIR_F_OUT | WEIR_F_CSUM_PARTIAL);
	cr_expect_eq(packets[1].flags, WEIR_F_IN | WEIR_F_CSUM_GOOD);
	cr_expect_eq(packets[2].caplen, 64);
	cr_expect_eq(packets[2].wirelen, 1518);
	cr_expect_eq(packets[2].data[12], 0x81);
	cr_expect_eq(walked.cut, 1);
	cr_expect_eq(walked.tags, 1);
}

Test(ring, clock_of_each_packet)
{
	struct ring ring = new_ring();
	struct weir_packet packets[8] = {0};

	fill_block(0, 1, 2, 0);
	frame_header(0, 0)->tp_status = TP_STATUS_TS_RAW_HARDWARE;
	frame_header(0, 1)->tp_status = TP_STATUS_TS_SOFTWARE;
	close_block(0, 0);
	cr_assert(ring_advance(&ring));
	cr_assert_eq(walk(&ring, packets, 8), 2);
	cr_expect(packets[0].flags & WEIR_F_HW_TIME);
	cr_expect_not(packets[1].flags & WEIR_F_HW_TIME);
}

/* The stamps here are of 1970, by half a century behind. */
Test(ring, bound_by_a_foreign_clock)
{
	struct ring ring = new_ring();
	struct weir_packet packets[8];
	struct timespec now;

	ring.foreign_clock = true;
	ring.behind_ns = INT64_MIN;
	cr_expect_eq(ring_bound_ns(&ring, 5000000000), INT64_MIN, "no packet has come yet");
	fill_block(0, 1, 2, 100);
	block_header(0)->ts_last_pkt.ts_sec = 1;
	block_header(0)->ts_last_pkt.ts_nsec = 101;
	close_block(0, 0);
	cr_assert(ring_advance(&ring));
	cr_expect_eq(walk(&ring, packets, 8), 2);
	cr_expect_not(ring_advance(&ring));
	clock_gettime(CLOCK_REALTIME, &now);
	int64_t bound = ring_bound_ns(&ring, now.tv_sec * NS_PER_S + now.tv_nsec);
	cr_expect_gt(bound, 1000000101 - IN_FLIGHT_NS - 1);
	cr_expect_lt(bound, 61000000000, "%lld", (long long)bound);
}

Test(ring, is_empty_once_the_open_block_is)
{
	struct ring ring = new_ring();
	struct weir_packet packets[8];

	cr_expect(ring_is_empty(&ring));
	fill_block(0, 1, 1, 0);
	cr_expect_not(ring_is_empty(&ring), "in the open block");
	close_block(0, 0);
	cr_expect_not(ring_is_empty(&ring), "in a closed one");
	cr_assert(ring_advance(&ring));
	cr_expect_eq(walk(&ring, packets, 8), 1);
	cr_expect_not(ring_is_empty(&ring), "still lent");
	cr_expect_not(ring_advance(&ring));
	cr_expect(ring_is_empty(&ring));
}

Test(ring, drain_takes_closed_blocks_then_the_open_one)
{
	struct ring ring = new_ring();
	struct weir_packet packets[8];

	fill_block(0, 1, 2, 0);
	close_block(0, 0);
	fill_block(1, 2, 3, 10);
	cr_assert(ring_drain(&ring));
	cr_expect_eq(walk(&ring, packets, 8), 2);
	cr_assert(ring_drain(&ring));
	cr_expect_eq(walk(&ring, packets, 2), 2);
	cr_assert(ring_drain(&ring));
	/* The retire timer closes it meanwhile. */
	close_block(1, TP_STATUS_BLK_TMO);
	cr_expect_eq(walk(&ring, packets, 8), 1);
	cr_expect_eq(packets[0].ts_ns, 1000000012);
	cr_expect_not(ring_drain(&ring));
	cr_expect(ring.drained);
}

Test(ring, drain_leaves_a_stale_block)
{
	struct ring ring = new_ring();
	struct weir_packet packets[8];

	fill_block(0, 4, 2, 0);
	close_block(0, 0);
	fill_block(1, 2, 3, 10); /* of the round before */
	cr_assert(ring_drain(&ring));
	cr_expect_eq(walk(&ring, packets, 8), 2);
	cr_expect_not(ring_drain(&ring));
	cr_expect(ring.drained);
}

Test(ring, bound)
{
	struct ring ring = new_ring();
	struct weir_packet packets[8];
	const int64_t now = 5000000000;

	cr_expect_eq(ring_bound_ns(&ring, now), now - IN_FLIGHT_NS, "nothing is under way");
	fill_block(0, 1, 2, 100);
	cr_expect_eq(ring_bound_ns(&ring, now), now - IN_FLIGHT_NS - 40000000,
		     "something waits in the open block");
	close_block(0, 0);
	cr_assert(ring_advance(&ring));
	cr_expect_eq(ring_bound_ns(&ring, now), 1000000100 - STEP_BACK_NS);
	cr_expect_eq(walk(&ring, packets, 8), 2);
	cr_expect_eq(ring_bound_ns(&ring, now), 1000000101 - STEP_BACK_NS);
}
