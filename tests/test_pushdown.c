/* Composed programs against the same paths judged one filter after another: by libpcap's
 * interpreter, and by the kernel, which checks programs more strictly. */
#include <criterion/criterion.h>

#include "pushdown.h"

#include <glib.h>
#include <linux/filter.h>
#include <pcap/pcap.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(sizeof(struct weir_insn) == sizeof(struct bpf_insn), "layout");
_Static_assert(sizeof(struct weir_insn) == sizeof(struct sock_filter), "layout");

static const char *const expressions[] = {
	"ip",
	"arp",
	"tcp port 80",
	"udp and not port 53",
	"host 10.0.0.1 or host 10.0.0.2",
	"ip6 and tcp",
	"vlan 29 and tcp",
	"ether[100] = 0",
	"ip[ip[1]] = 1",
	"tcp[tcpflags] & tcp-syn != 0",
	"tcp[((tcp[12] & 0xf0) >> 2):4] = 0x47455420",
	"len > 60",
	"greater 1",
	"icmp or (ip6 proto 58)",
	"not ip",
	"net 10.0.0.0/8 and portrange 1-1000",
	"ether proto 0x8100 or ether[12:2] = 0x88a8",
	"mpls and ip",
};
#define N_EXPRESSIONS G_N_ELEMENTS(expressions)

struct filters {
	pcap_t *pcap;
	struct bpf_program programs[2 * N_EXPRESSIONS]; /* optimized, and as they are written */
};

static void compile(pcap_t *pcap, struct bpf_program *program, const char *expression, int optimize)
{
	cr_assert_eq(pcap_compile(pcap, program, expression, optimize, PCAP_NETMASK_UNKNOWN), 0,
		     "%s: %s", expression, pcap_geterr(pcap));
}

static void filters_init(struct filters *filters)
{
	filters->pcap = pcap_open_dead(DLT_EN10MB, 262144);
	for (unsigned i = 0; i < 2 * N_EXPRESSIONS; i++)
		compile(filters->pcap, &filters->programs[i], expressions[i / 2], i % 2 == 0);
}

static void filters_clear(struct filters *filters)
{
	for (unsigned i = 0; i < 2 * N_EXPRESSIONS; i++)
		pcap_freecode(&filters->programs[i]);
	pcap_close(filters->pcap);
}

/* ---- Frames ---- */

struct frame {
	uint8_t bytes[200];
	unsigned len;
};

static unsigned put(uint8_t *to, const char *hex)
{
	unsigned n = 0;

	for (; hex[0] && hex[1]; hex += hex[0] == ' ' ? 1 : 2)
		if (*hex != ' ')
			to[n++] = (uint8_t)(g_ascii_xdigit_value(hex[0]) << 4 |
					    g_ascii_xdigit_value(hex[1]));
	return n;
}

static const char *const links[] = {
	"020000000001 020000000002 0800",
	"020000000001 020000000002 0806",
	"020000000001 020000000002 86dd",
	"020000000001 020000000002 8100 001d 0800",
	"020000000001 020000000002 88a8 0005 8100 001d 0800",
	"020000000001 020000000002 8847 00064140",
};
static const char *const networks[] = {
	"4500 003c 0001 0000 4006 0000 0a000001 0a000063",
	"4514 003c 0001 0000 4011 0000 c0a80001 0a000002",
	"4600 003c 0001 2000 4006 0000 0a000001 0a000063 01010100",
	"6000 0000 0014 0640 20010db8 00000000 00000000 00000001 20010db8 00000000 00000000 "
	"00000002",
	"0001 0800 0604 0001 020000000001 0a000001 000000000000 0a000002",
	"4500 003c 0001 0000 4001 0000 0a000001 0a000063",
};
static const char *const transports[] = {
	"c000 0050 00000001 00000000 5002 ffff 0000 0000 47455420 2f20",
	"0035 c000 0020 0000 00000000",
	"0800 0000 00010001",
};

static void make_frame(struct frame *frame, GRand *random)
{
	unsigned n = 0;

	memset(frame->bytes, 0, sizeof(frame->bytes));
	n += put(frame->bytes, links[g_rand_int_range(random, 0, G_N_ELEMENTS(links))]);
	n += put(frame->bytes + n, networks[g_rand_int_range(random, 0, G_N_ELEMENTS(networks))]);
	n += put(frame->bytes + n,
		 transports[g_rand_int_range(random, 0, G_N_ELEMENTS(transports))]);
	n += (unsigned)g_rand_int_range(random, 0, 60);
	/* Half of them end anywhere, so that filters load beyond the end. */
	frame->len = g_rand_boolean(random) ? n : (unsigned)g_rand_int_range(random, 1, (int)n);
}

