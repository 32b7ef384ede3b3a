/* Marks along edges: the least of what feeds a post, held back by who holds, never backwards. */
#include "marks.h"

#include <criterion/criterion.h>

/* head -> holder -> join, head -> join */
static struct weir_post head, holder, join;
static struct weir_post *to_both[] = {&holder, &join}, *to_join[] = {&join};
static struct weir_outlet from_head = {.to = to_both, .n = 2},
			  from_holder = {.to = to_join, .n = 1};
static const struct weir_plugin no_queue;

static GPtrArray *posts_new(void)
{
	GPtrArray *posts = g_ptr_array_new();
	struct weir_post *all[] = {&head, &holder, &join};

	for (unsigned i = 0; i < G_N_ELEMENTS(all); i++)
		*all[i] = (struct weir_post){.plugin = &no_queue,
					     .mark_ns = INT64_MIN,
					     .hold_ns = INT64_MAX,
					     .held_ns = INT64_MAX};
	head.outlets = &from_head;
	holder.outlets = &from_holder;
	head.n_outlets = holder.n_outlets = 1;
	g_ptr_array_add(posts, &holder);
	g_ptr_array_add(posts, &join);
	return posts;
}

static void hold(int64_t oldest_ns)
{
	holder.seat.lane = (struct weir_lane *)&holder; /* any that is not NULL */
	weir_hold(&holder.seat.self, oldest_ns);
}

Test(marks, are_those_of_the_head_where_nothing_is_held)
{
	g_autoptr(GPtrArray) posts = posts_new();

	weir_marks_spread(&head, posts, 100, true);
	cr_expect_eq(holder.mark_ns, 100);
	cr_expect_eq(join.mark_ns, 100);
}

Test(marks, are_held_back_behind_who_holds_and_not_before)
{
	g_autoptr(GPtrArray) posts = posts_new();

	hold(40);
	weir_marks_spread(&head, posts, 100, true);
	cr_expect_eq(holder.mark_ns, 100);
	cr_expect_eq(join.mark_ns, 40, "the least of what feeds it");
}

Test(marks, wait_until_what_was_emitted_has_arrived)
{
	g_autoptr(GPtrArray) posts = posts_new();

	hold(40);
	weir_marks_settle(posts);
	hold(90);
	weir_marks_spread(&head, posts, 100, true);
	cr_expect_eq(join.mark_ns, 40, "it may still be on its way");
	weir_marks_settle(posts);
	weir_marks_spread(&head, posts, 100, true);
	cr_expect_eq(join.mark_ns, 90);
	hold(INT64_MAX);
	weir_marks_settle(posts);
	weir_marks_spread(&head, posts, 100, true);
	cr_expect_eq(join.mark_ns, 100);
}

Test(marks, do_not_wait_where_the_lane_is_stuck_and_never_step_back)
{
	g_autoptr(GPtrArray) posts = posts_new();

	hold(40);
	weir_marks_spread(&head, posts, 100, false);
	cr_expect_eq(join.mark_ns, 100);
	weir_marks_spread(&head, posts, 70, true);
	cr_expect_eq(holder.mark_ns, 100);
	cr_expect_eq(join.mark_ns, 100);
}
