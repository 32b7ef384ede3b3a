/*
 * program.c: see program.h.
 */
#include "program.h"

#include <weir/filter.h>

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vlan.h"

_Static_assert(sizeof(struct weir_insn) == sizeof(struct sock_filter), "one layout for programs");

#define META(what)      ((uint32_t)(SKF_AD_OFF + (what)))
#define LOAD_META(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, META(what))
#define WHOLE           UINT32_MAX

static const struct sock_filter only_in[] = {
	LOAD_META(SKF_AD_PKTTYPE),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 0),
};
static const struct sock_filter only_out[] = {
	LOAD_META(SKF_AD_PKTTYPE),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, 0),
};
/* Goes on with the accumulator 0, as the program behind it finds it at the start of a run. */
static const struct sock_filter pass_tagged[] = {
	LOAD_META(SKF_AD_VLAN_TAG_PRESENT),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, WHOLE),
};
static const struct sock_filter branch_if_tagged[] = {
	LOAD_META(SKF_AD_VLAN_TAG_PRESENT), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
	BPF_STMT(BPF_JMP | BPF_JA, 0), /* over the half for untagged frames */
};
/* The kernel knows no other tags today, and the half behind it is made for these. */
static const struct sock_filter only_known_tags[] = {
	LOAD_META(SKF_AD_VLAN_TPID),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_8021Q, 2, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_8021AD, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, WHOLE),
	BPF_STMT(BPF_LD | BPF_IMM, 0),
};
static const struct sock_filter everything[] = {BPF_STMT(BPF_RET | BPF_K, WHOLE)};
static const struct sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};

static const struct weir_absent tag[] = {
	{META(SKF_AD_VLAN_TPID), ETH_P_8021Q, ETH_P_8021AD, ETH_P_8021AD - ETH_P_8021Q},
	{META(SKF_AD_VLAN_TAG), 0, UINT16_MAX, 1},
};
static const struct weir_layout stripped = {
	.at = VLAN_MAC_BYTES, .n_absent = 2, .absent = tag, .shift = -(int32_t)VLAN_TAG_BYTES};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- Halves ---- */

/* How much of a frame the kernel has to keep so that there are that many bytes once the tag is
 * back; without all of the addresses it has no place. */
static uint32_t without_tag(uint32_t bytes)
{
	if (bytes == WHOLE || bytes <= VLAN_MAC_BYTES)
		return bytes;
	return bytes < VLAN_MAC_BYTES + VLAN_TAG_BYTES ? VLAN_MAC_BYTES : bytes - VLAN_TAG_BYTES;
}

static bool is_return(const struct weir_insn *insn)
{
	return insn->code == (BPF_RET | BPF_K);
}

bool program_rejects_tagged(const struct program_halves *halves)
{
	for (uint32_t i = 0; i < halves->tagged_len; i++) {
		if (is_return(&halves->tagged[i]) && halves->tagged[i].k)
			return false;
	}
	return halves->tagged_len > 0;
}

static void shorten(struct program_halves *halves)
{
	for (uint32_t i = 0; i < halves->tagged_len; i++) {
		if (is_return(&halves->tagged[i]))
			halves->tagged[i].k = without_tag(halves->tagged[i].k);
	}
	if (program_rejects_tagged(halves)) {
		halves->tagged[0] = (struct weir_insn){.code = BPF_RET | BPF_K};
		halves->tagged_len = 1;
	}
}

bool program_halves_new(const struct weir_insn *wanted, uint32_t len, struct program_halves *ret,
			const char **ret_why_whole)
{
	*ret = (struct program_halves){.untagged = malloc(len * sizeof(*wanted))};
	*ret_why_whole = NULL;
	if (!ret->untagged)
		return false;
	memcpy(ret->untagged, wanted, len * sizeof(*wanted));
	ret->untagged_len = len;
	ret->tagged = weir_filter_rewrite(wanted, len, &stripped, &ret->tagged_len, ret_why_whole);
	shorten(ret);
	return true;
}

void program_pass_tagged(struct program_halves *halves)
{
	free(halves->tagged);
	halves->tagged = NULL;
	halves->tagged_len = 0;
}

void program_halves_free(struct program_halves *halves)
{
	free(halves->untagged);
	free(halves->tagged);
	*halves = (struct program_halves){0};
}

/* ---- Programs ---- */

static void append(struct program *program, const void *insns, size_t len)
{
	memcpy(program->insns + program->len, insns, len * sizeof(*program->insns));
	program->len = (unsigned short)(program->len + len);
}

static void append_halves(struct program *program, const struct program_halves *halves)
{
	if (halves->tagged_len == 0) {
		append(program, pass_tagged, LENGTH(pass_tagged));
		append(program, halves->untagged, halves->untagged_len);
		return;
	}
	append(program, branch_if_tagged, LENGTH(branch_if_tagged));
	program->insns[program->len - 1].k = halves->untagged_len;
	append(program, halves->untagged, halves->untagged_len);
	append(program, only_known_tags, LENGTH(only_known_tags));
	append(program, halves->tagged, halves->tagged_len);
}

bool program_new(enum program_direction direction, const struct program_halves *halves,
		 struct program *ret)
{
	size_t most = LENGTH(only_in) + LENGTH(branch_if_tagged) + halves->untagged_len +
		      LENGTH(only_known_tags) + halves->tagged_len;

	*ret = (struct program){0};
	if (direction == PROGRAM_BOTH && halves->untagged_len == 0)
		return true;
	if (most > BPF_MAXINSNS)
		return false;
	ret->insns = calloc(most, sizeof(*ret->insns));
	if (!ret->insns)
		return false;
	if (direction != PROGRAM_BOTH)
		append(ret, direction == PROGRAM_IN ? only_in : only_out, LENGTH(only_in));
	if (halves->untagged_len == 0)
		append(ret, everything, LENGTH(everything));
	else
		append_halves(ret, halves);
	return true;
}

void program_free(struct program *program)
{
	free(program->insns);
	*program = (struct program){0};
}

static int attach(int fd, const struct sock_filter *insns, unsigned short len)
{
	/* The kernel copies the instructions; its structure only lacks the const. */
	struct sock_fprog fprog = {.len = len, .filter = (struct sock_filter *)(uintptr_t)insns};
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &fprog, sizeof(fprog)) ? -errno : 0;
}

int program_attach(int fd, const struct program *program)
{
	if (program->len)
		return attach(fd, program->insns, program->len);
	int unused = 0;
	return setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused)) ? -errno : 0;
}

int program_attach_drop_all(int fd)
{
	return attach(fd, nothing, LENGTH(nothing));
}

/* Tried as it will be done: in the place of a filter that is there. */
int program_try(const struct program *program)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	int failure = program_attach_drop_all(fd);
	if (!failure)
		failure = program_attach(fd, program);
	close(fd);
	return failure;
}
