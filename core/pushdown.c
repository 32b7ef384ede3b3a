/*
 * pushdown.c: chains filters into one program, in two steps: lines with labels, then instructions.
 *
 * Filters stand one after another; where one would return, it jumps on: to the next filter of its
 * path, to the next path, or to the end.  Paths that want more bytes come first, so the first one
 * that accepts decides.
 *
 * A load beyond the end of a packet ends a whole program with 0, where it should only have rejected
 * one filter.  So such loads get a check of the length before them, unless an earlier one has
 * already seen to it, or rejecting is the end anyway, as in the only path of most pipelines.
 */
#include "pushdown.h"

#include <glib.h>
#include <linux/filter.h>

#define LABEL_NONE  UINT_MAX
#define UNREACHABLE UINT32_MAX
#define FAR         255u /* of a conditional jump, in instructions */

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

struct draft {
	GArray *lines, *labels;
	uint32_t known; /* the same, at the line to come; UNREACHABLE: none come */
	unsigned end;   /* the label where no path wants the packet */
	bool impossible;
};

/* The filter that is being copied. */
struct block {
	const struct weir_reduction *step;
	unsigned first_label;  /* of its instruction 0; the others follow */
	unsigned accept, fail; /* labels */
};

/* ---- Lines and labels ---- */

static unsigned new_labels(struct draft *draft, unsigned n)
{
	unsigned first = draft->labels->len;
	struct label label = {.line = 0, .known = UNREACHABLE};

	for (unsigned i = 0; i < n; i++)
		g_array_append_val(draft->labels, label);
	return first;
}

static struct label *label_at(const struct draft *draft, unsigned label)
{
	return &g_array_index(draft->labels, struct label, label);
}

static void place(struct draft *draft, unsigned label)
{
	label_at(draft, label)->line = draft->lines->len;
	draft->known = MIN(draft->known, label_at(draft, label)->known);
}

static void add_line(struct draft *draft, uint16_t code, uint32_t k, unsigned t, unsigned f)
{
	struct line line = {.insn = {.code = code, .k = k}, .t = t, .f = f};

	g_array_append_val(draft->lines, line);
}

static void add_plain(struct draft *draft, uint16_t code, uint32_t k)
{
	add_line(draft, code, k, LABEL_NONE, LABEL_NONE);
}

static void reach(struct draft *draft, unsigned label)
{
	label_at(draft, label)->known = MIN(label_at(draft, label)->known, draft->known);
}

static void add_branch(struct draft *draft, uint16_t code, uint32_t k, unsigned t, unsigned f)
{
	add_line(draft, code, k, t, f);
	reach(draft, t);
	reach(draft, f);
	draft->known = UNREACHABLE;
}

static void add_jump(struct draft *draft, unsigned to)
{
	add_line(draft, BPF_JMP | BPF_JA, 0, to, LABEL_NONE);
	reach(draft, to);
	draft->known = UNREACHABLE;
}

static void add_return(struct draft *draft, uint32_t bytes)
{
	add_plain(draft, BPF_RET | BPF_K, bytes);
	draft->known = UNREACHABLE;
}

/* ---- Loads that may be beyond the end ---- */

static uint32_t load_size(uint16_t code)
{
	switch (BPF_SIZE(code)) {
	case BPF_W:
		return 4;
	case BPF_H:
		return 2;
	default:
		return 1;
	}
}

/* Goes on where the accumulator passes the comparison, which loses what it holds. */
static void require(struct draft *draft, uint16_t code, uint32_t k, unsigned fail)
{
	unsigned next = new_labels(draft, 1);

	add_branch(draft, code, k, next, fail);
	place(draft, next);
}

/* The load is about to overwrite A. */
static void guard_absolute(struct draft *draft, uint32_t need, unsigned fail)
{
	add_plain(draft, BPF_LD | BPF_W | BPF_LEN, 0);
	require(draft, BPF_JMP | BPF_JGE | BPF_K, need, fail);
	draft->known = need;
}

/* The load is about to overwrite X, and not A. */
static void guard_header_length(struct draft *draft, uint32_t need, unsigned fail)
{
	add_plain(draft, BPF_MISC | BPF_TAX, 0);
	guard_absolute(draft, need, fail);
	add_plain(draft, BPF_MISC | BPF_TXA, 0);
}

