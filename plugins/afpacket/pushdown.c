/*
 * pushdown.c: takes what the graph wants of a packet into the kernel, as far as the kernel takes
 * it.
 */
#include "afpacket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LINKTYPE_ETHERNET = 1 };

#define TAGS_ENOUGH 2000 /* more than `bpf` waits for before it hints at vlan=skip */

static unsigned length_of(const struct program_halves *halves)
{
	struct program program;
	unsigned len = 0;

	if (program_new(PROGRAM_BOTH, halves, &program))
		len = program.len;
	program_free(&program);
	return len;
}

/* With a direction, which makes it the longest. */
static int try_halves(const struct program_halves *halves)
{
	struct program program;
	int failure = -E2BIG;

	if (program_new(PROGRAM_IN, halves, &program))
		failure = program_try(&program);
	program_free(&program);
	return failure;
}

static unsigned long long optmem_max(void)
{
	unsigned long long bytes = 0;
	FILE *file = fopen("/proc/sys/net/core/optmem_max", "re");

	if (file && fscanf(file, "%llu", &bytes) != 1)
		bytes = 0;
	if (file)
		fclose(file);
	return bytes;
}

static void explain_refusal(struct afpacket_node *node, int failure)
{
	char *to = node->push_words;
	size_t size = sizeof(node->push_words);
	unsigned len = length_of(&node->wanted);

	if (failure == -ENOMEM)
		snprintf(to, size,
			 "the program is too long: %u instructions, the limit is "
			 "net.core.optmem_max=%llu",
			 len, optmem_max());
	else if (failure == -E2BIG)
		snprintf(to, size,
			 "the program is too long for the kernel, which takes %d "
			 "instructions",
			 BPF_MAXINSNS);
	else
		snprintf(to, size, "the kernel does not take the program of %u instructions: %s",
			 len, strerror(-failure));
}

static void describe(struct afpacket_node *node, const char *why_whole)
{
	const struct program_halves *halves = &node->wanted;
	char *to = node->push_words;
	size_t size = sizeof(node->push_words);
	unsigned len = length_of(halves);

	if (why_whole)
		snprintf(to, size,
			 "%u instructions; frames with a VLAN tag are passed up whole, since %s",
			 len, why_whole);
	else if (program_rejects_tagged(halves))
		snprintf(to, size,
			 "%u instructions; no frame with a VLAN tag matches, vlan=skip would look "
			 "behind tags",
			 len);
	else
		snprintf(to, size, "%u instructions, %u of them for frames with a VLAN tag", len,
			 halves->tagged_len);
}

const char *afpacket_want(struct weir_self *self, const struct weir_insn *wanted, uint32_t len)
{
	const struct afpacket_config *config = self->config;
	struct afpacket_node *node = self->node;
	const char *why_whole;
	int failure;

	if (!config->pushdown)
		return "pushdown=no";
	if (!program_halves_new(wanted, len, &node->wanted, &why_whole))
		return "there is no memory for it";
	if (node->link_count && node->links[0].linktype != LINKTYPE_ETHERNET) {
		program_pass_tagged(&node->wanted);
		why_whole = "the interface is not Ethernet";
	}
	failure = try_halves(&node->wanted);
	if (failure && node->wanted.tagged_len) {
		program_pass_tagged(&node->wanted);
		why_whole = "a program for both kinds would be too long";
		failure = try_halves(&node->wanted);
	}
	if (!failure) {
		describe(node, why_whole);
		return NULL;
	}
	explain_refusal(node, failure);
	program_halves_free(&node->wanted);
	return node->push_words;
}

const char *afpacket_pushed(struct weir_self *self)
{
	const struct afpacket_node *node = self->node;
	return node->push_words;
}

/* ---- While it runs ---- */

struct program_halves afpacket_halves(const struct afpacket_node *node)
{
	struct program_halves halves = node->wanted;

	if (program_rejects_tagged(&halves) && !atomic_load(&node->tags_seen))
		halves.tagged_len = 0;
	return halves;
}

void afpacket_look_at_tags(struct weir_self *self)
{
	struct afpacket_node *node = self->node;
	struct afpacket_lane *lane = self->lane;

	if (lane->tags_seen || lane->walked.tags < TAGS_ENOUGH)
		return;
	lane->tags_seen = true;
	atomic_store(&node->tags_seen, true);
	/* If the kernel refuses, the program that is there passes more than it must. */
	for (unsigned i = 0; i < lane->ring_count && program_rejects_tagged(&node->wanted); i++)
		afpacket_socket_start(self, &node->links[i], &lane->rings[i]);
}
