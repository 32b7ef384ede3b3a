/*
 * The input makes up to three paths of programs that libpcap might have compiled but did not, and a
 * frame.  What the kernel keeps of it, by a model, must serve the stages as the frame itself does.
 */
#include "../plugins/afpacket/program.h"

#include "kernel.h"
#include "paths.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

static uint32_t take(struct input *input, uint32_t below)
{
	uint32_t value = input->left ? *input->at : 0;

	if (input->left) {
		input->at++;
		input->left--;
	}
	return value % below;
}

/* Numbers that decide something: types of tags, offsets around them, a byte. */
static uint32_t take_number(struct input *input)
{
	static const uint32_t numbers[] = {0x0800, 0x8100,     0x88a8,     0x86dd,
					   0x9100, 0x8100001d, UINT32_MAX, UINT32_MAX - 3};
	uint32_t kind = take(input, 4);

	return kind == 0   ? numbers[take(input, G_N_ELEMENTS(numbers))]
	       : kind == 1 ? take(input, 256) << 8 | take(input, 256)
			   : take(input, 256);
}

/* ---- Programs ---- */

enum { INSNS = 9, LINKS = G_N_ELEMENTS(wire_links) };

static const uint16_t loads[] = {
	BPF_LD | BPF_W | BPF_ABS,  BPF_LD | BPF_H | BPF_ABS, BPF_LD | BPF_B | BPF_ABS,
	BPF_LD | BPF_W | BPF_IND,  BPF_LD | BPF_H | BPF_IND, BPF_LD | BPF_B | BPF_IND,
	BPF_LDX | BPF_B | BPF_MSH,
};
static const uint16_t others[] = {
	BPF_LD | BPF_W | BPF_LEN,  BPF_LDX | BPF_W | BPF_LEN, BPF_LD | BPF_IMM,
	BPF_LDX | BPF_IMM,         BPF_MISC | BPF_TAX,        BPF_MISC | BPF_TXA,
	BPF_ALU | BPF_ADD | BPF_K, BPF_ALU | BPF_ADD | BPF_X, BPF_ALU | BPF_SUB | BPF_K,
	BPF_ALU | BPF_SUB | BPF_X, BPF_ALU | BPF_AND | BPF_K, BPF_ALU | BPF_AND | BPF_X,
	BPF_ALU | BPF_OR | BPF_K,  BPF_ALU | BPF_MUL | BPF_K, BPF_ALU | BPF_XOR | BPF_X,
	BPF_ALU | BPF_NEG,
};
static const uint16_t jumps[] = {BPF_JEQ | BPF_K, BPF_JGT | BPF_K,  BPF_JGE | BPF_K,
				 BPF_JEQ | BPF_X, BPF_JSET | BPF_K, BPF_JGE | BPF_X};

/* Cells that were stored to; a program may load no others. */
static struct weir_insn make_cell(struct input *input, unsigned *stored)
{
	uint32_t cell = take(input, 16);
	bool x = take(input, 2);

	if (*stored & 1u << cell)
		return (struct weir_insn){x ? BPF_LDX | BPF_MEM : BPF_LD | BPF_MEM, 0, 0, cell};
	*stored |= 1u << cell;
	return (struct weir_insn){x ? BPF_STX : BPF_ST, 0, 0, cell};
}

static struct weir_insn make_shift(struct input *input)
{
	static const uint16_t ops[] = {BPF_LSH, BPF_RSH};
	return (struct weir_insn){(uint16_t)(BPF_ALU | ops[take(input, 2)]), 0, 0, take(input, 32)};
}

static struct weir_insn make_divide(struct input *input)
{
	static const uint16_t ops[] = {BPF_DIV, BPF_MOD};
	return (struct weir_insn){(uint16_t)(BPF_ALU | ops[take(input, 2)]), 0, 0,
				  1 + take(input, 32)};
}

static struct weir_insn make_jump(struct input *input, uint32_t rest)
{
	uint16_t code = BPF_JMP | jumps[take(input, G_N_ELEMENTS(jumps))];
	uint8_t jt = (uint8_t)take(input, rest), jf = (uint8_t)take(input, rest);

	return (struct weir_insn){code, jt, jf, take_number(input)};
}

