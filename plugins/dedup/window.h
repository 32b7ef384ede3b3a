/*
 * window.h: the packets of a while, and whether one equal to this is among them.
 *
 * A ring of keys in the order of arrival, and a table that finds the newest packet of each key by
 * open addressing.  Nothing expires by itself: what is out of the window is told apart when it is
 * found, and is overwritten when the ring is full.  So the cost of a packet does not depend on the
 * window, and both start small enough for a level-2 cache; they double when packets that are still
 * in the window would be overwritten, up to max_entries.
 */
#ifndef DEDUP_WINDOW_H
#define DEDUP_WINDOW_H

#include "key.h"

/* What bytes one packet of the window takes: ring, table, and a descent. */
enum { WINDOW_ENTRY_BYTES = 48 };

/*
 * Which earlier packets count: the packets - 1 before this one (0: no bound by number), and those
 * at most span_ns older (0: no bound by time).  Where time steps back in the stream, the search for
 * them goes back in order of arrival and ends at the first packet that is more than span_ns older.
 */
struct window_bounds {
	int64_t span_ns;
	uint64_t packets;
	bool both_ways; /* packets that are more than span_ns newer do not count either */
	size_t max_entries;
};

struct window;

struct window *window_new(const struct window_bounds *bounds); /* NULL: out of memory */
void window_free(struct window *window);                       /* takes NULL */

/* Adds a packet, and says whether an equal one was in its window. */
bool window_add(struct window *window, struct key key, int64_t ts_ns);

/* Brings the place where the key will be looked for into the cache. */
void window_prefetch(const struct window *window, struct key key);

/* How many packets were overwritten while they were still in the window, for want of memory. */
uint64_t window_evicted_early(const struct window *window);

#endif
