/*
 * push.h: what of a pipeline a source may do in the kernel: the paths from it through leading
 * stages that can say what they leave of a packet.
 */
#ifndef WEIR_PUSH_H
#define WEIR_PUSH_H

#include "plan.h"

struct weir_push {
	const struct weir_node *source;
	char *what;    /* the nodes whose work it does, "keys, snaplen:1"; NULL: it does nothing */
	char *how;     /* with that: in the source's own words; NULL: it has none */
	char *why_not; /* without */
};

/* Offers its program to the domain's source, which has a want(), for packets of that link type.
 * Stages must have been opened, or be able to say without. */
struct weir_push *weir_push_new(const struct weir_plan *plan, const struct weir_domain *domain,
				uint32_t linktype);
void weir_push_free(struct weir_push *push);

/* What came of it, such as "keys, snaplen:1; 31 instructions"; g_free(). */
char *weir_push_text(const struct weir_push *push);

/* The same for each source that wants a program, by the link types of its interfaces; after open().
 * struct weir_push *. */
GPtrArray *weir_push_all(const struct weir_plan *plan, const struct weir_interfaces *interfaces);

#endif
