/* preface.c: blocks that are no packets. */
#include "preface.h"
#include "align.h"
#include "keys.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

#define LINKTYPE_ETHERNET 1u
#define IFACE_NAMES_MAX   128u
#define STATISTICS_NS     (60 * 1000000000LL)

static const struct weir_interface unknown_interface = {.name = "unknown",
							.linktype = LINKTYPE_ETHERNET};

static const struct format *format_of(const struct lane *lane)
{
	return &lane->node->site.format;
}

/* ---- Interfaces ---- */

const struct weir_interface *preface_interface(struct lane *lane, uint16_t id)
{
	const struct weir_interface *interface = weir_interface(lane->self, id);

	return interface ? interface : &unknown_interface;
}

bool preface_make_known(struct lane *lane, uint16_t id)
{
	unsigned n = id + 16u;
	struct known *known;

	if (id < lane->n_known)
		return true;
	known = realloc(lane->known, n * sizeof(*known));
	if (!known)
		return false;
	memset(known + lane->n_known, 0, (n - lane->n_known) * sizeof(*known));
	lane->known = known;
	lane->n_known = n;
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
		const char *name = preface_interface(lane, ids[i])->name;

		if (len + strlen(name) + 2 > IFACE_NAMES_MAX || *name == '\0')
			continue;
		if (len > 0)
			to[len++] = '+';
		strcpy(to + len, name);
		len += strlen(name);
	}
}

/* ---- Headers ---- */

static struct header *header_new(const uint8_t *bytes, size_t len)
{
	struct header *header = malloc(sizeof(*header) + len);

	if (!header)
		return NULL;
	header->len = (uint32_t)len;
	memcpy(header->bytes, bytes, len);
	return header;
}

static struct header *file_header(struct lane *lane)
{
	return header_new(lane->scratch,
			  format_header(format_of(lane), lane->scratch, lane->linktype));
}

bool preface_begin(struct lane *lane, int64_t ts_ns)
{
	const struct config *config = lane->config;
	struct header *header = file_header(lane);
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
	if (lane->serial == 0)
		lane->began_ns = ts_ns;
	lane->serial++;
	lane->n_ifaces = 0;
	lane->keys_at = lane->keys_kept = 0;
	lane->file->first_ns = lane->last_ns = ts_ns;
	lane->statistics_at_ns = align_later(ts_ns, STATISTICS_NS);
	return true;
}

static size_t put_interface(struct lane *lane, uint16_t id, uint8_t *to)
{
	char *filter = format_of(lane)->pcapng ? weir_filter_upstream(lane->self, id) : NULL;
	size_t len = format_interface(format_of(lane), to, preface_interface(lane, id), filter);

	free(filter);
	return len;
}

bool preface_introduce(struct lane *lane, uint16_t id)
{
	struct header *header;
	size_t len;

	if (preface_is_known(lane, id))
		return true;
	if (!preface_make_known(lane, id))
		return false;
	lane->known[id].serial = lane->serial;
	lane->known[id].index = lane->n_ifaces++;
	len = put_interface(lane, id, lane->scratch);
	if (len == 0)
		return true;
	header = header_new(lane->scratch, len);
	if (!header)
		return false;
	stream_put_header(lane, header);
	return true;
}

size_t preface_tail_bytes(const struct lane *lane)
{
	return format_of(lane)->pcapng ? lane->n_ifaces * (size_t)WEIR_PCAPNG_STATISTICS_MAX : 0;
}

size_t preface_bytes(struct lane *lane, uint16_t id, bool begins)
{
	size_t len = 0;

	if (begins)
		len += format_header(format_of(lane), lane->scratch, lane->linktype);
	if (begins || !preface_is_known(lane, id))
		len += put_interface(lane, id, lane->scratch) +
		       (format_of(lane)->pcapng ? WEIR_PCAPNG_STATISTICS_MAX : 0);
	return len;
}

bool preface_fits(const struct lane *lane, size_t bytes)
{
	uint64_t limit = lane->config->rotate_bytes;

	return !limit || stream_bytes(lane) + preface_tail_bytes(lane) + bytes <= limit;
}

