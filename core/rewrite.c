/*
 * rewrite.c: copies a program and moves its loads.
 *
 * Most loads only get another offset.  One that crosses the place where bytes are missing is put
 * together from pieces in the accumulator, by way of X, which is kept in a scratch cell that the
 * program does not use.  One at an offset that the packet gives is moved by as much as all the
 * offsets that it can have; where these are on both sides of that place, the program looks first.
 */
#include "rewrite.h"

#include "trace.h"

#include <linux/filter.h>

struct rewrite {
	struct weir_draft *draft;
	const struct weir_layout *layout;
	const struct weir_insn *program;
	const struct weir_state *states;
	unsigned first_label; /* of its instruction 0; the others follow */
	unsigned cell;        /* the unused one; WEIR_SCRATCH_CELLS: there is none */
	const char *why_not;
};

/* Where the bytes of the wire go on behind those that are missing. */
static uint32_t behind(const struct weir_layout *layout)
{
	return layout->at + 2 * layout->n_absent;
}

static void add(const struct rewrite *rewrite, uint16_t code, uint32_t k)
{
	weir_draft_add(rewrite->draft, code, k);
}

/* ---- Keeping a register ---- */

static uint32_t spare_cell(struct rewrite *rewrite)
{
	if (rewrite->cell < WEIR_SCRATCH_CELLS)
		return rewrite->cell;
	rewrite->why_not = "a filter uses all of the kernel's scratch memory";
	return 0;
}

static unsigned unused_cell(const struct weir_insn *program, uint32_t len)
{
	bool used[WEIR_SCRATCH_CELLS] = {false};
	unsigned cell = 0;

	for (uint32_t i = 0; i < len; i++) {
		if (BPF_CLASS(program[i].code) == BPF_ST || BPF_CLASS(program[i].code) == BPF_STX)
			used[program[i].k] = true;
	}
	while (cell < WEIR_SCRATCH_CELLS && used[cell])
		cell++;
	return cell;
}

/* ---- Loads at a known offset ---- */

static uint32_t piece_size(const struct weir_layout *layout, uint32_t at, uint32_t left)
{
	uint32_t size = left;

	if (at < layout->at)
		size = MIN(left, layout->at - at);
	else if (at < behind(layout))
		size = MIN(left, 2 - (at - layout->at) % 2);
	return size == 3 ? 2 : size;
}

static uint16_t size_code(uint32_t size)
{
	return size == 4 ? BPF_W : size == 2 ? BPF_H : BPF_B;
}

static void load_absent(const struct rewrite *rewrite, uint32_t at, uint32_t size)
{
	uint32_t from = at - rewrite->layout->at;

	add(rewrite, BPF_LD | BPF_W | BPF_ABS, rewrite->layout->absent[from / 2].load);
	if (size == 2)
		return;
	if (from % 2)
		add(rewrite, BPF_ALU | BPF_AND | BPF_K, UINT8_MAX);
	else
		add(rewrite, BPF_ALU | BPF_RSH | BPF_K, 8);
}

static void load_piece(const struct rewrite *rewrite, uint32_t at, uint32_t size)
{
	const struct weir_layout *layout = rewrite->layout;
	uint32_t moved = at < layout->at ? at : at + (uint32_t)layout->shift;

	if (at >= layout->at && at < behind(layout))
		load_absent(rewrite, at, size);
	else
		add(rewrite, (uint16_t)(BPF_LD | BPF_ABS | size_code(size)), moved);
}

static void load_pieces(struct rewrite *rewrite, uint32_t at, uint32_t size)
{
	uint32_t first = piece_size(rewrite->layout, at, size), cell = spare_cell(rewrite);

	add(rewrite, BPF_STX, cell);
	load_piece(rewrite, at, first);
	for (uint32_t done = first, next; done < size; done += next) {
		next = piece_size(rewrite->layout, at + done, size - done);
		add(rewrite, BPF_ALU | BPF_LSH | BPF_K, 8 * next);
		add(rewrite, BPF_MISC | BPF_TAX, 0);
		load_piece(rewrite, at + done, next);
		add(rewrite, BPF_ALU | BPF_OR | BPF_X, 0);
	}
	add(rewrite, BPF_LDX | BPF_MEM, cell);
}

