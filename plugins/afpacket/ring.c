/*
 * ring.c: see ring.h.
 *
 * The kernel's side of this is tpacket_rcv() and the prb_ functions in net/packet/af_packet.c.
 */
#include "ring.h"

#include "vlan.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

/* In practice there is room for a tag between the kernel's header and the frame anyway, but only
 * this promises it. */
#define HEADROOM_BYTES VLAN_TAG_BYTES

/* Where the kernel puts the address behind its header; TPACKET_ALIGN() is of mixed sign. */
#define ADDRESS_OFFSET    ((sizeof(struct tpacket3_hdr) + 15) & ~(size_t)15)
#define CACHE_LINE        64u
#define FETCH_AHEAD_BYTES 4096
#define NS_PER_S          1000000000LL
#define NS_PER_MS         1000000LL

/* Processors that fill one ring stamp before they take its lock: of 800,000 packets 60 stepped
 * back, by up to 21 µs. */
#define STEP_BACK_NS 50000
/* From a packet's stamp until it is counted in its block, with much room. */
#define IN_FLIGHT_NS NS_PER_MS

static struct tpacket_block_desc *block_of(const struct ring *ring)
{
	return (struct tpacket_block_desc *)(void *)(ring->map +
						     (size_t)ring->block *
							     ring->geometry.block_bytes);
}

static int map_ring(struct ring *ring)
{
	const struct ring_geometry *geometry = &ring->geometry;
	int64_t retire_ms = geometry->retire_ns / NS_PER_MS;
	/* Frames of TPACKET_V3 have no fixed size; the numbers only have to agree. */
	struct tpacket_req3 request = {
		.tp_block_size = geometry->block_bytes,
		.tp_block_nr = geometry->block_count,
		.tp_frame_size = geometry->block_bytes,
		.tp_frame_nr = geometry->block_count,
		.tp_retire_blk_tov = (unsigned)(retire_ms > 0 ? retire_ms : 1),
	};
	if (setsockopt(ring->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)))
		return -errno;
	size_t bytes = (size_t)geometry->block_bytes * geometry->block_count;
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	ring->map = map;
	return 0;
}

int ring_open(struct ring *ring, int fd, const struct ring_geometry *geometry)
{
	int version = TPACKET_V3;
	unsigned headroom = HEADROOM_BYTES;

	ring->fd = fd;
	ring->geometry = *geometry;
	ring->seq = 1;
	ring->behind_ns = INT64_MIN;
	if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_RESERVE, &headroom, sizeof(headroom)))
		return -errno;
	return map_ring(ring);
}

void ring_close(struct ring *ring)
{
	if (ring->map)
		munmap(ring->map, (size_t)ring->geometry.block_bytes * ring->geometry.block_count);
	ring->map = NULL;
}

/* ---- Blocks ---- */

static void enter(struct ring *ring, struct tpacket_block_desc *block)
{
	ring->left = block->hdr.bh1.num_pkts;
	ring->next = (uint8_t *)block + block->hdr.bh1.offset_to_first_pkt;
}

static void give_back(struct ring *ring)
{
	__atomic_store_n(&block_of(ring)->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	ring->block = ring->block + 1 == ring->geometry.block_count ? 0 : ring->block + 1;
	ring->held = false;
}

/* Learns from the last packet of a block that has just closed: it was stamped before now. */
static void compare_clocks(struct ring *ring, const struct tpacket_block_desc *block)
{
	const struct tpacket_bd_ts *last = &block->hdr.bh1.ts_last_pkt;
	struct timespec now;
	int64_t behind_ns;

	clock_gettime(CLOCK_REALTIME, &now);
	behind_ns = (now.tv_sec - (int64_t)last->ts_sec) * NS_PER_S + now.tv_nsec -
		    (int64_t)last->ts_nsec;
	if (behind_ns > ring->behind_ns)
		ring->behind_ns = behind_ns;
}

bool ring_is_ready(const struct ring *ring)
{
	return __atomic_load_n(&block_of(ring)->hdr.bh1.block_status, __ATOMIC_ACQUIRE) &
	       TP_STATUS_USER;
}

/* What was counted in the open block, of which the kernel may still write the next packet. */
static unsigned open_packets(const struct ring *ring)
{
	const struct tpacket_hdr_v1 *open = &block_of(ring)->hdr.bh1;

	/* The kernel writes a block's header when it opens it: with another number it still tells
	 * of the last time round. */
	return __atomic_load_n(&open->seq_num, __ATOMIC_RELAXED) == ring->seq
		       ? __atomic_load_n(&open->num_pkts, __ATOMIC_RELAXED)
		       : 0;
}

bool ring_is_empty(const struct ring *ring)
{
	return !ring->held && !ring_is_ready(ring) && open_packets(ring) == 0;
}

void ring_inherit(struct ring *ring, const struct ring *from)
{
	ring->packets += from->packets;
	ring->drops += from->drops;
	ring->freezes += from->freezes;
	ring->lost_before += from->lost_before;
}

bool ring_advance(struct ring *ring)
{
	if (ring->left)
		return true;
	if (ring->held)
		give_back(ring);
	struct tpacket_block_desc *block = block_of(ring);
	uint32_t status = __atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE);
	if (!(status & TP_STATUS_USER))
		return false;
	ring->held = true;
	ring->seq = block->hdr.bh1.seq_num + 1;
	enter(ring, block);
	if (ring->foreign_clock && ring->left)
		compare_clocks(ring, block);
	if (status & TP_STATUS_LOSING) {
		uint64_t before = ring->drops;
		ring_statistics(ring);
		ring->lost_before += (uint32_t)(ring->drops - before);
	}
	return ring->left > 0;
}

