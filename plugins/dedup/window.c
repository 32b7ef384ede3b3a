#include "window.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_PACKETS = 1 << 12, LEAST_PACKETS = 1 << 5 };

/* Slots of a table for each packet: with half as many, a search ends after 2.5 slots, not 1.4. */
enum { SLOTS = 4 };

struct entry {
	struct key key;
	int64_t ts_ns;
};

/* Of a key: 32 bits of it, and the place of its newest packet in the ring, plus 1; 0: empty. */
struct slot {
	uint32_t tag, place;
};

/*
 * Packets have numbers in the order of arrival.  Those of both generations are in a ring of twice
 * the size of one: number n is at place n % ring.  All sizes are powers of two.
 */
struct window {
	struct window_bounds bounds;
	size_t size; /* of a generation, in packets */
	struct entry *entries;
	struct slot *current, *previous;
	uint64_t previous_start, current_start, next; /* numbers of packets */

	/* Numbers of packets that are older than the one before them, as long as no later packet is
	 * as old: so their times rise.  A ring of its own, empty where time never steps back. */
	uint64_t *descents;
	uint64_t first_descent, next_descent;

	uint64_t evicted_early;
};

_Static_assert(2 * sizeof(struct entry) + 2 * SLOTS * sizeof(struct slot) + 2 * sizeof(uint64_t) ==
		       WINDOW_PACKET_BYTES,
	       "the bound of memory counts on it");

static size_t ring_mask(const struct window *w)
{
	return 2 * w->size - 1;
}

static struct entry *entry_at(const struct window *w, uint64_t number)
{
	return &w->entries[number & ring_mask(w)];
}

/* ---- Time ---- */

static uint64_t *descent_at(const struct window *w, uint64_t i)
{
	return &w->descents[i & ring_mask(w)];
}

static int64_t descent_time(const struct window *w, uint64_t i)
{
	return entry_at(w, *descent_at(w, i))->ts_ns;
}

static void note_descent(struct window *w, uint64_t number)
{
	int64_t ts_ns = entry_at(w, number)->ts_ns;

	if (number == w->previous_start || entry_at(w, number - 1)->ts_ns <= ts_ns)
		return;
	while (w->first_descent < w->next_descent && descent_time(w, w->next_descent - 1) >= ts_ns)
		w->next_descent--;
	*descent_at(w, w->next_descent++) = number;
}

/* The smallest time of packet `number` and all after it: its own, or that of the first descent. */
static int64_t least_time_since(const struct window *w, uint64_t number)
{
	uint64_t low = w->first_descent, high = w->next_descent;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (*descent_at(w, middle) > number)
			high = middle;
		else
			low = middle + 1;
	}
	int64_t own = entry_at(w, number)->ts_ns;
	if (low == w->next_descent || descent_time(w, low) > own)
		return own;
	return descent_time(w, low);
}

static bool is_more_than(int64_t span_ns, int64_t older, int64_t newer)
{
	return newer > older && (uint64_t)newer - (uint64_t)older > (uint64_t)span_ns;
}

/* Whether packet `number` counts for the next one, which has that time. */
static bool is_within(const struct window *w, uint64_t number, int64_t ts_ns)
{
	const struct window_bounds *bounds = &w->bounds;

	if (bounds->packets && w->next - number >= bounds->packets)
		return false;
	if (!bounds->span_ns)
		return true;
	if (bounds->both_ways && is_more_than(bounds->span_ns, ts_ns, entry_at(w, number)->ts_ns))
		return false;
	return !is_more_than(bounds->span_ns, least_time_since(w, number), ts_ns);
}

/* ---- The tables ---- */

static uint32_t tag_of(struct key key)
{
	return (uint32_t)key.low;
}

static size_t table_mask(const struct window *w)
{
	return SLOTS * w->size - 1;
}

static bool is_key_of(const struct window *w, struct slot slot, struct key key)
{
	if (slot.tag != tag_of(key))
		return false;
	const struct entry *entry = &w->entries[slot.place - 1];
	return entry->key.low == key.low && entry->key.high == key.high;
}

/* The slot of the key, or the empty one where it belongs. */
static struct slot *find(const struct window *w, struct slot *table, struct key key)
{
	size_t i = tag_of(key) & table_mask(w);
	while (table[i].place && !is_key_of(w, table[i], key))
		i = (i + 1) & table_mask(w);
	return &table[i];
}