/* Cells are only used before the first jump, so that none is loaded that was not stored to. */
static struct weir_insn make_insn(struct input *input, uint32_t rest, unsigned *stored)
{
	switch (take(input, 8)) {
	case 0:
	case 1:
	case 2:
		return (struct weir_insn){loads[take(input, G_N_ELEMENTS(loads))], 0, 0,
					  take(input, 32)};
	case 3:
		return make_shift(input);
	case 4:
		return make_divide(input);
	case 5:
		if (*stored != UINT_MAX)
			return make_cell(input, stored);
		/* fall through */
	case 6:
		*stored = UINT_MAX;
		return make_jump(input, rest);
	default:
		return (struct weir_insn){others[take(input, G_N_ELEMENTS(others))], 0, 0,
					  take_number(input)};
	}
}

/* Starts with registers of its own, since a program may not rely on those of another; ends with one
 * bit of what it has loaded or computed, so that every bit of that counts. */
static void make_program(struct input *input, struct weir_insn *program)
{
	unsigned stored = 0;

	program[0] = (struct weir_insn){BPF_LD | BPF_IMM, 0, 0, take_number(input)};
	program[1] = (struct weir_insn){BPF_LDX | BPF_IMM, 0, 0, take(input, 24)};
	for (uint32_t i = 2; i < INSNS - 3; i++)
		program[i] = make_insn(input, INSNS - 1 - i, &stored);
	program[INSNS - 3] = (struct weir_insn){BPF_ALU | BPF_AND | BPF_K, 0, 0,
						1u << take(input, 32)};
	program[INSNS - 2] = (struct weir_insn){BPF_RET | BPF_A, 0, 0, 0};
	program[INSNS - 1] = (struct weir_insn){BPF_RET | BPF_K, 0, 0, 1};
}

/* ---- Paths and frames ---- */

static void make_plan(struct input *input, struct plan *plan,
		      struct weir_insn programs[PLAN_PATHS][PLAN_STEPS][INSNS])
{
	uint32_t n_paths = 1 + take(input, 6) / 4;

	for (uint32_t p = 0; p < n_paths; p++) {
		uint32_t n_steps = 1 + take(input, 4) / 3;

		plan_add_path(plan);
		for (uint32_t s = 0; s < n_steps; s++) {
			uint32_t kind = take(input, 8);

			make_program(input, programs[p][s]);
			plan_add(plan,
				 kind == 0 ? (struct weir_reduction){.max_bytes = 1 +
										  take(input, 100)}
					   : (struct weir_reduction){
						     .filter = programs[p][s],
						     .filter_len = INSNS,
						     .negate = kind & 1,
						     .skip_vlan = kind & 2,
						     .max_bytes = UINT32_MAX,
					     });
		}
	}
}

/* The same behind each kind of link header. */
static void make_frames(struct input *input, struct wire_frame *frames)
{
	uint8_t rest[60];
	uint32_t n = take(input, sizeof(rest));

	for (uint32_t i = 0; i < n; i++)
		rest[i] = (uint8_t)take(input, 256);
	for (uint32_t i = 0; i < LINKS; i++) {
		memset(&frames[i], 0, sizeof(frames[i]));
		frames[i].len = wire_put(frames[i].bytes, wire_links[i]);
		memcpy(frames[i].bytes + frames[i].len, rest, n);
		frames[i].len += n;
	}
}

/* ---- Judging ---- */

static void judge(const struct plan *plan, const struct program *program,
		  const struct wire_frame *wire)
{
	static struct kernel_frame frame;
	bool overflow;

	if (!kernel_receive(wire->bytes, wire->len, &frame))
		return;
	uint32_t kept = kernel_run((const struct weir_insn *)program->insns, &frame, &overflow);
	if (frame.tagged && kept >= 12)
		kept += 4;
	if (overflow ? plan_wants(plan, wire) : !plan_is_served(plan, wire, kept))
		abort();
}

static void judge_all(const struct plan *plan, const struct program_halves *halves,
		      const struct wire_frame *frames)
{
	struct program program;

	if (!program_new(PROGRAM_IN, halves, &program))
		return;
	for (uint32_t i = 0; i < LINKS; i++)
		judge(plan, &program, &frames[i]);
	program_free(&program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct weir_insn programs[PLAN_PATHS][PLAN_STEPS][INSNS];
	static struct wire_frame frames[LINKS];
	struct input input = {data, size};
	struct plan plan = {0};
	struct program_halves halves;
	const char *why_whole;
	uint32_t len = 0;

	make_frames(&input, frames);
	make_plan(&input, &plan, programs);
	g_autofree struct weir_insn *wanted = plan_compose(&plan, &len);
	if (wanted && program_halves_new(wanted, len, &halves, &why_whole)) {
		if (!why_whole)
			judge_all(&plan, &halves, frames);
		program_halves_free(&halves);
	}
	plan_clear(&plan);
	return 0;
}
