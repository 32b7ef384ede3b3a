/*
 * flow.c: the symmetric flow hash.
 *
 * Each end (address and port) is mixed by itself, and the two are added: that makes it symmetric
 * without a comparison that branch prediction cannot learn.  The constants are fixed, so that a
 * flow is in the same lane in every run; who can choose addresses can choose lanes, too.
 */
#include <string.h>

#include <weir/dissect.h>

#include "link.h"

enum { PROTO_TCP = 6, PROTO_UDP = 17, PROTO_SCTP = 132 };

/* The 64-bit finalizer of MurmurHash3: a bijection, so that IPv4 ends never collide. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdu;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53u;
	return x ^ x >> 33;
}

static uint64_t word(const uint8_t *p)
{
	uint64_t value;
	memcpy(&value, p, sizeof(value));
	return value;
}

static uint64_t end_ip6(const uint8_t *address, uint32_t port)
{
	return mix(word(address) ^ mix(word(address + 8) + port));
}

static uint64_t end_ip4(const uint8_t *address, uint32_t port)
{
	return mix((uint64_t)weir_be32(address) << 16 | port);
}

static uint32_t finish(uint64_t ends, uint32_t salt)
{
	uint64_t hash = mix(ends + salt);
	uint32_t folded = (uint32_t)(hash >> 32);
	return folded ? folded : 1;
}

static bool has_ports(const struct weir_packet *packet)
{
	return packet->l4 && !(packet->flags & WEIR_F_FRAGMENT) &&
	       (packet->proto == PROTO_TCP || packet->proto == PROTO_UDP ||
		packet->proto == PROTO_SCTP);
}

static uint32_t hash_ip(const struct weir_packet *packet)
{
	const uint8_t *ip = packet->data + packet->l3;
	const uint8_t *ports = packet->data + packet->l4;
	uint32_t from = 0, to = 0;
	if (has_ports(packet)) {
		from = weir_be16(ports);
		to = weir_be16(ports + 2);
	}
	uint32_t proto = packet->flags & WEIR_F_FRAGMENT ? 0 : packet->proto;
	if (packet->flags & WEIR_F_IP4)
		return finish(end_ip4(ip + 12, from) + end_ip4(ip + 16, to), proto);
	return finish(end_ip6(ip + 8, from) + end_ip6(ip + 24, to), proto);
}

static uint64_t end_mac(const uint8_t *address)
{
	return mix((uint64_t)weir_be32(address) << 16 | weir_be16(address + 4));
}

static uint32_t hash_link(const struct weir_packet *packet, uint32_t linktype)
{
	if (linktype != WEIR_LINK_ETHERNET || packet->caplen < 12)
		return finish(0, linktype);
	struct weir_payload payload = weir_link_payload(packet->data, packet->caplen, linktype);
	return finish(end_mac(packet->data) + end_mac(packet->data + 6), payload.type);
}

uint32_t weir_flow(struct weir_packet *packet, uint32_t linktype)
{
	if (packet->flow)
		return packet->flow;
	weir_dissect(packet, linktype);
	bool ip = packet->flags & (WEIR_F_IP4 | WEIR_F_IP6);
	packet->flow = ip ? hash_ip(packet) : hash_link(packet, linktype);
	return packet->flow;
}
