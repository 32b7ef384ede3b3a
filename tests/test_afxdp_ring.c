/*
 * Descriptors are put into a ring as the kernel does it; what is walked, put together and given
 * back must be the frames.
 */
#include "../plugins/afxdp/queues.c"
#include "../plugins/afxdp/ring.c"

#include <criterion/criterion.h>

#define CHUNKS      2048u
#define CHUNK_BYTES 2048u

struct kernel {
	struct ring ring;
	struct xdp_desc descs[CHUNKS];
	uint64_t addrs[CHUNKS];
	uint32_t rx_producer, rx_consumer, fill_producer, fill_consumer, flags;
	uint32_t next_chunk;
};

static const struct ring_view by_stamp = {.stamped = true, .ahead_ns = 1000, .iface = 7};

static struct kernel *kernel_new(void)
{
	struct kernel *kernel = calloc(1, sizeof(*kernel));
	struct ring *ring = &kernel->ring;

	ring->queue = 3;
	ring->socket = (void *)kernel; /* never looked into */
	ring->joined = malloc(JOINED_BYTES);
	ring->umem.area = calloc(CHUNKS, CHUNK_BYTES);
	ring->umem.fill = (struct xsk_ring_prod){.cached_cons = CHUNKS,
						 .mask = CHUNKS - 1,
						 .size = CHUNKS,
						 .producer = &kernel->fill_producer,
						 .consumer = &kernel->fill_consumer,
						 .ring = kernel->addrs,
						 .flags = &kernel->flags};
	ring->rx = (struct xsk_ring_cons){.mask = CHUNKS - 1,
					  .size = CHUNKS,
					  .producer = &kernel->rx_producer,
					  .consumer = &kernel->rx_consumer,
					  .ring = kernel->descs,
					  .flags = &kernel->flags};
	return kernel;
}

static void kernel_free(struct kernel *kernel)
{
	free(kernel->ring.joined);
	free(kernel->ring.umem.area);
	free(kernel);
}

/* A piece of a frame, of bytes of one value, stamped if it is the first. */
static void put(struct kernel *kernel, uint32_t len, uint8_t value, bool more, uint64_t stamp)
{
	uint64_t addr = (uint64_t)kernel->next_chunk++ % CHUNKS * CHUNK_BYTES + 256;
	uint8_t *data = kernel->ring.umem.area + addr;

	memcpy(data - sizeof(stamp), &stamp, sizeof(stamp));
	memset(data, value, len);
	kernel->descs[kernel->rx_producer++ % CHUNKS] = (struct xdp_desc){
		.addr = addr, .len = len, .options = more ? XDP_PKT_CONTD : 0};
}

Test(ring, frames_of_one_chunk_lie_where_they_are)
{
	struct kernel *kernel = kernel_new();
	struct weir_packet packets[WEIR_BATCH];

	put(kernel, 60, 1, false, 100);
	put(kernel, 1514, 2, false, 200);
	cr_assert_eq(ring_walk(&kernel->ring, packets, WEIR_BATCH, &by_stamp), 2);
	cr_expect_eq(packets[0].data, kernel->ring.umem.area + 256);
	cr_expect_eq(packets[0].caplen, 60);
	cr_expect_eq(packets[0].ts_ns, 1100);
	cr_expect_eq(packets[1].wirelen, 1514);
	cr_expect_eq(packets[1].ts_ns, 1200);
	cr_expect_eq(packets[1].queue, 3);
	cr_expect_eq(packets[1].iface, 7);
	cr_expect_eq(packets[1].flags, WEIR_F_IN);
	kernel_free(kernel);
}

Test(ring, without_stamps_a_packet_has_the_time_of_reading)
{
	const struct ring_view view = {.now_ns = 5};
	struct kernel *kernel = kernel_new();
	struct weir_packet packet;

	put(kernel, 60, 1, false, 100);
	cr_assert_eq(ring_walk(&kernel->ring, &packet, 1, &view), 1);
	cr_expect_eq(packet.ts_ns, 5);
	kernel_free(kernel);
}

Test(ring, pieces_are_put_together)
{
	struct kernel *kernel = kernel_new();
	struct weir_packet packets[2];

	put(kernel, 1792, 1, true, 100);
	put(kernel, 1792, 2, true, 0);
	put(kernel, 10, 3, false, 0);
	put(kernel, 60, 4, false, 200);
	cr_assert_eq(ring_walk(&kernel->ring, packets, 2, &by_stamp), 2);
	cr_expect_eq(packets[0].caplen, 3594);
	cr_expect_eq(packets[0].wirelen, 3594);
	cr_expect_eq(packets[0].ts_ns, 1100);
	cr_expect_eq(packets[0].data[1791], 1);
	cr_expect_eq(packets[0].data[1792], 2);
	cr_expect_eq(packets[0].data[3593], 3);
	cr_expect_eq(packets[1].data[0], 4);
	cr_expect_eq(kernel->ring.joins, 1);
	kernel_free(kernel);
}

