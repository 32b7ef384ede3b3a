/*
 * key.h: what makes two packets equal.
 *
 * Packets are equal if 128 bits of hash (XXH3) of what is compared are: among 10^12 packets, the
 * odds that any two different ones share a key are 1 in 10^15, less than those of a bit flipping
 * unseen in memory.  The hash is keyed with a random secret, so that nobody can prepare two packets
 * of which the second is taken for a copy of the first.
 */
#ifndef DEDUP_KEY_H
#define DEDUP_KEY_H

#include <weir/plugin.h>

struct key {
	uint64_t low, high;
};

enum { KEY_SECRET = 192 }; /* random bytes that one comparison uses throughout */

/* What copies may differ in: bits in the order of the option's words. */
enum { IGNORE_MAC = 1, IGNORE_VLAN = 2, IGNORE_TTL = 4, IGNORE_CHECKSUM = 8 };

/* The captured bytes and their number. */
struct key key_exact(const uint8_t *secret, const struct weir_packet *packet);

/*
 * What a mirror port leaves as it is.  For IP: the packet from its IP header on, as long as that
 * says, without what `ignore` names; else the whole frame without that.  Of a frame that was cut,
 * by the snaplen given (0: unknown) or elsewhere, those bytes that are there with and without two
 * VLAN tags.  Dissects the packet.
 */
struct key key_mirror(const uint8_t *secret, struct weir_packet *packet, uint32_t linktype,
		      uint32_t snaplen, uint32_t ignore);

#endif
