/*
 * marks.h: what no later packet is older than, at each post of a lane.
 *
 * The mark of the head goes along the edges, and is held back by stages that hold packets.
 */
#ifndef WEIR_MARKS_H
#define WEIR_MARKS_H

#include "post.h"

/*
 * Sets the mark of each post from the head's, mark_ns; posts are in topological order.  heed_holds:
 * else as if no stage held anything, and what it holds will be late.
 */
void weir_marks_spread(const struct weir_post *head, const GPtrArray *posts, int64_t mark_ns,
		       bool heed_holds);
/* All that was emitted has arrived: from now on only that is held which stages still hold. */
void weir_marks_settle(const GPtrArray *posts);
/* The youngest key in any ring that these posts feed; INT64_MIN: none was pushed. */
int64_t weir_marks_youngest(const GPtrArray *posts);
/* Publishes the marks of queues on the rings that they feed, none below least_ns. */
void weir_marks_publish(const GPtrArray *posts, int64_t least_ns);
/* Nothing will follow. */
void weir_marks_end(const GPtrArray *posts);

#endif
