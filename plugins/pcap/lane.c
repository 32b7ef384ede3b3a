/* lane.c: from packets to files. */
#include "align.h"
#include "preface.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

#define FLUSH_NS          1000000000LL
#define LINKTYPE_ETHERNET 1u

bool lane_init(struct lane *lane, struct weir_self *self)
{
	const struct config *config = self->config;

	lane->self = self;
	lane->config = config;
	lane->node = self->node;
	lane->next = lane->node->lanes;
	lane->node->lanes = lane;
	lane->headers_end = &lane->headers;
	lane->linktype = UINT32_MAX;
	lane->stop_at_ns = INT64_MAX;
	lane->scratch = malloc(FORMAT_UNIT_MAX);
	return lane->scratch &&
	       pool_init(&lane->pool, self, config->buffer_bytes / self->lane_count);
}

void lane_clear(struct lane *lane)
{
	pool_clear(&lane->pool);
	namer_clear(&lane->namer);
	free(lane->scratch);
	free(lane->known);
	lane->scratch = NULL;
	lane->known = NULL;
}

static bool is_pcapng(const struct lane *lane)
{
	return lane->node->site.format.pcapng;
}

static bool has_stopped(const struct lane *lane)
{
	return __atomic_load_n(&lane->node->stopped, __ATOMIC_RELAXED);
}

/* ---- Where a file ends ---- */

/* The earliest request holds, and is forgotten once it has been met: so all are made each time. */
static void ask_to_wake(struct lane *lane)
{
	if (lane->stop_at_ns != INT64_MAX && !has_stopped(lane))
		weir_wake_at(lane->self, lane->stop_at_ns);
	if (!lane->file)
		return;
	if (lane->rotate_at_ns != INT64_MAX)
		weir_wake_at(lane->self, lane->rotate_at_ns);
	if (is_pcapng(lane))
		weir_wake_at(lane->self, lane->statistics_at_ns);
}

static void set_limits(struct lane *lane, int64_t ts_ns)
{
	const struct config *config = lane->config;

	lane->packets_left = UINT64_MAX;
	lane->rotate_at_ns = INT64_MAX;
	if (config->rotate_packets)
		lane->packets_left = (uint64_t)config->rotate_packets;
	if (config->rotate_ns) {
		lane->rotate_at_ns = align_after(ts_ns, config->rotate_ns,
						 config->clock == CLOCK_LOCAL);
		weir_wake_at(lane->self, lane->rotate_at_ns);
	}
	lane->look_at_ns = lane->rotate_at_ns < lane->stop_at_ns ? lane->rotate_at_ns
								 : lane->stop_at_ns;
	ask_to_wake(lane);
}

/* Up to which length the next record needs no decision. */
static void set_room(struct lane *lane)
{
	uint64_t limit = lane->config->rotate_bytes;
	uint64_t used;

	lane->room = 0;
	/* Limits of the whole node are looked at for every packet. */
	if (!lane->block || lane->config->stop_bytes || lane->config->stop_packets)
		return;
	lane->room = lane->pool.block_bytes - lane->fill;
	used = stream_bytes(lane) + preface_tail_bytes(lane);
	if (limit && limit - used < lane->room)
		lane->room = limit - used;
}

static void finish_file(struct lane *lane)
{
	if (!lane->file)
		return;
	preface_put_tail(lane);
	stream_finish(lane);
	set_room(lane);
}

/* ---- Where all files end ---- */

static uint8_t stop(struct lane *lane)
{
	__atomic_store_n(&lane->node->stopped, 1, __ATOMIC_RELAXED);
	weir_finish(lane->self);
	return STOPPED;
}

