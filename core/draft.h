/*
 * draft.h: a classic BPF program that is being written: lines with labels, which become
 * instructions when all is known.
 */
#ifndef WEIR_DRAFT_H
#define WEIR_DRAFT_H

#include <weir/plugin.h>

#include <glib.h>

#define WEIR_UNREACHABLE UINT32_MAX

struct weir_draft {
	GArray *lines, *labels;
	uint32_t known; /* packets that come to the line to come have at least that many bytes;
			   WEIR_UNREACHABLE: none come */
};

void weir_draft_init(struct weir_draft *draft);
void weir_draft_clear(struct weir_draft *draft);

/* Returns the first of n new labels. */
unsigned weir_draft_labels(struct weir_draft *draft, unsigned n);
/* The label is at the line to come. */
void weir_draft_place(struct weir_draft *draft, unsigned label);

void weir_draft_add(struct weir_draft *draft, uint16_t code, uint32_t k);
void weir_draft_branch(struct weir_draft *draft, uint16_t code, uint32_t k, unsigned t, unsigned f);
void weir_draft_jump(struct weir_draft *draft, unsigned to);
void weir_draft_return(struct weir_draft *draft, uint32_t bytes);

/* For g_free(). */
struct weir_insn *weir_draft_assemble(const struct weir_draft *draft, uint32_t *ret_len);

#endif
