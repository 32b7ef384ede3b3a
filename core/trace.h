/*
 * trace.h: what a classic BPF program can do, found out without a packet: which instructions are
 * reached, and what the registers can hold there.  Jumps only lead forward, so one pass is enough.
 */
#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H

#include <weir/filter.h>

#include "span.h"

enum { WEIR_SCRATCH_CELLS = 16 };

/* Before an instruction. */
struct weir_state {
	bool reached;
	struct weir_span a, x, cells[WEIR_SCRATCH_CELLS];
};

/* One state for each instruction; g_free().  layout: where the bytes of the wire are, NULL: in the
 * packet.  NULL: a jump leads out of the program, or a scratch cell does not exist. */
struct weir_state *weir_trace(const struct weir_insn *program, uint32_t len,
			      const struct weir_layout *layout);

/* Whether the conditional jump can go that way from such a state. */
bool weir_trace_goes(const struct weir_insn *insn, const struct weir_state *state, bool truth);

/* Bytes that a load reads: 1, 2 or 4. */
uint32_t weir_load_size(uint16_t code);
/* Whether it loads bytes of the packet. */
bool weir_is_packet_load(uint16_t code);

/* How many bytes from its start on the program may look at; UINT32_MAX: any. */
uint32_t weir_trace_looks_at(const struct weir_insn *program, uint32_t len,
			     const struct weir_state *states);

#endif
