/*
 * untag.c: three copies of the filter, for no tag, one and two, behind a look at how many there
 * are.
 */
#include "untag.h"

#include "rewrite.h"

#include <linux/filter.h>

enum { TYPE_AT = 12, TAG_BYTES = 4, EXACT_TAGS = 2 };

static const uint16_t tag_types[] = {0x8100, 0x88a8, 0x9100, 0x9200}; /* of weir_vlan_tags() */

/* Goes on if there is another whole tag behind n of them, else to `none`. */
static void look_for_tag(struct weir_draft *draft, unsigned n, unsigned none)
{
	unsigned found = weir_draft_labels(draft, 1), next = weir_draft_labels(draft, 1);
	uint32_t at = TYPE_AT + n * TAG_BYTES;

	weir_draft_add(draft, BPF_LD | BPF_W | BPF_LEN, 0);
	weir_draft_branch(draft, BPF_JMP | BPF_JGE | BPF_K, at + 2 + TAG_BYTES, next, none);
	weir_draft_place(draft, next);
	weir_draft_add(draft, BPF_LD | BPF_H | BPF_ABS, at);
	for (unsigned i = 0; i < G_N_ELEMENTS(tag_types); i++) {
		bool last = i + 1 == G_N_ELEMENTS(tag_types);

		next = last ? none : weir_draft_labels(draft, 1);
		weir_draft_branch(draft, BPF_JMP | BPF_JEQ | BPF_K, tag_types[i], found, next);
		if (!last)
			weir_draft_place(draft, next);
	}
	weir_draft_place(draft, found);
}

struct weir_insn *weir_untag(const struct weir_insn *filter, uint32_t len, bool negate,
			     uint32_t *ret_len, const char **ret_why_not)
{
	struct weir_insn *program = NULL;
	const char *why_not = NULL;
	struct weir_draft draft;
	unsigned behind;

	weir_draft_init(&draft);
	behind = weir_draft_labels(&draft, EXACT_TAGS + 1);
	for (unsigned n = 0; n <= EXACT_TAGS; n++)
		look_for_tag(&draft, n, behind + n);
	weir_draft_return(&draft, negate ? 0 : UINT32_MAX);
	for (unsigned n = 0; n <= EXACT_TAGS && !why_not; n++) {
		struct weir_layout layout = {.at = TYPE_AT, .shift = (int32_t)(n * TAG_BYTES)};

		weir_draft_place(&draft, behind + n);
		weir_draft_add(&draft, BPF_LD | BPF_IMM, 0);
		why_not = weir_rewrite(&draft, filter, len, &layout);
	}
	if (why_not)
		*ret_why_not = why_not;
	else
		program = weir_draft_assemble(&draft, ret_len);
	weir_draft_clear(&draft);
	return program;
}
