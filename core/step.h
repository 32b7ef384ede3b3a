/*
 * step.h: what a stage leaves of a packet, made ready to become part of a program for the kernel.
 */
#ifndef WEIR_STEP_H
#define WEIR_STEP_H

#include <weir/plugin.h>

struct weir_step {
	const struct weir_insn *filter; /* about the bytes of the wire; NULL: all packets */
	uint32_t filter_len;
	bool negate;
	uint32_t max_bytes; /* UINT32_MAX: all */
	uint32_t looks_at;  /* how many bytes of a packet the filter may look at */
	struct weir_insn *own;
};

/* Borrows the filter.  NULL: it would not mean the same in the kernel; the reason lives for ever.
 */
struct weir_step *weir_step_new(const struct weir_reduction *reduction, const char **ret_why_not);
void weir_step_free(struct weir_step *step); /* takes NULL */

#endif
