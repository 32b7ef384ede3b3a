/*
 * packets.h: packets written as hexadecimal text, for tests of everything that looks into them.
 */
#ifndef TESTS_PACKETS_H
#define TESTS_PACKETS_H

#include <weir/plugin.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Memory of exactly the packet's size, so that a sanitizer sees the first byte beyond it. */
static inline struct weir_packet packet_of(const char *hex)
{
	size_t n = 0;
	for (const char *p = hex; *p; p++)
		n += isxdigit((unsigned char)*p) != 0;
	uint8_t *data = malloc(n / 2 ? n / 2 : 1);
	size_t nibble = 0;
	for (const char *p = hex; *p; p++) {
		if (!isxdigit((unsigned char)*p))
			continue;
		int value = *p <= '9' ? *p - '0' : (*p | 0x20) - 'a' + 10;
		uint8_t *byte = data + nibble / 2;
		*byte = (uint8_t)(nibble % 2 ? *byte | value : value << 4);
		nibble++;
	}
	return (struct weir_packet){
		.data = data, .caplen = (uint32_t)(n / 2), .wirelen = (uint32_t)(n / 2)};
}

static inline void packet_free(struct weir_packet *packet)
{
	free((void *)(uintptr_t)packet->data);
}

#define MACS     "020000000001 020000000002 "
#define MACS_REV "020000000002 020000000001 "
#define ETH_IP4  MACS "0800 "
#define ETH_IP6  MACS "86dd "
#define VLAN_7   "8100 0007 "
#define QINQ_9   "88a8 0009 "

/* 10.0.0.1 -> 10.0.0.2; total length, fragment field and protocol as hexadecimal text. */
#define IP4(total, frag, proto)     "4500" total "1234" frag "40" proto "0000 0a000001 0a000002 "
#define IP4_REV(total, frag, proto) "4500" total "4321" frag "40" proto "0000 0a000002 0a000001 "
/* 2001:db8::1 -> 2001:db8::2 */
#define A6                    "20010db8000000000000000000000001 "
#define B6                    "20010db8000000000000000000000002 "
#define IP6(length, next)     "60000000" length next "40 " A6 B6
#define IP6_REV(length, next) "60000000" length next "40 " B6 A6

#define TCP     "0400 0050 00000001 00000002 5010 ffff 0000 0000 "
#define TCP_REV "0050 0400 00000002 00000001 5010 ffff 0000 0000 "
#define UDP     "0400 0035 0008 0000 "
#define UDP_REV "0035 0400 0008 0000 "

#endif
