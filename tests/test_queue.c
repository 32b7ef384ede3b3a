/* Rings and their merge: order, room, marks, windows. */
#include "queue.h"

#include <criterion/criterion.h>
#include <glib.h>

#include <string.h>

static unsigned wakes;

static void wake(void *lane)
{
	(void)lane;
	wakes++;
}

static struct weir_ring *ring_new(void)
{
	wakes = 0;
	return weir_ring_new(WEIR_RING_MIN, wake, NULL, NULL);
}

static bool push(struct weir_ring *ring, int64_t ts_ns, uint32_t caplen)
{
	static uint8_t bytes[262144];
	const struct weir_packet packet = {
		.data = bytes, .ts_ns = ts_ns, .caplen = caplen, .wirelen = caplen};

	memset(bytes, (int)ts_ns, caplen);
	return weir_ring_push(ring, &packet);
}

static void merge_of(struct weir_merge *merge, struct weir_ring **rings, unsigned n,
		     int64_t window_ns)
{
	weir_merge_init(merge, n, window_ns);
	memcpy(merge->rings, rings, n * sizeof(*rings));
	merge->n = n;
}

static void free_merge(struct weir_merge *merge)
{
	for (unsigned i = 0; i < merge->n; i++)
		weir_ring_free(merge->rings[i]);
	g_free(merge->rings);
}

static int take(struct weir_merge *merge, struct weir_packet *packets, int64_t now_ns)
{
	int64_t mark_ns;

	return weir_merge_take(merge, packets, WEIR_BATCH, now_ns, &mark_ns);
}

Test(queue, packets_come_out_as_they_went_in)
{
	struct weir_ring *ring = ring_new();
	struct weir_packet packets[WEIR_BATCH];
	struct weir_merge merge;
	unsigned seed = 1;

	merge_of(&merge, &ring, 1, INT64_MAX);
	for (int64_t ts = 0; ts < 20000; ts += 3) {
		uint32_t lengths[3];

		for (unsigned i = 0; i < 3; i++) {
			seed = seed * 1103515245u + 12345u;
			lengths[i] = seed >> 16;
			cr_assert(push(ring, ts + i, lengths[i]));
		}
		cr_assert_eq(take(&merge, packets, 0), 3);
		for (unsigned i = 0; i < 3; i++) {
			cr_assert_eq(packets[i].ts_ns, ts + i);
			cr_assert_eq(packets[i].caplen, lengths[i]);
			for (uint32_t b = 0; b < lengths[i]; b++)
				cr_assert_eq(packets[i].data[b], (uint8_t)(ts + i));
		}
	}
	free_merge(&merge);
}

Test(queue, a_full_ring_refuses_and_the_next_take_makes_room)
{
	struct weir_ring *ring = ring_new();
	struct weir_packet packets[WEIR_BATCH];
	struct weir_merge merge;
	int pushed = 0;

	merge_of(&merge, &ring, 1, INT64_MAX);
	while (push(ring, pushed, 10000))
		pushed++;
	cr_assert_gt(pushed, 60);
	weir_ring_await_room(ring);
	cr_assert_eq(take(&merge, packets, 0), pushed);
	cr_assert_not(push(ring, pushed, 10000), "what was handed out is still in use");
	cr_assert_eq(take(&merge, packets, 0), 0);
	cr_assert_eq(wakes, 1, "the producer waited");
	cr_assert(push(ring, pushed, 10000));
	free_merge(&merge);
}

Test(queue, the_largest_packet_fits_at_any_place)
{
	struct weir_ring *ring = ring_new();
	struct weir_packet packets[WEIR_BATCH];
	struct weir_merge merge;

	merge_of(&merge, &ring, 1, INT64_MAX);
	for (uint32_t caplen = 1; caplen < 262144; caplen += 9973) {
		cr_assert(push(ring, 1, caplen));
		cr_assert_eq(take(&merge, packets, 0), 1);
		cr_assert_eq(take(&merge, packets, 0), 0);
		cr_assert(push(ring, 1, 262144));
		cr_assert_eq(take(&merge, packets, 0), 1);
		cr_assert_eq(packets[0].caplen, 262144);
		cr_assert_eq(take(&merge, packets, 0), 0);
	}
	free_merge(&merge);
}

