/*
 * program.c: see program.h.
 */
#include "program.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_arp.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

_Static_assert(sizeof(struct weir_insn) == sizeof(struct sock_filter), "one layout for programs");

#define LENGTH(array)           (sizeof(array) / sizeof((array)[0]))
#define LOAD_META(what)         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + (what)))
#define IF_EQUAL(value, jt, jf) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (jt), (jf))
#define RETURN(bytes)           BPF_STMT(BPF_RET | BPF_K, (bytes))
#define WHOLE                   UINT32_MAX

/* lo and CAN interfaces hand over what they send a second time, as received. */
static const struct sock_filter each_once[] = {
	LOAD_META(SKF_AD_PKTTYPE),       IF_EQUAL(PACKET_OUTGOING, 0, 4), LOAD_META(SKF_AD_HATYPE),
	IF_EQUAL(ARPHRD_LOOPBACK, 1, 0), IF_EQUAL(ARPHRD_CAN, 0, 1),      RETURN(0),
};
static const struct sock_filter only_in[] = {
	LOAD_META(SKF_AD_PKTTYPE),
	IF_EQUAL(PACKET_OUTGOING, 0, 1),
	RETURN(0),
};
static const struct sock_filter only_out[] = {
	LOAD_META(SKF_AD_PKTTYPE), IF_EQUAL(PACKET_OUTGOING, 1, 0), RETURN(0),
	LOAD_META(SKF_AD_HATYPE),  IF_EQUAL(ARPHRD_LOOPBACK, 0, 1), RETURN(0),
};
/* The kernel has taken the tag off a tagged frame, so a program about the wire's bytes would see
 * others: such a frame is passed up whole.  Leaves the accumulator 0, as at the start of a run. */
static const struct sock_filter guard[] = {
	LOAD_META(SKF_AD_VLAN_TAG_PRESENT),
	IF_EQUAL(0, 1, 0),
	RETURN(WHOLE),
};
static const struct sock_filter everything[] = {RETURN(WHOLE)};
static const struct sock_filter nothing[] = {RETURN(0)};

static const struct {
	const struct sock_filter *insns;
	size_t len;
} of_direction[] = {
	[PROGRAM_BOTH] = {each_once, LENGTH(each_once)},
	[PROGRAM_IN] = {only_in, LENGTH(only_in)},
	[PROGRAM_OUT] = {only_out, LENGTH(only_out)},
};

static int attach(int fd, const struct sock_filter *insns, size_t len)
{
	/* The kernel copies the instructions; its structure only lacks the const. */
	struct sock_fprog fprog = {.len = (unsigned short)len,
				   .filter = (struct sock_filter *)(uintptr_t)insns};
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &fprog, sizeof(fprog)) ? -errno : 0;
}

static size_t append(struct sock_filter *program, size_t at, const void *insns, size_t len)
{
	memcpy(program + at, insns, len * sizeof(*program));
	return at + len;
}

int program_attach(int fd, enum program_direction direction, const struct weir_insn *wanted,
		   uint32_t len)
{
	size_t most = LENGTH(each_once) + LENGTH(guard) + LENGTH(everything) + len;

	if (most > BPF_MAXINSNS)
		return -E2BIG;
	struct sock_filter *program = calloc(most, sizeof(*program));
	if (!program)
		return -ENOMEM;
	size_t n = append(program, 0, of_direction[direction].insns, of_direction[direction].len);
	if (len > 0) {
		n = append(program, n, guard, LENGTH(guard));
		n = append(program, n, wanted, len);
	} else {
		n = append(program, n, everything, LENGTH(everything));
	}
	int failure = attach(fd, program, n);
	free(program);
	return failure;
}

int program_attach_drop_all(int fd)
{
	return attach(fd, nothing, LENGTH(nothing));
}
