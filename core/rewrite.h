/*
 * rewrite.h: the same as weir/filter.h, for whoever writes a larger program.
 */
#ifndef WEIR_REWRITE_H
#define WEIR_REWRITE_H

#include <weir/filter.h>

#include "draft.h"

/* Adds the rewritten program to the draft; A and X must be 0 there.  NULL, or why it cannot be, and
 * the draft is of no more use. */
const char *weir_rewrite(struct weir_draft *draft, const struct weir_insn *program, uint32_t len,
			 const struct weir_layout *layout);

#endif
