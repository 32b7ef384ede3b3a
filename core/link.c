/*
 * link.c: finds the EtherType and the offset of what the link layer carries.
 *
 * A pseudowire (Ethernet in MPLS) is not looked into: its first nibble is 0 with a control word and
 * anything without, so that nothing in the packet says what it is.
 */
#include <weir/dissect.h>

#include "link.h"

enum {
	TYPE_VLAN = 0x8100,
	TYPE_QINQ = 0x88a8,
	TYPE_QINQ_OLD_1 = 0x9100, /* in use before 802.1ad gave the service tag its number */
	TYPE_QINQ_OLD_2 = 0x9200,
	TYPE_MPLS = 0x8847,
	TYPE_MPLS_MULTICAST = 0x8848,
	TYPE_PPPOE_SESSION = 0x8864,
	TYPE_LENGTH_BELOW =
		0x0600, /* IEEE 802.3, 3.2.6: a smaller value is a length, LLC follows */
};

enum { PPP_IP4 = 0x0021, PPP_IP6 = 0x0057, PPP_MPLS = 0x0281 };

/* More than anybody stacks, so that a packet made of tags costs no more than another. */
enum { MAX_TAGS = 8, MAX_LABELS = 16 };

struct bytes {
	const uint8_t *data;
	uint32_t len;
};

static const struct weir_payload nothing = {WEIR_TYPE_NONE, 0};

static bool has(struct bytes b, uint32_t at, uint32_t n)
{
	return at <= b.len && b.len - at >= n;
}

static bool is_vlan(uint16_t type)
{
	return type == TYPE_VLAN || type == TYPE_QINQ || type == TYPE_QINQ_OLD_1 ||
	       type == TYPE_QINQ_OLD_2;
}

static struct weir_payload by_version(struct bytes b, uint32_t at)
{
	if (!has(b, at, 1))
		return nothing;
	switch (b.data[at] >> 4) {
	case 4:
		return (struct weir_payload){WEIR_TYPE_IP4, at};
	case 6:
		return (struct weir_payload){WEIR_TYPE_IP6, at};
	default:
		return nothing;
	}
}

static struct weir_payload behind_labels(struct bytes b, uint32_t at)
{
	for (unsigned i = 0; i < MAX_LABELS && has(b, at, 4); i++, at += 4)
		if (b.data[at + 2] & 1) /* RFC 3032, 2.1: bottom of stack */
			return by_version(b, at + 4);
	return nothing;
}

static struct weir_payload behind_ppp(struct bytes b, uint32_t at)
{
	if (!has(b, at, 2))
		return nothing;
	uint16_t protocol = weir_be16(b.data + at);
	uint32_t size = 2;
	if (b.data[at] & 1) { /* RFC 1661, 6.5: a compressed protocol field */
		protocol = b.data[at];
		size = 1;
	}
	switch (protocol) {
	case PPP_IP4:
		return (struct weir_payload){WEIR_TYPE_IP4, at + size};
	case PPP_IP6:
		return (struct weir_payload){WEIR_TYPE_IP6, at + size};
	case PPP_MPLS:
		return behind_labels(b, at + size);
	default:
		return nothing;
	}
}

static struct weir_payload behind_llc(struct bytes b, uint32_t at)
{
	static const uint8_t snap[6] = {0xaa, 0xaa, 0x03, 0, 0, 0};

	if (!has(b, at, 8))
		return nothing;
	for (unsigned i = 0; i < sizeof(snap); i++)
		if (b.data[at + i] != snap[i])
			return nothing;
	return (struct weir_payload){weir_be16(b.data + at + 6), at + 8};
}

/* Over the tags that start with *type at *at - 2: false if one is cut. */
static bool skip_tags(struct bytes b, uint16_t *type, uint32_t *at)
{
	for (unsigned i = 0; i < MAX_TAGS && is_vlan(*type); i++) {
		if (!has(b, *at, 4))
			return false;
		*type = weir_be16(b.data + *at + 2);
		*at += 4;
	}
	return true;
}

