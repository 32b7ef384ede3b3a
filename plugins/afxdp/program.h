/*
 * program.h: the XDP program of a node: loaded, attached to the interface, asked for its counts.
 *
 * It is attached by a link of this process, and so goes away with it, however that ends.
 */
#ifndef AFXDP_PROGRAM_H
#define AFXDP_PROGRAM_H

#include "shared.h"

#include <weir/plugin.h>

struct program {
	struct program_bpf *skeleton; /* NULL: not loaded */
	int link_fd;                  /* -1: not attached */
	int filter_fd;                /* -1: everything is wanted */
	unsigned queue_count;
	bool native;
};

struct program_choice {
	unsigned queue_count; /* that the interface can have */
	bool drop_unwanted;
	bool stamp_frames;
};

/* 0 or -errno; program_close() in either case. */
int program_load(struct program *program, const struct program_choice *choice);

/* Has the program go by a filter, which ends in STEP_TAKE or STEP_LEAVE.  0 or -errno. */
int program_set_filter(struct program *program, const struct weir_insn *filter, uint32_t len);

/* By the driver if native, else by the kernel's generic code.  0 or -errno; -EBUSY: another program
 * is there. */
int program_attach(struct program *program, int ifindex, bool native);

/* Nothing where it is not attached. */
void program_detach(struct program *program);
bool program_is_attached(const struct program *program);

/* The id of the program that is on an interface, 0: none; and whether it is one of these. */
uint32_t program_present(int ifindex, bool *ret_ours);

/* From here on frames of the queue come to the socket; or no more. 0 or -errno. */
int program_serve(const struct program *program, uint32_t queue, int socket);
void program_leave(const struct program *program, uint32_t queue);

/* What the program has done with the frames of a queue so far. */
struct counts program_counts(const struct program *program, uint32_t queue);

/* Whether frames come with stamps; only known once one has come. */
bool program_stamps(const struct program *program);

/* Takes a program that was never loaded; detaches it. */
void program_close(struct program *program);

#endif
