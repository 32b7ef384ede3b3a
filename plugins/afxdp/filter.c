/*
 * filter.c: see filter.h.
 *
 * Each instruction becomes a few of eBPF, in its place, as the kernel does it for the filters of
 * sockets.  Jumps only go forward in either language, so the kernel's verifier has no loops to
 * follow.  Bytes beyond the first piece of a frame are read by bpf_xdp_load_bytes().
 */
#include "filter.h"

#include "shared.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>

#define CONTEXT BPF_REG_6
#define A       BPF_REG_7
#define X       BPF_REG_8
#define LENGTH  BPF_REG_9 /* of the frame */

/* On the stack, below the frame pointer. */
#define MEMORY_AT(k) ((int16_t)(-4 * BPF_MEMWORDS + 4 * (int)(k)))
#define BYTES_AT     ((int16_t)(-4 * BPF_MEMWORDS - 8))

/* bpf_xdp_load_bytes() knows no offset beyond it. */
#define OFFSET_MAX 0xffff
/* Where headers end, with much room. */
#define DIRECT_MAX 256u
/* Of eBPF, for one instruction or for what stands before and behind them all. */
#define MOST_AT_ONCE 32u
#define NO_LABEL     UINT32_MAX

/* Labels are the indices of classic instructions, then the two ends. */
struct draft {
	const struct weir_insn *filter;
	uint32_t filter_len;
	struct bpf_insn *insns;
	uint32_t *labels; /* that each instruction jumps to */
	uint32_t len;
	uint32_t *places; /* of labels */
	bool *reached;    /* labels */
	bool impossible;
};

static uint32_t end_reject(const struct draft *draft)
{
	return draft->filter_len;
}

static uint32_t end_accept(const struct draft *draft)
{
	return draft->filter_len + 1;
}

/* ---- Instructions of eBPF ---- */

static void add(struct draft *draft, unsigned code, unsigned dst, unsigned src, int16_t off,
		uint32_t imm)
{
	draft->labels[draft->len] = NO_LABEL;
	draft->insns[draft->len++] = (struct bpf_insn){
		.code = (uint8_t)code,
		.dst_reg = dst & 0xf,
		.src_reg = src & 0xf,
		.off = off,
		.imm = (int32_t)imm,
	};
}

static void set(struct draft *draft, unsigned reg, uint32_t k)
{
	add(draft, BPF_ALU | BPF_MOV | BPF_K, reg, 0, 0, k);
}

