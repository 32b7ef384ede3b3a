/*
 * window.h: the packets of a while, and whether one equal to this is among them.
 *
 * Packets come in generations of equal size: the current one, which fills, and the previous one.
 * Each has a table that finds the newest packet of a key by open addressing; when the current one
 * is full, the previous one is forgotten at once and its table cleared.  Taking out each packet by
 * itself made two thirds of the cost of a packet, most of it in branches that cannot be predicted.
 *
 * What is out of the window is told apart when it is found, so the cost does not depend on the
 * window.  A generation starts small enough for a level-2 cache, and doubles when packets that are
 * still in the window would be forgotten.
 */
#ifndef DEDUP_WINDOW_H
#define DEDUP_WINDOW_H

#include "key.h"

/* What one packet of a generation takes, in both of them: ring, tables and descents. */
enum { WINDOW_PACKET_BYTES = 128 };

/*
 * Which earlier packets count: the packets - 1 before this one (0: no bound by number), and those
 * at most span_ns older (0: no bound by time).  Where time steps back in the stream, the search for
 * them goes back in order of arrival and ends at the first packet that is more than span_ns older.
 */
struct window_bounds {
	int64_t span_ns;
	uint64_t packets;
	bool both_ways;     /* packets that are more than span_ns newer do not count either */
	size_t max_packets; /* of a generation: as many are always remembered, up to twice as many
			     */
};

struct window;

struct window *window_new(const struct window_bounds *bounds); /* NULL: out of memory */
void window_free(struct window *window);                       /* takes NULL */

/* Adds a packet, and says whether its window holds an equal one: the newest counts. */
bool window_add(struct window *window, struct key key, int64_t ts_ns);

/* Brings the places where the key will be looked for into the cache. */
void window_prefetch(const struct window *window, struct key key);

/* How many packets were forgotten while they were still in the window, for want of memory. */
uint64_t window_evicted_early(const struct window *window);

#endif
