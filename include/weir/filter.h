/*
 * weir/filter.h: classic BPF programs for packets whose bytes lie elsewhere than on the wire.
 *
 * For sources whose kernel hands a program the packet without something that the wire had: programs
 * that want() gets are about the bytes of the wire.  No state; any thread.
 */
#ifndef WEIR_FILTER_H
#define WEIR_FILTER_H

#include <weir/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Two bytes of the wire that are not among the packet's: the kernel's extension that loads them
 * (SKF_AD_OFF + ...), and the values that it can have, from lo to hi in steps. */
struct weir_absent {
	uint32_t load;
	uint16_t lo, hi, step;
};

/* The wire's bytes before `at` are in their places, those of `absent` are missing from there on,
 * and all that follow lie `shift` bytes further back than on the wire. */
struct weir_layout {
	uint32_t at;
	uint32_t n_absent;
	const struct weir_absent *absent;
	int32_t shift;
};

/*
 * The program that returns for a packet of that layout what `program` returns for the bytes of the
 * wire.  Packets have all the bytes before `at`.  Branches that cannot be taken are left out.  An
 * offset that a packet gives may overflow in the kernel, which then reads anywhere, before and
 * after: a program to which that matters looks at the length first, as those of want() do.
 *
 * For free(); NULL with a reason that lives for ever: it cannot be said exactly, or is no program.
 */
struct weir_insn *weir_filter_rewrite(const struct weir_insn *program, uint32_t len,
				      const struct weir_layout *layout, uint32_t *ret_len,
				      const char **ret_why_not);

#ifdef __cplusplus
}
#endif
#endif
