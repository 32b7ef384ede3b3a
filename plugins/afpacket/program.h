/*
 * program.h: the classic BPF programs that the afpacket source attaches to its sockets.
 *
 * What the graph wants is about bytes on the wire, but the kernel runs it on a frame whose outer
 * VLAN tag has been taken off.  So there are two halves: one for frames that had none, and one,
 * rewritten, for frames that had one.  Where that cannot be exact these are passed up whole, and
 * the graph's own stages decide.
 */
#ifndef AFPACKET_PROGRAM_H
#define AFPACKET_PROGRAM_H

#include <weir/plugin.h>
#include <linux/filter.h>

/* In the order of the option `direction`. */
enum program_direction { PROGRAM_BOTH, PROGRAM_IN, PROGRAM_OUT };

/* What the graph wants of frames of either kind.  All zero: everything. */
struct program_halves {
	struct weir_insn *untagged;
	uint32_t untagged_len;
	struct weir_insn *tagged;
	uint32_t tagged_len; /* 0: passed up whole */
};

/* untagged is copied.  NULL, or why tagged frames will be passed up whole, in words that live for
 * ever.  false: out of memory. */
bool program_halves_new(const struct weir_insn *wanted, uint32_t len, struct program_halves *ret,
			const char **ret_why_whole);
void program_halves_free(struct program_halves *halves); /* takes all zero */
/* From now on tagged frames are passed up whole. */
void program_pass_tagged(struct program_halves *halves);
/* Whether no tagged frame passes. */
bool program_rejects_tagged(const struct program_halves *halves);

struct program {
	struct sock_filter *insns;
	unsigned short len; /* 0: no filter */
};

/* Builds the program for a direction and what the graph wants.  false: out of memory, or it would
 * be longer than the kernel takes.  program_free() on the result; takes an empty one. */
bool program_new(enum program_direction direction, const struct program_halves *halves,
		 struct program *ret);
void program_free(struct program *program);

/* Replaces the filter of a socket in one step; an empty program: none.  Returns 0 or -errno. */
int program_attach(int fd, const struct program *program);
int program_attach_drop_all(int fd);

/* Whether the kernel takes it: 0 or -errno.  Needs no privileges. */
int program_try(const struct program *program);

#endif
