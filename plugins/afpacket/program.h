/*
 * program.h: the classic BPF programs that the afpacket source attaches to its sockets.
 *
 * A program of the graph is about bytes on the wire, but the kernel runs it on a frame whose outer
 * VLAN tag has been taken off.  So it is only run on frames that had none; frames that had one are
 * passed up whole, and the graph's own stages decide.
 */
#ifndef AFPACKET_PROGRAM_H
#define AFPACKET_PROGRAM_H

#include <weir/plugin.h>
#include <linux/filter.h>

/* In the order of the option `direction`. */
enum program_direction { PROGRAM_BOTH, PROGRAM_IN, PROGRAM_OUT };

struct program {
	struct sock_filter *insns;
	unsigned short len; /* 0: no filter */
};

/* Builds the program for a direction and what the graph wants (len 0: everything).  false if it
 * would be longer than the kernel takes.  program_free() on the result; takes an empty one. */
bool program_new(enum program_direction direction, const struct weir_insn *wanted, uint32_t len,
		 struct program *ret);
void program_free(struct program *program);

/* Replaces the filter of a socket in one step; an empty program: none.  Returns 0 or -errno. */
int program_attach(int fd, const struct program *program);
int program_attach_drop_all(int fd);

#endif
