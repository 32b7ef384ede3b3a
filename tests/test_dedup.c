/*
 * The window beside a model that keeps everything and searches it, as check_semantics.py of the
 * shared captures states editcap's rules; the keys by what must and must not change them.
 */
#include "../plugins/dedup/key.c"
#include "../plugins/dedup/window.c"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "packets.h"

enum { ETHERNET = 1, SLL = 113, RAW = 101 };
enum { ALL = IGNORE_MAC | IGNORE_VLAN | IGNORE_TTL | IGNORE_CHECKSUM };

/* ---- The window ---- */

enum { STEPS = 30000 };

struct history {
	unsigned value[STEPS];
	int64_t ts_ns[STEPS];
	unsigned n;
};

static bool model_add(struct history *h, const struct window_bounds *bounds, unsigned value,
		      int64_t ts_ns)
{
	bool seen = false;
	uint64_t back = bounds->packets ? bounds->packets - 1 : UINT64_MAX;

	for (unsigned i = h->n; i-- > 0 && back-- > 0 && !seen;) {
		if (bounds->span_ns && ts_ns - h->ts_ns[i] > bounds->span_ns)
			break;
		bool newer = bounds->both_ways && bounds->span_ns &&
			     h->ts_ns[i] - ts_ns > bounds->span_ns;
		seen = h->value[i] == value && !newer;
		if (h->value[i] == value)
			break; /* what is before the newest equal one is no nearer */
	}
	h->value[h->n] = value;
	h->ts_ns[h->n++] = ts_ns;
	return seen;
}

static struct key key_for(unsigned value)
{
	static const uint8_t secret[KEY_SECRET] = {1};
	return hash(secret, (const uint8_t *)&value, sizeof(value));
}

static uint64_t random_state;

static unsigned below(unsigned n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((random_state >> 33) % n);
}

struct stream {
	char name[40];
	struct window_bounds bounds;
	unsigned values, step_back_one_in, step_back_ns;
};

static struct stream streams[] = {
	{"number", {.packets = 100, .max_packets = 1 << 20}, 500, 0, 0},
	{"number, 2", {.packets = 2, .max_packets = 1 << 20}, 5, 0, 0},
	{"number, 1 is none", {.packets = 1, .max_packets = 1 << 20}, 2, 0, 0},
	{"number, larger than at first", {.packets = 20000, .max_packets = 1 << 20}, 25000, 0, 0},
	{"time", {.span_ns = 50000, .max_packets = 1 << 20}, 3000, 0, 0},
	{"time, all of it", {.span_ns = 1000000000, .max_packets = 1 << 20}, 20000, 0, 0},
	{"time and number", {.span_ns = 50000, .packets = 300, .max_packets = 1 << 20}, 900, 0, 0},
	{"small steps back", {.span_ns = 30000, .max_packets = 1 << 20}, 900, 10, 500},
	{"steps back beyond the window", {.span_ns = 3000, .max_packets = 1 << 20}, 300, 20, 9000},
	{"never in order", {.span_ns = 3000, .max_packets = 1 << 20}, 300, 1, 6000},
	{"a full ring", {.packets = 60, .max_packets = 64}, 100, 0, 0},
	{"a full ring, steps back", {.span_ns = 400, .max_packets = 64}, 20, 3, 300},
	{"both ways", {.span_ns = 3000, .both_ways = true, .max_packets = 1 << 20}, 100, 20, 90000},
};

ParameterizedTestParameters(dedup, window_is_as_the_model)
{
	return cr_make_param_array(struct stream, streams, sizeof(streams) / sizeof(streams[0]));
}

ParameterizedTest(struct stream *stream, dedup, window_is_as_the_model)
{
	struct history *history = calloc(1, sizeof(*history));
	struct window *window = window_new(&stream->bounds);
	int64_t ts_ns = 1700000000000000000;
	unsigned seen = 0;

	random_state = 42;
	for (unsigned i = 0; i < STEPS; i++) {
		ts_ns += below(200);
		if (stream->step_back_one_in && below(stream->step_back_one_in) == 0)
			ts_ns -= below(stream->step_back_ns);
		unsigned value = below(stream->values);
		bool expected = model_add(history, &stream->bounds, value, ts_ns);
		seen += expected;
		cr_assert_eq(window_add(window, key_for(value), ts_ns), expected, "%s: packet %u",
			     stream->name, i);
	}
	cr_expect(seen > 0 || stream->bounds.packets == 1, "%s: nothing was seen twice",
		  stream->name);
	cr_expect_eq(window_evicted_early(window), 0, "%s", stream->name);
	window_free(window);
	free(history);
}

