/* Composed programs against the same paths judged one filter after another: by libpcap's
 * interpreter, and by the kernel, which checks programs more strictly. */
#include "paths.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(sizeof(struct weir_insn) == sizeof(struct sock_filter), "layout");

/* ---- Random paths ---- */

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

/* A socket filter returns how many bytes of a datagram the receiver gets.  false: the kernel has no
 * room for it. */
static bool kernel_agrees(struct weir_insn *program, uint32_t len, GRand *random)
{
	struct sock_fprog fprog = {(unsigned short)len, (struct sock_filter *)program};
	uint8_t received[256];
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
	bool taken = setsockopt(pair[1], SOL_SOCKET, SO_ATTACH_FILTER, &fprog, sizeof(fprog)) == 0;
	cr_assert(taken || errno == ENOMEM, "the kernel refuses a program of %u instructions", len);
	for (unsigned i = 0; taken && i < 20; i++) {
		struct wire_frame frame;

		wire_make(&frame, random);
		uint32_t right = bpf_filter((struct bpf_insn *)program, frame.bytes, frame.len,
					    frame.len);
		cr_assert_eq(send(pair[0], frame.bytes, frame.len, 0), frame.len);
		ssize_t got = recv(pair[1], received, sizeof(received), 0);
		cr_assert_eq(got < 0 ? 0 : got, MIN(right, frame.len));
	}
	close(pair[0]);
	close(pair[1]);
	return taken;
}

Test(pushdown, the_kernel_accepts_and_agrees)
{
	g_autoptr(GRand) random = g_rand_new_with_seed(2);
	struct path_programs all;
	unsigned taken = 0;

	path_programs_init(&all);
	for (unsigned round = 0; round < 500; round++) {
		struct plan plan;
		uint32_t len = 0;

		plan_random(&plan, &all, random);
		g_autofree struct weir_insn *program = plan_compose(&plan, &len);
		if (program)
			taken += kernel_agrees(program, len, random);
		plan_clear(&plan);
	}
	cr_assert_gt(taken, 250, "%u", taken);
	path_programs_clear(&all);
}

/* ---- Single rules ---- */

static struct weir_step *step_new(const struct weir_reduction *reduction)
{
	const char *why_not = NULL;
	struct weir_step *step = weir_step_new(reduction, &why_not);

	cr_assert_not_null(step, "%s", why_not);
	return step;
}

/* NULL with a reason. */
static struct weir_insn *compose(const struct weir_path *paths, unsigned n, uint32_t *ret_len)
{
	g_autofree char *why_not = NULL;
	struct weir_insn *program = weir_pushdown_compose(paths, n, ret_len, &why_not);

	cr_assert_eq(program == NULL, why_not != NULL);
	return program;
}

static struct weir_insn *compose_one(const struct weir_reduction *reduction, uint32_t max_bytes,
				     uint32_t *ret_len)
{
	struct weir_step *step = step_new(reduction);
	const struct weir_step *steps[] = {step};
	struct weir_insn *program = compose(&(struct weir_path){steps, 1, max_bytes}, 1, ret_len);

	weir_step_free(step);
	return program;
}

static struct weir_insn *compose_text(const char *expression, uint32_t max_bytes, uint32_t *ret_len,
				      uint32_t *ret_own_len)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 262144);
	struct bpf_program program;

	cr_assert_eq(pcap_compile(pcap, &program, expression, 1, PCAP_NETMASK_UNKNOWN), 0);
	*ret_own_len = program.bf_len;
	struct weir_reduction reduction = plan_reduction(&program);
	struct weir_insn *composed = compose_one(&reduction, max_bytes, ret_len);
	pcap_freecode(&program);
	pcap_close(pcap);
	return composed;
}

Test(pushdown, one_filter_costs_no_more_than_itself)
{
	uint32_t len = 0, own_len;

	g_autofree struct weir_insn *composed = compose_text("tcp port 80", 128, &len, &own_len);
	cr_assert_not_null(composed);
	cr_assert_eq(len, own_len);
	cr_assert_eq(composed[len - 2].k, 128);
	cr_assert_eq(composed[len - 1].k, 0);
}

/* The stage runs once more on what is left: behind an IPv4 header of 60 bytes it looks at both
 * ports. */
Test(pushdown, no_packet_is_cut_shorter_than_what_its_filter_looks_at)
{
	static const struct {
		const char *filter;
		uint32_t bytes;
	} rows[] = {
		{"tcp port 80", 14 + 60 + 4},
		{"ip", 14},
		{"ether[100] = 0", 101},
		{"tcp[((tcp[12] & 0xf0) >> 2):4] = 1", 14 + 60 + 60 + 4},
		{"ip[ip[1]] = 1", 14 + 255 + 1},
		{"len > 60", 10},
	};
	for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
		uint32_t len = 0, own_len;

		g_autofree struct weir_insn *composed = compose_text(rows[i].filter, 10, &len,
								     &own_len);
		cr_expect_eq(composed[len - 2].k, rows[i].bytes, "%s: %u", rows[i].filter,
			     composed[len - 2].k);
	}
}

