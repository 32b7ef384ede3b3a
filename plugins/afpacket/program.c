/*
 * program.c: see program.h.
 */
#include "program.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

_Static_assert(sizeof(struct weir_insn) == sizeof(struct sock_filter), "one layout for programs");

#define LOAD_META(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + (what)))
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
/* Leaves the accumulator 0 for the program behind it, as that finds it at the start of a run. */
static const struct sock_filter guard[] = {
	LOAD_META(SKF_AD_VLAN_TAG_PRESENT),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, WHOLE),
};
static const struct sock_filter everything[] = {BPF_STMT(BPF_RET | BPF_K, WHOLE)};
static const struct sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void append(struct program *program, const void *insns, size_t len)
{
	memcpy(program->insns + program->len, insns, len * sizeof(*program->insns));
	program->len = (unsigned short)(program->len + len);
}

bool program_new(enum program_direction direction, const struct weir_insn *wanted, uint32_t len,
		 struct program *ret)
{
	*ret = (struct program){0};
	if (direction == PROGRAM_BOTH && len == 0)
		return true;
	size_t most = LENGTH(only_in) + LENGTH(guard) + LENGTH(everything) + len;
	if (most > BPF_MAXINSNS)
		return false;
	ret->insns = calloc(most, sizeof(*ret->insns));
	if (!ret->insns)
		return false;
	if (direction != PROGRAM_BOTH)
		append(ret, direction == PROGRAM_IN ? only_in : only_out, LENGTH(only_in));
	if (len == 0) {
		append(ret, everything, LENGTH(everything));
		return true;
	}
	append(ret, guard, LENGTH(guard));
	append(ret, wanted, len);
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
