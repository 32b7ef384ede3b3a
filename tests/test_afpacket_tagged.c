/*
 * What the kernel would keep of frames whose tag it has taken off, by a model of it, must be what
 * the stages want of the frames as they were on the wire.
 */
#include "../plugins/afpacket/program.c"

#include "kernel.h"
#include "paths.h"

#include <criterion/criterion.h>

/* ---- One frame ---- */

/* Bytes of the wire that are there behind the program, once the tag is back in its place; false:
 * such a frame the kernel does not hand on. */
static bool keep(const struct program *program, const struct wire_frame *wire, uint32_t *ret_kept,
		 bool *ret_overflow)
{
	static struct kernel_frame frame;

	if (!kernel_receive(wire->bytes, wire->len, &frame))
		return false;
	*ret_kept = kernel_run((const struct weir_insn *)program->insns, &frame, ret_overflow);
	if (frame.tagged && *ret_kept >= VLAN_MAC_BYTES)
		*ret_kept += VLAN_TAG_BYTES;
	return true;
}

static void check_frame(const struct plan *plan, const struct program *program,
			const struct wire_frame *wire, const char *what)
{
	uint32_t kept;
	bool overflow;

	if (!keep(program, wire, &kept, &overflow))
		return;
	if (overflow) /* the kernel may keep it */
		cr_assert_not(plan_wants(plan, wire), "%s: %s", what, wire_text(wire));
	else
		cr_assert(plan_is_served(plan, wire, kept), "%s: %u bytes of %s", what, kept,
			  wire_text(wire));
}

/* ---- Programs ---- */

static struct program program_of(const struct plan *plan, const char *what)
{
	struct program program;
	struct program_halves halves;
	const char *why_whole;
	uint32_t len = 0;

	g_autofree struct weir_insn *wanted = plan_compose(plan, &len);
	if (!wanted)
		return (struct program){0};
	cr_assert(program_halves_new(wanted, len, &halves, &why_whole));
	cr_assert_null(why_whole, "%s: %s", what, why_whole);
	if (!program_new(PROGRAM_IN, &halves, &program))
		cr_assert_gt(halves.tagged_len + halves.untagged_len, BPF_MAXINSNS / 2);
	program_halves_free(&halves);
	return program;
}

/* ---- Every filter on every kind of frame ---- */

static void make_frame(struct wire_frame *frame, unsigned i)
{
	unsigned network = i / G_N_ELEMENTS(wire_links);
	unsigned transport = network / G_N_ELEMENTS(wire_networks);

	memset(frame, 0, sizeof(*frame));
	frame->len = wire_put(frame->bytes, wire_links[i % G_N_ELEMENTS(wire_links)]);
	frame->len += wire_put(frame->bytes + frame->len,
			       wire_networks[network % G_N_ELEMENTS(wire_networks)]);
	frame->len += wire_put(frame->bytes + frame->len, wire_transports[transport]);
}

static void check_all_frames(struct weir_reduction reduction, const char *what)
{
	enum {
		FRAMES = G_N_ELEMENTS(wire_links) * G_N_ELEMENTS(wire_networks) *
			 G_N_ELEMENTS(wire_transports)
	};
	struct plan plan = {0};

	plan_add_path(&plan);
	plan_add(&plan, reduction);
	struct program program = program_of(&plan, what);
	cr_assert(program.len, "%s", what);
	cr_assert_eq(program_try(&program), 0, "%s", what);
	for (unsigned i = 0; i < FRAMES; i++) {
		struct wire_frame frame;

		make_frame(&frame, i);
		for (; frame.len >= 14; frame.len -= MIN(frame.len, 3))
			check_frame(&plan, &program, &frame, what);
	}
	program_free(&program);
	plan_clear(&plan);
}

Test(afpacket_tagged, every_filter_on_every_kind_of_frame)
{
	struct path_programs all;

	path_programs_init(&all);
	for (unsigned i = 0; i < 2 * PATH_FILTERS; i++) {
		struct weir_reduction reduction = plan_reduction(&all.programs[i]);

		for (unsigned way = 0; way < 4; way++) {
			reduction.negate = way & 1;
			reduction.skip_vlan = way & 2;
			check_all_frames(reduction, path_filters[i / 2]);
		}
	}
	path_programs_clear(&all);
}

Test(afpacket_tagged, random_paths_on_random_frames)
{
	g_autoptr(GRand) random = g_rand_new_with_seed(3);
	struct path_programs all;
	unsigned programs = 0;

	path_programs_init(&all);
	for (unsigned round = 0; round < 2000; round++) {
		struct plan plan;

		plan_random(&plan, &all, random);
		struct program program = program_of(&plan, "random");
		programs += program.len > 0;
		for (unsigned i = 0; program.len && i < 100; i++) {
			struct wire_frame frame;

			wire_make(&frame, random);
			check_frame(&plan, &program, &frame, "random");
		}
		program_free(&program);
		plan_clear(&plan);
	}
	cr_expect_gt(programs, 1500, "%u", programs);
	path_programs_clear(&all);
}

/* ---- Limits ---- */