Test(pushdown, a_path_that_wants_everything_leaves_nothing_to_push)
{
	const struct weir_step all = {.max_bytes = UINT32_MAX}, some = {.max_bytes = 64};
	const struct weir_step *steps[] = {&all, &some};
	const struct weir_path paths[] = {{&steps[1], 1, UINT32_MAX}, {&steps[0], 1, UINT32_MAX}};
	uint32_t len = 0;

	cr_assert_null(compose(paths, 2, &len));
	g_autofree struct weir_insn *program = compose(paths, 1, &len);
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

#define EXTENSION ((uint32_t)SKF_AD_OFF + SKF_AD_VLAN_TAG)

static const struct {
	const char *why;
	struct weir_insn filter[4];
	uint32_t len;
} refused[] = {
	{"extensions",
	 {{BPF_LD | BPF_H | BPF_ABS, 0, 0, EXTENSION}, {BPF_RET | BPF_A, 0, 0, 0}},
	 2},
	{"divides",
	 {{BPF_LDX | BPF_B | BPF_MSH, 0, 0, 14},
	  {BPF_LD | BPF_IMM, 0, 0, 100},
	  {BPF_ALU | BPF_DIV | BPF_X, 0, 0, 0},
	  {BPF_RET | BPF_A, 0, 0, 0}},
	 4},
	{"shifts",
	 {{BPF_LDX | BPF_B | BPF_MSH, 0, 0, 14},
	  {BPF_LD | BPF_IMM, 0, 0, 1},
	  {BPF_ALU | BPF_LSH | BPF_X, 0, 0, 0},
	  {BPF_RET | BPF_A, 0, 0, 0}},
	 4},
	{"none that the kernel takes",
	 {{BPF_JMP | BPF_JA, 0, 0, 1}, {BPF_RET | BPF_K, 0, 0, 0}},
	 2},
	{"none that the kernel takes", {{BPF_ST, 0, 0, 16}, {BPF_RET | BPF_K, 0, 0, 0}}, 2},
	{"none that the kernel takes", {{BPF_LD | BPF_IMM, 0, 0, 1}}, 1},
};

Test(pushdown, what_means_something_else_in_the_kernel_is_refused)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++) {
		const struct weir_reduction reduction = {.filter = refused[i].filter,
							 .filter_len = refused[i].len,
							 .max_bytes = 100};
		const char *why_not = "";

		cr_expect_null(weir_step_new(&reduction, &why_not), "%u", i);
		cr_expect(strstr(why_not, refused[i].why), "%u: %s", i, why_not);
	}
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

static void put_host(struct wire_frame *frame, unsigned net, unsigned i)
{
	frame->len = wire_put(frame->bytes, wire_links[0]);
	frame->len += wire_put(frame->bytes + frame->len, wire_networks[0]);
	memcpy(frame->bytes + 30, (uint8_t[]){10, (uint8_t)net, (uint8_t)(i / 256), (uint8_t)i}, 4);
}

Test(pushdown, long_filters_jump_far_and_too_long_ones_are_refused)
{
	const struct weir_reduction hosts[] = {many_hosts(1, 200), many_hosts(2, 200),
					       many_hosts(3, 2000)};
	const struct weir_step *step_of[3];
	struct weir_path paths[3];
	uint32_t len = 0;

	for (unsigned i = 0; i < 3; i++) {
		step_of[i] = step_new(&hosts[i]);
		paths[i] = (struct weir_path){&step_of[i], 1, 100 + i};
	}
	g_autofree struct weir_insn *program = compose(paths, 2, &len);
	cr_assert_not_null(program);
	cr_assert_gt(len, 800);
	for (unsigned net = 1; net <= 3; net++) {
		for (unsigned i = 0; i < 250; i++) {
			struct wire_frame frame = {0};

			put_host(&frame, net, i);
			uint32_t got = bpf_filter((struct bpf_insn *)program, frame.bytes,
						  frame.len, frame.len);
			cr_assert_eq(got, net < 3 && i < 200 ? 99 + net : 0, "10.%u.0.%u: %u", net,
				     i, got);
		}
	}
	cr_assert_null(compose(paths, 3, &len));
	for (unsigned i = 0; i < 3; i++) {
		weir_step_free((struct weir_step *)step_of[i]);
		g_free((gpointer)hosts[i].filter);
	}
}