static struct weir_payload behind_type(struct bytes b, uint16_t type, uint32_t at)
{
	if (!skip_tags(b, &type, &at))
		return nothing;
	if (type == TYPE_MPLS || type == TYPE_MPLS_MULTICAST) {
		struct weir_payload inner = behind_labels(b, at);
		return inner.type ? inner : (struct weir_payload){type, at};
	}
	if (type == TYPE_PPPOE_SESSION) {
		struct weir_payload inner = behind_ppp(b, at + 6);
		return inner.type ? inner : (struct weir_payload){type, at};
	}
	if (type < TYPE_LENGTH_BELOW)
		return behind_llc(b, at);
	return (struct weir_payload){type, at};
}

/* A link header of a fixed size that holds an EtherType. */
static struct weir_payload behind_header(struct bytes b, uint32_t type_at, uint32_t size)
{
	if (!has(b, 0, size))
		return nothing;
	return behind_type(b, weir_be16(b.data + type_at), size);
}

/*
 * DLT_NULL and DLT_LOOP: an address family in the byte order of the machine that captured (LOOP: of
 * the network). IPv6 is 10, 24, 28 or 30, by system.
 */
static struct weir_payload behind_family(struct bytes b)
{
	if (!has(b, 0, 4))
		return nothing;
	uint32_t family = weir_be32(b.data);
	if (family > 0xffff)
		family = __builtin_bswap32(family);
	switch (family) {
	case 2:
		return (struct weir_payload){WEIR_TYPE_IP4, 4};
	case 10:
	case 24:
	case 28:
	case 30:
		return (struct weir_payload){WEIR_TYPE_IP6, 4};
	default:
		return nothing;
	}
}

static struct weir_payload behind_hdlc_ppp(struct bytes b)
{
	bool framed = has(b, 0, 2) && b.data[0] == 0xff && b.data[1] == 0x03;
	return behind_ppp(b, framed ? 2 : 0);
}

struct weir_payload weir_link_payload(const uint8_t *data, uint32_t len, uint32_t linktype)
{
	struct bytes b = {data, len};

	switch (linktype) {
	case WEIR_LINK_ETHERNET:
		return behind_header(b, 12, 14);
	case WEIR_LINK_LINUX_SLL:
		return behind_header(b, 14, 16);
	case WEIR_LINK_LINUX_SLL2:
		return behind_header(b, 0, 20);
	case WEIR_LINK_C_HDLC:
		return behind_header(b, 2, 4);
	case WEIR_LINK_RAW:
	case WEIR_LINK_RAW_BSD:
	case WEIR_LINK_RAW_OPENBSD:
		return by_version(b, 0);
	case WEIR_LINK_IPV4:
		return (struct weir_payload){WEIR_TYPE_IP4, 0};
	case WEIR_LINK_IPV6:
		return (struct weir_payload){WEIR_TYPE_IP6, 0};
	case WEIR_LINK_NULL:
	case WEIR_LINK_LOOP:
		return behind_family(b);
	case WEIR_LINK_PPP:
	case WEIR_LINK_PPP_HDLC:
		return behind_hdlc_ppp(b);
	default:
		return nothing;
	}
}

uint32_t weir_vlan_tags(const struct weir_packet *packet, uint32_t linktype, uint32_t *ret_at)
{
	struct bytes b = {packet->data, packet->caplen};
	uint32_t type_at = linktype == WEIR_LINK_ETHERNET ? 12 : 14;

	if ((linktype != WEIR_LINK_ETHERNET && linktype != WEIR_LINK_LINUX_SLL) ||
	    !has(b, type_at, 2))
		return 0;
	uint16_t type = weir_be16(b.data + type_at);
	uint32_t at = type_at + 2;
	skip_tags(b, &type, &at);
	*ret_at = type_at;
	return at - type_at - 2;
}
