/*
 * push.h: what of a pipeline a source may do in the kernel: the paths from it through leading
 * stages that can say what they leave of a packet.
 */
#ifndef WEIR_PUSH_H
#define WEIR_PUSH_H

#include "plan.h"

struct weir_push {
	struct weir_insn *program; /* NULL: nothing can be pushed down */
	uint32_t len;
	char *what;    /* with a program: the nodes whose work it does, "keys, snaplen:1" */
	char *why_not; /* without: why */
};

/* For packets of that link type.  Stages must have been opened, or be able to say without. */
struct weir_push *weir_push_new(const struct weir_plan *plan, const struct weir_domain *domain,
				uint32_t linktype);
void weir_push_free(struct weir_push *push);

/* Offers its program to each source that wants one, by the link types of its interfaces; after
 * open().  Returns what came of it, a line for each source: char *. */
GPtrArray *weir_push_all(const struct weir_plan *plan, const struct weir_interfaces *interfaces);

#endif