Test(ring, a_frame_whose_end_is_missing_waits)
{
	struct kernel *kernel = kernel_new();
	struct weir_packet packets[2];

	put(kernel, 60, 1, false, 100);
	put(kernel, 1792, 2, true, 200);
	cr_assert_eq(ring_walk(&kernel->ring, packets, 2, &by_stamp), 1);
	ring_give_back(&kernel->ring);
	cr_expect_eq(kernel->rx_consumer, 1);
	cr_assert_eq(ring_walk(&kernel->ring, packets, 2, &by_stamp), 0);
	put(kernel, 5, 3, false, 0);
	ring_give_back(&kernel->ring);
	cr_assert_eq(ring_walk(&kernel->ring, packets, 2, &by_stamp), 1);
	cr_expect_eq(packets[0].wirelen, 1797);
	kernel_free(kernel);
}

Test(ring, what_was_walked_is_given_back_and_nothing_else)
{
	struct kernel *kernel = kernel_new();
	struct weir_packet packets[2];

	for (uint8_t i = 0; i < 5; i++)
		put(kernel, 60, i, false, i);
	cr_assert_eq(ring_walk(&kernel->ring, packets, 2, &by_stamp), 2);
	cr_expect_eq(kernel->rx_consumer, 0, "given back while it is looked at");
	ring_give_back(&kernel->ring);
	ring_give_back(&kernel->ring);
	cr_expect_eq(kernel->rx_consumer, 2);
	cr_expect_eq(kernel->fill_producer, 2);
	cr_expect_eq(kernel->addrs[1] / CHUNK_BYTES, 1);
	cr_assert_eq(ring_walk(&kernel->ring, packets, 2, &by_stamp), 2);
	cr_expect_eq(packets[0].data[0], 2);
	kernel_free(kernel);
}

/* Of 256 KiB and more, as no interface hands over: cut, and never beyond the memory for them. */
Test(ring, frames_that_are_too_large_are_cut)
{
	struct kernel *kernel = kernel_new();
	struct weir_packet packets[WEIR_BATCH];
	unsigned walked = 0;

	for (unsigned frame = 0; frame < 6; frame++) {
		for (unsigned i = 0; i < 160; i++)
			put(kernel, 1792, (uint8_t)frame, i < 159, frame);
	}
	for (unsigned turn = 0; turn < 10; turn++) {
		unsigned n = ring_walk(&kernel->ring, packets, WEIR_BATCH, &by_stamp);
		for (unsigned i = 0; i < n; i++) {
			cr_expect_eq(packets[i].caplen, 262144);
			cr_expect_eq(packets[i].wirelen, 160 * 1792);
			cr_expect_eq(packets[i].data[262143], walked + i);
			cr_expect_leq(packets[i].data + 262144, kernel->ring.joined + JOINED_BYTES);
		}
		walked += n;
		ring_give_back(&kernel->ring);
	}
	cr_expect_eq(walked, 6);
	kernel_free(kernel);
}

/* ---- queues= ---- */

static const char *choose(const char *const *words, struct queues *ret)
{
	return queues_choose(words, 4, ret);
}

Test(queues, are_all_or_those_that_are_named)
{
	struct queues queues;

	cr_expect_null(choose((const char *const[]){"all", NULL}, &queues));
	cr_expect_eq(queues.count, 4);
	cr_expect_null(choose((const char *const[]){"7", "2-4", NULL}, &queues));
	cr_expect_eq(queues.count, 4);
	cr_expect_eq(queues.numbers[0], 7);
	cr_expect_eq(queues.numbers[3], 4);
}

Test(queues, are_refused)
{
	static const char *const wrong[] = {"",   "x",   "-1",  "1-",  "3-2",         "1-2-3",
					    " 1", "all", "0x1", "1,2", "0-4294967295"};
	struct queues queues;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect_not_null(choose((const char *const[]){"0", wrong[i], NULL}, &queues),
				   "'%s'", wrong[i]);
	cr_expect_not_null(choose((const char *const[]){"0-1", "1", NULL}, &queues));
	cr_expect_not_null(choose((const char *const[]){NULL}, &queues));
	cr_expect_not_null(choose(NULL, &queues));
}
