/*
 * queue.h: the only thread boundary: single-producer, single-consumer rings of copied packets, one
 * for each pair of a producing and a consuming lane.
 *
 * A consumer takes the earliest packet of its rings first.  It may take one only if no ring can
 * still bring an older one: each ring is either not empty, or its mark says so.  Keys (times that
 * never step back within a ring) make every ring and every mark monotone, so that the lane with the
 * smallest key can always go on: a wait for room cannot wait for itself.
 */
#ifndef WEIR_QUEUE_H
#define WEIR_QUEUE_H

#include <weir/plugin.h>

struct weir_ring;

/* The plugin `queue`: a stage in the producing lanes, the source of the consuming ones. */
extern const struct weir_plugin weir_queue_plugin;

enum { WEIR_QUEUE_OUT, WEIR_QUEUE_FULL, WEIR_QUEUE_ABANDONED };
enum { WEIR_ON_FULL_AUTO, WEIR_ON_FULL_DROP, WEIR_ON_FULL_BLOCK };

struct weir_queue_config {
	uint64_t size;
	int64_t lanes;
	uint32_t on_full;
	int64_t window_ns;
};

/* The least size of a ring: it must hold any record. */
#define WEIR_RING_MIN (640u * 1024u)

/* Wakes a lane; called from the thread of the ring's other side. */
typedef void (*weir_ring_wake)(void *lane);

struct weir_ring *weir_ring_new(uint64_t bytes, weir_ring_wake wake, void *producer,
				void *consumer);
void weir_ring_free(struct weir_ring *ring);
/* How many records, as large as they can be, it holds at least. */
unsigned weir_ring_records(const struct weir_ring *ring);

/* Producer: copies the packet; false: no room. */
bool weir_ring_push(struct weir_ring *ring, const struct weir_packet *packet);
/* Producer: no later packet of this ring will be older; done: none will follow.  Wakes the
 * consumer. */
void weir_ring_mark(struct weir_ring *ring, int64_t mark_ns, bool done);
/* Producer: the latest time in this ring so far; INT64_MIN: none. */
int64_t weir_ring_key(const struct weir_ring *ring);
/* Producer: is about to wait for room; from now on the consumer wakes it. Try to push once more,
 * then sleep. */
void weir_ring_await_room(struct weir_ring *ring);

/* The consuming side: all the rings of one consuming lane. */
struct weir_merge {
	struct weir_ring **rings;
	unsigned n;
	int64_t window_ns; /* how long to wait for a ring that brings nothing; INT64_MAX: for ever
			    */
	int64_t waiting_since_ns; /* 0: not waiting */
	int64_t last_key_ns;
	uint64_t late; /* packets that came after younger ones had been delivered */
};

/* Makes room for n rings, which the caller adds. */
void weir_merge_init(struct weir_merge *merge, unsigned n, int64_t window_ns);

/*
 * Up to max packets, the earliest first, which stay valid until the next call gives their room
 * back.  0: nothing may be delivered yet; WEIR_END: all rings are done and empty. *ret_mark_ns: no
 * later packet will be older.  now_ns: CLOCK_MONOTONIC, for the window.
 */
int weir_merge_take(struct weir_merge *merge, struct weir_packet *packets, unsigned max,
		    int64_t now_ns, int64_t *ret_mark_ns);
/* Is about to sleep; from now on producers wake it. Take once more, then sleep. */
void weir_merge_await(struct weir_merge *merge);

/* What a seat of the queue holds, in self->lane. */
struct weir_queue_seat {
	struct weir_ring *
		*out; /* in a producing lane: one ring for each consuming lane, n_out of them */
	unsigned n_out;
	struct weir_merge merge; /* in a consuming lane */
};

/* Whether packets at this producing seat wait for room, as its lane does by itself or as on-full=
 * says. */
bool weir_queue_waits(struct weir_self *self);

#endif
