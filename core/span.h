/*
 * span.h: sets of numbers that a register of a filter may hold: from lo to hi in equal steps.
 *
 * Steps, since what decides most is a choice of two: the types of VLAN tags, or a length in words.
 */
#ifndef WEIR_SPAN_H
#define WEIR_SPAN_H

#include <stdbool.h>
#include <stdint.h>

struct weir_span {
	uint32_t lo, hi;
	uint32_t step; /* divides hi - lo; 0 where these are equal */
};

#define WEIR_SPAN_ANY ((struct weir_span){0, UINT32_MAX, 1})

struct weir_span weir_span_of(uint32_t k);
struct weir_span weir_span_up_to(uint32_t hi);
bool weir_span_has(struct weir_span span, uint32_t k);

/* The smallest span that holds both. */
struct weir_span weir_span_join(struct weir_span a, struct weir_span b);

/* What a BPF_ALU operation makes of them, BPF_ADD and so on; never too small. */
struct weir_span weir_span_alu(uint16_t op, struct weir_span a, struct weir_span b);

/* Those of which the comparison with k, BPF_JEQ and so on, is true, or false; never too small.
 * false: there are none. */
bool weir_span_where(uint16_t op, struct weir_span span, uint32_t k, bool truth,
		     struct weir_span *ret);

#endif