static struct slot slot_for(const struct window *w, struct key key, uint64_t number)
{
	return (struct slot){tag_of(key), (uint32_t)(number & ring_mask(w)) + 1};
}

/* The number of the packet that a slot points to: the newest at that place of the ring. */
static uint64_t number_of(const struct window *w, const struct slot *slot)
{
	uint64_t newest = w->next - 1;
	return newest - ((newest - (slot->place - 1)) & ring_mask(w));
}

/* ---- Generations ---- */

static bool allocate(struct window *w, size_t size)
{
	w->size = size;
	w->entries = malloc(2 * size * sizeof(*w->entries));
	w->current = calloc(SLOTS * size, sizeof(*w->current));
	w->previous = calloc(SLOTS * size, sizeof(*w->previous));
	w->descents = malloc(2 * size * sizeof(*w->descents));
	return w->entries && w->current && w->previous && w->descents;
}

static void release(struct window *w)
{
	free(w->entries);
	free(w->current);
	free(w->previous);
	free(w->descents);
}

/* Both generations become the previous one of twice the size; false leaves all as it was. */
static bool grow(struct window *w)
{
	struct window bigger = *w;

	if (w->size * 2 > w->bounds.max_packets)
		return false;
	if (!allocate(&bigger, w->size * 2)) {
		release(&bigger);
		return false;
	}
	for (uint64_t n = w->previous_start; n < w->next; n++) {
		struct entry *entry = entry_at(w, n);
		*entry_at(&bigger, n) = *entry;
		*find(&bigger, bigger.previous, entry->key) = slot_for(&bigger, entry->key, n);
	}
	for (uint64_t i = w->first_descent; i < w->next_descent; i++)
		*descent_at(&bigger, i) = *descent_at(w, i);
	bigger.current_start = w->next;
	release(w);
	*w = bigger;
	return true;
}

static void forget_previous(struct window *w)
{
	struct slot *table = w->previous;

	w->previous = w->current;
	w->current = table;
	memset(table, 0, SLOTS * w->size * sizeof(*table));
	w->previous_start = w->current_start;
	w->current_start = w->next;
	while (w->first_descent < w->next_descent &&
	       *descent_at(w, w->first_descent) < w->previous_start)
		w->first_descent++;
}

/* How many of the previous generation the next packet, of that time, would still look for. */
static uint64_t still_within(const struct window *w, int64_t ts_ns)
{
	uint64_t first = w->current_start;
	while (first > w->previous_start && is_within(w, first - 1, ts_ns))
		first--;
	return w->current_start - first;
}

static void turn_over(struct window *w, int64_t ts_ns)
{
	bool needed = w->current_start > w->previous_start &&
		      is_within(w, w->current_start - 1, ts_ns);

	if (needed && grow(w))
		return;
	if (needed)
		w->evicted_early += still_within(w, ts_ns);
	forget_previous(w);
}

/* ---- The interface ---- */

struct window *window_new(const struct window_bounds *bounds)
{
	struct window *w = calloc(1, sizeof(*w));
	size_t size = LEAST_PACKETS;

	if (!w)
		return NULL;
	w->bounds = *bounds;
	while (size < FIRST_PACKETS && size * 2 <= bounds->max_packets)
		size *= 2;
	if (allocate(w, size))
		return w;
	window_free(w);
	return NULL;
}

void window_free(struct window *w)
{
	if (w)
		release(w);
	free(w);
}

bool window_add(struct window *w, struct key key, int64_t ts_ns)
{
	if (w->next - w->current_start == w->size)
		turn_over(w, ts_ns);
	struct slot *place = find(w, w->current, key);
	const struct slot *newest = place->place ? place : find(w, w->previous, key);
	bool seen = newest->place && is_within(w, number_of(w, newest), ts_ns);

	*entry_at(w, w->next) = (struct entry){key, ts_ns};
	*place = slot_for(w, key, w->next);
	note_descent(w, w->next);
	w->next++;
	return seen;
}

void window_prefetch(const struct window *w, struct key key)
{
	size_t i = tag_of(key) & table_mask(w);
	__builtin_prefetch(&w->current[i]);
	__builtin_prefetch(&w->previous[i]);
}

uint64_t window_evicted_early(const struct window *w)
{
	return w->evicted_early;
}
