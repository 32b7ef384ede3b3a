/*
 * device.h: what AF_XDP has to know of an interface besides its link: its queues, its offloads.
 */
#ifndef AFXDP_DEVICE_H
#define AFXDP_DEVICE_H

#include <stdbool.h>

/* What becomes of the VLAN tags of frames before XDP programs see them. */
enum device_tags {
	DEVICE_KEEPS_TAGS,
	DEVICE_STRIPS_TAGS, /* the NIC hands them over beside the frame */
	DEVICE_PEER_STRIPS, /* so may the other end of a veth pair, for which rxvlan means nothing
			     */
};

struct device {
	unsigned queues, queues_max; /* for receiving: that it has, that it can be given */
	unsigned mtu;
	enum device_tags tags;
};

/* Needs no privileges.  One queue where the driver says nothing, or there is no such interface. */
struct device device_ask(const char *name);

#endif
