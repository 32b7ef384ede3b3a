/* The ring of the inject sink: order, wrapping, room, and a writer and a reader at once. */
#include "../plugins/inject/ring.c"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

#define SIZE   4096u
#define FRAMES 20000u

static bool put(struct ring *ring, uint32_t len, uint8_t value)
{
	uint8_t *frame = ring_reserve(ring, len);

	if (frame)
		memset(frame, value, len);
	return frame != NULL;
}

Test(inject_ring, frames_come_out_as_they_went_in)
{
	struct ring_frame frames[4];
	struct ring ring;

	cr_assert(ring_new(&ring, SIZE));
	cr_assert(put(&ring, 60, 1) && put(&ring, 1, 2) && put(&ring, 0, 3));
	cr_expect_eq(ring_peek(&ring, frames, 4), 0, "nothing was published");
	ring_publish(&ring);
	cr_expect_eq(ring_peek(&ring, frames, 2), 2, "no more than asked for");
	cr_assert_eq(ring_peek(&ring, frames, 4), 3);
	cr_expect_eq(frames[0].len, 60);
	cr_expect_eq(frames[0].bytes[59], 1);
	cr_expect_eq(frames[1].bytes[0], 2);
	cr_expect_eq(frames[2].len, 0);
	ring_release(&ring, &frames[1]);
	cr_assert_eq(ring_peek(&ring, frames, 4), 1);
	cr_expect_not(ring_is_empty(&ring));
	ring_release(&ring, &frames[0]);
	cr_expect(ring_is_empty(&ring));
	ring_free(&ring);
}

Test(inject_ring, a_full_ring_takes_no_more_until_something_is_released)
{
	struct ring_frame frames[64];
	struct ring ring;
	unsigned stored = 0;

	cr_assert(ring_new(&ring, SIZE));
	while (put(&ring, 252, (uint8_t)stored))
		stored++;
	cr_expect_eq(stored, SIZE / 256);
	ring_publish(&ring);
	cr_assert_eq(ring_peek(&ring, frames, 64), stored);
	ring_release(&ring, &frames[0]);
	cr_expect(put(&ring, 252, 0));
	cr_expect_not(put(&ring, 1, 0));
	ring_free(&ring);
}

Test(inject_ring, a_frame_that_does_not_fit_before_the_end_goes_to_the_start)
{
	struct ring_frame frames[2];
	struct ring ring;

	cr_assert(ring_new(&ring, SIZE));
	for (unsigned turn = 0; turn < 1000; turn++) {
		uint32_t len = 1 + turn * 37 % 1500;

		cr_assert(put(&ring, len, (uint8_t)turn));
		ring_publish(&ring);
		cr_assert_eq(ring_peek(&ring, frames, 2), 1);
		cr_assert_eq(frames[0].len, len);
		cr_assert(frames[0].bytes >= ring.bytes &&
			  frames[0].bytes + len <= ring.bytes + SIZE);
		cr_assert_eq(frames[0].bytes[len - 1], (uint8_t)turn);
		ring_release(&ring, &frames[0]);
	}
	ring_free(&ring);
}

Test(inject_ring, size_is_rounded_down)
{
	struct ring ring;

	cr_assert(ring_new(&ring, 3 * SIZE - 1));
	cr_expect_eq(ring.size, 2 * SIZE);
	ring_free(&ring);
}

static void *write_all(void *user)
{
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint8_t *frame;

		while (!(frame = ring_reserve(user, 4 + i % 300)))
			sched_yield();
		memcpy(frame, &i, sizeof(i));
		ring_publish(user);
	}
	return NULL;
}

Test(inject_ring, two_threads)
{
	struct ring_frame frames[16];
	struct ring ring;
	pthread_t writer;
	uint32_t number;

	cr_assert(ring_new(&ring, SIZE));
	cr_assert_eq(pthread_create(&writer, NULL, write_all, &ring), 0);
	for (uint32_t i = 0; i < FRAMES;) {
		unsigned n = ring_peek(&ring, frames, 16);

		for (unsigned k = 0; k < n; k++, i++) {
			memcpy(&number, frames[k].bytes, sizeof(number));
			cr_assert_eq(number, i);
			cr_assert_eq(frames[k].len, 4 + i % 300);
		}
		if (n > 0)
			ring_release(&ring, &frames[n - 1]);
		else
			sched_yield();
	}
	pthread_join(writer, NULL);
	cr_expect(ring_is_empty(&ring));
	ring_free(&ring);
}
