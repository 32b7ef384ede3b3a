/*
 * dissect.c: finds the network and the transport header of a packet.
 *
 * Only the outermost IP header is found: what a tunnel carries is the business of a decapsulating
 * stage, which moves `data` and clears WEIR_F_DISSECTED.
 */
#include <weir/dissect.h>

#include "link.h"

enum {
	PROTO_HOPOPTS = 0,
	PROTO_ICMP = 1,
	PROTO_TCP = 6,
	PROTO_UDP = 17,
	PROTO_ROUTING = 43,
	PROTO_FRAGMENT = 44,
	PROTO_AH = 51,
	PROTO_NONE = 59,
	PROTO_DSTOPTS = 60,
	PROTO_SCTP = 132,
	PROTO_MOBILITY = 135,
	PROTO_HIP = 139,
	PROTO_SHIM6 = 140,
};

enum { IP4_HEADER = 20, IP6_HEADER = 40, ARP_HEADER = 8 };

/* A chain of extension headers longer than this is no packet that a stack would accept. */
enum { MAX_EXTENSIONS = 32 };

/* The fixed part of the header, without which there is nothing to look at. */
static uint32_t transport_size(uint8_t proto)
{
	switch (proto) {
	case PROTO_TCP:
		return 20;
	case PROTO_UDP:
	case PROTO_ICMP:
		return 8;
	case PROTO_SCTP:
		return 12;
	default:
		return 4;
	}
}

static void set_transport(struct weir_packet *packet, uint32_t at, uint32_t end)
{
	if (packet->proto != PROTO_NONE && at <= UINT16_MAX && at <= end &&
	    end - at >= transport_size(packet->proto))
		packet->l4 = (uint16_t)at;
}

/* The end of what IP carries: before the padding of a short frame. claimed is 0 where segmentation
 * was left to the NIC, and in a jumbogram. */
static uint32_t ip_end(const struct weir_packet *packet, uint32_t claimed, uint32_t header)
{
	uint32_t there = packet->caplen - packet->l3;
	return packet->l3 + (claimed >= header && claimed < there ? claimed : there);
}

static uint32_t authentication_size(const uint8_t *header)
{
	return (header[1] + 2u) * 4; /* RFC 4302, 2.2: in words of 4 bytes, minus 2 */
}

/* RFC 8200, 4; 0: proto is no extension header. `header` has 8 bytes. */
static uint32_t extension_size(uint8_t proto, const uint8_t *header)
{
	switch (proto) {
	case PROTO_HOPOPTS:
	case PROTO_ROUTING:
	case PROTO_DSTOPTS:
	case PROTO_MOBILITY:
	case PROTO_HIP:
	case PROTO_SHIM6:
		return (header[1] + 1u) * 8;
	case PROTO_FRAGMENT:
		return 8;
	case PROTO_AH:
		return authentication_size(header);
	default:
		return 0;
	}
}

/*
 * Behind a fragment header with an offset there is no header, whatever its protocol says.  An
 * atomic fragment (RFC 6946), offset 0 and no more to come, is a whole packet.
 */
static bool is_later_fragment(struct weir_packet *packet, const uint8_t *header)
{
	uint16_t fragment = weir_be16(header + 2);
	if (fragment & 0xfff9)
		packet->flags |= WEIR_F_FRAGMENT;
	return fragment & 0xfff8;
}

/* Walks the extension headers; sets proto, and l4 if the chain ends within the packet. */
static void dissect_extensions(struct weir_packet *packet, uint32_t at, uint32_t end)
{
	static const uint8_t absent[8];

	for (unsigned i = 0; i < MAX_EXTENSIONS; i++) {
		bool whole = at <= end && end - at >= 8;
		const uint8_t *header = whole ? packet->data + at : absent;
		uint32_t size = extension_size(packet->proto, header);
		if (!size)
			set_transport(packet, at, end);
		if (!size || !whole)
			return;
		bool later = packet->proto == PROTO_FRAGMENT && is_later_fragment(packet, header);
		packet->proto = header[0];
		if (later)
			return;
		at += size;
	}
}

static void dissect_ip4(struct weir_packet *packet, uint32_t at)
{
	const uint8_t *ip = packet->data + at;
	if (packet->caplen - at < IP4_HEADER || ip[0] >> 4 != 4 || (ip[0] & 15) < 5)
		return;
	packet->l3 = (uint16_t)at;
	packet->flags |= WEIR_F_IP4;

	uint32_t header = (ip[0] & 15u) * 4;
	uint16_t fragment = weir_be16(ip + 6) & 0x3fff; /* more fragments, and the offset */
	packet->proto = ip[9];
	if (fragment)
		packet->flags |= WEIR_F_FRAGMENT;
	if (fragment & 0x1fff)
		return;
	uint32_t end = ip_end(packet, weir_be16(ip + 2), header);
	at += header;
	if (packet->proto == PROTO_AH)
		dissect_extensions(packet, at, end);
	else
		set_transport(packet, at, end);
}

static void dissect_ip6(struct weir_packet *packet, uint32_t at)
{
	const uint8_t *ip = packet->data + at;
	if (packet->caplen - at < IP6_HEADER || ip[0] >> 4 != 6)
		return;
	packet->l3 = (uint16_t)at;
	packet->flags |= WEIR_F_IP6;
	packet->proto = ip[6];
	uint32_t payload = weir_be16(ip + 4);
	uint32_t end = ip_end(packet, payload ? payload + IP6_HEADER : 0, IP6_HEADER);
	dissect_extensions(packet, at + IP6_HEADER, end);
}

void weir_dissect(struct weir_packet *packet, uint32_t linktype)
{
	if (packet->flags & WEIR_F_DISSECTED)
		return;
	packet->flags &= (uint16_t) ~(WEIR_F_FRAGMENT | WEIR_F_IP4 | WEIR_F_IP6);
	packet->flags |= WEIR_F_DISSECTED;
	packet->l3 = packet->l4 = 0;
	packet->proto = 0;

	struct weir_payload payload = weir_link_payload(packet->data, packet->caplen, linktype);
	if (payload.type == WEIR_TYPE_IP4)
		dissect_ip4(packet, payload.at);
	else if (payload.type == WEIR_TYPE_IP6)
		dissect_ip6(packet, payload.at);
	else if (payload.type == WEIR_TYPE_ARP && packet->caplen - payload.at >= ARP_HEADER)
		packet->l3 = (uint16_t)payload.at;
}
