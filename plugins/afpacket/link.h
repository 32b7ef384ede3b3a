/*
 * link.h: a network interface as the afpacket source sees it.
 */
#ifndef AFPACKET_LINK_H
#define AFPACKET_LINK_H

#include <weir/plugin.h>
#include <stdatomic.h>

struct link {
	const char *name; /* the option's */
	int index;        /* while it runs: under the node's lock, as group and joined are */
	uint32_t linktype;
	bool is_loopback;
	uint16_t iface;   /* of its packets */
	int group;        /* id of its fanout group; -1: none yet */
	unsigned joined;  /* lanes that are in a group made anew */
	atomic_bool lost; /* with on-lost=exit, and some lane has said so */
	atomic_int said;  /* enum link_state, that the log had last */
};

enum link_state { LINK_UP, LINK_DOWN, LINK_GONE };

/* Finds the interface: index, link type.  false after weir_error(). */
bool link_find(struct weir_self *self, struct link *link);

/* Through any socket of the network namespace, of the interface with that index, which a rename
 * does not change. */
enum link_state link_state(int fd, int index);
/* The name that it has now, of IFNAMSIZ bytes; false: it is gone. */
bool link_name(int fd, int index, char *ret);

/* The index that an interface of this name has now; 0: there is none. */
int link_index(int fd, const char *name);

/* The LINKTYPE_* of its frames; false: there is none for them, or no such interface. */
bool link_type(int fd, const char *name, uint32_t *ret);

#endif