Test(dedup, window_within_its_memory_forgets_and_counts)
{
	enum { SIZE = 64 };
	struct window_bounds bounds = {.span_ns = 1000000, .max_packets = 100}; /* room for 64 */
	struct window *window = window_new(&bounds);

	for (unsigned i = 0; i < 2 * SIZE; i++)
		cr_assert_not(window_add(window, key_for(i), i));
	cr_expect_eq(window_evicted_early(window), 0);
	cr_expect(window_add(window, key_for(SIZE), 200));
	cr_expect_eq(window_evicted_early(window), SIZE);
	cr_expect_not(window_add(window, key_for(0), 200));
	cr_expect_eq(window_evicted_early(window), SIZE);

	/* What is out of the window anyway makes room without being missed. */
	for (unsigned i = 0; i < 5 * SIZE; i++)
		cr_assert_not(window_add(window, key_for(1000 + i), 5000000 + i * 20000));
	cr_expect_eq(window_evicted_early(window), SIZE);
	window_free(window);
}

/* Times at both ends of their range: no difference may overflow. */
Test(dedup, window_bears_any_time)
{
	static const int64_t times[] = {INT64_MIN, INT64_MAX, 0, -1, INT64_MIN, INT64_MIN + 5};
	struct window_bounds bounds = {.span_ns = 10, .both_ways = true, .max_packets = 1 << 20};
	struct window *window = window_new(&bounds);
	bool seen = false;

	for (unsigned i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		seen = window_add(window, key_for(7), times[i]);
	cr_expect(seen);
	window_free(window);
}

/* ---- The keys ---- */

static struct key mirror_key(const char *hex, uint32_t linktype, uint32_t ignore)
{
	static const uint8_t secret[KEY_SECRET] = {1};
	struct weir_packet packet = packet_of(hex);
	struct key key = key_mirror(secret, &packet, linktype, 262144, ignore);
	packet_free(&packet);
	return key;
}

static bool is_copy(const char *a, const char *b, uint32_t ignore)
{
	struct key x = mirror_key(a, ETHERNET, ignore), y = mirror_key(b, ETHERNET, ignore);
	return x.low == y.low && x.high == y.high;
}

#define OTHER_MACS "02aa00000001 02bb00000001 "
#define VLAN_8     "8100 0008 "
#define DATA       "48656c6c6f21"
/* What is in the header beside its addresses: total length, id, TTL, protocol, checksum. */
#define IP4_(id, ttl, checksum) "45000022" id "0000" ttl "11" checksum "0a000001 0a000002 "
#define ORIGINAL                ETH_IP4 IP4_("0001", "40", "1111") UDP DATA
#define IP6_(limit)             "60000000 000e 11" limit A6 B6

Test(dedup, mirror_ignores_what_it_is_told_to)
{
	cr_expect(is_copy(ORIGINAL, ORIGINAL, 0));
	static const struct {
		const char *copy;
		uint32_t needs;
	} copies[] = {
		{OTHER_MACS "0800" IP4_("0001", "40", "1111") UDP DATA, IGNORE_MAC},
		{MACS VLAN_7 "0800" IP4_("0001", "40", "1111") UDP DATA, IGNORE_VLAN},
		{MACS QINQ_9 VLAN_7 "0800" IP4_("0001", "40", "1111") UDP DATA, IGNORE_VLAN},
		{ETH_IP4 IP4_("0001", "3f", "1111") UDP DATA, IGNORE_TTL},
		{ETH_IP4 IP4_("0001", "40", "1211") UDP DATA, IGNORE_CHECKSUM},
		{ETH_IP4 IP4_("0001", "3f", "1211") UDP DATA, IGNORE_TTL | IGNORE_CHECKSUM},
		{OTHER_MACS VLAN_7 "0800" IP4_("0001", "3f", "1211") UDP DATA, ALL},
	};
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
		for (uint32_t ignore = 0; ignore <= ALL; ignore++)
			cr_expect_eq(is_copy(ORIGINAL, copies[i].copy, ignore),
				     (ignore & copies[i].needs) == copies[i].needs,
				     "copy %zu, ignore %x", i, ignore);
	cr_expect(is_copy(ETH_IP6 IP6_("40") UDP DATA, ETH_IP6 IP6_("3f") UDP DATA, IGNORE_TTL));
	cr_expect_not(is_copy(ETH_IP6 IP6_("40") UDP DATA, ETH_IP6 IP6_("3f") UDP DATA, 0));
	cr_expect_not(is_copy(MACS VLAN_7 "0800" IP4_("0001", "40", "1111") UDP DATA,
			      MACS VLAN_8 "0800" IP4_("0001", "40", "1111") UDP DATA, 0));
}

Test(dedup, mirror_tells_other_packets_apart)
{
	static const char *const others[] = {
		ETH_IP4 IP4_("0002", "40", "1111") UDP DATA, /* a retransmission */
		ETH_IP4 IP4_("0001", "40", "1111") UDP "48656c6c6f22",
		ETH_IP4 IP4_("0001", "40", "1111") UDP_REV DATA,
		ETH_IP4 IP4_("0001", "40", "1111") "0400 0035 0008 0001" DATA,
		ETH_IP4 IP4_("0001", "40", "1111") UDP "48656c6c6f",
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect_not(is_copy(ORIGINAL, others[i], ALL), "%zu", i);
}

Test(dedup, mirror_ignores_padding)
{
	cr_expect(is_copy(ORIGINAL "0000", MACS VLAN_7 "0800" IP4_("0001", "40", "1111") UDP DATA,
			  ALL));
	cr_expect(is_copy(ETH_IP6 IP6_("40") UDP DATA "00", ETH_IP6 IP6_("40") UDP DATA, ALL));
#define ARP "0001080006040001 020000000002 0a000001 000000000000 0a000002"
	cr_expect(is_copy(MACS "0806" ARP "00000000", OTHER_MACS VLAN_7 "0806" ARP, ALL));
	cr_expect_not(is_copy(MACS "0806" ARP,
			      MACS "0806 0001080006040002 020000000002 0a000001 "
				   "000000000000 0a000002",
			      ALL));
	/* A length that cannot be is no reason to compare less. */
	cr_expect_not(is_copy(ETH_IP4 IP4("0003", "0000", "11") UDP "01",
			      ETH_IP4 IP4("0003", "0000", "11") UDP "02", ALL));
	cr_expect_not(is_copy(ETH_IP4 IP4("0000", "0000", "11") UDP "01",
			      ETH_IP4 IP4("0000", "0000", "11") UDP "02", ALL));
}

Test(dedup, mirror_without_ip_compares_the_frame)
{
	cr_expect(is_copy(MACS "88cc 0102", OTHER_MACS "88cc 0102", ALL));
	cr_expect_not(is_copy(MACS "88cc 0102", OTHER_MACS "88cc 0102", ALL & ~IGNORE_MAC));
	cr_expect(is_copy(MACS "88cc 0102", MACS VLAN_7 "88cc 0102", ALL));
	cr_expect_not(is_copy(MACS "88cc 0102", MACS "88f7 0102", ALL));
	cr_expect_not(is_copy(MACS "88cc 0102", MACS "88cc 0103", ALL));
	cr_expect_not(is_copy("0102", "0103", IGNORE_VLAN));
}

/* A cooked header says in which direction the packet went, and of which device: two sightings. */
Test(dedup, mirror_ignores_the_cooked_header)
{
	struct key in = mirror_key(
		"0000 0001 0006 020000000001 0000 0800" IP4_("0001", "40", "1111") UDP DATA, SLL,
		ALL);
	struct key out = mirror_key("0004 0001 0006 020000000002 0000 8100 0007 0800" IP4_(
					    "0001", "3f", "1211") UDP DATA,
				    SLL, ALL);
	cr_expect(in.low == out.low && in.high == out.high);
	struct key raw = mirror_key(IP4_("0001", "40", "1111") UDP DATA, RAW, ALL);
	struct key raw_other = mirror_key(IP4_("0001", "40", "1111") UDP "48656c6c6f22", RAW, ALL);
	cr_expect(raw.low != raw_other.low);
}

/* Every length of a packet that may be cut, at one snaplen, equals its tagged copy. */
Test(dedup, mirror_compares_what_a_snaplen_left_of_all_copies)
{
	enum { SNAPLEN = 64, LONGEST = 80, HEAD = 34 };
	static const uint8_t secret[KEY_SECRET] = {1};

	for (uint32_t len = HEAD + 8; len <= LONGEST; len++) {
		uint8_t plain[LONGEST + 4], tagged[LONGEST + 8];
		struct weir_packet head = packet_of(ETH_IP4 IP4_("0001", "40", "1111"));
		memset(plain, 7, sizeof(plain));
		memcpy(plain, head.data, HEAD);
		packet_free(&head);
		plain[16] = 0;
		plain[17] = (uint8_t)(len - 14);
		memcpy(tagged, plain, 12);
		memcpy(tagged + 12, "\x81\x00\x00\x07", 4);
		memcpy(tagged + 16, plain + 12, len - 12);

		struct weir_packet a = {.data = plain, .wirelen = len};
		struct weir_packet b = {.data = tagged, .wirelen = len + 4};
		a.caplen = smaller(len, SNAPLEN);
		b.caplen = smaller(len + 4, SNAPLEN);
		struct key x = key_mirror(secret, &a, ETHERNET, SNAPLEN, ALL);
		struct key y = key_mirror(secret, &b, ETHERNET, SNAPLEN, ALL);
		cr_expect(x.low == y.low && x.high == y.high, "%u bytes", len);
	}
}

Test(dedup, exact_compares_all_captured_bytes)
{
	static const uint8_t secret[KEY_SECRET] = {1}, other_secret[KEY_SECRET] = {2};
	struct weir_packet packet = packet_of(ORIGINAL);
	struct key whole = key_exact(secret, &packet);

	cr_expect_eq(key_exact(secret, &packet).low, whole.low);
	cr_expect_neq(key_exact(other_secret, &packet).low, whole.low);
	packet.wirelen += 100;
	cr_expect_eq(key_exact(secret, &packet).low, whole.low);
	packet.caplen--;
	cr_expect_neq(key_exact(secret, &packet).low, whole.low);
	packet_free(&packet);
}