Test(queue, the_earliest_goes_first_once_no_ring_can_bring_an_older_one)
{
	struct weir_ring *rings[2] = {ring_new(), ring_new()};
	struct weir_packet packets[WEIR_BATCH];
	struct weir_merge merge;

	merge_of(&merge, rings, 2, INT64_MAX);
	push(rings[0], 10, 1);
	push(rings[0], 30, 1);
	cr_assert_eq(take(&merge, packets, 0), 0, "the other ring may bring an older one");
	weir_ring_mark(rings[1], 9, false);
	cr_assert_eq(take(&merge, packets, 0), 0);
	weir_ring_mark(rings[1], 10, false);
	cr_assert_eq(take(&merge, packets, 0), 1);
	push(rings[1], 20, 1);
	cr_assert_eq(take(&merge, packets, 0), 1);
	cr_assert_eq(packets[0].ts_ns, 20);
	weir_ring_mark(rings[1], 20, true);
	cr_assert_eq(take(&merge, packets, 0), 1);
	cr_assert_eq(packets[0].ts_ns, 30);
	cr_assert_eq(take(&merge, packets, 0), 0);
	weir_ring_mark(rings[0], 30, true);
	cr_assert_eq(take(&merge, packets, 0), WEIR_END);
	cr_assert_eq(merge.late, 0);
	free_merge(&merge);
}

Test(queue, a_silent_ring_is_waited_for_no_longer_than_the_window_and_then_is_late)
{
	struct weir_ring *rings[2] = {ring_new(), ring_new()};
	struct weir_packet packets[WEIR_BATCH];
	struct weir_merge merge;

	merge_of(&merge, rings, 2, 1000);
	push(rings[0], 10, 1);
	cr_assert_eq(take(&merge, packets, 5000), 0);
	cr_assert_eq(take(&merge, packets, 5999), 0);
	cr_assert_eq(take(&merge, packets, 6000), 1);
	push(rings[1], 5, 1);
	push(rings[1], 20, 1);
	push(rings[0], 30, 1);
	cr_assert_eq(take(&merge, packets, 6001), 2);
	cr_assert_eq(packets[0].ts_ns, 5);
	cr_assert_eq(merge.late, 1);
	cr_assert_eq(take(&merge, packets, 6002), 0, "a new wait, a new window");
	cr_assert_eq(take(&merge, packets, 7100), 1);
	free_merge(&merge);
}

Test(queue, a_sleeper_is_woken_once)
{
	struct weir_ring *ring = ring_new();
	struct weir_packet packets[WEIR_BATCH];
	struct weir_merge merge;

	merge_of(&merge, &ring, 1, INT64_MAX);
	weir_ring_mark(ring, 1, false);
	cr_assert_eq(wakes, 0, "nobody sleeps");
	weir_merge_await(&merge);
	push(ring, 2, 1);
	weir_ring_mark(ring, 2, false);
	weir_ring_mark(ring, 3, false);
	cr_assert_eq(wakes, 1);
	cr_assert_eq(take(&merge, packets, 0), 1);
	free_merge(&merge);
}

Test(queue, a_mark_at_the_end_of_time_is_not_the_end)
{
	struct weir_ring *ring = ring_new();
	struct weir_packet packets[WEIR_BATCH];
	struct weir_merge merge;

	merge_of(&merge, &ring, 1, INT64_MAX);
	push(ring, INT64_MAX, 1);
	weir_ring_mark(ring, INT64_MAX, false);
	cr_assert_eq(take(&merge, packets, 0), 1);
	cr_assert_eq(take(&merge, packets, 0), 0);
	push(ring, INT64_MAX, 1);
	weir_ring_mark(ring, INT64_MAX, true);
	cr_assert_eq(take(&merge, packets, 0), 1);
	cr_assert_eq(take(&merge, packets, 0), WEIR_END);
	free_merge(&merge);
}
