/*
 * pushdown.c: takes what the graph wants of a packet into the XDP program.
 */
#include "afxdp.h"

#include "filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many instructions of eBPF the filter takes; 0: it cannot be translated. */
static uint32_t measure(const struct weir_insn *wanted, uint32_t len)
{
	struct bpf_insn *insns = calloc(FILTER_MAX, sizeof(*insns));
	uint32_t n = insns ? filter_translate(wanted, len, 0, insns) : 0;

	free(insns);
	return n;
}

const char *afxdp_want(struct weir_self *self, const struct weir_insn *wanted, uint32_t len)
{
	const struct afxdp_config *config = self->config;
	struct afxdp_node *node = self->node;
	uint32_t n = measure(wanted, len);

	if (!config->pushdown)
		return "pushdown=no";
	if (n == 0)
		return "it is too long for an XDP program, or has a loop";
	/* `weir plan` opens nothing. */
	int failure = node->program.skeleton ? program_set_filter(&node->program, wanted, len) : 0;
	if (failure)
		snprintf(node->push_words, sizeof(node->push_words),
			 "the kernel does not take it as an XDP program of %u instructions: %s", n,
			 strerror(-failure));
	else
		snprintf(node->push_words, sizeof(node->push_words),
			 "%u instructions, which are %u in the XDP program; packets are taken "
			 "whole, since XDP cannot cut them",
			 len, n);
	return failure ? node->push_words : NULL;
}

const char *afxdp_pushed(struct weir_self *self)
{
	const struct afxdp_node *node = self->node;
	return node->push_words;
}
