/*
 * lane.h: one thread that owns one share of a source or queue and all nodes downstream of it.
 *
 * A batch runs through the graph to completion in that thread.  Lanes share nothing per packet.
 */
#ifndef WEIR_LANE_H
#define WEIR_LANE_H

#include "plan.h"
#include "post.h"

struct weir_lane;
struct weir_arena;

/* ---- Main thread ---- */

struct weir_lane *weir_lane_new(struct weir_context *context, const struct weir_domain *domain,
				unsigned index);
void weir_lane_free(struct weir_lane *lane); /* takes NULL; the thread must have been joined */
/* Takes ownership: the head first, then the rest in topological order. */
void weir_lane_add(struct weir_lane *lane, struct weir_post *post);
/* Once all its posts are connected. */
void weir_lane_ready(struct weir_lane *lane);
/* No batch shall be larger than that. */
void weir_lane_limit_batch(struct weir_lane *lane, unsigned packets);
/* The post of an instance in this lane; NULL: it has none. */
struct weir_post *weir_lane_post(const struct weir_lane *lane,
				 const struct weir_instance *instance);

/* All its posts, the head first. */
unsigned weir_lane_n_posts(const struct weir_lane *lane);
struct weir_post *weir_lane_nth_post(const struct weir_lane *lane, unsigned n);

bool weir_lane_start(struct weir_lane *lane, GError **error);
/* Instead of start, where the run fails: whoever waits for its packets shall not. */
void weir_lane_skip(struct weir_lane *lane);
/* HUP: tick() with WEIR_TICK_REOPEN soon. */
void weir_lane_reopen(struct weir_lane *lane);
bool weir_lane_ended(const struct weir_lane *lane);
void weir_lane_join(struct weir_lane *lane);

/* "tap/0": the head's name and the index. */
const char *weir_lane_name(const struct weir_lane *lane);
/* Processor seconds that its thread has used, as of its last witness. */
double weir_lane_cpu_seconds(const struct weir_lane *lane);

/* ---- Any thread ---- */

/* Something has changed that a sleeping or waiting lane should look at. */
void weir_lane_wake(struct weir_lane *lane);
const struct weir_domain *weir_lane_domain(const struct weir_lane *lane);

/* ---- The lane's own thread ---- */

/* CLOCK_MONOTONIC in ns as of this batch; and now. */
int64_t weir_lane_now(const struct weir_lane *lane);
int64_t weir_lane_clock(struct weir_lane *lane);
/* Until weir_lane_wake(), then true, or the timeout. */
bool weir_lane_sleep(struct weir_lane *lane, int timeout_ms);
/*
 * The same for a judge() that has no room: lets consumers of this lane's rings go on first, so that
 * two lanes cannot wait for each other.  false: give up, since the run is abandoned, or is stopping
 * and nothing has moved for a second.
 */
bool weir_lane_wait(struct weir_lane *lane, int timeout_ms);
/* Has the source take new counts, if it is the head of this lane. */
void weir_lane_witness(struct weir_lane *lane, const struct weir_instance *source);
struct weir_arena *weir_lane_arena(struct weir_lane *lane);
uint32_t weir_lane_flow(struct weir_lane *lane, struct weir_packet *packet);

#endif
