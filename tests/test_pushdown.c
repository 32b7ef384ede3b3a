/* Composed programs against the same paths judged one filter after another: by libpcap's
 * interpreter, and by the kernel, which checks programs more strictly. */
#include "paths.h"

#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(sizeof(struct weir_insn) == sizeof(struct sock_filter), "layout");

/* ---- Random paths ---- */

static bool all_is_wanted(const struct plan *plan)
{
	for (unsigned p = 0; p < plan->n_paths; p++) {
		bool reduced = false;

		for (unsigned s = 0; s < plan->paths[p].n_steps; s++)
			reduced |= plan->steps[p][s]->filter ||
				   plan->steps[p][s]->max_bytes != UINT32_MAX;
		if (!reduced)
			return true;
	}
	return false;
}

Test(pushdown, random_paths_are_judged_as_one_by_one)
{
	g_autoptr(GRand) random = g_rand_new_with_seed(1);
	struct path_programs all;
	unsigned composed = 0;

	path_programs_init(&all);
	for (unsigned round = 0; round < 3000; round++) {
		struct plan plan;
		uint32_t len = 0;

		plan_random(&plan, &all, random);
		g_autofree struct weir_insn *program = plan_compose(&plan, &len);
		composed += program != NULL;
		for (unsigned i = 0; program && i < 50; i++) {
			struct wire_frame frame;

			wire_make(&frame, random);
			uint32_t kept = bpf_filter((struct bpf_insn *)program, frame.bytes,
						   frame.len, frame.len);
			cr_assert(plan_is_served(&plan, &frame, kept), "round %u: %u bytes of %s",
				  round, kept, wire_text(&frame));
		}
		plan_clear(&plan);
	}
	cr_assert_gt(composed, 2500, "%u", composed);
	path_programs_clear(&all);
}

/* A socket filter returns how many bytes of a datagram the receiver gets. */
static void kernel_agrees(const struct plan *plan, struct weir_insn *program, uint32_t len,
			  GRand *random)
{
	struct sock_fprog fprog = {(unsigned short)len, (struct sock_filter *)program};
	uint8_t received[256];
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
	cr_assert_eq(setsockopt(pair[1], SOL_SOCKET, SO_ATTACH_FILTER, &fprog, sizeof(fprog)), 0,
		     "the kernel refuses a program of %u instructions", len);
	for (unsigned i = 0; i < 20; i++) {
		struct frame frame;

		make_frame(&frame, random);
		uint32_t right = MIN(wanted(plan->paths, plan->n_paths, &frame), frame.len);
		cr_assert_eq(send(pair[0], frame.bytes, frame.len, 0), frame.len);
		ssize_t got = recv(pair[1], received, sizeof(received), 0);
		cr_assert_eq(got < 0 ? 0 : got, right);
	}
	close(pair[0]);
	close(pair[1]);
}

Test(pushdown, the_kernel_accepts_and_agrees)
{
	g_autoptr(GRand) random = g_rand_new_with_seed(2);
	struct path_programs all;

	path_programs_init(&all);
	for (unsigned round = 0; round < 500; round++) {
		struct plan plan;
		uint32_t len = 0;

		make_plan(&plan, &filters, random);
		g_autofree struct weir_insn *program = weir_pushdown_compose(plan.paths,
									     plan.n_paths, &len);
		if (program)
			kernel_agrees(&plan, program, len, random);
	}
	path_programs_clear(&all);
}

/* ---- Single rules ---- */

static struct weir_insn *compose_one(const struct weir_reduction *step, uint32_t max_bytes,
				     uint32_t *ret_len)
{
	const struct weir_path path = {&step, 1, max_bytes};

	return weir_pushdown_compose(&path, 1, ret_len);
}

Test(pushdown, one_filter_costs_no_more_than_itself)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 262144);
	struct bpf_program program;
	uint32_t len = 0;

	compile(pcap, &program, "tcp port 80", 1);
	const struct weir_reduction step = {.filter = (struct weir_insn *)program.bf_insns,
					    .filter_len = program.bf_len,
					    .max_bytes = UINT32_MAX};
	g_autofree struct weir_insn *composed = compose_one(&step, 128, &len);
	cr_assert_not_null(composed);
	cr_assert_eq(len, program.bf_len);
	cr_assert_eq(composed[len - 2].k, 128);
	cr_assert_eq(composed[len - 1].k, 0);
	pcap_freecode(&program);
	pcap_close(pcap);
}

Test(pushdown, a_path_that_wants_everything_leaves_nothing_to_push)
{
	const struct weir_reduction all = {.max_bytes = UINT32_MAX}, some = {.max_bytes = 64};
	const struct weir_reduction *steps[] = {&all, &some};
	const struct weir_path paths[] = {{&steps[1], 1, UINT32_MAX}, {&steps[0], 1, UINT32_MAX}};
	uint32_t len = 0;

	cr_assert_null(weir_pushdown_compose(paths, 2, &len));
	g_autofree struct weir_insn *program = weir_pushdown_compose(paths, 1, &len);
	cr_assert_eq(len, 2, "%u", len);
	cr_assert_eq(program[0].k, 64);
}

