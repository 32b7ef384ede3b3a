/*
 * pushdown.h: one classic BPF program out of what all the paths from a source leave of a packet.
 */
#ifndef WEIR_PUSHDOWN_H
#define WEIR_PUSHDOWN_H

#include "step.h"

/* A way from a source to where nothing more can be said of what is left of a packet. */
struct weir_path {
	const struct weir_step *const *steps; /* from the source on */
	unsigned n_steps;
	uint32_t max_bytes; /* what its end takes at most; UINT32_MAX: all */
};

/*
 * A program that returns, for a packet that is there with all its bytes on the wire, the most bytes
 * that any path wants of it: 0 for none.  Of a path count the filters up to the first step that
 * cuts, since later ones see cut packets, and the smallest of its limits; but no packet is cut
 * shorter than to what any filter looks at, since the stages run once more on what is left.
 *
 * For g_free().  NULL: some path wants everything, or it would be too long for the kernel; the
 * reason is for g_free().
 */
struct weir_insn *weir_pushdown_compose(const struct weir_path *paths, unsigned n_paths,
					uint32_t *ret_len, char **ret_why_not);

#endif
