/*
 * program.h: the classic BPF programs on the packet sockets that libpcap opens.
 *
 * libpcap would choose directions after the kernel has counted, so that its counts could not be
 * compared with what came.  So the choice is made here, by the same rules, before the kernel
 * counts.
 */
#ifndef LIBPCAP_PROGRAM_H
#define LIBPCAP_PROGRAM_H

#include <weir/plugin.h>

/* In the order of the option `direction`. */
enum program_direction { PROGRAM_BOTH, PROGRAM_IN, PROGRAM_OUT };

/* Each replaces the filter of a packet socket in one step, and returns 0 or -errno. wanted: what
 * the graph wants of a packet; len 0: everything. */
int program_attach(int fd, enum program_direction direction, const struct weir_insn *wanted,
		   uint32_t len);
int program_attach_drop_all(int fd);

#endif
