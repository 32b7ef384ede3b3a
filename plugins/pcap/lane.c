/* lane.c: from packets to files. */
#include "stream.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S          1000000000LL
#define FLUSH_NS          NS_PER_S
#define LINKTYPE_ETHERNET 1u
#define IFACE_NAMES_MAX   128u

static const struct weir_interface unknown_interface = {.name = "unknown",
							.linktype = LINKTYPE_ETHERNET};

bool lane_init(struct lane *lane, struct weir_self *self)
{
	const struct config *config = self->config;

	lane->self = self;
	lane->config = config;
	lane->node = self->node;
	lane->headers_end = &lane->headers;
	lane->linktype = UINT32_MAX;
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

/* ---- Interfaces ---- */

static const struct weir_interface *interface_of(struct lane *lane, uint16_t id)
{
	const struct weir_interface *interface = weir_interface(lane->self, id);

	return interface ? interface : &unknown_interface;
}

static bool is_known(const struct lane *lane, uint16_t id)
{
	return id < lane->n_known && lane->known[id].serial == lane->serial;
}

static bool make_known(struct lane *lane, uint16_t id)
{
	if (id >= lane->n_known) {
		unsigned n = id + 16u;
		struct known *known = realloc(lane->known, n * sizeof(*known));

		if (!known)
			return false;
		memset(known + lane->n_known, 0, (n - lane->n_known) * sizeof(*known));
		lane->known = known;
		lane->n_known = n;
	}
	lane->known[id] = (struct known){lane->serial, lane->n_ifaces++};
	return true;
}

/* "eth0", "eth0+eth1": for %{iface}. */
static void name_interfaces(struct lane *lane, char *to)
{
	uint16_t ids[16];
	unsigned n = weir_interfaces_upstream(lane->self, ids, 16);
	size_t len = 0;

	*to = '\0';
	for (unsigned i = 0; i < n && i < 16; i++) {
		const char *name = interface_of(lane, ids[i])->name;

		if (len + strlen(name) + 2 > IFACE_NAMES_MAX || *name == '\0')
			continue;
		if (len > 0)
			to[len++] = '+';
		strcpy(to + len, name);
		len += strlen(name);
	}
}

/* ---- Where a file ends ---- */

static int64_t aligned_after(int64_t ts_ns, int64_t period_ns, bool local)
{
	time_t seconds = (time_t)(ts_ns / NS_PER_S);
	struct tm tm = {0};
	int64_t shift_ns, phase_ns;

	if (local)
		localtime_r(&seconds, &tm);
	shift_ns = tm.tm_gmtoff * NS_PER_S;
	phase_ns = (ts_ns + shift_ns) % period_ns;
	if (phase_ns < 0)
		phase_ns += period_ns;
	return ts_ns - phase_ns + period_ns;
}

static void set_limits(struct lane *lane, int64_t ts_ns)
{
	const struct config *config = lane->config;

	lane->packets_left = UINT64_MAX;
	lane->rotate_at_ns = INT64_MAX;
	if (config->rotate_packets)
		lane->packets_left = (uint64_t)config->rotate_packets;
	if (config->rotate_ns) {
		lane->rotate_at_ns = aligned_after(ts_ns, config->rotate_ns,
						   config->clock == CLOCK_LOCAL);
		weir_wake_at(lane->self, lane->rotate_at_ns);
	}
}

/* Up to which length the next record needs no decision. */
static void set_room(struct lane *lane)
{
	uint64_t limit = lane->config->rotate_bytes;

	lane->room = 0;
	/* Limits of the whole node are looked at for every packet. */
	if (!lane->block || lane->config->stop_bytes || lane->config->stop_packets)
		return;
	lane->room = lane->pool.block_bytes - lane->fill;
	if (limit && limit - stream_bytes(lane) < lane->room)
		lane->room = limit - stream_bytes(lane);
}

static void finish_file(struct lane *lane)
{
	if (!lane->file)
		return;
	stream_finish(lane);
	set_room(lane);
}

/* ---- Where a file starts ---- */

static struct header *header_new(const struct lane *lane, size_t len)
{
	struct header *header = malloc(sizeof(*header) + len);

	if (!header)
		return NULL;
	header->len = (uint32_t)len;
	memcpy(header->bytes, lane->scratch, len);
	return header;
}

/* The file's name is of the time ts_ns. false: out of memory. */
static bool begin_file(struct lane *lane, int64_t ts_ns)
{
	const struct config *config = lane->config;
	size_t len = format_header(&lane->node->site.format, lane->scratch, lane->linktype);
	struct header *header = header_new(lane, len);
	char interfaces[IFACE_NAMES_MAX];

	name_interfaces(lane, interfaces);
	if (!header ||
	    !stream_begin(lane,
			  weir_expand(lane->self, config->path, ts_ns, config->clock == CLOCK_LOCAL,
				      *interfaces ? interfaces : NULL, lane->serial + 1))) {
		free(header);
		return false;
	}
	stream_put_header(lane, header);
	lane->serial++;
	lane->n_ifaces = 0;
	lane->file->first_ns = lane->last_ns = ts_ns;
	set_limits(lane, ts_ns);
	return true;
}

/* Makes an interface known to the file. false: out of memory. */
static bool introduce(struct lane *lane, uint16_t id)
{
	const struct format *format = &lane->node->site.format;
	struct header *header;
	size_t len;

	if (is_known(lane, id))
		return true;
	if (!make_known(lane, id))
		return false;
	len = format_interface(format, lane->scratch, interface_of(lane, id));
	if (len == 0)
		return true;
	header = header_new(lane, len);
	if (!header)
		return false;
	stream_put_header(lane, header);
	return true;
}

/* What stands in front of a packet's record, in a new file or in this one. */
static size_t introduction_bytes(struct lane *lane, uint16_t id, bool begins)
{
	const struct format *format = &lane->node->site.format;
	size_t len = 0;

	if (begins)
		len += format_header(format, lane->scratch, lane->linktype);
	if (begins || !is_known(lane, id))
		len += format_interface(format, lane->scratch, interface_of(lane, id));
	return len;
}

/* ---- Packets ---- */

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

static bool must_rotate(const struct lane *lane, const struct weir_packet *packet, size_t size)
{
	uint64_t limit = lane->config->rotate_bytes;

	return packet->ts_ns >= lane->rotate_at_ns || lane->packets_left == 0 ||
	       (limit && stream_bytes(lane) + size > limit);
}

/* Whether a file of this link type can hold the packet. */
static bool fits_linktype(struct lane *lane, const struct weir_packet *packet)
{
	uint32_t linktype = interface_of(lane, packet->iface)->linktype;

	if (lane->linktype == UINT32_MAX)
		lane->linktype = linktype;
	if (lane->node->site.format.pcapng || lane->linktype == linktype)
		return true;
	weir_log(lane->self, WEIR_WARN,
		 "a classic pcap file holds one link type, and packets of another one came: "
		 "name the file .pcapng");
	return false;
}

static uint8_t stop(struct lane *lane)
{
	__atomic_store_n(&lane->node->stopped, 1, __ATOMIC_RELAXED);
	weir_finish(lane->self);
	return STOPPED;
}

/* Room has been reserved.  false: out of memory. */
static bool place(struct lane *lane, const struct weir_packet *packet, bool begins, size_t size)
{
	if (begins) {
		finish_file(lane);
		if (!begin_file(lane, packet->ts_ns))
			return false;
	}
	if (!introduce(lane, packet->iface))
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

	if (__atomic_load_n(&lane->node->stopped, __ATOMIC_RELAXED))
		return STOPPED;
	if (!fits_linktype(lane, packet))
		return OTHER_LINKTYPE;
	begins = !lane->file ||
		 must_rotate(lane, packet, size + introduction_bytes(lane, packet->iface, false));
	need = size + introduction_bytes(lane, packet->iface, begins);
	if (packet->caplen > WEIR_MAX_CAPLEN || (limit && begins && need > limit))
		return TOO_LONG;
	if (!stream_reserve(lane, begins, need))
		return NO_BUFFER;
	if (!claim(lane, need))
		return stop(lane);
	return place(lane, packet, begins, size) ? WEIR_PENDING : NO_BUFFER;
}

void lane_judge(struct lane *lane, struct weir_packet *packets, unsigned n)
{
	const struct format *format = &lane->node->site.format;

	for (unsigned i = 0; i < n; i++) {
		struct weir_packet *packet = &packets[i];
		size_t size = format_record_size(format, packet);

		if (size > lane->room || packet->ts_ns >= lane->rotate_at_ns ||
		    lane->packets_left == 0 || !is_known(lane, packet->iface)) {
			packet->verdict = admit(lane, packet);
			continue;
		}
		stream_append(lane, packet, lane->known[packet->iface].index);
		lane->room -= size;
		lane->packets_left--;
		lane->last_ns = packet->ts_ns;
		packet->verdict = WEIR_PENDING;
	}
}

/* ---- Time ---- */

/* A run without packets leaves a file that says so. */
static void leave_empty_file(struct lane *lane, int64_t stream_ns)
{
	uint16_t ids[16];
	unsigned n = weir_interfaces_upstream(lane->self, ids, 16);

	if (lane->linktype == UINT32_MAX)
		lane->linktype = n > 0 ? interface_of(lane, ids[0])->linktype : LINKTYPE_ETHERNET;
	if (!stream_reserve(lane, true, 0) ||
	    !begin_file(lane, stream_ns == INT64_MIN ? lane->node->start_ns : stream_ns))
		return;
	finish_file(lane);
}

static void rotate_by_time(struct lane *lane, int64_t stream_ns)
{
	int64_t period_ns = lane->config->rotate_ns;
	int64_t normal_ns;

	if (!lane->file || !period_ns || stream_ns == INT64_MIN)
		return;
	/* A packet with a time far ahead must not hold up rotation until that time comes. */
	normal_ns = aligned_after(stream_ns, period_ns, lane->config->clock == CLOCK_LOCAL);
	if (stream_ns >= lane->rotate_at_ns || normal_ns < lane->rotate_at_ns - period_ns)
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

void lane_tick(struct lane *lane, const struct weir_now *now, unsigned why)
{
	rotate_by_time(lane, now->stream_ns);
	if (why & (WEIR_TICK_REOPEN | WEIR_TICK_END))
		finish_file(lane);
	if ((why & WEIR_TICK_END) && lane->serial == 0)
		leave_empty_file(lane, now->stream_ns);
	flush_old(lane, now->mono_ns);
}
