/*
 * kernel.h: how the kernel runs a classic BPF program on a frame that an interface has received:
 * the outer VLAN tag has been taken off (skb_vlan_untag() in net/core/skbuff.c) and is only in what
 * the extensions load.  After net/core/filter.c; written anew, to be read beside it.
 */
#ifndef TESTS_KERNEL_H
#define TESTS_KERNEL_H

#include <weir/plugin.h>

#include <linux/filter.h>
#include <linux/if_packet.h>
#include <string.h>

enum { KERNEL_FRAME_MAX = 2048 };

struct kernel_frame {
	uint8_t bytes[KERNEL_FRAME_MAX];
	uint32_t len;
	bool tagged;
	uint16_t tpid, tci;
};

struct kernel_run {
	const struct kernel_frame *frame;
	uint32_t a, x, cells[16];
	bool ended;    /* with what is in a, as a number of bytes */
	bool overflow; /* an offset was out of what an int holds: what is loaded is anything */
};

static inline uint16_t kernel_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* false: too short for what it claims to be, the kernel drops it. */
static inline bool kernel_receive(const uint8_t *wire, uint32_t len, struct kernel_frame *frame)
{
	uint16_t type = len >= 14 ? kernel_be16(wire + 12) : 0;

	frame->tagged = type == 0x8100 || type == 0x88a8;
	if (len < 14 || len > KERNEL_FRAME_MAX || (frame->tagged && len < 20))
		return false;
	frame->len = len;
	memcpy(frame->bytes, wire, len);
	if (!frame->tagged)
		return true;
	frame->tpid = type;
	frame->tci = kernel_be16(wire + 14);
	frame->len = len - 4;
	memcpy(frame->bytes + 12, wire + 16, len - 16);
	return true;
}

static inline void kernel_end(struct kernel_run *run, uint32_t bytes)
{
	run->a = bytes;
	run->ended = true;
}

static inline uint32_t kernel_extension(struct kernel_run *run, uint32_t k)
{
	switch ((int32_t)k - SKF_AD_OFF) {
	case SKF_AD_PKTTYPE:
		return PACKET_HOST;
	case SKF_AD_VLAN_TAG_PRESENT:
		return run->frame->tagged;
	case SKF_AD_VLAN_TPID:
		return run->frame->tpid;
	case SKF_AD_VLAN_TAG:
		return run->frame->tci;
	default:
		run->overflow = true;
		return 0;
	}
}

static inline uint32_t kernel_load(struct kernel_run *run, int64_t at, uint16_t code)
{
	uint32_t size = BPF_SIZE(code) == BPF_W ? 4 : BPF_SIZE(code) == BPF_H ? 2 : 1, value = 0;

	run->overflow |= at < 0 || at > INT32_MAX;
	if (at < 0 || at + size > run->frame->len) {
		kernel_end(run, 0);
		return 0;
	}
	for (uint32_t i = 0; i < size; i++)
		value = value << 8 | run->frame->bytes[at + i];
	return value;
}

static inline uint32_t kernel_ld(struct kernel_run *run, const struct weir_insn *insn)
{
	switch (BPF_MODE(insn->code)) {
	case BPF_IMM:
		return insn->k;
	case BPF_MEM:
		return run->cells[insn->k];
	case BPF_LEN:
		return run->frame->len;
	case BPF_MSH:
		return (kernel_load(run, (int32_t)insn->k, BPF_B) & 15) * 4;
	case BPF_IND:
		return kernel_load(run, (int64_t)run->x + (int32_t)insn->k, insn->code);
	default:
		return insn->k >= (uint32_t)SKF_AD_OFF
			       ? kernel_extension(run, insn->k)
			       : kernel_load(run, (int32_t)insn->k, insn->code);
	}
}

static inline void kernel_alu(struct kernel_run *run, uint16_t op, uint32_t by)
{
	uint32_t a = run->a;

	if ((op == BPF_DIV || op == BPF_MOD) && by == 0) {
		kernel_end(run, 0);
		return;
	}
	run->a = op == BPF_ADD   ? a + by
		 : op == BPF_SUB ? a - by
		 : op == BPF_MUL ? a * by
		 : op == BPF_DIV ? a / by
		 : op == BPF_MOD ? a % by
		 : op == BPF_AND ? (a & by)
		 : op == BPF_OR  ? (a | by)
		 : op == BPF_XOR ? (a ^ by)
		 : op == BPF_LSH ? a << (by & 31)
		 : op == BPF_RSH ? a >> (by & 31)
				 : 0u - a;
}

static inline uint32_t kernel_jump(const struct kernel_run *run, const struct weir_insn *insn,
				   uint32_t by)
{
	bool truth = false;

	switch (BPF_OP(insn->code)) {
	case BPF_JA:
		return insn->k;
	case BPF_JEQ:
		truth = run->a == by;
		break;
	case BPF_JGT:
		truth = run->a > by;
		break;
	case BPF_JGE:
		truth = run->a >= by;
		break;
	default:
		truth = run->a & by;
	}
	return truth ? insn->jt : insn->jf;
}

/* Returns how far it jumps. */
static inline uint32_t kernel_step(struct kernel_run *run, const struct weir_insn *insn)
{
	uint32_t by = BPF_SRC(insn->code) == BPF_X ? run->x : insn->k;
	uint32_t loaded;

	switch (BPF_CLASS(insn->code)) {
	case BPF_LD:
	case BPF_LDX:
		loaded = kernel_ld(run, insn);
		if (!run->ended)
			*(BPF_CLASS(insn->code) == BPF_LD ? &run->a : &run->x) = loaded;
		return 0;
	case BPF_ST:
		run->cells[insn->k] = run->a;
		return 0;
	case BPF_STX:
		run->cells[insn->k] = run->x;
		return 0;
	case BPF_ALU:
		kernel_alu(run, BPF_OP(insn->code), by);
		return 0;
	case BPF_JMP:
		return kernel_jump(run, insn, by);
	case BPF_RET:
		kernel_end(run, BPF_RVAL(insn->code) == BPF_A ? run->a : insn->k);
		return 0;
	default:
		if (BPF_MISCOP(insn->code) == BPF_TAX)
			run->x = run->a;
		else
			run->a = run->x;
		return 0;
	}
}

/* How many bytes of the frame the kernel keeps. */
static inline uint32_t kernel_run(const struct weir_insn *program, const struct kernel_frame *frame,
				  bool *ret_overflow)
{
	struct kernel_run run = {.frame = frame};

	for (uint32_t i = 0; !run.ended; i++)
		i += kernel_step(&run, &program[i]);
	*ret_overflow = run.overflow;
	return run.a < frame->len ? run.a : frame->len;
}

#endif