static void load(struct rewrite *rewrite, uint32_t at, uint32_t size)
{
	if (piece_size(rewrite->layout, at, size) == size)
		load_piece(rewrite, at, size);
	else
		load_pieces(rewrite, at, size);
}

/* ---- Loads at X and k ---- */

/* Behind a look at where that is.  A load from `crossing` on is not only of bytes in their places,
 * one from behind(layout) on is only of moved ones; each in between is written out. */
static void look_and_load(struct rewrite *rewrite, const struct weir_insn *insn, struct weir_span x)
{
	const struct weir_layout *layout = rewrite->layout;
	struct weir_draft *draft = rewrite->draft;
	uint32_t size = weir_load_size(insn->code);
	unsigned end = weir_draft_labels(draft, 1), far = weir_draft_labels(draft, 1);
	uint32_t crossing = layout->at >= size ? layout->at - size + 1 : 0, k = insn->k;

	add(rewrite, BPF_MISC | BPF_TXA, 0);
	for (uint32_t at = MAX(crossing, k); at < behind(layout); at++) {
		unsigned here, next;

		if (!weir_span_has(x, at - k))
			continue;
		here = weir_draft_labels(draft, 1);
		next = weir_draft_labels(draft, 1);
		weir_draft_branch(draft, BPF_JMP | BPF_JEQ | BPF_K, at - k, here, next);
		weir_draft_place(draft, here);
		load(rewrite, at, size);
		weir_draft_jump(draft, end);
		weir_draft_place(draft, next);
	}
	if (x.lo + k < crossing) {
		unsigned near = weir_draft_labels(draft, 1);

		weir_draft_branch(draft, BPF_JMP | BPF_JGE | BPF_K, behind(layout) - k, far, near);
		weir_draft_place(draft, near);
		add(rewrite, insn->code, k);
		weir_draft_jump(draft, end);
		weir_draft_place(draft, far);
	}
	add(rewrite, insn->code, k + (uint32_t)layout->shift);
	weir_draft_place(draft, end);
}

static void load_indirect(struct rewrite *rewrite, const struct weir_insn *insn,
			  const struct weir_state *state)
{
	const struct weir_layout *layout = rewrite->layout;
	uint64_t nearest = (uint64_t)state->x.lo + insn->k;
	uint64_t farthest = (uint64_t)state->x.hi + insn->k + weir_load_size(insn->code);

	if (nearest >= behind(layout))
		add(rewrite, insn->code, insn->k + (uint32_t)layout->shift);
	else if (farthest <= layout->at)
		add(rewrite, insn->code, insn->k);
	else
		look_and_load(rewrite, insn, state->x);
}

/* ---- Loads of other kinds ---- */

static void load_length(const struct rewrite *rewrite)
{
	add(rewrite, BPF_LD | BPF_W | BPF_LEN, 0);
	add(rewrite, BPF_ALU | BPF_ADD | BPF_K, 0u - (uint32_t)rewrite->layout->shift);
}

static void load_header_length(struct rewrite *rewrite, uint32_t at)
{
	load(rewrite, at, 1);
	add(rewrite, BPF_ALU | BPF_AND | BPF_K, 15);
	add(rewrite, BPF_ALU | BPF_LSH | BPF_K, 2);
}

/* X from what only the accumulator can be loaded with. */
static void load_x_by_a(struct rewrite *rewrite, const struct weir_insn *insn)
{
	uint32_t cell = spare_cell(rewrite);

	add(rewrite, BPF_ST, cell);
	if (BPF_MODE(insn->code) == BPF_LEN)
		load_length(rewrite);
	else
		load_header_length(rewrite, insn->k);
	add(rewrite, BPF_MISC | BPF_TAX, 0);
	add(rewrite, BPF_LD | BPF_MEM, cell);
}