/* At X and `need` bytes more. */
static void guard_indirect(struct draft *draft, uint32_t need, unsigned fail)
{
	add_plain(draft, BPF_LD | BPF_W | BPF_LEN, 0);
	require(draft, BPF_JMP | BPF_JGE | BPF_X, 0, fail);
	add_plain(draft, BPF_ALU | BPF_SUB | BPF_X, 0);
	require(draft, BPF_JMP | BPF_JGE | BPF_K, need, fail);
}

static bool is_packet_load(uint16_t code)
{
	switch (BPF_CLASS(code)) {
	case BPF_LD:
		return BPF_MODE(code) == BPF_ABS || BPF_MODE(code) == BPF_IND;
	case BPF_LDX:
		return BPF_MODE(code) == BPF_MSH;
	default:
		return false;
	}
}

static bool may_divide_by_zero(uint16_t code)
{
	return BPF_CLASS(code) == BPF_ALU && BPF_SRC(code) == BPF_X &&
	       (BPF_OP(code) == BPF_DIV || BPF_OP(code) == BPF_MOD);
}

static void guard(struct draft *draft, const struct block *block, const struct weir_insn *insn)
{
	uint32_t need = insn->k + load_size(insn->code);

	if (BPF_MODE(insn->code) == BPF_IND)
		guard_indirect(draft, need, block->fail);
	else if (draft->known >= need)
		return;
	else if (BPF_CLASS(insn->code) == BPF_LDX)
		guard_header_length(draft, need, block->fail);
	else
		guard_absolute(draft, need, block->fail);
}

/* ---- Filters ---- */

static unsigned target(const struct block *block, unsigned insn)
{
	const struct weir_insn *to = &block->step->filter[insn];

	if (to->code == (BPF_RET | BPF_K))
		return to->k ? block->accept : block->fail;
	return block->first_label + insn;
}

static void copy_jump(struct draft *draft, const struct block *block, unsigned i)
{
	const struct weir_insn *insn = &block->step->filter[i];

	if (BPF_OP(insn->code) == BPF_JA)
		add_jump(draft, target(block, i + 1 + insn->k));
	else
		add_branch(draft, insn->code, insn->k, target(block, i + 1 + insn->jt),
			   target(block, i + 1 + insn->jf));
}

static void copy_return(struct draft *draft, const struct block *block,
			const struct weir_insn *insn)
{
	if (BPF_RVAL(insn->code) == BPF_A)
		add_branch(draft, BPF_JMP | BPF_JEQ | BPF_K, 0, block->fail, block->accept);
	else
		add_jump(draft, insn->k ? block->accept : block->fail);
}

static void copy_plain(struct draft *draft, const struct block *block, const struct weir_insn *insn)
{
	bool fail_is_end = block->fail == draft->end;

	/* Beyond that are the kernel's own extensions, whose meaning depends on where they run. */
	if (is_packet_load(insn->code) && insn->k > INT32_MAX - 4)
		draft->impossible = true;
	else if (is_packet_load(insn->code) && !fail_is_end)
		guard(draft, block, insn);
	else if (may_divide_by_zero(insn->code) && !fail_is_end)
		draft->impossible = true;
	add_plain(draft, insn->code, insn->k);
}

static void copy_filter(struct draft *draft, const struct block *block)
{
	for (unsigned i = 0; i < block->step->filter_len; i++) {
		const struct weir_insn *insn = &block->step->filter[i];

		place(draft, block->first_label + i);
		if (draft->known == UNREACHABLE)
			continue; /* what led here leads to a return directly */
		if (BPF_CLASS(insn->code) == BPF_JMP)
			copy_jump(draft, block, i);
		else if (BPF_CLASS(insn->code) == BPF_RET)
			copy_return(draft, block, insn);
		else
			copy_plain(draft, block, insn);
	}
}

/* ---- Paths ---- */

static uint32_t limit_of(const struct weir_path *path)
{
	uint32_t limit = path->max_bytes;

	for (unsigned i = 0; i < path->n_steps; i++)
		limit = MIN(limit, path->steps[i]->max_bytes);
	return limit;
}

static bool cuts(const struct weir_reduction *step)
{
	return step->max_bytes != UINT32_MAX;
}

static bool has_filter(const struct weir_path *path)
{
	for (unsigned i = 0; i < path->n_steps; i++) {
		if (path->steps[i]->filter)
			return true;
		if (cuts(path->steps[i]))
			return false;
	}
	return false;
}

