/*
 * vlan.h: puts back the VLAN tag that the kernel took off a frame.
 */
#ifndef AFPACKET_VLAN_H
#define AFPACKET_VLAN_H

#include <weir/plugin.h>
#include <string.h>

#define VLAN_TAG_BYTES 4u
#define VLAN_MAC_BYTES 12u

/*
 * Moves the MAC addresses of the frame at packet->data four bytes down, into headroom that the
 * caller has made sure of, and writes the tag behind them.  A frame cut within its addresses has
 * no place for the tag; only its length on the wire is put right.
 */
static inline void vlan_reinsert(struct weir_packet *packet, uint8_t *data, uint16_t tpid,
				 uint16_t tci)
{
	packet->wirelen += VLAN_TAG_BYTES;
	if (packet->caplen < VLAN_MAC_BYTES)
		return;
	uint8_t *start = data - VLAN_TAG_BYTES;
	memmove(start, data, VLAN_MAC_BYTES);
	start[VLAN_MAC_BYTES] = (uint8_t)(tpid >> 8);
	start[VLAN_MAC_BYTES + 1] = (uint8_t)tpid;
	start[VLAN_MAC_BYTES + 2] = (uint8_t)(tci >> 8);
	start[VLAN_MAC_BYTES + 3] = (uint8_t)tci;
	packet->data = start;
	packet->caplen += VLAN_TAG_BYTES;
}

#endif
