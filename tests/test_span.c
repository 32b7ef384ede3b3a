/*
 * Spans against all the numbers in them: nothing that can be may be missing, or a filter would lose
 * packets.
 */
#include "span.h"

#include <criterion/criterion.h>
#include <glib.h>
#include <linux/bpf_common.h>

static const struct weir_span spans[] = {
	{0, 0, 0},
	{7, 7, 0},
	{0, 1, 1},
	{0, 60, 4},
	{5, 29, 8},
	{0, 255, 1},
	{0x8100, 0x88a8, 0x7a8},
	{3, 4, 1},
	{UINT32_MAX, UINT32_MAX, 0},
	{UINT32_MAX - 9, UINT32_MAX - 3, 3},
	{0, UINT32_MAX, UINT32_MAX},
	{1u << 31, 1u << 31, 0},
	{0, 1u << 31, 1u << 29},
};

static const uint16_t operations[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_MOD, BPF_AND,
				      BPF_OR,  BPF_XOR, BPF_LSH, BPF_RSH, BPF_NEG};
static const uint16_t comparisons[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};

static bool is_sound(struct weir_span span)
{
	return span.lo <= span.hi &&
	       (span.lo == span.hi ? span.step == 0
				   : span.step && (span.hi - span.lo) % span.step == 0);
}

static uint32_t nth(struct weir_span span, uint32_t n)
{
	return span.lo + n * span.step;
}

static uint32_t size_of(struct weir_span span)
{
	return span.step ? (span.hi - span.lo) / span.step + 1 : 1;
}

/* false: the program ends there. */
static bool compute(uint16_t op, uint32_t a, uint32_t b, uint32_t *ret)
{
	if ((op == BPF_DIV || op == BPF_MOD) && b == 0)
		return false;
	if ((op == BPF_LSH || op == BPF_RSH) && b > 31)
		return false; /* such a program is refused */
	*ret = op == BPF_ADD   ? a + b
	       : op == BPF_SUB ? a - b
	       : op == BPF_MUL ? a * b
	       : op == BPF_DIV ? a / b
	       : op == BPF_MOD ? a % b
	       : op == BPF_AND ? (a & b)
	       : op == BPF_OR  ? (a | b)
	       : op == BPF_XOR ? (a ^ b)
	       : op == BPF_LSH ? a << b
	       : op == BPF_RSH ? a >> b
			       : 0u - a;
	return true;
}

static void check_operation(uint16_t op, struct weir_span a, struct weir_span b)
{
	struct weir_span span = weir_span_alu(op, a, b);

	cr_expect(is_sound(span), "op %x", op);
	for (uint32_t i = 0; i < size_of(a); i++) {
		for (uint32_t j = 0; j < size_of(b); j++) {
			uint32_t result;

			if (compute(op, nth(a, i), nth(b, j), &result))
				cr_assert(weir_span_has(span, result), "op %x of %u and %u", op,
					  nth(a, i), nth(b, j));
		}
	}
}

Test(span, operations_miss_no_result)
{
	for (unsigned o = 0; o < G_N_ELEMENTS(operations); o++)
		for (unsigned a = 0; a < G_N_ELEMENTS(spans); a++)
			for (unsigned b = 0; b < G_N_ELEMENTS(spans); b++)
				check_operation(operations[o], spans[a], spans[b]);
}

Test(span, a_join_has_all_of_both)
{
	for (unsigned a = 0; a < G_N_ELEMENTS(spans); a++) {
		for (unsigned b = 0; b < G_N_ELEMENTS(spans); b++) {
			struct weir_span both = weir_span_join(spans[a], spans[b]);

			cr_expect(is_sound(both));
			for (uint32_t i = 0; i < size_of(spans[a]); i++)
				cr_assert(weir_span_has(both, nth(spans[a], i)));
			for (uint32_t i = 0; i < size_of(spans[b]); i++)
				cr_assert(weir_span_has(both, nth(spans[b], i)));
		}
	}
}

static bool compare(uint16_t op, uint32_t a, uint32_t k)
{
	return op == BPF_JEQ   ? a == k
	       : op == BPF_JGT ? a > k
	       : op == BPF_JGE ? a >= k
			       : (a & k) != 0;
}

static void check_comparison(uint16_t op, struct weir_span a, uint32_t k, bool truth)
{
	struct weir_span left = {0};
	bool any = weir_span_where(op, a, k, truth, &left);

	cr_expect(!any || is_sound(left));
	for (uint32_t i = 0; i < size_of(a); i++)
		if (compare(op, nth(a, i), k) == truth)
			cr_assert(any && weir_span_has(left, nth(a, i)), "%x of %u with %u, %d", op,
				  nth(a, i), k, truth);
}

Test(span, comparisons_miss_nothing)
{
	static const uint32_t ks[] = {0,         1,      4,      5,      29,       60,
				      61,        0x8100, 0x86dd, 0x88a8, 1u << 31, UINT32_MAX - 1,
				      UINT32_MAX};

	for (unsigned o = 0; o < G_N_ELEMENTS(comparisons); o++)
		for (unsigned a = 0; a < G_N_ELEMENTS(spans); a++)
			for (unsigned k = 0; k < G_N_ELEMENTS(ks); k++)
				for (int truth = 0; truth < 2; truth++)
					check_comparison(comparisons[o], spans[a], ks[k], truth);
}

/* What the tagged half of a program is short by. */
Test(span, one_of_two_tags)
{
	struct weir_span tags = {0x8100, 0x88a8, 0x7a8}, left;

	cr_expect_not(weir_span_where(BPF_JEQ, tags, 0x86dd, true, &left));
	cr_expect_not(weir_span_where(BPF_JEQ, tags, 0x0800, true, &left));
	cr_expect(weir_span_where(BPF_JEQ, tags, 0x8100, false, &left));
	cr_expect_eq(left.lo, 0x88a8);
	cr_expect_not(weir_span_where(BPF_JEQ, left, 0x88a8, false, &left));
	tags = weir_span_alu(BPF_RSH, (struct weir_span){0x8100, 0x88a8, 0x7a8},
			     (struct weir_span){8, 8, 0});
	cr_expect_eq(tags.lo, 0x81);
	cr_expect_eq(tags.hi, 0x88);
	cr_expect_eq(tags.step, 7);
}

/* ip[12] >> 4 << 2, as in the offset of what TCP carries. */
Test(span, a_header_length)
{
	struct weir_span length = {0, 255, 1};

	length = weir_span_alu(BPF_AND, length, (struct weir_span){0xf0, 0xf0, 0});
	length = weir_span_alu(BPF_RSH, length, (struct weir_span){2, 2, 0});
	cr_expect_eq(length.hi, 60);
	cr_expect_eq(length.step, 4);
}
