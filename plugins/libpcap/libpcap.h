/*
 * libpcap.h: what the files of the libpcap source share: its options, its handle, its lane.
 */
#ifndef LIBPCAP_H
#define LIBPCAP_H

#include "program.h"

#include <pcap/pcap.h>

struct libpcap_config {
	const char *interface;
	const char *linktype; /* NULL: the first of the device */
	uint64_t ring_bytes;
	int64_t retire_ns;
	bool promisc;
	uint32_t direction; /* enum program_direction */
};

/* In the order of the table of counters. */
enum libpcap_counter {
	LIBPCAP_PACKETS,
	LIBPCAP_DROPS,
	LIBPCAP_UNWITNESSED,
	LIBPCAP_CUT,
	LIBPCAP_NIC,
};

/* What the numbers of pcap_stats() are worth, by the sources of libpcap 1.10.3 and Linux 6.18. */
enum handle_kind {
	HANDLE_PACKET,  /* packet socket: the kernel's counts, received includes dropped */
	HANDLE_NETLINK, /* nflog: times that the socket was full, since activation */
	HANDLE_USB,     /* usbmon: lost since the last look */
	HANDLE_OTHER,   /* of the device, since it was switched on, or nothing at all */
};

/* Why a device does not open. */
struct refusal {
	const char *option;
	char text[512];
	bool is_final; /* trying again later would not help */
};

/* An open device.  The lane's alone, once that runs. */
struct handle {
	pcap_t *pcap; /* NULL: not open */
	enum handle_kind kind;
	int fd;         /* -1: nothing to wait on */
	bool is_cooked; /* no frames of the wire: libpcap makes the link-layer header */
	uint32_t linktype;
	unsigned index;      /* of the interface; 0: it is none */
	int64_t fraction_ns; /* unit of the fractions of its time stamps */
	struct pcap_stat last;
	uint64_t packets, drops, nic; /* over all devices of that name since start */
	uint64_t early;               /* packets that came before start, and are not wanted */
	int64_t start_ns;
};

/* handle.c.  open: nothing comes in yet, except by accident.  false: see *ret; to be closed. */
bool handle_open(struct handle *handle, struct weir_self *self, struct refusal *ret);
void handle_close(struct handle *handle);
/* Lets packets in.  0 or -errno. */
int handle_start(struct handle *handle, enum program_direction direction,
		 const struct weir_insn *wanted, uint32_t len);
/* Lets no more in, where that is possible. */
void handle_stop(struct handle *handle);
/* Adds what pcap_stats() says to the sums.  Nobody else may call that. */
void handle_statistics(struct handle *handle);

struct libpcap_node {
	struct handle handle;
	uint16_t iface;
	struct weir_insn *wanted; /* NULL: everything */
	uint32_t wanted_len;
	char refusal[160];
};

enum link_state { LINK_UP, LINK_DOWN, LINK_GONE };

struct libpcap_lane {
	uint8_t *bytes; /* of the packets handed out last */
	size_t size;
	uint64_t taken, cut; /* packets since start */
	enum link_state state;
	bool stopping, refused;
	int64_t drain_until_ns; /* CLOCK_MONOTONIC; 0: more comes in */
	int64_t mark_ns;
};

/* lane.c: callbacks of the lane's thread. */
int libpcap_poll(struct weir_self *self, struct weir_packet *packets, unsigned max, int timeout_ms,
		 int64_t *ret_mark_ns);
void libpcap_stop(struct weir_self *self);
void libpcap_tick(struct weir_self *self, const struct weir_now *now, unsigned why);
void libpcap_witness(struct weir_self *self);

#endif
