/*
 * pushdown.c: chains filters into one program.
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

#include "draft.h"
#include "trace.h"

#include <linux/filter.h>

/* The filter that is being copied. */
struct block {
	const struct weir_step *step;
	unsigned first_label;  /* of its instruction 0; the others follow */
	unsigned accept, fail; /* labels */
	bool fail_is_end;      /* no later path may want what it rejects */
};

/* What the paths are composed by. */
struct order {
	GPtrArray *paths; /* const struct weir_path *, those that can decide, most bytes first */
	uint32_t floor;   /* bytes that filters look at */
};

/* ---- Loads that may be beyond the end ---- */

/* Goes on where the accumulator passes the comparison, which loses what it holds. */
static void require(struct weir_draft *draft, uint16_t code, uint32_t k, unsigned fail)
{
	unsigned next = weir_draft_labels(draft, 1);

	weir_draft_branch(draft, code, k, next, fail);
	weir_draft_place(draft, next);
}

/* The load is about to overwrite A. */
static void guard_absolute(struct weir_draft *draft, uint32_t need, unsigned fail)
{
	weir_draft_add(draft, BPF_LD | BPF_W | BPF_LEN, 0);
	require(draft, BPF_JMP | BPF_JGE | BPF_K, need, fail);
	draft->known = need;
}

/* The load is about to overwrite X, and not A. */
static void guard_header_length(struct weir_draft *draft, uint32_t need, unsigned fail)
{
	weir_draft_add(draft, BPF_MISC | BPF_TAX, 0);
	guard_absolute(draft, need, fail);
	weir_draft_add(draft, BPF_MISC | BPF_TXA, 0);
}

/* At X and `need` bytes more. */
static void guard_indirect(struct weir_draft *draft, uint32_t need, unsigned fail)
{
	weir_draft_add(draft, BPF_LD | BPF_W | BPF_LEN, 0);
	require(draft, BPF_JMP | BPF_JGE | BPF_X, 0, fail);
	weir_draft_add(draft, BPF_ALU | BPF_SUB | BPF_X, 0);
	require(draft, BPF_JMP | BPF_JGE | BPF_K, need, fail);
}