static void copy(struct draft *draft, unsigned to, unsigned from)
{
	add(draft, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

static void call(struct draft *draft, uint32_t helper)
{
	add(draft, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

static void jump_if(struct draft *draft, unsigned code, unsigned dst, unsigned src, uint32_t imm,
		    uint32_t label)
{
	add(draft, code, dst, src, 0, imm);
	draft->labels[draft->len - 1] = label;
	draft->reached[label] = true;
}

static void jump(struct draft *draft, uint32_t label)
{
	jump_if(draft, BPF_JMP | BPF_JA, 0, 0, 0, label);
}

static void add_map(struct draft *draft, unsigned reg, int map)
{
	add(draft, BPF_LD | BPF_IMM | BPF_DW, reg, BPF_PSEUDO_MAP_FD, 0, (uint32_t)map);
	add(draft, 0, 0, 0, 0, 0);
}

/* ---- What packets hold ---- */

static uint32_t bytes_of(unsigned size)
{
	return size == BPF_W ? 4 : size == BPF_H ? 2 : 1;
}

static void to_host_order(struct draft *draft, unsigned reg, unsigned size)
{
	if (size != BPF_B)
		add(draft, BPF_ALU | BPF_END | BPF_TO_BE, reg, 0, 0, bytes_of(size) * 8);
}

/* Puts the bytes at the offset in R2 into a register; too few of them end the program. */
static void load_bytes(struct draft *draft, unsigned reg, unsigned size)
{
	copy(draft, BPF_REG_1, CONTEXT);
	copy(draft, BPF_REG_3, BPF_REG_10);
	add(draft, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_3, 0, 0, (uint32_t)BYTES_AT);
	set(draft, BPF_REG_4, bytes_of(size));
	call(draft, BPF_FUNC_xdp_load_bytes);
	jump_if(draft, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 0, end_reject(draft));
	add(draft, BPF_LDX | BPF_MEM | size, reg, BPF_REG_10, BYTES_AT, 0);
}

/* The helper would cut a larger offset to 32 bits. */
static void limit_offset(struct draft *draft)
{
	jump_if(draft, BPF_JMP | BPF_JGT | BPF_K, BPF_REG_2, 0, OFFSET_MAX, end_reject(draft));
}

/* Jumps over the instructions that will have been added between that one and the next. */
static void land(struct draft *draft, uint32_t jump_at)
{
	draft->insns[jump_at].off = (int16_t)(draft->len - jump_at - 1);
}

/*
 * Bytes in the first piece of the frame, as headers are, are read without a call, which takes a
 * third of the time.  Returns the jump that has to land behind the other way of reading them.
 */
static uint32_t load_directly(struct draft *draft, unsigned reg, const struct weir_insn *insn)
{
	unsigned size = BPF_SIZE(insn->code);
	uint32_t beyond;

	add(draft, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, CONTEXT, offsetof(struct xdp_md, data), 0);
	add(draft, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_3, CONTEXT, offsetof(struct xdp_md, data_end),
	    0);
	copy(draft, BPF_REG_4, BPF_REG_2);
	add(draft, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_4, 0, 0, insn->k + bytes_of(size));
	beyond = draft->len;
	add(draft, BPF_JMP | BPF_JGT | BPF_X, BPF_REG_4, BPF_REG_3, 0, 0);
	add(draft, BPF_LDX | BPF_MEM | size, reg, BPF_REG_2, (int16_t)insn->k, 0);
	add(draft, BPF_JMP | BPF_JA, 0, 0, 0, 0);
	land(draft, beyond);
	return draft->len - 1;
}

static void load_absolute(struct draft *draft, unsigned reg, const struct weir_insn *insn)
{
	bool directly = insn->k <= DIRECT_MAX;
	uint32_t done = directly ? load_directly(draft, reg, insn) : 0;

	set(draft, BPF_REG_2, insn->k);
	if (insn->k > OFFSET_MAX)
		limit_offset(draft);
	load_bytes(draft, reg, BPF_SIZE(insn->code));
	if (directly)
		land(draft, done);
	to_host_order(draft, reg, BPF_SIZE(insn->code));
}

static void load_indirect(struct draft *draft, const struct weir_insn *insn)
{
	set(draft, BPF_REG_2, insn->k);
	add(draft, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_2, X, 0, 0);
	limit_offset(draft);
	load_bytes(draft, A, BPF_SIZE(insn->code));
	to_host_order(draft, A, BPF_SIZE(insn->code));
}

/* X = 4 * (byte & 0xf): the length of an IPv4 header. */
static void load_header_length(struct draft *draft, const struct weir_insn *insn)
{
	load_absolute(draft, X, insn);
	add(draft, BPF_ALU | BPF_AND | BPF_K, X, 0, 0, 0xf);
	add(draft, BPF_ALU | BPF_LSH | BPF_K, X, 0, 0, 2);
}

static void translate_load(struct draft *draft, const struct weir_insn *insn)
{
	unsigned reg = BPF_CLASS(insn->code) == BPF_LD ? A : X;

	switch (BPF_MODE(insn->code)) {
	case BPF_IMM:
		set(draft, reg, insn->k);
		break;
	case BPF_ABS:
		load_absolute(draft, reg, insn);
		break;
	case BPF_IND:
		load_indirect(draft, insn);
		break;
	case BPF_MSH:
		load_header_length(draft, insn);
		break;
	case BPF_LEN:
		copy(draft, reg, LENGTH);
		break;
	case BPF_MEM:
		draft->impossible |= insn->k >= BPF_MEMWORDS;
		add(draft, BPF_LDX | BPF_MEM | BPF_W, reg, BPF_REG_10,
		    MEMORY_AT(insn->k % BPF_MEMWORDS), 0);
		break;
	default:
		draft->impossible = true;
	}
}

/* ---- Arithmetic and jumps ---- */

/* Shifting by all bits or more leaves nothing; eBPF would shift by the remainder. */
static void translate_shift(struct draft *draft, const struct weir_insn *insn)
{
	if (BPF_SRC(insn->code) == BPF_K && insn->k < 32) {
		add(draft, insn->code, A, 0, 0, insn->k);
		return;
	}
	if (BPF_SRC(insn->code) == BPF_X) {
		add(draft, BPF_JMP32 | BPF_JGT | BPF_K, X, 0, 2, 31);
		add(draft, insn->code, A, X, 0, 0);
		add(draft, BPF_JMP | BPF_JA, 0, 0, 1, 0);
	}
	set(draft, A, 0);
}

static void translate_alu(struct draft *draft, const struct weir_insn *insn)
{
	bool by_x = BPF_SRC(insn->code) == BPF_X;

	switch (BPF_OP(insn->code)) {
	case BPF_LSH:
	case BPF_RSH:
		translate_shift(draft, insn);
		return;
	case BPF_DIV:
	case BPF_MOD:
		draft->impossible |= !by_x && insn->k == 0;
		if (by_x)
			jump_if(draft, BPF_JMP32 | BPF_JEQ | BPF_K, X, 0, 0, end_reject(draft));
		break;
	case BPF_NEG:
		add(draft, BPF_ALU | BPF_NEG, A, 0, 0, 0);
		return;
	}
	add(draft, insn->code, A, by_x ? X : 0, 0, by_x ? 0 : insn->k);
}

static void translate_jump(struct draft *draft, const struct weir_insn *insn, uint32_t next)
{
	unsigned code = BPF_JMP32 | (insn->code & (0xf0u | BPF_X));
	bool by_x = BPF_SRC(insn->code) == BPF_X;
	bool always = BPF_OP(insn->code) == BPF_JA;
	uint64_t farthest = always ? insn->k : insn->jt > insn->jf ? insn->jt : insn->jf;

	if (next + farthest >= draft->filter_len) {
		draft->impossible = true;
		return;
	}
	if (always) {
		jump(draft, next + insn->k);
		return;
	}
	jump_if(draft, code, A, by_x ? X : 0, by_x ? 0 : insn->k, next + insn->jt);
	jump(draft, next + insn->jf);
}

static void translate_return(struct draft *draft, const struct weir_insn *insn)
{
	if (BPF_RVAL(insn->code) == BPF_K) {
		jump(draft, insn->k ? end_accept(draft) : end_reject(draft));
		return;
	}
	jump_if(draft, BPF_JMP32 | BPF_JEQ | BPF_K, BPF_RVAL(insn->code) == BPF_A ? A : X, 0, 0,
		end_reject(draft));
	jump(draft, end_accept(draft));
}

static void translate_store(struct draft *draft, const struct weir_insn *insn)
{
	unsigned reg = BPF_CLASS(insn->code) == BPF_ST ? A : X;

	draft->impossible |= insn->k >= BPF_MEMWORDS;
	add(draft, BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, reg, MEMORY_AT(insn->k % BPF_MEMWORDS),
	    0);
}

static void translate_insn(struct draft *draft, uint32_t i)
{
	const struct weir_insn *insn = &draft->filter[i];

	switch (BPF_CLASS(insn->code)) {
	case BPF_LD:
	case BPF_LDX:
		translate_load(draft, insn);
		break;
	case BPF_ST:
	case BPF_STX:
		translate_store(draft, insn);
		break;
	case BPF_ALU:
		translate_alu(draft, insn);
		break;
	case BPF_JMP:
		translate_jump(draft, insn, i + 1);
		return;
	case BPF_RET:
		translate_return(draft, insn);
		return;
	case BPF_MISC:
		copy(draft, BPF_MISCOP(insn->code) == BPF_TAX ? X : A,
		     BPF_MISCOP(insn->code) == BPF_TAX ? A : X);
		break;
	}
	draft->reached[i + 1] = true;
}

/* ---- The whole ---- */

static void begin(struct draft *draft)
{
	copy(draft, CONTEXT, BPF_REG_1);
	call(draft, BPF_FUNC_xdp_get_buff_len);
	copy(draft, LENGTH, BPF_REG_0);
	jump_if(draft, BPF_JMP | BPF_JGT | BPF_K, LENGTH, 0, OFFSET_MAX, end_accept(draft));
	set(draft, A, 0);
	set(draft, X, 0);
	for (unsigned k = 0; k < BPF_MEMWORDS; k += 2)
		add(draft, BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, MEMORY_AT(k), 0);
	draft->reached[0] = true;
}

static void end(struct draft *draft, uint32_t label, uint32_t step, int steps)
{
	if (!draft->reached[label])
		return;
	draft->places[label] = draft->len;
	copy(draft, BPF_REG_1, CONTEXT);
	add_map(draft, BPF_REG_2, steps);
	set(draft, BPF_REG_3, step);
	call(draft, BPF_FUNC_tail_call);
	set(draft, BPF_REG_0, XDP_PASS);
	add(draft, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* FILTER_MAX is below what a jump reaches. */
static void resolve(struct draft *draft)
{
	for (uint32_t i = 0; i < draft->len; i++) {
		if (draft->labels[i] != NO_LABEL)
			draft->insns[i].off = (int16_t)(draft->places[draft->labels[i]] - i - 1);
	}
}

static void translate(struct draft *draft, int steps)
{
	begin(draft);
	for (uint32_t i = 0; i < draft->filter_len && !draft->impossible; i++) {
		if (draft->len + 3 * MOST_AT_ONCE > FILTER_MAX) {
			draft->impossible = true;
			return;
		}
		draft->places[i] = draft->len;
		if (draft->reached[i])
			translate_insn(draft, i);
	}
	end(draft, end_reject(draft), STEP_LEAVE, steps);
	end(draft, end_accept(draft), STEP_TAKE, steps);
	resolve(draft);
}

uint32_t filter_translate(const struct weir_insn *filter, uint32_t len, int steps,
			  struct bpf_insn *ret)
{
	struct draft draft = {
		.filter = filter,
		.filter_len = len,
		.insns = ret,
		.labels = calloc(FILTER_MAX, sizeof(*draft.labels)),
		.places = calloc(len + 2, sizeof(*draft.places)),
		.reached = calloc(len + 2, sizeof(*draft.reached)),
	};

	if (draft.labels && draft.places && draft.reached)
		translate(&draft, steps);
	else
		draft.impossible = true;
	free(draft.labels);
	free(draft.places);
	free(draft.reached);
	return draft.impossible ? 0 : draft.len;
}

int filter_load(const struct weir_insn *filter, uint32_t len, int steps)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_XDP,
		    .prog_flags = BPF_F_XDP_HAS_FRAGS);
	struct bpf_insn *insns = calloc(FILTER_MAX, sizeof(*insns));
	uint32_t n = insns ? filter_translate(filter, len, steps, insns) : 0;
	int fd = -EOPNOTSUPP;

	if (n)
		fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "weir_filter", "Dual BSD/GPL", insns, n,
				   &options);
	free(insns);
	return fd;
}