Test(afpacket_tagged, so_many_bytes_are_kept_that_the_tag_has_room)
{
	static const struct wire_frame tagged = {
		{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 29, 8, 6}, 100};

	for (uint32_t bytes = 1; bytes < 130; bytes++) {
		struct plan plan = {0};
		uint32_t kept;
		bool overflow;

		plan_add_path(&plan);
		plan_add(&plan, (struct weir_reduction){.max_bytes = bytes});
		struct program program = program_of(&plan, "snaplen");
		cr_assert(keep(&program, &tagged, &kept, &overflow));
		cr_expect_geq(kept, MIN(bytes, 100), "%u of %u", kept, bytes);
		cr_expect_leq(kept, bytes < 12 ? bytes : MAX(bytes, 16), "%u of %u", kept, bytes);
		program_free(&program);
		plan_clear(&plan);
	}
}

/* ---- What it costs ---- */

static struct program_halves halves_of(const char *expression, bool skip_vlan)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 262144);
	struct bpf_program compiled;
	struct program_halves halves;
	struct plan plan = {0};
	const char *why_whole;
	uint32_t len = 0;

	cr_assert_eq(pcap_compile(pcap, &compiled, expression, 1, PCAP_NETMASK_UNKNOWN), 0);
	struct weir_reduction reduction = plan_reduction(&compiled);
	reduction.skip_vlan = skip_vlan;
	plan_add_path(&plan);
	plan_add(&plan, reduction);
	g_autofree struct weir_insn *wanted = plan_compose(&plan, &len);
	cr_assert(program_halves_new(wanted, len, &halves, &why_whole));
	plan_clear(&plan);
	pcap_freecode(&compiled);
	pcap_close(pcap);
	return halves;
}

/* A filter that looks at no tag matches no tagged frame, which one instruction can say. */
Test(afpacket_tagged, a_filter_without_tags_costs_nothing_for_tagged_frames)
{
	static const char *const filters[] = {"tcp port 80", "host 10.0.0.1 or arp", "ip6 and udp"};

	for (unsigned i = 0; i < G_N_ELEMENTS(filters); i++) {
		struct program_halves halves = halves_of(filters[i], false);

		cr_expect(program_rejects_tagged(&halves), "%s", filters[i]);
		cr_expect_eq(halves.tagged_len, 1, "%s: %u", filters[i], halves.tagged_len);
		program_halves_free(&halves);
	}
}

/* Of the copies for no tag, one and two the first one cannot be reached. */
Test(afpacket_tagged, behind_a_tag_there_is_one)
{
	struct program_halves halves = halves_of("tcp port 80", true);

	cr_expect_not(program_rejects_tagged(&halves));
	cr_expect_lt(halves.tagged_len, halves.untagged_len - 10, "%u of %u", halves.tagged_len,
		     halves.untagged_len);
	program_halves_free(&halves);
}

/* ---- What cannot be exact ---- */

/* Stores into all scratch cells, and has a load that needs one more. */
static uint32_t hungry_program(struct weir_insn *program)
{
	uint32_t n = 0;

	for (uint32_t cell = 0; cell < 16; cell++)
		program[n++] = (struct weir_insn){BPF_ST, 0, 0, cell};
	program[n++] = (struct weir_insn){BPF_LD | BPF_W | BPF_ABS, 0, 0, 12};
	program[n++] = (struct weir_insn){BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0x8100001d};
	program[n++] = (struct weir_insn){BPF_RET | BPF_K, 0, 0, 60};
	program[n++] = (struct weir_insn){BPF_RET | BPF_K, 0, 0, 0};
	return n;
}

Test(afpacket_tagged, what_cannot_be_exact_is_passed_up_whole)
{
	static const struct wire_frame untagged = {{[12] = 8, 0}, 80};
	static const struct wire_frame tagged = {{[12] = 0x81, 0, 0, 29, 8, 0}, 80};
	struct weir_insn wanted[20];
	struct program_halves halves;
	struct program program;
	const char *why_whole;
	uint32_t kept;
	bool overflow;

	cr_assert(program_halves_new(wanted, hungry_program(wanted), &halves, &why_whole));
	cr_assert(why_whole && strstr(why_whole, "scratch memory"), "%s", why_whole);
	cr_assert_eq(halves.tagged_len, 0);
	cr_assert(program_new(PROGRAM_IN, &halves, &program));
	cr_assert_eq(program_try(&program), 0);
	cr_assert(keep(&program, &untagged, &kept, &overflow));
	cr_expect_eq(kept, 0);
	cr_assert(keep(&program, &tagged, &kept, &overflow));
	cr_expect_eq(kept, 80);
	program_free(&program);
	program_halves_free(&halves);
}

/* A tag of another kind than the tagged half is made for. */
Test(afpacket_tagged, an_unknown_tag_is_passed_up_whole)
{
	struct program_halves halves = halves_of("tcp", false);
	struct kernel_frame frame = {.len = 60, .tagged = true, .tpid = 0x9100};
	struct program program;
	bool overflow;

	cr_assert(program_new(PROGRAM_BOTH, &halves, &program));
	cr_expect_eq(kernel_run((void *)program.insns, &frame, &overflow), 60);
	frame.tpid = 0x88a8;
	cr_expect_eq(kernel_run((void *)program.insns, &frame, &overflow), 0);
	program_free(&program);
	program_halves_free(&halves);
}
