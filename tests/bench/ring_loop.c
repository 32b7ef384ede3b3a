/*
 * ring_loop.c: what a capture costs at least: one loop that copies each frame out of a TPACKET_V3
 * ring into one of two blocks, and writes these past the page cache.  It counts nothing, and waits
 * for the disk.
 *
 *   ring_loop INTERFACE FILE MEBIBYTES
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING_BLOCK_BYTES (1u << 20) /* as in Weir, and the next too */
#define FILE_BLOCK_BYTES (4u << 20)

struct loop {
	int fd, file;
	uint8_t *ring;
	unsigned n_blocks, at;
	uint8_t *blocks[2];
	unsigned filling;
	size_t fill;
	uint64_t written;
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static int open_ring(struct loop *loop, const char *interface)
{
	int version = TPACKET_V3;
	struct tpacket_req3 request = {.tp_block_size = RING_BLOCK_BYTES,
				       .tp_block_nr = loop->n_blocks,
				       .tp_frame_size = RING_BLOCK_BYTES,
				       .tp_frame_nr = loop->n_blocks,
				       .tp_retire_blk_tov = 20};
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
				      .sll_protocol = htons(ETH_P_ALL),
				      .sll_ifindex = (int)if_nametoindex(interface)};

	loop->fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (loop->fd < 0 ||
	    setsockopt(loop->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(loop->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)))
		return -1;
	loop->ring = mmap(NULL, (size_t)loop->n_blocks * RING_BLOCK_BYTES, PROT_READ | PROT_WRITE,
			  MAP_SHARED, loop->fd, 0);
	if (loop->ring == MAP_FAILED)
		return -1;
	return bind(loop->fd, (struct sockaddr *)&address, sizeof(address));
}

static void append(struct loop *loop, const void *bytes, size_t len)
{
	memcpy(loop->blocks[loop->filling] + loop->fill, bytes, len);
	loop->fill += len;
}

static void write_block(struct loop *loop)
{
	if (pwrite(loop->file, loop->blocks[loop->filling], loop->fill, (off_t)loop->written) !=
	    (ssize_t)loop->fill) {
		perror("ring_loop: pwrite");
		exit(1);
	}
	loop->written += loop->fill;
	loop->filling ^= 1;
	loop->fill = 0;
}

/* One that is cut by the end of a block goes on in the next. */
static void put(struct loop *loop, const uint8_t *bytes, size_t len)
{
	size_t room = FILE_BLOCK_BYTES - loop->fill;
	size_t head = len < room ? len : room;

	append(loop, bytes, head);
	if (head < room)
		return;
	write_block(loop);
	append(loop, bytes + head, len - head);
}

static void put_frame(struct loop *loop, const struct tpacket3_hdr *frame)
{
	const uint32_t header[] = {frame->tp_sec, frame->tp_nsec, frame->tp_snaplen, frame->tp_len};

	put(loop, (const uint8_t *)header, sizeof(header));
	put(loop, (const uint8_t *)frame + frame->tp_mac, frame->tp_snaplen);
}

/* 0: the kernel has it still. */
static int take_block(struct loop *loop)
{
	struct tpacket_block_desc *block = (void *)(loop->ring +
						    (size_t)loop->at * RING_BLOCK_BYTES);
	struct tpacket_hdr_v1 *head = &block->hdr.bh1;
	const uint8_t *frame = (const uint8_t *)block + head->offset_to_first_pkt;

	if (!(__atomic_load_n(&head->block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
		return 0;
	for (uint32_t i = 0; i < head->num_pkts; i++) {
		put_frame(loop, (const void *)frame);
		frame += ((const struct tpacket3_hdr *)(const void *)frame)->tp_next_offset;
	}
	__atomic_store_n(&head->block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	loop->at = (loop->at + 1) % loop->n_blocks;
	return 1;
}

int main(int argc, char **argv)
{
	const uint32_t header[] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 262144, 1};
	struct loop loop = {.n_blocks = argc == 4 ? (unsigned)atoi(argv[3]) : 0};

	if (loop.n_blocks < 2) {
		fputs("ring_loop INTERFACE FILE MEBIBYTES\n", stderr);
		return 2;
	}
	loop.file = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0600);
	for (unsigned i = 0; i < 2; i++)
		loop.blocks[i] = aligned_alloc(FILE_BLOCK_BYTES, FILE_BLOCK_BYTES);
	if (loop.file < 0 || !loop.blocks[0] || !loop.blocks[1] || open_ring(&loop, argv[1])) {
		perror("ring_loop");
		return 1;
	}
	signal(SIGINT, on_signal);
	put(&loop, (const uint8_t *)header, sizeof(header));
	fputs("running\n", stderr);
	struct pollfd fd = {.fd = loop.fd, .events = POLLIN};
	while (!stopped) {
		if (!take_block(&loop))
			poll(&fd, 1, 100);
	}
	fcntl(loop.file, F_SETFL, 0); /* its end is of no whole sectors */
	write_block(&loop);
	return 0;
}