/* ---- Judging ---- */

static bool accepts(const struct weir_reduction *step, const struct frame *frame)
{
	const struct bpf_insn *filter = (const struct bpf_insn *)step->filter;
	bool accepted = !filter || bpf_filter(filter, frame->bytes, frame->len, frame->len) != 0;

	return accepted != (step->negate != 0);
}

static uint32_t wanted_by(const struct weir_path *path, const struct frame *frame)
{
	uint32_t limit = path->max_bytes;
	bool cut = false;

	for (unsigned i = 0; i < path->n_steps; i++) {
		if (!cut && !accepts(path->steps[i], frame))
			return 0;
		cut |= path->steps[i]->max_bytes != UINT32_MAX;
		limit = MIN(limit, path->steps[i]->max_bytes);
	}
	return limit;
}

static uint32_t wanted(const struct weir_path *paths, unsigned n, const struct frame *frame)
{
	uint32_t most = 0;

	for (unsigned i = 0; i < n; i++)
		most = MAX(most, wanted_by(&paths[i], frame));
	return most;
}

/* ---- Random paths ---- */

#define MAX_PATHS 5
#define MAX_STEPS 3

struct plan {
	struct weir_reduction reductions[MAX_PATHS][MAX_STEPS];
	const struct weir_reduction *steps[MAX_PATHS][MAX_STEPS];
	struct weir_path paths[MAX_PATHS];
	unsigned n_paths;
};

static void make_step(struct weir_reduction *step, const struct filters *filters, GRand *random)
{
	const struct bpf_program *program =
		&filters->programs[g_rand_int_range(random, 0, 2 * (int)N_EXPRESSIONS)];

	*step = (struct weir_reduction){.max_bytes = UINT32_MAX};
	if (g_rand_int_range(random, 0, 3) == 0) {
		step->max_bytes = (uint32_t)g_rand_int_range(random, 1, 100);
		return;
	}
	step->filter = (const struct weir_insn *)program->bf_insns;
	step->filter_len = program->bf_len;
	step->negate = g_rand_int_range(random, 0, 3) == 0;
}

static void make_plan(struct plan *plan, const struct filters *filters, GRand *random)
{
	plan->n_paths = (unsigned)g_rand_int_range(random, 1, MAX_PATHS + 1);
	for (unsigned p = 0; p < plan->n_paths; p++) {
		unsigned n = (unsigned)g_rand_int_range(random, 1, MAX_STEPS + 1);

		for (unsigned s = 0; s < n; s++) {
			make_step(&plan->reductions[p][s], filters, random);
			plan->steps[p][s] = &plan->reductions[p][s];
		}
		plan->paths[p] = (struct weir_path){plan->steps[p], n, UINT32_MAX};
	}
}

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
	struct filters filters;
	unsigned composed = 0;

	filters_init(&filters);
	for (unsigned round = 0; round < 3000; round++) {
		struct plan plan;
		uint32_t len = 0;

		make_plan(&plan, &filters, random);
		g_autofree struct weir_insn *program = weir_pushdown_compose(plan.paths,
									     plan.n_paths, &len);
		cr_assert_eq(program == NULL, all_is_wanted(&plan), "round %u", round);
		composed += program != NULL;
		for (unsigned i = 0; program && i < 50; i++) {
			struct frame frame;

			make_frame(&frame, random);
			uint32_t got = bpf_filter((struct bpf_insn *)program, frame.bytes,
						  frame.len, frame.len);
			cr_assert_eq(got, wanted(plan.paths, plan.n_paths, &frame),
				     "round %u, frame %u of %u bytes", round, i, frame.len);
		}
	}
	cr_assert_gt(composed, 2500);
	filters_clear(&filters);
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
	struct filters filters;

	filters_init(&filters);
	for (unsigned round = 0; round < 500; round++) {
		struct plan plan;
		uint32_t len = 0;

		make_plan(&plan, &filters, random);
		g_autofree struct weir_insn *program = weir_pushdown_compose(plan.paths,
									     plan.n_paths, &len);
		if (program)
			kernel_agrees(&plan, program, len, random);
	}
	filters_clear(&filters);
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
