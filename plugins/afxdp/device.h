/*
 * device.h: what AF_XDP has to know of an interface besides its link: its queues, its offloads.
 */
#ifndef AFXDP_DEVICE_H
#define AFXDP_DEVICE_H

#include <stdbool.h>

struct device {
	unsigned queues, queues_max; /* for receiving: that it has, that it can be given */
	bool strips_tags;            /* VLAN tags are off before XDP programs see a frame */
};

/* Needs no privileges.  One queue where the driver says nothing, or there is no such interface. */
struct device device_ask(const char *name);

#endif
