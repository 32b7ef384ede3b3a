#include "../plugins/bpf/bpf.c"
#include "../plugins/bpf/fits.c"
#include "../plugins/bpf/program.c"
#include "../plugins/bpf/text.c"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <unistd.h>

#include "packets.h"

enum { ETHERNET = 1, RAW_IP = 101, WLAN = 105, COOKED = 113 };

struct compiling {
	char filter[60];
	uint32_t linktype;
	char why[60]; /* what libpcap says; "": it compiles */
};

static struct compiling compilings[] = {
	{"tcp port 80", ETHERNET, ""},
	{"tcp port 80", RAW_IP, ""},
	{"", ETHERNET, ""},
	{"tcp prot 80", ETHERNET, "syntax error"},
	{"ip and ip6", ETHERNET, "expression rejects all packets"},
	{"arp", RAW_IP, "expression rejects all packets"},
	{"wlan type mgt", ETHERNET, "802.11 link-layer types supported only on 802.11"},
	{"wlan type mgt", WLAN, ""},
	/* What only a kernel knows has no meaning for the bytes of a packet. */
	{"inbound", ETHERNET, "not supported on"},
	{"inbound", COOKED, ""}, /* here it is in the bytes */
	{"tcp", 1240, "unknown data link type 1240"},
};

ParameterizedTestParameters(bpf, compiles)
{
	return cr_make_param_array(struct compiling, compilings,
				   sizeof(compilings) / sizeof(compilings[0]));
}

ParameterizedTest(struct compiling *row, bpf, compiles)
{
	struct bpf_program program;
	char why[PCAP_ERRBUF_SIZE] = "";
	bool ok = program_compile(&program, row->filter, row->linktype, why, sizeof(why));

	cr_expect_eq(ok, row->why[0] == 0, "%s for %u: %s", row->filter, row->linktype, why);
	cr_expect(strstr(why, row->why), "%s for %u: %s", row->filter, row->linktype, why);
	if (ok)
		pcap_freecode(&program);
}

/* A check knows no link type: it may refuse only what none gives a meaning to. */
Test(bpf, check_refuses_only_nonsense)
{
	static const char *const sense[] = {"tcp",    "wlan type mgt", "arp",  "inbound",
					    "vlan 7", "pppoes and ip", "mpls", ""};
	static const char *const nonsense[] = {"tcp prot 80", "host 10.0.0.256", "port 99999",
					       "and"};
	char why[PCAP_ERRBUF_SIZE];

	for (size_t i = 0; i < sizeof(sense) / sizeof(sense[0]); i++)
		cr_expect(program_makes_sense(sense[i], why, sizeof(why)), "%s: %s", sense[i], why);
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
		cr_expect_not(program_makes_sense(nonsense[i], why, sizeof(why)), "%s",
			      nonsense[i]);
}

static const struct fit *fit_of_filter(struct fits *fits, const char *filter, uint32_t linktype,
				       bool tags_taken_off)
{
	bool new;
	fits_init(fits, strdup(filter), tags_taken_off);
	return fits_find(fits, linktype, &new);
}

Test(bpf, knows_filters_that_look_at_tags)
{
	static const struct {
		const char *filter;
		bool sees_tags;
	} rows[] = {
		{"vlan", true},           {"vlan 7 and tcp", true},
		{"host 10.0.0.1", false}, {"ether[12:2] = 0x8100", true},
		{"tcp or vlan", true},    {"ether proto 0x88cc", false},
		{"not vlan", true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fits fits;
		const struct fit *fit = fit_of_filter(&fits, rows[i].filter, ETHERNET, false);
		cr_expect(fit->compiled);
		cr_expect_eq(fit->sees_tags, rows[i].sees_tags, "%s", rows[i].filter);
		fits_clear(&fits);

		fit = fit_of_filter(&fits, rows[i].filter, ETHERNET, true);
		cr_expect_eq(fit->compiled, !rows[i].sees_tags, "%s: %s", rows[i].filter, fit->why);
		fits_clear(&fits);
	}
}

Test(bpf, compiles_once_for_a_link_type)
{
	struct fits fits;
	bool new;
	const struct fit *ethernet = fit_of_filter(&fits, "arp", ETHERNET, false);

	cr_expect_eq(fits_find(&fits, ETHERNET, &new), ethernet);
	cr_expect_not(new);
	const struct fit *raw = fits_find(&fits, RAW_IP, &new);
	cr_expect(new);
	cr_expect_not(raw->compiled);
	cr_expect(strstr(raw->why, "rejects all"), "%s", raw->why);
	cr_expect_eq(fits_find(&fits, RAW_IP, &new), raw);
	cr_expect_not(new);
	fits_clear(&fits);
	fits_clear(&(struct fits){0}); /* a node that was never opened */
}

/* Offsets, lengths and payload as if the tags had never been there. */
Test(bpf, skip_looks_behind_tags)
{
	static const char *const filters[] = {
		"udp port 53", "src host 10.0.0.1",           "udp[8] = 0x61",
		"len = 46",    "ether src 02:00:00:00:00:02", "ether[12:2] = 0x800",
	};
	static const char *const frames[] = {
		ETH_IP4 IP4("0020", "0000", "11") UDP "61626364",
		MACS VLAN_7 "0800" IP4("0020", "0000", "11") UDP "61626364",
		MACS QINQ_9 VLAN_7 "0800" IP4("0020", "0000", "11") UDP "61626364",
	};
	uint8_t *untagged = malloc(MAX_PACKET);

	for (size_t f = 0; f < sizeof(filters) / sizeof(filters[0]); f++) {
		struct fits fits;
		const struct fit *fit = fit_of_filter(&fits, filters[f], ETHERNET, true);
		for (unsigned tags = 0; tags < 3; tags++) {
			struct weir_packet packet = packet_of(frames[tags]);
			cr_expect(matches_without_tags(fit, &packet, untagged), "%s behind %u tags",
				  filters[f], tags);
			packet_free(&packet);
		}
		fits_clear(&fits);
	}
	free(untagged);
}

static char *file_with(const void *bytes, size_t n)
{
	static char path[] = "/tmp/weir-filter-XXXXXX";
	strcpy(path + strlen(path) - 6, "XXXXXX");
	int fd = mkstemp(path);
	cr_assert_eq(write(fd, bytes, n), (ssize_t)n);
	close(fd);
	return path;
}

Test(bpf, reads_a_filter_file)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	static const char content[] = "# the two hosts\nhost 10.0.0.5 # mail\n or host 10.0.0.9\n";

	char *path = file_with(content, strlen(content));
	char *text = text_read(path, why, sizeof(why));
	unlink(path);
	cr_assert(text, "%s", why);
	cr_expect_null(strchr(text, '#'));
	cr_expect_null(strstr(text, "mail"));
	cr_expect(strstr(text, "\n or host 10.0.0.9\n"));
	cr_expect(program_makes_sense(text, why, sizeof(why)), "%s", why);
	free(text);

	path = file_with("tcp\0udp", 7);
	cr_expect_null(text_read(path, why, sizeof(why)));
	unlink(path);
	cr_expect(strstr(why, "no text"), "%s", why);

	cr_expect_null(text_read("/nowhere/filter", why, sizeof(why)));
	cr_expect_str_eq(why, "/nowhere/filter: No such file or directory");
}