/* Room for what a file can do without. */
static bool may_add(struct lane *lane, size_t bytes)
{
	uint64_t *total = &lane->node->bytes;
	uint64_t limit = lane->config->stop_bytes;

	if (!preface_fits(lane, bytes) || !stream_reserve(lane, false, bytes))
		return false;
	if (!limit || __atomic_add_fetch(total, bytes, __ATOMIC_RELAXED) <= limit)
		return true;
	__atomic_sub_fetch(total, bytes, __ATOMIC_RELAXED);
	return false;
}

void preface_introduce_all(struct lane *lane)
{
	uint16_t ids[64];
	unsigned n = weir_interfaces_upstream(lane->self, ids, 64);

	for (unsigned i = 0; i < n && i < 64 && format_of(lane)->pcapng; i++) {
		if (!may_add(lane, preface_bytes(lane, ids[i], false)) ||
		    !preface_introduce(lane, ids[i]))
			return;
	}
}

/* ---- Statistics ---- */

static size_t describe(struct lane *lane, uint16_t id, int64_t ts_ns, uint8_t *to)
{
	const struct known *known = &lane->known[id];
	struct weir_counted counted;
	struct weir_statistics statistics = {
		.start_ns = lane->began_ns,
		.end_ns = ts_ns,
		.accepted = known->taken + known->refused,
		.delivered = known->taken,
	};

	weir_interface_counted(lane->self, id, &counted);
	statistics.received = counted.received;
	statistics.dropped = counted.dropped;
	statistics.missed = counted.missed;
	return weir_pcapng_statistics(to, known->index, ts_ns, &statistics);
}

/* Of all interfaces in the file; to has room for its tail. */
static size_t describe_all(struct lane *lane, int64_t ts_ns, uint8_t *to)
{
	size_t len = 0;

	for (unsigned id = 0; id < lane->n_known && format_of(lane)->pcapng; id++) {
		if (preface_is_known(lane, (uint16_t)id))
			len += describe(lane, (uint16_t)id, ts_ns, to + len);
	}
	return len;
}

void preface_put_statistics(struct lane *lane, int64_t ts_ns)
{
	size_t len = preface_tail_bytes(lane);

	lane->statistics_at_ns = align_later(ts_ns, STATISTICS_NS);
	if (len == 0 || len > FORMAT_UNIT_MAX || !may_add(lane, len))
		return;
	stream_put_block(lane, lane->scratch, describe_all(lane, ts_ns, lane->scratch));
}

void preface_put_tail(struct lane *lane)
{
	size_t room = preface_tail_bytes(lane);
	int64_t ts_ns = lane->reached_ns > lane->last_ns ? lane->reached_ns : lane->last_ns;

	lane->file->tail = room ? malloc(room) : NULL;
	if (lane->file->tail)
		lane->file->tail_len = describe_all(lane, ts_ns, lane->file->tail);
}

/* ---- Keys ---- */

/* No file has more than a quarter of keys. */
static size_t keys_room(const struct lane *lane)
{
	uint64_t quarter = lane->config->rotate_bytes / 4;
	size_t room = FORMAT_UNIT_MAX - (size_t)weir_pcapng_tls_keys_size(0) - 3;

	return quarter && quarter < room ? (size_t)quarter : room;
}

/* All of a long capture's keys would be too much to keep for the case of a gap. */
static void put_lines(struct lane *lane, const uint8_t *lines, size_t len)
{
	size_t size = weir_pcapng_tls_keys(lane->scratch, lines, len);
	struct header *header = NULL;

	if (lane->keys_kept + size <= KEYS_BYTES_MAX)
		header = header_new(lane->scratch, size);
	if (header) {
		lane->keys_kept += size;
		stream_insert_header(lane, header);
	} else {
		stream_insert_block(lane, lane->scratch, size);
	}
}

void preface_put_keys(struct lane *lane, size_t need)
{
	struct keys *keys = lane->node->site.keys;
	uint8_t *lines;
	unsigned n_lines;
	size_t len;

	if (!keys || lane->keys_at == keys_end(keys))
		return;
	lines = malloc(keys_room(lane));
	if (!lines)
		return;
	len = keys_take(keys, &lane->keys_at, lines, keys_room(lane), &n_lines);
	if (len > 0 && preface_fits(lane, weir_pcapng_tls_keys_size(len) + need) &&
	    may_add(lane, weir_pcapng_tls_keys_size(len))) {
		put_lines(lane, lines, len);
		weir_count(lane->self, TLS_KEYS, n_lines);
	}
	free(lines);
}
