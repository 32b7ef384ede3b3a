/*
 * link.h: what lies behind the link layer of a packet, and where.
 */
#ifndef WEIR_LINK_H
#define WEIR_LINK_H

#include <stdbool.h>
#include <stdint.h>

/* Link types that this looks behind, https://www.tcpdump.org/linktypes.html. */
enum {
	WEIR_LINK_NULL = 0,
	WEIR_LINK_ETHERNET = 1,
	WEIR_LINK_PPP = 9,
	WEIR_LINK_RAW_BSD = 12, /* what DLT_RAW is called on most systems, and on OpenBSD, and   */
	WEIR_LINK_RAW_OPENBSD = 14, /* found in files whose writers did not know LINKTYPE_RAW */
	WEIR_LINK_PPP_HDLC = 50,
	WEIR_LINK_RAW = 101,
	WEIR_LINK_C_HDLC = 104,
	WEIR_LINK_LOOP = 108,
	WEIR_LINK_LINUX_SLL = 113,
	WEIR_LINK_IPV4 = 228,
	WEIR_LINK_IPV6 = 229,
	WEIR_LINK_LINUX_SLL2 = 276,
};

enum { WEIR_TYPE_NONE = 0, WEIR_TYPE_IP4 = 0x0800, WEIR_TYPE_ARP = 0x0806, WEIR_TYPE_IP6 = 0x86dd };

/* An EtherType, and the offset of what it names: at <= len.  WEIR_TYPE_NONE where the packet has
 * none or is too short for it. */
struct weir_payload {
	uint16_t type;
	uint32_t at;
};

/* Behind VLAN tags, MPLS labels, PPP, PPPoE and SNAP. Reads nothing beyond len. */
struct weir_payload weir_link_payload(const uint8_t *data, uint32_t len, uint32_t linktype);

static inline uint16_t weir_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t weir_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

#endif
