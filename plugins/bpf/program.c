/*
 * program.c: compiles as for a capture file, whatever the source.
 *
 * A handle on an empty capture file in memory does two things that pcap_open_dead() does not: it
 * translates the link type's number in files to libpcap's own, and makes libpcap refuse what only
 * a kernel knows (`inbound`) instead of compiling a program that never matches.
 */
#include "program.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { SNAPLEN = 262144 };

/* pcap_compile() is said to be thread-safe since 1.8; what it calls to resolve names is not
 * everywhere. */
static pthread_mutex_t compiler = PTHREAD_MUTEX_INITIALIZER;

static pcap_t *open_empty(uint32_t linktype, char *why, size_t why_size)
{
	struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t zone, sigfigs, snaplen, linktype;
	} header = {0xa1b2c3d4, 2, 4, 0, 0, SNAPLEN, linktype};
	char error[PCAP_ERRBUF_SIZE] = "out of memory";

	FILE *file = fmemopen(&header, sizeof(header), "r");
	pcap_t *pcap = file ? pcap_fopen_offline(file, error) : NULL;
	if (!pcap) {
		snprintf(why, why_size, "%s", error);
		if (file)
			fclose(file);
	}
	return pcap;
}

bool program_compile(struct bpf_program *ret, const char *filter, uint32_t linktype, char *why,
		     size_t why_size)
{
	pthread_mutex_lock(&compiler);
	pcap_t *pcap = open_empty(linktype, why, why_size);
	bool ok = pcap && pcap_compile(pcap, ret, filter, 1, PCAP_NETMASK_UNKNOWN) == 0;
	if (pcap && !ok)
		snprintf(why, why_size, "%s", pcap_geterr(pcap));
	if (pcap)
		pcap_close(pcap);
	pthread_mutex_unlock(&compiler);
	return ok;
}

bool program_makes_sense(const char *filter, char *why, size_t why_size)
{
	/* Ethernet, FDDI, raw IP, 802.11, cooked, pflog, SunATM, radiotap: each has words that the
	 * others lack. */
	static const uint32_t linktypes[] = {1, 10, 101, 105, 113, 117, 123, 127};

	for (size_t i = 0; i < sizeof(linktypes) / sizeof(linktypes[0]); i++) {
		struct bpf_program program;
		char ignored[PCAP_ERRBUF_SIZE];
		bool first = i == 0;
		if (program_compile(&program, filter, linktypes[i], first ? why : ignored,
				    first ? why_size : sizeof(ignored))) {
			pcap_freecode(&program);
			return true;
		}
	}
	return false;
}

bool program_sees_tags(const struct bpf_program *program)
{
	for (unsigned i = 0; i < program->bf_len; i++) {
		const struct bpf_insn *insn = &program->bf_insns[i];
		if (insn->code == (BPF_JMP | BPF_JEQ | BPF_K) &&
		    (insn->k == 0x8100 || insn->k == 0x88a8 || insn->k == 0x9100))
			return true;
	}
	return false;
}
