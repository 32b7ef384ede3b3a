#include "window.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ENTRIES = 1 << 14, LEAST_ENTRIES = 1 << 6 };

struct entry {
	struct key key;
	int64_t ts_ns;
};

/* Of a key: 32 bits of it, and the place of its newest packet in the ring, plus 1; 0: empty. */
struct slot {
	uint32_t tag, place;
};

/*
 * Packets have numbers in the order of arrival; number n is at n % capacity of the ring.  All
 * capacities are powers of two, and the table is twice as long as the ring.
 */
struct window {
	struct window_bounds bounds;
	struct entry *entries;
	struct slot *slots;
	size_t capacity;
	uint64_t oldest, next; /* the ring holds oldest to next - 1 */

	/* Numbers of packets that are older than the one before them, as long as no later packet is
	 * as old: so their times rise.  A ring of its own, empty where time never steps back. */
	uint64_t *descents;
	uint64_t first_descent, next_descent;

	uint64_t evicted_early;
};

_Static_assert(sizeof(struct entry) + 2 * sizeof(struct slot) + sizeof(uint64_t) ==
		       WINDOW_ENTRY_BYTES,
	       "the bound of memory counts on it");

static struct entry *entry_at(const struct window *w, uint64_t number)
{
	return &w->entries[number & (w->capacity - 1)];
}

/* ---- Time ---- */

static uint64_t *descent_at(const struct window *w, uint64_t i)
{
	return &w->descents[i & (w->capacity - 1)];
}

static int64_t descent_time(const struct window *w, uint64_t i)
{
	return entry_at(w, *descent_at(w, i))->ts_ns;
}

static void note_descent(struct window *w, uint64_t number)
{
	int64_t ts_ns = entry_at(w, number)->ts_ns;

	if (number == w->oldest || entry_at(w, number - 1)->ts_ns <= ts_ns)
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

/* ---- The table ---- */

static uint32_t tag_of(struct key key)
{
	return (uint32_t)key.low;
}

static bool is_key_of(const struct window *w, struct slot slot, struct key key)
{
	if (slot.tag != tag_of(key))
		return false;
	const struct entry *entry = &w->entries[slot.place - 1];
	return entry->key.low == key.low && entry->key.high == key.high;
}

/* The slot of the key, or the empty one where it belongs. */
static size_t find(const struct window *w, struct key key)
{
	size_t mask = 2 * w->capacity - 1;
	size_t i = tag_of(key) & mask;
	while (w->slots[i].place && !is_key_of(w, w->slots[i], key))
		i = (i + 1) & mask;
	return i;
}

/* Closes the gap: each slot that a search would no longer reach moves into it (Knuth, 6.4 R). */
static void remove_slot(struct window *w, size_t gap)
{
	size_t mask = 2 * w->capacity - 1;

	for (size_t i = (gap + 1) & mask; w->slots[i].place; i = (i + 1) & mask) {
		size_t home = w->slots[i].tag & mask;
		if (((i - home) & mask) < ((i - gap) & mask))
			continue;
		w->slots[gap] = w->slots[i];
		gap = i;
	}
	w->slots[gap] = (struct slot){0};
}

static struct slot slot_for(const struct window *w, struct key key, uint64_t number)
{
	uint32_t place = (uint32_t)(number & (w->capacity - 1));
	return (struct slot){tag_of(key), place + 1};
}

/* The number of the packet that a slot points to: the newest at that place of the ring. */
static uint64_t number_of(const struct window *w, struct slot slot)
{
	uint64_t newest = w->next - 1;
	return newest - ((newest - (slot.place - 1)) & (w->capacity - 1));
}

/* ---- Room ---- */

static void drop_oldest(struct window *w)
{
	size_t i = find(w, entry_at(w, w->oldest)->key);
	if (number_of(w, w->slots[i]) == w->oldest)
		remove_slot(w, i);
	if (w->first_descent < w->next_descent && *descent_at(w, w->first_descent) == w->oldest)
		w->first_descent++;
	w->oldest++;
}

static bool allocate(struct window *w, size_t capacity)
{
	w->capacity = capacity;
	w->entries = malloc(capacity * sizeof(*w->entries));
	w->slots = calloc(2 * capacity, sizeof(*w->slots));
	w->descents = malloc(capacity * sizeof(*w->descents));
	return w->entries && w->slots && w->descents;
}

static void release(struct window *w)
{
	free(w->entries);
	free(w->slots);
	free(w->descents);
}

/* Into twice the room; false leaves the window as it was. */
static bool grow(struct window *w)
{
	struct window bigger = *w;

	if (w->capacity * 2 > w->bounds.max_entries)
		return false;
	if (!allocate(&bigger, w->capacity * 2)) {
		release(&bigger);
		return false;
	}
	for (uint64_t n = w->oldest; n < w->next; n++) {
		struct entry *entry = entry_at(w, n);
		*entry_at(&bigger, n) = *entry;
		bigger.slots[find(&bigger, entry->key)] = slot_for(&bigger, entry->key, n);
	}
	for (uint64_t i = w->first_descent; i < w->next_descent; i++)
		*descent_at(&bigger, i) = *descent_at(w, i);
	release(w);
	*w = bigger;
	return true;
}

static void make_room(struct window *w, int64_t ts_ns)
{
	if (w->next - w->oldest < w->capacity)
		return;
	if (is_within(w, w->oldest, ts_ns)) {
		if (grow(w))
			return;
		w->evicted_early++;
	}
	drop_oldest(w);
}

/* ---- The interface ---- */

struct window *window_new(const struct window_bounds *bounds)
{
	struct window *w = calloc(1, sizeof(*w));
	size_t capacity = LEAST_ENTRIES;

	if (!w)
		return NULL;
	w->bounds = *bounds;
	while (capacity < FIRST_ENTRIES && capacity * 2 <= bounds->max_entries)
		capacity *= 2;
	if (allocate(w, capacity))
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
	make_room(w, ts_ns);
	size_t i = find(w, key);
	bool seen = w->slots[i].place && is_within(w, number_of(w, w->slots[i]), ts_ns);

	*entry_at(w, w->next) = (struct entry){key, ts_ns};
	w->slots[i] = slot_for(w, key, w->next);
	note_descent(w, w->next);
	w->next++;
	return seen;
}

void window_prefetch(const struct window *w, struct key key)
{
	__builtin_prefetch(&w->slots[tag_of(key) & (2 * w->capacity - 1)]);
}

uint64_t window_evicted_early(const struct window *w)
{
	return w->evicted_early;
}