static void load_a(struct rewrite *rewrite, const struct weir_insn *insn,
		   const struct weir_state *state)
{
	switch (BPF_MODE(insn->code)) {
	case BPF_ABS:
		load(rewrite, insn->k, weir_load_size(insn->code));
		break;
	case BPF_IND:
		load_indirect(rewrite, insn, state);
		break;
	case BPF_LEN:
		load_length(rewrite);
		break;
	default:
		add(rewrite, insn->code, insn->k);
	}
}

static void load_x(struct rewrite *rewrite, const struct weir_insn *insn)
{
	const struct weir_layout *layout = rewrite->layout;
	bool is_there = insn->k < layout->at || insn->k >= behind(layout);

	if (BPF_MODE(insn->code) == BPF_LEN || (BPF_MODE(insn->code) == BPF_MSH && !is_there))
		load_x_by_a(rewrite, insn);
	else if (BPF_MODE(insn->code) == BPF_MSH && insn->k >= layout->at)
		add(rewrite, insn->code, insn->k + (uint32_t)layout->shift);
	else
		add(rewrite, insn->code, insn->k);
}

/* ---- The program ---- */

static void jump(struct rewrite *rewrite, uint32_t i)
{
	const struct weir_insn *insn = &rewrite->program[i];
	unsigned next = rewrite->first_label + i + 1;

	if (BPF_OP(insn->code) == BPF_JA)
		weir_draft_jump(rewrite->draft, next + insn->k);
	else if (!weir_trace_goes(insn, &rewrite->states[i], false))
		weir_draft_jump(rewrite->draft, next + insn->jt);
	else if (!weir_trace_goes(insn, &rewrite->states[i], true))
		weir_draft_jump(rewrite->draft, next + insn->jf);
	else
		weir_draft_branch(rewrite->draft, insn->code, insn->k, next + insn->jt,
				  next + insn->jf);
}

static void copy(struct rewrite *rewrite, uint32_t i)
{
	const struct weir_insn *insn = &rewrite->program[i];

	if (weir_is_packet_load(insn->code) && insn->k > INT32_MAX - 4)
		rewrite->why_not = "a filter uses extensions of the kernel";
	else if (BPF_CLASS(insn->code) == BPF_JMP)
		jump(rewrite, i);
	else if (BPF_CLASS(insn->code) == BPF_LD)
		load_a(rewrite, insn, &rewrite->states[i]);
	else if (BPF_CLASS(insn->code) == BPF_LDX)
		load_x(rewrite, insn);
	else
		add(rewrite, insn->code, insn->k);
}

const char *weir_rewrite(struct weir_draft *draft, const struct weir_insn *program, uint32_t len,
			 const struct weir_layout *layout)
{
	g_autofree struct weir_state *states = weir_trace(program, len, layout);
	struct rewrite rewrite = {
		.draft = draft, .layout = layout, .program = program, .states = states};

	if (!states)
		return "a filter is not a program that the kernel takes";
	rewrite.first_label = weir_draft_labels(draft, len);
	rewrite.cell = unused_cell(program, len);
	for (uint32_t i = 0; i < len && !rewrite.why_not; i++) {
		weir_draft_place(draft, rewrite.first_label + i);
		if (states[i].reached)
			copy(&rewrite, i);
	}
	return rewrite.why_not;
}

struct weir_insn *weir_filter_rewrite(const struct weir_insn *program, uint32_t len,
				      const struct weir_layout *layout, uint32_t *ret_len,
				      const char **ret_why_not)
{
	struct weir_insn *rewritten = NULL;
	struct weir_draft draft;
	const char *why_not;

	weir_draft_init(&draft);
	why_not = weir_rewrite(&draft, program, len, layout);
	if (why_not)
		*ret_why_not = why_not;
	else
		rewritten = weir_draft_assemble(&draft, ret_len);
	weir_draft_clear(&draft);
	return rewritten;
}
