#include "draft.h"

#include <linux/filter.h>

#define LABEL_NONE UINT_MAX
#define FAR        255u /* of a conditional jump, in instructions */

struct line {
	struct weir_insn insn;
	unsigned t, f; /* labels: of a jump's two targets; only t where it is unconditional */
	bool is_long;  /* a conditional jump by way of two unconditional ones */
	uint32_t at;   /* the instruction that it begins with */
};

struct label {
	unsigned line;
	uint32_t known; /* packets that come here have at least that many bytes */
};

void weir_draft_init(struct weir_draft *draft)
{
	draft->lines = g_array_new(FALSE, TRUE, sizeof(struct line));
	draft->labels = g_array_new(FALSE, TRUE, sizeof(struct label));
	draft->known = 0;
}

void weir_draft_clear(struct weir_draft *draft)
{
	g_array_unref(draft->lines);
	g_array_unref(draft->labels);
}

/* ---- Lines and labels ---- */

unsigned weir_draft_labels(struct weir_draft *draft, unsigned n)
{
	unsigned first = draft->labels->len;
	struct label label = {.line = 0, .known = WEIR_UNREACHABLE};

	for (unsigned i = 0; i < n; i++)
		g_array_append_val(draft->labels, label);
	return first;
}

static struct label *label_at(const struct weir_draft *draft, unsigned label)
{
	return &g_array_index(draft->labels, struct label, label);
}

void weir_draft_place(struct weir_draft *draft, unsigned label)
{
	label_at(draft, label)->line = draft->lines->len;
	draft->known = MIN(draft->known, label_at(draft, label)->known);
}

static void add_line(struct weir_draft *draft, uint16_t code, uint32_t k, unsigned t, unsigned f)
{
	struct line line = {.insn = {.code = code, .k = k}, .t = t, .f = f};

	g_array_append_val(draft->lines, line);
}

void weir_draft_add(struct weir_draft *draft, uint16_t code, uint32_t k)
{
	add_line(draft, code, k, LABEL_NONE, LABEL_NONE);
}

static void reach(struct weir_draft *draft, unsigned label)
{
	label_at(draft, label)->known = MIN(label_at(draft, label)->known, draft->known);
}

void weir_draft_branch(struct weir_draft *draft, uint16_t code, uint32_t k, unsigned t, unsigned f)
{
	add_line(draft, code, k, t, f);
	reach(draft, t);
	reach(draft, f);
	draft->known = WEIR_UNREACHABLE;
}

void weir_draft_jump(struct weir_draft *draft, unsigned to)
{
	add_line(draft, BPF_JMP | BPF_JA, 0, to, LABEL_NONE);
	reach(draft, to);
	draft->known = WEIR_UNREACHABLE;
}

void weir_draft_return(struct weir_draft *draft, uint32_t bytes)
{
	weir_draft_add(draft, BPF_RET | BPF_K, bytes);
	draft->known = WEIR_UNREACHABLE;
}

/* ---- Instructions ---- */

static struct line *line_at(const struct weir_draft *draft, unsigned line)
{
	return &g_array_index(draft->lines, struct line, line);
}

static bool is_branch(const struct line *line)
{
	return line->f != LABEL_NONE;
}

/* A jump to the next line is nothing. */
static uint32_t size_of(const struct weir_draft *draft, unsigned i)
{
	const struct line *line = line_at(draft, i);

	if (is_branch(line))
		return line->is_long ? 3 : 1;
	return line->t != LABEL_NONE && label_at(draft, line->t)->line == i + 1 ? 0 : 1;
}

static uint32_t where(const struct weir_draft *draft, unsigned label)
{
	return line_at(draft, label_at(draft, label)->line)->at;
}

static uint32_t assign(const struct weir_draft *draft)
{
	uint32_t at = 0;

	for (unsigned i = 0; i < draft->lines->len; i++) {
		line_at(draft, i)->at = at;
		at += size_of(draft, i);
	}
	return at;
}

/* False: all short jumps are short enough. */
static bool lengthen(const struct weir_draft *draft)
{
	bool changed = false;

	for (unsigned i = 0; i < draft->lines->len; i++) {
		struct line *line = line_at(draft, i);

		if (!is_branch(line) || line->is_long)
			continue;
		line->is_long = where(draft, line->t) - line->at - 1 > FAR ||
				where(draft, line->f) - line->at - 1 > FAR;
		changed |= line->is_long;
	}
	return changed;
}

static void write_line(const struct weir_draft *draft, unsigned i, struct weir_insn *program)
{
	const struct line *line = line_at(draft, i);
	struct weir_insn *to = &program[line->at];

	if (size_of(draft, i) == 0)
		return;
	to[0] = line->insn;
	if (line->is_long) {
		to[0].jf = 1;
		to[1].code = to[2].code = BPF_JMP | BPF_JA;
		to[1].k = where(draft, line->t) - line->at - 2;
		to[2].k = where(draft, line->f) - line->at - 3;
	} else if (is_branch(line)) {
		to[0].jt = (uint8_t)(where(draft, line->t) - line->at - 1);
		to[0].jf = (uint8_t)(where(draft, line->f) - line->at - 1);
	} else if (line->t != LABEL_NONE) {
		to[0].k = where(draft, line->t) - line->at - 1;
	}
}

struct weir_insn *weir_draft_assemble(const struct weir_draft *draft, uint32_t *ret_len)
{
	struct weir_insn *program;
	uint32_t len;

	do
		len = assign(draft);
	while (lengthen(draft));
	program = g_new0(struct weir_insn, len);
	for (unsigned i = 0; i < draft->lines->len; i++)
		write_line(draft, i, program);
	*ret_len = len;
	return program;
}
