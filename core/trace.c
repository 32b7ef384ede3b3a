#include "trace.h"

#include <glib.h>
#include <linux/filter.h>

#define HEADER_LENGTH ((struct weir_span){0, 60, 4}) /* 4 * (byte & 15) */

uint32_t weir_load_size(uint16_t code)
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

bool weir_is_packet_load(uint16_t code)
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

/* ---- One instruction ---- */

static struct weir_span loaded(const struct weir_insn *insn, const struct weir_layout *layout)
{
	static const struct weir_span sizes[] = {
		[1] = {0, UINT8_MAX, 1}, [2] = {0, UINT16_MAX, 1}, [4] = {0, UINT32_MAX, 1}};
	uint32_t size = weir_load_size(insn->code);
	uint32_t n = layout ? (insn->k - layout->at) / 2 : 0;

	if (layout && BPF_MODE(insn->code) == BPF_ABS && size == 2 && insn->k >= layout->at &&
	    (insn->k - layout->at) % 2 == 0 && n < layout->n_absent)
		return (struct weir_span){layout->absent[n].lo, layout->absent[n].hi,
					  layout->absent[n].step};
	return sizes[size];
}

static struct weir_span operand(const struct weir_insn *insn, const struct weir_state *state)
{
	return BPF_SRC(insn->code) == BPF_X ? state->x : weir_span_of(insn->k);
}

static void load_a(struct weir_state *state, const struct weir_insn *insn,
		   const struct weir_layout *layout)
{
	switch (BPF_MODE(insn->code)) {
	case BPF_IMM:
		state->a = weir_span_of(insn->k);
		break;
	case BPF_MEM:
		state->a = state->cells[insn->k];
		break;
	case BPF_LEN:
		state->a = WEIR_SPAN_ANY;
		break;
	default:
		state->a = loaded(insn, layout);
	}
}

static void load_x(struct weir_state *state, const struct weir_insn *insn)
{
	switch (BPF_MODE(insn->code)) {
	case BPF_IMM:
		state->x = weir_span_of(insn->k);
		break;
	case BPF_MEM:
		state->x = state->cells[insn->k];
		break;
	case BPF_MSH:
		state->x = HEADER_LENGTH;
		break;
	default:
		state->x = WEIR_SPAN_ANY;
	}
}

/* Of all but jumps and returns. */
static void step(struct weir_state *state, const struct weir_insn *insn,
		 const struct weir_layout *layout)
{
	switch (BPF_CLASS(insn->code)) {
	case BPF_LD:
		load_a(state, insn, layout);
		break;
	case BPF_LDX:
		load_x(state, insn);
		break;
	case BPF_ST:
		state->cells[insn->k] = state->a;
		break;
	case BPF_STX:
		state->cells[insn->k] = state->x;
		break;
	case BPF_ALU:
		state->a = weir_span_alu(BPF_OP(insn->code), state->a, operand(insn, state));
		break;
	default: /* BPF_MISC */
		if (BPF_MISCOP(insn->code) == BPF_TAX)
			state->x = state->a;
		else
			state->a = state->x;
	}
}

static bool branch(const struct weir_insn *insn, struct weir_state *state, bool truth)
{
	struct weir_span k = operand(insn, state);

	return k.lo != k.hi ||
	       weir_span_where(BPF_OP(insn->code), state->a, k.lo, truth, &state->a);
}

bool weir_trace_goes(const struct weir_insn *insn, const struct weir_state *state, bool truth)
{
	struct weir_state copy = *state;

	return branch(insn, &copy, truth);
}

/* ---- The program ---- */

static bool uses_cell(const struct weir_insn *insn)
{
	uint16_t class = BPF_CLASS(insn->code);

	return class == BPF_ST || class == BPF_STX ||
	       ((class == BPF_LD || class == BPF_LDX) && BPF_MODE(insn->code) == BPF_MEM);
}

static bool is_sound(const struct weir_insn *program, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		const struct weir_insn *insn = &program[i];
		uint16_t class = BPF_CLASS(insn->code);
		uint64_t to = (uint64_t)i + 1;

		if (class == BPF_JMP)
			to += BPF_OP(insn->code) == BPF_JA ? insn->k : MAX(insn->jt, insn->jf);
		if ((class != BPF_RET && to >= len) ||
		    (uses_cell(insn) && insn->k >= WEIR_SCRATCH_CELLS))
			return false;
	}
	return len > 0;
}

static void arrive(struct weir_state *at, const struct weir_state *from)
{
	if (!at->reached) {
		*at = *from;
		return;
	}
	at->a = weir_span_join(at->a, from->a);
	at->x = weir_span_join(at->x, from->x);
	for (unsigned i = 0; i < WEIR_SCRATCH_CELLS; i++)
		at->cells[i] = weir_span_join(at->cells[i], from->cells[i]);
}

static void go_on(struct weir_state *states, const struct weir_insn *insn, uint32_t i,
		  const struct weir_layout *layout)
{
	struct weir_state next = states[i], other = states[i];

	if (BPF_CLASS(insn->code) == BPF_RET)
		return;
	if (BPF_CLASS(insn->code) != BPF_JMP) {
		step(&next, insn, layout);
		arrive(&states[i + 1], &next);
	} else if (BPF_OP(insn->code) == BPF_JA) {
		arrive(&states[i + 1 + insn->k], &next);
	} else {
		if (branch(insn, &next, true))
			arrive(&states[i + 1 + insn->jt], &next);
		if (branch(insn, &other, false))
			arrive(&states[i + 1 + insn->jf], &other);
	}
}

struct weir_state *weir_trace(const struct weir_insn *program, uint32_t len,
			      const struct weir_layout *layout)
{
	struct weir_state *states;

	if (!is_sound(program, len))
		return NULL;
	states = g_new0(struct weir_state, len);
	states[0].reached = true;
	for (uint32_t i = 0; i < len; i++) {
		if (states[i].reached)
			go_on(states, &program[i], i, layout);
	}
	return states;
}

/* ---- What it looks at ---- */

static uint64_t end_of_load(const struct weir_insn *insn, const struct weir_state *state)
{
	uint64_t end = (uint64_t)insn->k + weir_load_size(insn->code);

	return BPF_CLASS(insn->code) == BPF_LD && BPF_MODE(insn->code) == BPF_IND
		       ? end + state->x.hi
		       : end;
}

uint32_t weir_trace_looks_at(const struct weir_insn *program, uint32_t len,
			     const struct weir_state *states)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < len; i++) {
		if (states[i].reached && weir_is_packet_load(program[i].code))
			most = MAX(most, end_of_load(&program[i], &states[i]));
	}
	return (uint32_t)MIN(most, UINT32_MAX);
}
