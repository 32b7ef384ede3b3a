/*
 * link.h: a network interface as the afpacket source sees it.
 */
#ifndef AFPACKET_LINK_H
#define AFPACKET_LINK_H

#include <weir/plugin.h>

/* Packets that the NIC lost, by its driver's own count. */
struct nic_losses {
	uint64_t missed, fifo, errors;
};

struct link {
	const char *name; /* the option's */
	int index;
	uint32_t linktype;
	bool is_loopback;
	uint16_t iface; /* of its packets */
	int group;      /* id of its fanout group; -1: none yet */

	bool has_nic; /* the driver's counters can be read */
	struct nic_losses nic_last, nic;
};

enum link_state { LINK_UP, LINK_DOWN, LINK_GONE };

/* Finds the interface: index, link type.  false after weir_error(). */
bool link_find(struct weir_self *self, struct link *link);

/* Through any socket of the network namespace. */
enum link_state link_state(int fd, const struct link *link);

/* The index that an interface of this name has now; 0: there is none. */
int link_index(int fd, const char *name);

/* Adds what the driver has counted since the last call to link->nic; the first call only takes the
 * start.  Leaves has_nic false where sysfs is missing or shows another network namespace. */
void link_read_nic(struct link *link);

#endif
