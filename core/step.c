#include "step.h"

#include "trace.h"
#include "untag.h"

#include <glib.h>
#include <linux/filter.h>

/* Where the kernel's interpreter does not do what libpcap's does. */
static const char *differs(const struct weir_insn *insn, const struct weir_state *state)
{
	bool by_x = BPF_CLASS(insn->code) == BPF_ALU && BPF_SRC(insn->code) == BPF_X;

	if (weir_is_packet_load(insn->code) && insn->k > INT32_MAX - 4)
		return "its filter uses extensions of the kernel";
	if (by_x && (BPF_OP(insn->code) == BPF_LSH || BPF_OP(insn->code) == BPF_RSH) &&
	    state->x.hi >= 32)
		return "its filter shifts by a number that a packet gives";
	if (by_x && (BPF_OP(insn->code) == BPF_DIV || BPF_OP(insn->code) == BPF_MOD) &&
	    weir_span_has(state->x, 0))
		return "its filter divides by a number that a packet gives";
	return NULL;
}

static const char *look_at(struct weir_step *step)
{
	g_autofree struct weir_state *states = weir_trace(step->filter, step->filter_len, NULL);
	const char *why_not = NULL;

	if (!states)
		return "its filter is none that the kernel takes, as protochain is not";
	for (uint32_t i = 0; i < step->filter_len && !why_not; i++) {
		if (states[i].reached)
			why_not = differs(&step->filter[i], &states[i]);
	}
	step->looks_at = weir_trace_looks_at(step->filter, step->filter_len, states);
	return why_not;
}

/* What the stage looks at moves back by as many tags as it takes off. */
static const char *skip_vlan(struct weir_step *step)
{
	const char *why_not = NULL;

	step->own = weir_untag(step->filter, step->filter_len, step->negate, &step->filter_len,
			       &why_not);
	step->filter = step->own;
	if (step->looks_at < UINT32_MAX - WEIR_UNTAG_MOST)
		step->looks_at += WEIR_UNTAG_MOST;
	return why_not;
}

struct weir_step *weir_step_new(const struct weir_reduction *reduction, const char **ret_why_not)
{
	struct weir_step *step = g_new0(struct weir_step, 1);
	const char *why_not = NULL;

	step->filter = reduction->filter;
	step->filter_len = reduction->filter_len;
	step->negate = reduction->negate != 0;
	step->max_bytes = reduction->max_bytes;
	if (step->filter)
		why_not = look_at(step);
	if (step->filter && !why_not && reduction->skip_vlan)
		why_not = skip_vlan(step);
	if (!why_not)
		return step;
	*ret_why_not = why_not;
	weir_step_free(step);
	return NULL;
}

void weir_step_free(struct weir_step *step)
{
	if (!step)
		return;
	g_free(step->own);
	g_free(step);
}
