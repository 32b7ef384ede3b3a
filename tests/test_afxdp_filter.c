/*
 * Translated filters run in the kernel, on frames that it is handed for a test: what they take must
 * be what libpcap's own interpreter takes of the same bytes.
 */
#include "../plugins/afxdp/filter.c"

/* The name of two structures, of which the kernel's is the newer. */
#define bpf_insn pcap_insn
#include <pcap/pcap.h>
#undef bpf_insn

#include "tagged_frames.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>
#include <unistd.h>

#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))
#define TAKEN            XDP_TX
#define LEFT             XDP_DROP

/* ---- Running a filter in the kernel ---- */

static int load_end(int action)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_XDP,
		    .prog_flags = BPF_F_XDP_HAS_FRAGS);
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = action},
		{.code = BPF_JMP | BPF_EXIT},
	};
	return bpf_prog_load(BPF_PROG_TYPE_XDP, "end", "Dual BSD/GPL", insns, 2, &options);
}

static int make_steps(void)
{
	int map = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "steps", 4, 4, STEPS, NULL);

	if (map == -EPERM)
		cr_skip_test("needs root, to run programs in the kernel");
	cr_assert_geq(map, 0);
	for (uint32_t step = STEP_TAKE; step <= STEP_LEAVE; step++) {
		int end = load_end(step == STEP_TAKE ? TAKEN : LEFT);
		cr_assert_geq(end, 0);
		cr_assert_eq(bpf_map_update_elem(map, &step, &end, BPF_ANY), 0);
		close(end);
	}
	return map;
}

static bool takes(int program, const void *frame, size_t len)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = (uint32_t)len);

	cr_assert_eq(bpf_prog_test_run_opts(program, &run), 0, "%s", strerror(errno));
	cr_assert(run.retval == TAKEN || run.retval == LEFT, "returned %u", run.retval);
	return run.retval == TAKEN;
}

/* Returns how many frames the filter takes. */
static unsigned expect_same(const struct weir_insn *insns, uint32_t len, int steps,
			    const char *name)
{
	int program = filter_load(insns, len, steps);
	unsigned taken = 0;

	cr_assert_geq(program, 0, "%s: %s", name, strerror(-program));
	for (size_t i = 0; i < LENGTH_OF(frames); i++) {
		unsigned bytes = (unsigned)frames[i].len;
		bool expected = bpf_filter((const void *)insns, (const void *)frames[i].bytes,
					   bytes, bytes);
		cr_expect_eq(takes(program, frames[i].bytes, bytes), expected, "%s, frame %zu",
			     name, i);
		taken += expected;
	}
	close(program);
	return taken;
}

/* ---- Filters that libpcap compiles ---- */

struct filter {
	char text[80];
};

static struct bpf_program compile(const char *text)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 262144);
	struct bpf_program compiled;

	cr_assert_eq(pcap_compile(pcap, &compiled, text, 1, PCAP_NETMASK_UNKNOWN), 0, "%s: %s",
		     text, pcap_geterr(pcap));
	pcap_close(pcap);
	return compiled;
}

static struct filter filters[] = {
	{"tcp"},
	{"udp port 80"},
	{"vlan"},
	{"vlan 29 and tcp"},
	{"tcp or (vlan and tcp)"},
	{"ether[12:2] = 0x8100"},
	{"vlan and vlan"},
	{"not ip"},
	{"len > 60"},
	{"ip6"},
	{"arp or ip[6:2] & 0x1fff != 0"},
	{"ether proto 0x88a8"},
	{"ip[0] & 0xf > 5 and ip[6] & 0x20 != 0"},
	{"host 10.0.0.1 and (tcp port 80 or udp portrange 1000-2000)"},
	{"ether[len - 1] = 0"},
	{"ip[2:2] * 2 / 3 % 7 << 1 >> 1 = 5 or -len < 0"},
	{"ether[ether[20]] ^ ether[21] != 0"},
};

ParameterizedTestParameters(filter, takes_what_libpcap_takes)
{
	return cr_make_param_array(struct filter, filters, LENGTH_OF(filters));
}

ParameterizedTest(struct filter *filter, filter, takes_what_libpcap_takes)
{
	struct bpf_program compiled = compile(filter->text);
	int steps = make_steps();

	expect_same((const void *)compiled.bf_insns, compiled.bf_len, steps, filter->text);
	pcap_freecode(&compiled);
	close(steps);
}