bool ring_drain(struct ring *ring)
{
	if (ring->left)
		return true;
	/* The open block may close while it is walked: it is not to be taken twice. */
	if (ring->drained)
		return false;
	if (ring_advance(ring))
		return true;
	/* A block that closed without packets is no end: the caller comes again. */
	if (ring->held)
		return false;
	ring->drained = true;
	if (open_packets(ring) == 0)
		return false;
	enter(ring, block_of(ring));
	return true;
}

void ring_statistics(struct ring *ring)
{
	struct tpacket_stats_v3 statistics;
	socklen_t size = sizeof(statistics);

	if (getsockopt(ring->fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &size))
		return;
	ring->packets += statistics.tp_packets;
	ring->drops += statistics.tp_drops;
	ring->freezes += statistics.tp_freeze_q_cnt;
}

/* ---- Packets ---- */

static int64_t stamp_ns(const struct tpacket3_hdr *header)
{
	return (int64_t)header->tp_sec * NS_PER_S + (int64_t)header->tp_nsec;
}

static uint16_t flags_of(const struct tpacket3_hdr *header)
{
	const struct sockaddr_ll *address = (const void *)((const uint8_t *)header +
							   ADDRESS_OFFSET);
	uint32_t status = header->tp_status;
	unsigned flags = address->sll_pkttype == PACKET_OUTGOING ? WEIR_F_OUT : WEIR_F_IN;

	if (status & TP_STATUS_CSUMNOTREADY)
		flags |= WEIR_F_CSUM_PARTIAL;
	if (status & TP_STATUS_CSUM_VALID)
		flags |= WEIR_F_CSUM_GOOD;
	if (status & TP_STATUS_TS_RAW_HARDWARE)
		flags |= WEIR_F_HW_TIME;
	return (uint16_t)flags;
}

static void describe(const struct ring *ring, uint8_t *frame, struct weir_packet *packet,
		     struct ring_walked *walked)
{
	const struct tpacket3_hdr *header = (const void *)frame;
	uint8_t *data = frame + header->tp_mac;

	*packet = (struct weir_packet){
		.data = data,
		.ts_ns = stamp_ns(header),
		.caplen = header->tp_snaplen,
		.wirelen = header->tp_len,
		.iface = ring->iface,
		.queue = UINT16_MAX,
		.flags = flags_of(header),
	};
	walked->cut += header->tp_snaplen < header->tp_len;
	/* A priority tag is all zeros: only the status says that it was there. */
	if (header->tp_status & TP_STATUS_VLAN_VALID) {
		uint16_t tpid = header->tp_status & TP_STATUS_VLAN_TPID_VALID
					? header->hv1.tp_vlan_tpid
					: 0x8100;
		vlan_reinsert(packet, data, tpid, (uint16_t)header->hv1.tp_vlan_tci);
		walked->tags++;
	}
}

/*
 * The kernel has written the block on another processor, and each header is found by the one before
 * it: without this every packet waits for memory by itself.  Looks ahead, so that the next headers
 * are there too.  Whoever reads packets next mostly reads all of them.
 */
static uintptr_t fetch(uintptr_t from, const uint8_t *frame)
{
	uintptr_t at = (uintptr_t)frame, end = at + FETCH_AHEAD_BYTES;

	for (at = from > at ? from : at; at < end; at += CACHE_LINE)
		__builtin_prefetch((const void *)at, 0, 2);
	return at;
}

unsigned ring_walk(struct ring *ring, struct weir_packet *packets, unsigned max, int64_t until_ns,
		   struct ring_walked *walked)
{
	unsigned most = ring->left < max ? ring->left : max;
	uint8_t *frame = ring->next;
	uintptr_t fetched = 0;
	unsigned n = 0;

	while (n < most) {
		const struct tpacket3_hdr *header = (const void *)frame;
		if (stamp_ns(header) > until_ns)
			break;
		fetched = fetch(fetched, frame);
		describe(ring, frame, &packets[n], walked);
		frame += header->tp_next_offset;
		n++;
	}
	if (n && ring->lost_before) {
		packets[0].dropped = ring->lost_before;
		ring->lost_before = 0;
	}
	if (n)
		ring->last_ns = packets[n - 1].ts_ns;
	ring->next = frame;
	ring->left -= n;
	return n;
}

int64_t ring_next_ns(const struct ring *ring)
{
	return stamp_ns((const void *)ring->next);
}

int64_t ring_bound_ns(const struct ring *ring, int64_t now_ns)
{
	if (ring->left)
		return ring_next_ns(ring) - STEP_BACK_NS;
	if (ring->held)
		return ring->last_ns - STEP_BACK_NS;
	if (ring->foreign_clock && ring->behind_ns == INT64_MIN)
		return INT64_MIN;
	if (ring->foreign_clock && ring->behind_ns > 0)
		now_ns -= ring->behind_ns;
	/* now_ns was read before this: what is counted later was stamped a moment ago at most. */
	if (open_packets(ring) == 0)
		return now_ns - IN_FLIGHT_NS;
	/* Kernels before 6.18 close a block only when the timer has found it open twice. */
	return now_ns - IN_FLIGHT_NS - 2 * ring->geometry.retire_ns;
}