Test(pushdown, nobody_wants_anything)
{
	const struct weir_reduction none = {.max_bytes = 0};
	uint32_t len = 0;

	g_autofree struct weir_insn *program = compose_one(&none, UINT32_MAX, &len);
	cr_assert_not_null(program);
	cr_assert_eq(len, 1);
	cr_assert_eq(program[0].code, BPF_RET | BPF_K);
	cr_assert_eq(program[0].k, 0);
}

Test(pushdown, extensions_of_the_kernel_are_not_composed)
{
	const struct weir_insn filter[] = {
		{BPF_LD | BPF_H | BPF_ABS, 0, 0, (uint32_t)SKF_AD_OFF + SKF_AD_VLAN_TAG},
		{BPF_RET | BPF_A, 0, 0, 0},
	};
	const struct weir_reduction step = {.filter = filter, .filter_len = 2, .max_bytes = 100};
	uint32_t len = 0;

	cr_assert_null(compose_one(&step, UINT32_MAX, &len));
}

Test(pushdown, the_accumulator_can_be_returned)
{
	const struct weir_insn filter[] = {
		{BPF_LD | BPF_B | BPF_ABS, 0, 0, 0},
		{BPF_RET | BPF_A, 0, 0, 0},
	};
	const struct weir_reduction step = {.filter = filter, .filter_len = 2, .max_bytes = 100};
	uint32_t len = 0;

	g_autofree struct weir_insn *program = compose_one(&step, UINT32_MAX, &len);
	cr_assert_eq(bpf_filter((struct bpf_insn *)program, (const uint8_t *)"\x01", 1, 1), 100);
	cr_assert_eq(bpf_filter((struct bpf_insn *)program, (const uint8_t *)"\x00", 1, 1), 0);
}

/* Accepts what is sent to one of n hosts of 10.net.0.0/16. */
static struct weir_reduction many_hosts(unsigned net, unsigned n)
{
	struct weir_insn *filter = g_new0(struct weir_insn, 2 * n + 3);
	uint32_t accept = 2 * n + 2;

	filter[0] = (struct weir_insn){BPF_LD | BPF_W | BPF_ABS, 0, 0, 30};
	for (unsigned i = 0; i < n; i++) {
		uint32_t at = 1 + 2 * i;

		filter[at] = (struct weir_insn){BPF_JMP | BPF_JEQ | BPF_K, 0, 1,
						10u << 24 | net << 16 | i};
		filter[at + 1] = (struct weir_insn){BPF_JMP | BPF_JA, 0, 0, accept - at - 2};
	}
	filter[accept - 1] = (struct weir_insn){BPF_RET | BPF_K, 0, 0, 0};
	filter[accept] = (struct weir_insn){BPF_RET | BPF_K, 0, 0, 1};
	return (struct weir_reduction){
		.filter = filter, .filter_len = accept + 1, .max_bytes = UINT32_MAX};
}

static void put_host(struct frame *frame, unsigned net, unsigned i)
{
	frame->len = put(frame->bytes, links[0]);
	frame->len += put(frame->bytes + frame->len, networks[0]);
	memcpy(frame->bytes + 30, (uint8_t[]){10, (uint8_t)net, (uint8_t)(i / 256), (uint8_t)i}, 4);
}

Test(pushdown, long_filters_jump_far_and_too_long_ones_are_refused)
{
	const struct weir_reduction steps[] = {many_hosts(1, 200), many_hosts(2, 200),
					       many_hosts(3, 2000)};
	const struct weir_reduction *step_of[] = {&steps[0], &steps[1], &steps[2]};
	struct weir_path paths[3];
	uint32_t len = 0;

	for (unsigned i = 0; i < 3; i++)
		paths[i] = (struct weir_path){&step_of[i], 1, 100 + i};
	g_autofree struct weir_insn *program = weir_pushdown_compose(paths, 2, &len);
	cr_assert_not_null(program);
	cr_assert_gt(len, 800);
	for (unsigned net = 1; net <= 3; net++) {
		for (unsigned i = 0; i < 250; i++) {
			struct frame frame = {0};

			put_host(&frame, net, i);
			uint32_t got = bpf_filter((struct bpf_insn *)program, frame.bytes,
						  frame.len, frame.len);
			cr_assert_eq(got, net < 3 && i < 200 ? 99 + net : 0, "10.%u.0.%u: %u", net,
				     i, got);
		}
	}
	cr_assert_null(weir_pushdown_compose(paths, 3, &len));
	for (unsigned i = 0; i < 3; i++)
		g_free((gpointer)steps[i].filter);
}