Test(filter, reads_frames_of_several_pieces)
{
	static uint8_t frame[9000];
	static const struct filter deep[] = {
		{"ether[8998:2] = 0x0102"},
		{"ether[8999:2] = 0"},
		{"ether[5000] = 7"},
		{"len = 9000"},
		{"udp"},
		{"ether[ether[100]] = 9"},
	};
	static const bool expected[] = {true, false, true, true, false, true};
	int steps = make_steps();

	frame[5000] = 7;
	frame[8998] = 1;
	frame[8999] = 2;
	frame[100] = 200;
	frame[200] = 9;
	for (size_t i = 0; i < LENGTH_OF(deep); i++) {
		struct bpf_program compiled = compile(deep[i].text);
		int program = filter_load((const void *)compiled.bf_insns, compiled.bf_len, steps);

		cr_assert_geq(program, 0);
		cr_expect_eq(takes(program, frame, sizeof(frame)), expected[i], "%s", deep[i].text);
		close(program);
		pcap_freecode(&compiled);
	}
	close(steps);
}

/* ---- Programs of chance ---- */

#define PROGRAMS    1000u
#define PROGRAM_LEN 40u

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static const uint16_t plain_codes[] = {
	BPF_LD | BPF_IMM,
	BPF_LD | BPF_W | BPF_ABS,
	BPF_LD | BPF_H | BPF_ABS,
	BPF_LD | BPF_B | BPF_ABS,
	BPF_LD | BPF_W | BPF_IND,
	BPF_LD | BPF_H | BPF_IND,
	BPF_LD | BPF_B | BPF_IND,
	BPF_LD | BPF_W | BPF_LEN,
	BPF_LD | BPF_MEM,
	BPF_LDX | BPF_IMM,
	BPF_LDX | BPF_W | BPF_LEN,
	BPF_LDX | BPF_MEM,
	BPF_LDX | BPF_B | BPF_MSH,
	BPF_ST,
	BPF_STX,
	BPF_ALU | BPF_ADD | BPF_K,
	BPF_ALU | BPF_ADD | BPF_X,
	BPF_ALU | BPF_SUB | BPF_K,
	BPF_ALU | BPF_SUB | BPF_X,
	BPF_ALU | BPF_MUL | BPF_K,
	BPF_ALU | BPF_MUL | BPF_X,
	BPF_ALU | BPF_DIV | BPF_K,
	BPF_ALU | BPF_DIV | BPF_X,
	BPF_ALU | BPF_MOD | BPF_K,
	BPF_ALU | BPF_MOD | BPF_X,
	BPF_ALU | BPF_AND | BPF_K,
	BPF_ALU | BPF_AND | BPF_X,
	BPF_ALU | BPF_OR | BPF_K,
	BPF_ALU | BPF_OR | BPF_X,
	BPF_ALU | BPF_XOR | BPF_K,
	BPF_ALU | BPF_XOR | BPF_X,
	BPF_ALU | BPF_LSH | BPF_K,
	BPF_ALU | BPF_LSH | BPF_X,
	BPF_ALU | BPF_RSH | BPF_K,
	BPF_ALU | BPF_RSH | BPF_X,
	BPF_ALU | BPF_NEG,
	BPF_MISC | BPF_TAX,
	BPF_MISC | BPF_TXA,
};
static const uint16_t jump_codes[] = {
	BPF_JMP | BPF_JEQ | BPF_K,  BPF_JMP | BPF_JEQ | BPF_X,  BPF_JMP | BPF_JGT | BPF_K,
	BPF_JMP | BPF_JGT | BPF_X,  BPF_JMP | BPF_JGE | BPF_K,  BPF_JMP | BPF_JGE | BPF_X,
	BPF_JMP | BPF_JSET | BPF_K, BPF_JMP | BPF_JSET | BPF_X,
};

static uint32_t some_number(uint32_t *state)
{
	static const uint32_t numbers[] = {1, 2, 4, 6, 12, 14, 20, 23, 31, 60, 0xffff, 0x80000000};
	return numbers[next_random(state) % LENGTH_OF(numbers)];
}

static bool is_memory(uint16_t code)
{
	return code == (BPF_LD | BPF_MEM) || code == (BPF_LDX | BPF_MEM) ||
	       BPF_CLASS(code) == BPF_ST || BPF_CLASS(code) == BPF_STX;
}

