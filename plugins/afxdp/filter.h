/*
 * filter.h: makes an XDP program out of the classic BPF program that says what the graph wants.
 *
 * XDP sees a frame as a file will hold it, so here a filter means what it means there, tags
 * included.  Of what it returns only counts whether it is 0: XDP cannot cut what it hands over.
 */
#ifndef AFXDP_FILTER_H
#define AFXDP_FILTER_H

#include <weir/plugin.h>
#include <linux/bpf.h>

/* The most that a translation takes; what would be longer is refused. */
#define FILTER_MAX 32000

/*
 * Writes the translation of a program, of at most FILTER_MAX instructions, and returns how many;
 * 0: it has an instruction that has no meaning here, or is too long.  It ends by a tail call
 * through the map `steps`.
 */
uint32_t filter_translate(const struct weir_insn *filter, uint32_t len, int steps,
			  struct bpf_insn *ret);

/* The same, loaded: a file descriptor, or -errno; -EOPNOTSUPP: it cannot be translated. */
int filter_load(const struct weir_insn *filter, uint32_t len, int steps);

#endif
