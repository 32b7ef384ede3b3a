/*
 * xsk_loop.c: writes what comes to the first queue of an interface to a capture file, by a loop as
 * the examples of libxdp have it: its own XDP program, rings of its default size, poll() whenever
 * the ring is empty.
 *
 *   xsk_loop INTERFACE FILE
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <xdp/xsk.h>

#define FRAMES XSK_RING_PROD__DEFAULT_NUM_DESCS
#define BYTES  ((size_t)FRAMES * XSK_UMEM__DEFAULT_FRAME_SIZE)
#define BATCH  64u

struct loop {
	uint8_t *area;
	struct xsk_umem *umem;
	struct xsk_socket *socket;
	struct xsk_ring_prod fill;
	struct xsk_ring_cons completion, rx;
	FILE *file;
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static int open_loop(struct loop *loop, const char *interface)
{
	struct xsk_socket_config config = {.rx_size = XSK_RING_CONS__DEFAULT_NUM_DESCS};
	uint32_t at = 0;
	int failure = xsk_umem__create(&loop->umem, loop->area, BYTES, &loop->fill,
				       &loop->completion, NULL);

	if (!failure)
		failure = xsk_socket__create(&loop->socket, interface, 0, loop->umem, &loop->rx,
					     NULL, &config);
	if (failure)
		return failure;
	xsk_ring_prod__reserve(&loop->fill, FRAMES, &at);
	for (uint32_t i = 0; i < FRAMES; i++)
		*xsk_ring_prod__fill_addr(&loop->fill, at + i) = (uint64_t)i *
								 XSK_UMEM__DEFAULT_FRAME_SIZE;
	xsk_ring_prod__submit(&loop->fill, FRAMES);
	return 0;
}

static void write_header(FILE *file)
{
	const uint32_t header[] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 262144, 1};
	fwrite(header, sizeof(header), 1, file);
}

static void write_frame(struct loop *loop, const struct xdp_desc *frame)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	const uint32_t header[] = {(uint32_t)now.tv_sec, (uint32_t)now.tv_nsec, frame->len,
				   frame->len};
	fwrite(header, sizeof(header), 1, loop->file);
	fwrite(xsk_umem__get_data(loop->area, frame->addr), frame->len, 1, loop->file);
}

static uint32_t take(struct loop *loop)
{
	uint32_t from = 0, to = 0, n = xsk_ring_cons__peek(&loop->rx, BATCH, &from);

	if (n == 0)
		return 0;
	xsk_ring_prod__reserve(&loop->fill, n, &to);
	for (uint32_t i = 0; i < n; i++) {
		const struct xdp_desc *frame = xsk_ring_cons__rx_desc(&loop->rx, from + i);
		write_frame(loop, frame);
		*xsk_ring_prod__fill_addr(&loop->fill, to + i) = frame->addr;
	}
	xsk_ring_prod__submit(&loop->fill, n);
	xsk_ring_cons__release(&loop->rx, n);
	return n;
}

int main(int argc, char **argv)
{
	struct loop loop = {0};
	int failure;

	if (argc != 3) {
		fputs("xsk_loop INTERFACE FILE\n", stderr);
		return 2;
	}
	loop.file = fopen(argv[2], "w");
	loop.area = aligned_alloc(XSK_UMEM__DEFAULT_FRAME_SIZE, BYTES);
	failure = loop.file && loop.area ? open_loop(&loop, argv[1]) : -1;
	if (failure) {
		fprintf(stderr, "xsk_loop: %d\n", failure);
		return 1;
	}
	signal(SIGINT, on_signal);
	write_header(loop.file);
	fputs("running\n", stderr);
	struct pollfd fd = {.fd = xsk_socket__fd(loop.socket), .events = POLLIN};
	while (!stopped) {
		if (!take(&loop))
			poll(&fd, 1, 100);
	}
	fclose(loop.file);
	xsk_socket__delete(loop.socket);
	xsk_umem__delete(loop.umem);
	return 0;
}
