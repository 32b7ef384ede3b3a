/*
 * weir/dissect.h: where the headers of a packet are, and which flow it belongs to.
 *
 * Bytes are foreign: nothing beyond caplen is read, whatever lengths the packet claims.  No state;
 * any thread.
 */
#ifndef WEIR_DISSECT_H
#define WEIR_DISSECT_H

#include <weir/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Finds the network and the transport header behind Ethernet (or what linktype says), VLAN tags
 * (802.1Q, 802.1ad, stacked), MPLS labels and PPPoE, and for IPv6 behind its extension headers (RFC
 * 8200).  Sets l3, l4, proto, WEIR_F_IP4 or WEIR_F_IP6, WEIR_F_FRAGMENT and WEIR_F_DISSECTED.
 *
 * l3 is that of the IP header (0 is one: raw IP has no link layer), or of an ARP header with
 * neither flag set, else 0.  l4 is 0 if there is no whole transport header to be found: a later
 * fragment, a cut packet.  An IPv6 packet in a single fragment (RFC 6946) counts as not
 * fragmented.  Does nothing if the packet has WEIR_F_DISSECTED already.
 */
void weir_dissect(struct weir_packet *packet, uint32_t linktype);

/*
 * The symmetric flow hash: addresses, ports (TCP, UDP, SCTP) and protocol, the same for both
 * directions and in every run, never 0; all 32 bits are equally good.
 * Fragments, the first one too, are hashed by their addresses alone, so that a datagram stays
 * together.  What the link layer adds (addresses, VLAN tags, labels) does not count for IP.
 * Packets without IP are hashed by their Ethernet addresses and type; where there are none, they
 * are all one flow.  Stored in packet->flow, and returned from there when it has been computed.
 */
uint32_t weir_flow(struct weir_packet *packet, uint32_t linktype);

/*
 * How many bytes of VLAN tags (4 each, whole ones only) the header of an Ethernet or LINUX_SLL
 * packet holds, and where the first one starts: without those bytes it is the untagged packet.  0:
 * none, and *ret_at means nothing.
 */
uint32_t weir_vlan_tags(const struct weir_packet *packet, uint32_t linktype, uint32_t *ret_at);

#ifdef __cplusplus
}
#endif
#endif