/* stop-time begins with the first packet of any lane, or live with the first time that is known. */
static void begin_stop_time(struct lane *lane, int64_t stream_ns)
{
	int64_t *first_ns = &lane->node->first_ns, none = INT64_MAX;

	if (!lane->config->stop_ns || lane->stop_at_ns != INT64_MAX || stream_ns == INT64_MIN)
		return;
	__atomic_compare_exchange_n(first_ns, &none, stream_ns, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	lane->stop_at_ns = align_later(__atomic_load_n(first_ns, __ATOMIC_RELAXED),
				       lane->config->stop_ns);
	if (lane->stop_at_ns < lane->look_at_ns)
		lane->look_at_ns = lane->stop_at_ns;
}

/* Whether the limits of the node leave room for a packet; takes it if so. */
static bool claim(struct lane *lane, size_t bytes)
{
	struct node *node = lane->node;
	uint64_t stop_bytes = lane->config->stop_bytes;
	uint64_t stop_packets = (uint64_t)lane->config->stop_packets;

	if (stop_bytes && __atomic_add_fetch(&node->bytes, bytes, __ATOMIC_RELAXED) > stop_bytes)
		return false;
	return !stop_packets ||
	       __atomic_add_fetch(&node->packets, 1, __ATOMIC_RELAXED) <= stop_packets;
}

static uint8_t give_back_claim(struct lane *lane, size_t bytes)
{
	__atomic_sub_fetch(&lane->node->bytes, bytes, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&lane->node->packets, 1, __ATOMIC_RELAXED);
	return NO_BUFFER;
}

/* ---- Packets ---- */

static bool must_rotate(const struct lane *lane, const struct weir_packet *packet, size_t size)
{
	return packet->ts_ns >= lane->rotate_at_ns || lane->packets_left == 0 ||
	       !preface_fits(lane, size);
}

/* Whether a file of this link type can hold the packet. */
static bool fits_linktype(struct lane *lane, const struct weir_packet *packet)
{
	uint32_t linktype = preface_interface(lane, packet->iface)->linktype;

	if (lane->linktype == UINT32_MAX)
		lane->linktype = linktype;
	if (is_pcapng(lane) || lane->linktype == linktype)
		return true;
	weir_log(lane->self, WEIR_WARN,
		 "a classic pcap file holds one link type, and packets of another one came: "
		 "name the file .pcapng");
	return false;
}

/* A block has been reserved.  need: bytes that must have room.  false: out of memory. */
static bool begin_file(struct lane *lane, int64_t ts_ns, size_t need)
{
	finish_file(lane);
	if (!preface_begin(lane, ts_ns))
		return false;
	set_limits(lane, ts_ns);
	preface_put_keys(lane, need);
	return true;
}

/* need: of the packet, with what must stand before it. */
static bool place(struct lane *lane, const struct weir_packet *packet, bool begins, size_t size,
		  size_t need)
{
	if ((begins && !begin_file(lane, packet->ts_ns, need)) ||
	    !stream_reserve(lane, false, need) || !preface_introduce(lane, packet->iface))
		return false;
	stream_put_record(lane, packet, lane->known[packet->iface].index, size);
	lane->packets_left--;
	lane->last_ns = packet->ts_ns;
	set_room(lane);
	return true;
}

/* The long way of a packet: every decision is looked at. */
static uint8_t admit(struct lane *lane, const struct weir_packet *packet)
{
	size_t size = format_record_size(&lane->node->site.format, packet);
	uint64_t limit = lane->config->rotate_bytes;
	bool begins;
	size_t need;

	begin_stop_time(lane, packet->ts_ns);
	if (has_stopped(lane) || packet->ts_ns >= lane->stop_at_ns)
		return STOPPED;
	if (!fits_linktype(lane, packet))
		return OTHER_LINKTYPE;
	begins = !lane->file ||
		 must_rotate(lane, packet, size + preface_bytes(lane, packet->iface, false));
	need = size + preface_bytes(lane, packet->iface, begins);
	if (packet->caplen > WEIR_MAX_CAPLEN || (limit && begins && need > limit))
		return TOO_LONG;
	if (!stream_reserve(lane, begins, need))
		return NO_BUFFER;
	if (!claim(lane, need))
		return stop(lane);
	return place(lane, packet, begins, size, need) ? WEIR_PENDING : give_back_claim(lane, need);
}

static uint8_t admit_and_count(struct lane *lane, const struct weir_packet *packet)
{
	uint8_t verdict;

	if (!preface_make_known(lane, packet->iface))
		return NO_BUFFER;
	verdict = admit(lane, packet);
	if (verdict == WEIR_PENDING)
		lane->known[packet->iface].taken++;
	else
		lane->known[packet->iface].refused++;
	return verdict;
}

void lane_judge(struct lane *lane, struct weir_packet *packets, unsigned n)
{
	const struct format *format = &lane->node->site.format;

	for (unsigned i = 0; i < n; i++) {
		struct weir_packet *packet = &packets[i];
		size_t size = format_record_size(format, packet);

		if (size > lane->room || packet->ts_ns >= lane->look_at_ns ||
		    lane->packets_left == 0 || !preface_is_known(lane, packet->iface)) {
			packet->verdict = admit_and_count(lane, packet);
			continue;
		}
		stream_append(lane, packet, lane->known[packet->iface].index);
		lane->known[packet->iface].taken++;
		lane->room -= size;
		lane->packets_left--;
		lane->last_ns = packet->ts_ns;
		packet->verdict = WEIR_PENDING;
	}
}

/* ---- Time ---- */

static void begin_empty_file(struct lane *lane, int64_t stream_ns)
{
	uint16_t ids[16];
	unsigned n = weir_interfaces_upstream(lane->self, ids, 16);

	if (lane->linktype == UINT32_MAX)
		lane->linktype = n > 0 ? preface_interface(lane, ids[0])->linktype
				       : LINKTYPE_ETHERNET;
	if (!stream_reserve(lane, true, 0) ||
	    !begin_file(lane, stream_ns == INT64_MIN ? lane->node->start_ns : stream_ns, 0))
		return;
	preface_introduce_all(lane);
	set_room(lane);
}

static bool must_be_empty(const struct lane *lane, int64_t stream_ns, unsigned why)
{
	if (lane->file || lane->config->empty == EMPTY_NEVER)
		return false;
	if (why & WEIR_TICK_END)
		return lane->serial == 0;
	return lane->config->empty == EMPTY_ALWAYS && stream_ns != INT64_MIN && !has_stopped(lane);
}

static void rotate_by_time(struct lane *lane, int64_t stream_ns)
{
	int64_t period_ns = lane->config->rotate_ns;
	int64_t normal_ns;

	if (!lane->file || !period_ns || stream_ns == INT64_MIN)
		return;
	/* A packet with a time far ahead must not hold up rotation until that time comes. */
	normal_ns = align_after(stream_ns, period_ns, lane->config->clock == CLOCK_LOCAL);
	if (stream_ns >= lane->rotate_at_ns || normal_ns < lane->rotate_at_ns - period_ns)
		finish_file(lane);
}

static void stop_by_time(struct lane *lane, int64_t stream_ns)
{
	begin_stop_time(lane, stream_ns);
	if (stream_ns >= lane->stop_at_ns)
		stop(lane);
	if (has_stopped(lane))
		finish_file(lane);
}

static void flush_old(struct lane *lane, int64_t mono_ns)
{
	if (!lane->block || lane->sent == lane->fill)
		return;
	if (!lane->unsent_since_ns)
		lane->unsent_since_ns = mono_ns;
	else if (mono_ns - lane->unsent_since_ns >= FLUSH_NS)
		stream_flush(lane);
}

/* Blocks that time brings into a file. */
static void add_blocks(struct lane *lane, int64_t stream_ns)
{
	if (!lane->file || !is_pcapng(lane))
		return;
	if (stream_ns >= lane->statistics_at_ns)
		preface_put_statistics(lane, stream_ns);
	preface_put_keys(lane, 0);
	set_room(lane);
}

void lane_tick(struct lane *lane, const struct weir_now *now, unsigned why)
{
	/* Behind a queue, the end of time means that nothing more comes. */
	if (now->stream_ns < INT64_MAX - 1)
		lane->reached_ns = now->stream_ns;
	rotate_by_time(lane, now->stream_ns);
	stop_by_time(lane, now->stream_ns);
	if (why & WEIR_TICK_REOPEN)
		finish_file(lane);
	if (must_be_empty(lane, now->stream_ns, why))
		begin_empty_file(lane, now->stream_ns);
	add_blocks(lane, lane->reached_ns);
	/* The end of a pcapng file has figures that are not final before all lanes have ended. */
	if ((why & WEIR_TICK_END) && !is_pcapng(lane))
		finish_file(lane);
	else if ((why & WEIR_TICK_END) && lane->block)
		stream_flush(lane);
	flush_old(lane, now->mono_ns);
	ask_to_wake(lane);
}

void lane_end(struct lane *lane)
{
	finish_file(lane);
}