static bool is_shift(uint16_t code)
{
	return BPF_CLASS(code) == BPF_ALU && (BPF_OP(code) == BPF_LSH || BPF_OP(code) == BPF_RSH);
}

static struct weir_insn some_insn(uint32_t *state, uint32_t left)
{
	struct weir_insn insn = {.k = some_number(state)};

	if (next_random(state) % 4 == 0 && left > 1) {
		insn.code = jump_codes[next_random(state) % LENGTH_OF(jump_codes)];
		insn.jt = (uint8_t)(next_random(state) % (left < 8 ? left : 8));
		insn.jf = (uint8_t)(next_random(state) % (left < 8 ? left : 8));
		return insn;
	}
	insn.code = plain_codes[next_random(state) % LENGTH_OF(plain_codes)];
	if (is_memory(insn.code))
		insn.k %= 2;
	else if (is_shift(insn.code))
		insn.k %= 32;
	return insn;
}

/* The two cells of memory that it uses are written before they are read. */
static void some_program(uint32_t *state, struct weir_insn *insns)
{
	insns[0] = (struct weir_insn){.code = BPF_ST, .k = 0};
	insns[1] = (struct weir_insn){.code = BPF_ST, .k = 1};
	for (uint32_t i = 2; i < PROGRAM_LEN - 2; i++)
		insns[i] = some_insn(state, PROGRAM_LEN - 2 - i);
	insns[PROGRAM_LEN - 2] = (struct weir_insn){.code = BPF_ALU | BPF_AND | BPF_K, .k = 3};
	insns[PROGRAM_LEN - 1] = (struct weir_insn){.code = BPF_RET | BPF_A};
}

Test(filter, programs_of_chance_mean_the_same)
{
	struct weir_insn insns[PROGRAM_LEN];
	uint32_t state = 1;
	unsigned taken = 0;
	int steps = make_steps();
	char name[32];

	for (unsigned i = 0; i < PROGRAMS; i++) {
		some_program(&state, insns);
		snprintf(name, sizeof(name), "program %u", i);
		taken += expect_same(insns, PROGRAM_LEN, steps, name);
	}
	/* Neither all nor nothing. */
	cr_expect_gt(taken, PROGRAMS / 10);
	cr_expect_lt(taken, PROGRAMS * LENGTH_OF(frames) / 2);
	close(steps);
}

/* ---- What cannot be translated ---- */

static uint32_t translated(const struct weir_insn *insns, uint32_t len)
{
	static struct bpf_insn to[FILTER_MAX];
	return filter_translate(insns, len, 3, to);
}

Test(filter, what_has_no_meaning_is_refused)
{
	const struct weir_insn by_zero[] = {{BPF_ALU | BPF_DIV | BPF_K, 0, 0, 0},
					    {BPF_RET | BPF_K, 0, 0, 1}};
	const struct weir_insn beyond[] = {{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0},
					   {BPF_RET | BPF_K, 0, 0, 1}};
	const struct weir_insn back[] = {{BPF_JMP | BPF_JA, 0, 0, UINT32_MAX},
					 {BPF_RET | BPF_K, 0, 0, 1}};
	const struct weir_insn no_cell[] = {{BPF_ST, 0, 0, BPF_MEMWORDS},
					    {BPF_RET | BPF_K, 0, 0, 1}};
	const struct weir_insn good[] = {{BPF_RET | BPF_K, 0, 0, 1}};

	cr_expect_eq(translated(by_zero, 2), 0);
	cr_expect_eq(translated(beyond, 2), 0);
	cr_expect_eq(translated(back, 2), 0);
	cr_expect_eq(translated(no_cell, 2), 0);
	cr_expect_gt(translated(good, 1), 0);
}

Test(filter, too_long_is_refused)
{
	static struct weir_insn insns[BPF_MAXINSNS];

	for (size_t i = 0; i < BPF_MAXINSNS - 1; i++)
		insns[i] = (struct weir_insn){BPF_LD | BPF_W | BPF_ABS, 0, 0, 0};
	insns[BPF_MAXINSNS - 1] = (struct weir_insn){BPF_RET | BPF_A, 0, 0, 0};
	cr_expect_eq(translated(insns, BPF_MAXINSNS), 0);
}