static void guard(struct weir_draft *draft, const struct block *block, const struct weir_insn *insn)
{
	uint32_t need = insn->k + weir_load_size(insn->code);

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

static void copy_jump(struct weir_draft *draft, const struct block *block, unsigned i)
{
	const struct weir_insn *insn = &block->step->filter[i];

	if (BPF_OP(insn->code) == BPF_JA)
		weir_draft_jump(draft, target(block, i + 1 + insn->k));
	else
		weir_draft_branch(draft, insn->code, insn->k, target(block, i + 1 + insn->jt),
				  target(block, i + 1 + insn->jf));
}

static void copy_return(struct weir_draft *draft, const struct block *block,
			const struct weir_insn *insn)
{
	if (BPF_RVAL(insn->code) == BPF_A)
		weir_draft_branch(draft, BPF_JMP | BPF_JEQ | BPF_K, 0, block->fail, block->accept);
	else
		weir_draft_jump(draft, insn->k ? block->accept : block->fail);
}

static void copy_plain(struct weir_draft *draft, const struct block *block,
		       const struct weir_insn *insn)
{
	if (weir_is_packet_load(insn->code) && !block->fail_is_end)
		guard(draft, block, insn);
	weir_draft_add(draft, insn->code, insn->k);
}

static void copy_filter(struct weir_draft *draft, const struct block *block)
{
	for (unsigned i = 0; i < block->step->filter_len; i++) {
		const struct weir_insn *insn = &block->step->filter[i];

		weir_draft_place(draft, block->first_label + i);
		if (draft->known == WEIR_UNREACHABLE)
			continue; /* what led here leads to a return directly */
		if (BPF_CLASS(insn->code) == BPF_JMP)
			copy_jump(draft, block, i);
		else if (BPF_CLASS(insn->code) == BPF_RET)
			copy_return(draft, block, insn);
		else
			copy_plain(draft, block, insn);
	}
}

/* ---- Limits ---- */

static bool cuts(const struct weir_step *step)
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

static uint32_t looked_at(const struct weir_path *path)
{
	uint32_t most = 0, cut = UINT32_MAX;

	for (unsigned i = 0; i < path->n_steps; i++) {
		most = MAX(most, MIN(path->steps[i]->looks_at, cut));
		cut = MIN(cut, path->steps[i]->max_bytes);
	}
	return most;
}

static uint32_t limit_of(const struct weir_path *path, uint32_t floor)
{
	uint32_t limit = path->max_bytes;

	for (unsigned i = 0; i < path->n_steps; i++)
		limit = MIN(limit, path->steps[i]->max_bytes);
	return limit ? MAX(limit, floor) : 0;
}

static int compare_limits(const void *a, const void *b)
{
	uint32_t limit_a = limit_of(*(const struct weir_path *const *)a, 0);
	uint32_t limit_b = limit_of(*(const struct weir_path *const *)b, 0);

	return (limit_a < limit_b) - (limit_a > limit_b);
}

static void put_in_order(struct order *order, const struct weir_path *paths, unsigned n_paths)
{
	order->paths = g_ptr_array_new();
	for (unsigned i = 0; i < n_paths; i++) {
		order->floor = MAX(order->floor, looked_at(&paths[i]));
		if (limit_of(&paths[i], 0) > 0)
			g_ptr_array_add(order->paths, (gpointer)&paths[i]);
	}
	g_ptr_array_sort(order->paths, compare_limits);
	for (unsigned i = 0; i < order->paths->len; i++)
		if (!has_filter(order->paths->pdata[i]))
			g_ptr_array_set_size(order->paths, (int)i + 1);
}

static bool wants_everything(const struct order *order)
{
	for (unsigned i = 0; i < order->paths->len; i++)
		if (limit_of(order->paths->pdata[i], order->floor) == UINT32_MAX &&
		    !has_filter(order->paths->pdata[i]))
			return true;
	return false;
}

/* ---- Paths ---- */

/* A step without a filter that is negated lets nothing through. */
static void add_step(struct weir_draft *draft, const struct weir_step *step, unsigned next_path,
		     bool is_last)
{
	unsigned next_step = weir_draft_labels(draft, 1);
	struct block block = {
		.step = step,
		.first_label = weir_draft_labels(draft, step->filter_len),
		.accept = step->negate ? next_path : next_step,
		.fail = step->negate ? next_step : next_path,
		.fail_is_end = is_last && !step->negate,
	};

	copy_filter(draft, &block);
	weir_draft_place(draft, next_step);
}

static void add_path(struct weir_draft *draft, const struct weir_path *path, uint32_t limit,
		     bool is_last)
{
	unsigned next_path = weir_draft_labels(draft, 1);

	for (unsigned i = 0; i < path->n_steps; i++) {
		if (path->steps[i]->filter)
			add_step(draft, path->steps[i], next_path, is_last);
		if (cuts(path->steps[i]))
			break;
	}
	if (draft->known != WEIR_UNREACHABLE)
		weir_draft_return(draft, limit);
	weir_draft_place(draft, next_path);
}

static void add_paths(struct weir_draft *draft, const struct order *order)
{
	for (unsigned i = 0; i < order->paths->len; i++) {
		const struct weir_path *path = order->paths->pdata[i];

		add_path(draft, path, limit_of(path, order->floor), i + 1 == order->paths->len);
	}
	weir_draft_return(draft, 0);
}

static struct weir_insn *assemble(const struct order *order, uint32_t *ret_len)
{
	struct weir_insn *program;
	struct weir_draft draft;

	weir_draft_init(&draft);
	add_paths(&draft, order);
	program = weir_draft_assemble(&draft, ret_len);
	weir_draft_clear(&draft);
	return program;
}

struct weir_insn *weir_pushdown_compose(const struct weir_path *paths, unsigned n_paths,
					uint32_t *ret_len, char **ret_why_not)
{
	g_autofree struct weir_insn *program = NULL;
	struct order order = {0};
	uint32_t len = 0;

	put_in_order(&order, paths, n_paths);
	if (wants_everything(&order))
		*ret_why_not = g_strdup(order.floor == UINT32_MAX
						? "a filter may look at any byte of a packet"
						: "every packet is wanted whole");
	else
		program = assemble(&order, &len);
	g_ptr_array_unref(order.paths);
	if (len > BPF_MAXINSNS) {
		*ret_why_not = g_strdup_printf(
			"as a program it would have %u instructions, and the kernel takes %d", len,
			BPF_MAXINSNS);
		return NULL;
	}
	*ret_len = len;
	return g_steal_pointer(&program);
}