/* A step without a filter that is negated lets nothing through. */
static void add_step(struct draft *draft, const struct weir_reduction *step, unsigned next_path)
{
	unsigned next_step = new_labels(draft, 1);
	struct block block = {
		.step = step,
		.first_label = new_labels(draft, step->filter_len),
		.accept = step->negate ? next_path : next_step,
		.fail = step->negate ? next_step : next_path,
	};

	copy_filter(draft, &block);
	place(draft, next_step);
}

static void add_path(struct draft *draft, const struct weir_path *path, unsigned next_path)
{
	for (unsigned i = 0; i < path->n_steps; i++) {
		if (path->steps[i]->filter)
			add_step(draft, path->steps[i], next_path);
		if (cuts(path->steps[i]))
			break;
	}
	if (draft->known != UNREACHABLE)
		add_return(draft, limit_of(path));
	if (next_path != draft->end)
		place(draft, next_path);
}

static int compare_limits(const void *a, const void *b)
{
	uint32_t limit_a = limit_of(*(const struct weir_path *const *)a);
	uint32_t limit_b = limit_of(*(const struct weir_path *const *)b);

	return (limit_a < limit_b) - (limit_a > limit_b);
}

/* The paths that can decide, the one with the largest limit first. */
static GPtrArray *in_order(const struct weir_path *paths, unsigned n_paths)
{
	GPtrArray *order = g_ptr_array_new();

	for (unsigned i = 0; i < n_paths; i++)
		if (limit_of(&paths[i]) > 0)
			g_ptr_array_add(order, (gpointer)&paths[i]);
	g_ptr_array_sort(order, compare_limits);
	for (unsigned i = 0; i < order->len; i++)
		if (!has_filter(order->pdata[i]))
			g_ptr_array_set_size(order, (int)i + 1);
	return order;
}

static bool wants_everything(const struct weir_path *paths, unsigned n_paths)
{
	for (unsigned i = 0; i < n_paths; i++)
		if (limit_of(&paths[i]) == UINT32_MAX && !has_filter(&paths[i]))
			return true;
	return false;
}

static void draft_paths(struct draft *draft, const GPtrArray *order)
{
	for (unsigned i = 0; i < order->len; i++) {
		bool last = i + 1 == order->len;

		add_path(draft, order->pdata[i], last ? draft->end : new_labels(draft, 1));
	}
	place(draft, draft->end);
	add_return(draft, 0);
}

/* ---- Instructions ---- */

static struct line *line_at(const struct draft *draft, unsigned line)
{
	return &g_array_index(draft->lines, struct line, line);
}

static bool is_branch(const struct line *line)
{
	return line->f != LABEL_NONE;
}

/* A jump to the next line is nothing. */
static uint32_t size_of(const struct draft *draft, unsigned i)
{
	const struct line *line = line_at(draft, i);

	if (is_branch(line))
		return line->is_long ? 3 : 1;
	return line->t != LABEL_NONE && label_at(draft, line->t)->line == i + 1 ? 0 : 1;
}

static uint32_t where(const struct draft *draft, unsigned label)
{
	return line_at(draft, label_at(draft, label)->line)->at;
}

static uint32_t assign(const struct draft *draft)
{
	uint32_t at = 0;

	for (unsigned i = 0; i < draft->lines->len; i++) {
		line_at(draft, i)->at = at;
		at += size_of(draft, i);
	}
	return at;
}

/* False: all short jumps are short enough. */
static bool lengthen(const struct draft *draft)
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

static void write_line(const struct draft *draft, unsigned i, struct weir_insn *program)
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

static struct weir_insn *assemble(const struct draft *draft, uint32_t *ret_len)
{
	struct weir_insn *program;
	uint32_t len;

	do
		len = assign(draft);
	while (lengthen(draft));
	if (len > BPF_MAXINSNS)
		return NULL;
	program = g_new0(struct weir_insn, len);
	for (unsigned i = 0; i < draft->lines->len; i++)
		write_line(draft, i, program);
	*ret_len = len;
	return program;
}

struct weir_insn *weir_pushdown_compose(const struct weir_path *paths, unsigned n_paths,
					uint32_t *ret_len)
{
	g_autoptr(GArray) lines = g_array_new(FALSE, TRUE, sizeof(struct line));
	g_autoptr(GArray) labels = g_array_new(FALSE, TRUE, sizeof(struct label));
	g_autoptr(GPtrArray) order = in_order(paths, n_paths);
	struct draft draft = {.lines = lines, .labels = labels};

	if (wants_everything(paths, n_paths))
		return NULL;
	draft.end = new_labels(&draft, 1);
	draft_paths(&draft, order);
	return draft.impossible ? NULL : assemble(&draft, ret_len);
}
