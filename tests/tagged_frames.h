/*
 * tagged_frames.h: frames that filters tell apart: IPv4, ARP and IPv6, without, with one and with
 * two tags, and with headers that are cut off.
 */
#ifndef TAGGED_FRAMES_H
#define TAGGED_FRAMES_H

#include <stddef.h>

#define MACS "\x02\0\0\0\0\1\x02\0\0\0\0\2"
#define IP4(proto)                                                                                 \
	"\x45\0\0\x28\0\0\0\0\x40" proto "\0\0\x0a\0\0\1\x0a\0\0\2\x04\0\0\x50\0\0\0\0"            \
	"\0\0\0\0\x50\2\0\0\0\0\0\0"
#define FRAME(bytes)                                                                               \
	{                                                                                          \
		bytes, sizeof(bytes) - 1                                                           \
	}

static const struct {
	char bytes[96];
	size_t len;
} frames[] = {
	FRAME(MACS "\x08\0" IP4("\6")),
	FRAME(MACS "\x08\0" IP4("\x11")),
	FRAME(MACS "\x81\0\0\x1d\x08\0" IP4("\6")),
	FRAME(MACS "\x81\0\0\x05\x08\0" IP4("\x11")),
	FRAME(MACS "\x88\xa8\0\5\x81\0\0\x1d\x08\0" IP4("\6")),
	FRAME(MACS "\x08\6\0\1\x08\0\6\4\0\1"),
	FRAME(MACS "\x86\xdd\x60\0\0\0\0\0\x06\x40"),
	FRAME(MACS "\x08\0\x4f\0\0\x28\0\0\x20\0\x40\x11"),
};

#endif
