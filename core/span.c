#include "span.h"

#include <glib.h>
#include <linux/bpf_common.h>

static struct weir_span span(uint64_t lo, uint64_t hi, uint64_t step)
{
	if (hi > UINT32_MAX)
		return WEIR_SPAN_ANY;
	return (struct weir_span){(uint32_t)lo, (uint32_t)hi, lo == hi ? 0 : (uint32_t)step};
}

struct weir_span weir_span_of(uint32_t k)
{
	return span(k, k, 0);
}

struct weir_span weir_span_up_to(uint32_t hi)
{
	return span(0, hi, 1);
}

static bool is_one(struct weir_span a)
{
	return a.lo == a.hi;
}

static bool are_two(struct weir_span a)
{
	return a.step == a.hi - a.lo;
}

bool weir_span_has(struct weir_span a, uint32_t k)
{
	return k >= a.lo && k <= a.hi && (is_one(a) || (k - a.lo) % a.step == 0);
}

static uint32_t common_step(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

struct weir_span weir_span_join(struct weir_span a, struct weir_span b)
{
	uint32_t apart = MAX(a.lo, b.lo) - MIN(a.lo, b.lo);

	return span(MIN(a.lo, b.lo), MAX(a.hi, b.hi),
		    common_step(common_step(a.step, b.step), apart));
}

/* ---- Arithmetic ---- */

static uint32_t compute(uint16_t op, uint32_t a, uint32_t b)
{
	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_MOD:
		return b ? a % b : 0;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return b < 32 ? a << b : 0;
	case BPF_RSH:
		return b < 32 ? a >> b : 0;
	default:
		return 0u - a;
	}
}

static struct weir_span multiply(struct weir_span a, uint64_t by)
{
	return span(a.lo * by, a.hi * by, a.step * by);
}

static struct weir_span divide(struct weir_span a, uint32_t by)
{
	bool even = a.lo % by == 0 && a.step % by == 0;

	return span(a.lo / by, a.hi / by, even ? a.step / by : 1);
}

/* All results are multiples of the lowest bit of the mask. */
static struct weir_span mask(struct weir_span a, uint32_t bits)
{
	uint32_t lowest = bits & (0u - bits), hi = MIN(a.hi, bits);

	return bits ? span(0, hi - hi % lowest, lowest) : weir_span_of(0);
}

static struct weir_span alu_constant(uint16_t op, struct weir_span a, uint32_t k)
{
	switch (op) {
	case BPF_ADD:
		return span((uint64_t)a.lo + k, (uint64_t)a.hi + k, a.step);
	case BPF_SUB:
		return a.lo >= k ? span(a.lo - k, a.hi - k, a.step) : WEIR_SPAN_ANY;
	case BPF_MUL:
		return multiply(a, k);
	case BPF_LSH:
		return k < 32 ? multiply(a, 1ull << k) : WEIR_SPAN_ANY;
	case BPF_RSH:
		return k < 32 ? divide(a, 1u << k) : WEIR_SPAN_ANY;
	case BPF_DIV:
		return k ? divide(a, k) : WEIR_SPAN_ANY;
	case BPF_MOD:
		return k ? weir_span_up_to(MIN(a.hi, k - 1)) : WEIR_SPAN_ANY;
	case BPF_AND:
		return mask(a, k);
	default:
		return WEIR_SPAN_ANY;
	}
}

struct weir_span weir_span_alu(uint16_t op, struct weir_span a, struct weir_span b)
{
	if (is_one(b) && (is_one(a) || are_two(a)))
		return weir_span_join(weir_span_of(compute(op, a.lo, b.lo)),
				      weir_span_of(compute(op, a.hi, b.lo)));
	if (is_one(b))
		return alu_constant(op, a, b.lo);
	if (op == BPF_ADD)
		return span((uint64_t)a.lo + b.lo, (uint64_t)a.hi + b.hi,
			    common_step(a.step, b.step));
	if (op == BPF_AND)
		return weir_span_up_to(MIN(a.hi, b.hi));
	return WEIR_SPAN_ANY;
}

/* ---- Comparisons ---- */

static bool at_least(struct weir_span a, uint64_t k, struct weir_span *ret)
{
	if (k > a.hi)
		return false;
	if (k > a.lo)
		a.lo += (uint32_t)((k - a.lo + a.step - 1) / a.step * a.step);
	*ret = span(a.lo, a.hi, a.step);
	return true;
}

/* Less than k. */
static bool below(struct weir_span a, uint64_t k, struct weir_span *ret)
{
	if (k <= a.lo)
		return false;
	if (k <= a.hi)
		a.hi = a.lo + ((uint32_t)k - 1 - a.lo) / a.step * a.step;
	*ret = span(a.lo, a.hi, a.step);
	return true;
}

static bool equal(struct weir_span a, uint32_t k, struct weir_span *ret)
{
	*ret = weir_span_of(k);
	return weir_span_has(a, k);
}

/* Only at its ends can a span lose a number. */
static bool other_than(struct weir_span a, uint32_t k, struct weir_span *ret)
{
	*ret = a;
	if (a.lo == k)
		return at_least(a, (uint64_t)k + 1, ret);
	return a.hi == k ? below(a, k, ret) : true;
}

bool weir_span_where(uint16_t op, struct weir_span a, uint32_t k, bool truth, struct weir_span *ret)
{
	switch (op) {
	case BPF_JEQ:
		return truth ? equal(a, k, ret) : other_than(a, k, ret);
	case BPF_JGE:
		return truth ? at_least(a, k, ret) : below(a, k, ret);
	case BPF_JGT:
		return truth ? at_least(a, (uint64_t)k + 1, ret) : below(a, (uint64_t)k + 1, ret);
	default: /* BPF_JSET */
		*ret = a;
		return !is_one(a) || ((a.lo & k) != 0) == truth;
	}
}
