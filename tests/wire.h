/*
 * wire.h: random frames as they are on the wire: tagged in every way, IPv4 with options, IPv6 with
 * extension headers, fragments, ARP, MPLS; half of them cut anywhere.
 */
#ifndef TESTS_WIRE_H
#define TESTS_WIRE_H

#include <glib.h>
#include <stdint.h>
#include <string.h>

struct wire_frame {
	uint8_t bytes[256];
	uint32_t len;
};

#define WIRE_MACS "020000000001 020000000002 "
#define WIRE_A6   "20010db8 00000000 00000000 00000001 "
#define WIRE_B6   "20010db8 00000000 00000000 00000002 "

static const char *const wire_links[] = {
	WIRE_MACS "0800",
	WIRE_MACS "0806",
	WIRE_MACS "86dd",
	WIRE_MACS "8100 001d 0800",
	WIRE_MACS "8100 001d 86dd",
	WIRE_MACS "8100 0000 0800", /* a priority tag */
	WIRE_MACS "8100 e01d 0806",
	WIRE_MACS "88a8 0005 0800",
	WIRE_MACS "88a8 0005 8100 001d 0800",
	WIRE_MACS "8100 0005 8100 001d 86dd",
	WIRE_MACS "88a8 0001 88a8 0002 8100 001d 0800",
	WIRE_MACS "9100 0007 0800",
	WIRE_MACS "9200 0007 8100 001d 0800",
	WIRE_MACS "8847 00064140",
	WIRE_MACS "8100 001d 8847 00064140",
	WIRE_MACS "0026 424203", /* a length, and LLC behind it */
};
static const char *const wire_networks[] = {
	"4500 003c 0001 0000 4006 0000 0a000001 0a000063",
	"4514 003c 0001 0000 4011 0000 c0a80001 0a000002",
	"4600 003c 0001 2000 4006 0000 0a000001 0a000063 01010100",
	"4500 003c 0001 0010 4011 0000 0a000001 0a000002",
	"4000 003c 0001 0000 4006 0000 0a000001 0a000063", /* a header of 0 bytes */
	"4500 003c 0001 0000 4001 0000 0a000001 0a000063",
	"6000 0000 0014 0640 " WIRE_A6 WIRE_B6,
	"6000 0000 001c 0040 " WIRE_A6 WIRE_B6 "0600 0104 00000000",
	"6000 0000 001c 2c40 " WIRE_A6 WIRE_B6 "0600 0001 00000001",
	"0001 0800 0604 0001 020000000001 0a000001 000000000000 0a000002",
};
static const char *const wire_transports[] = {
	"c000 0050 00000001 00000000 5002 ffff 0000 0000 47455420 2f20",
	"0035 c000 0020 0000 00000000",
	"0800 0000 00010001",
};

static inline uint32_t wire_put(uint8_t *to, const char *hex)
{
	uint32_t n = 0;

	for (; hex[0] && hex[1]; hex += hex[0] == ' ' ? 1 : 2)
		if (*hex != ' ')
			to[n++] = (uint8_t)(g_ascii_xdigit_value(hex[0]) << 4 |
					    g_ascii_xdigit_value(hex[1]));
	return n;
}

static inline const char *wire_any(const char *const *texts, size_t n, GRand *random)
{
	return texts[g_rand_int_range(random, 0, (int)n)];
}

static inline void wire_make(struct wire_frame *frame, GRand *random)
{
	uint32_t n = 0;

	memset(frame->bytes, 0, sizeof(frame->bytes));
	n += wire_put(frame->bytes, wire_any(wire_links, G_N_ELEMENTS(wire_links), random));
	n += wire_put(frame->bytes + n,
		      wire_any(wire_networks, G_N_ELEMENTS(wire_networks), random));
	n += wire_put(frame->bytes + n,
		      wire_any(wire_transports, G_N_ELEMENTS(wire_transports), random));
	n += (uint32_t)g_rand_int_range(random, 0, 60);
	frame->len = g_rand_boolean(random) ? n : (uint32_t)g_rand_int_range(random, 1, (int)n);
}

#endif
