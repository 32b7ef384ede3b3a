/*
 * The programs run in the kernel, on datagrams of a socket pair: these have no stripped tag, so
 * what comes through must be what libpcap's own interpreter lets through.  Tagged frames need an
 * interface, tests/live/afpacket_pushdown.py, or a model of the kernel, test_afpacket_tagged.c.
 */
#include "../plugins/afpacket/program.c"

#include "tagged_frames.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <pcap/pcap.h>
#include <unistd.h>

static struct bpf_program compile(const char *filter, int snaplen)
{
	struct bpf_program compiled;
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, snaplen);

	cr_assert_eq(pcap_compile(pcap, &compiled, filter, 1, PCAP_NETMASK_UNKNOWN), 0, "%s: %s",
		     filter, pcap_geterr(pcap));
	pcap_close(pcap);
	return compiled;
}

static struct program build(enum program_direction direction, const struct bpf_program *compiled)
{
	const char *why_whole;
	struct program_halves halves;
	struct program program;

	cr_assert(program_halves_new((const void *)compiled->bf_insns, compiled->bf_len, &halves,
				     &why_whole));
	cr_assert_null(why_whole, "%s", why_whole);
	cr_assert(program_new(direction, &halves, &program));
	program_halves_free(&halves);
	return program;
}

/* How many bytes of a frame pass the program in the kernel. */
static size_t passes(const struct program *program, const char *frame, size_t len)
{
	int pair[2];
	char got[256];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	cr_assert_eq(program_attach_drop_all(pair[1]), 0);
	cr_assert_eq(program_attach(pair[1], program), 0);
	(void)!send(pair[0], frame, len, 0);
	ssize_t size = recv(pair[1], got, sizeof(got), MSG_DONTWAIT);
	close(pair[0]);
	close(pair[1]);
	return size < 0 ? 0 : (size_t)size;
}

struct filter {
	char text[48];
};

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
};

ParameterizedTestParameters(program, means_the_same_in_the_kernel)
{
	return cr_make_param_array(struct filter, filters, sizeof(filters) / sizeof(filters[0]));
}

ParameterizedTest(struct filter *filter, program, means_the_same_in_the_kernel)
{
	struct bpf_program compiled = compile(filter->text, 40);
	struct program program = build(PROGRAM_IN, &compiled);

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		unsigned len = (unsigned)frames[i].len;
		size_t expected = bpf_filter(compiled.bf_insns, (const void *)frames[i].bytes, len,
					     len);
		size_t got = passes(&program, frames[i].bytes, len);
		cr_expect_eq(got, expected < len ? expected : len, "%s, frame %zu: %zu bytes",
			     filter->text, i, got);
	}
	program_free(&program);
	pcap_freecode(&compiled);
}

static const struct program_halves everything_wanted;

Test(program, direction_without_a_filter)
{
	struct program in, out, both;

	cr_assert(program_new(PROGRAM_IN, &everything_wanted, &in));
	cr_assert(program_new(PROGRAM_OUT, &everything_wanted, &out));
	cr_assert(program_new(PROGRAM_BOTH, &everything_wanted, &both));
	cr_expect_eq(passes(&in, "abc", 3), 3);
	cr_expect_eq(passes(&out, "abc", 3), 0);
	cr_expect_eq(passes(&both, "abc", 3), 3);
	cr_expect_eq(both.len, 0);
	program_free(&in);
	program_free(&out);
	program_free(&both);
}

Test(program, longer_than_the_kernel_takes)
{
	static struct weir_insn insns[BPF_MAXINSNS];
	struct program_halves halves = {.untagged = insns, .untagged_len = BPF_MAXINSNS};
	struct program program;

	cr_expect_not(program_new(PROGRAM_IN, &halves, &program));
	cr_expect_null(program.insns);
}

Test(program, the_kernel_is_asked)
{
	struct bpf_program compiled = compile("tcp", 40);
	struct program program = build(PROGRAM_IN, &compiled);

	cr_expect_eq(program_try(&program), 0);
	program.insns[0].k = (uint32_t)SKF_AD_OFF + SKF_AD_MAX;
	cr_expect_eq(program_try(&program), -EINVAL);
	program_free(&program);
	pcap_freecode(&compiled);
}
