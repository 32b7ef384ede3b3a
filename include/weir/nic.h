/*
 * weir/nic.h: for live sources: what NICs and their drivers tell of interfaces.
 *
 * None of this needs privileges.
 */
#ifndef WEIR_NIC_H
#define WEIR_NIC_H

#include <weir/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What the NIC lost ---- */

/* In the order of WEIR_NIC_ROWS. */
enum {
	WEIR_NIC_MISSED,
	WEIR_NIC_FIFO,
	WEIR_NIC_DROPPED,
	WEIR_NIC_ERRORS,
	WEIR_NIC_KERNEL_ROWS, /* those before, which every driver is asked for by the kernel */
	WEIR_NIC_DRIVER_MISSED = WEIR_NIC_KERNEL_ROWS,
	WEIR_NIC_DRIVER_OVERRUNS,
	WEIR_NIC_DRIVER_DROPPED,
	WEIR_NIC_BEYOND,
	WEIR_NIC_COUNTERS
};

/* For the table of counters of a source: WEIR_NIC_COUNTERS rows. */
#define WEIR_NIC_ROWS                                                                              \
	{"nic-missed", WEIR_INFO | WEIR_IS_NIC,                                                    \
	 "packets that the NIC had no buffer for (rx_missed_errors)"},                             \
		{"nic-fifo", WEIR_INFO | WEIR_IS_NIC,                                              \
		 "packets lost in the NIC's own queue (rx_fifo_errors)"},                          \
		{"nic-dropped", WEIR_INFO | WEIR_IS_NIC,                                           \
		 "packets that driver or kernel dropped before any capture (rx_dropped)"},         \
		{"nic-errors", WEIR_INFO | WEIR_IS_NIC,                                            \
		 "damaged packets that the NIC did not hand on (rx_errors)"},                      \
		{"nic-driver-missed", WEIR_INFO,                                                   \
		 "of the driver's own counters (ethtool -S) those of missing buffers"},            \
		{"nic-driver-overruns", WEIR_INFO,                                                 \
		 "of the driver's own counters those of queues that were full"},                   \
		{"nic-driver-dropped", WEIR_INFO,                                                  \
		 "of the driver's own counters those of packets dropped or discarded"},            \
	{                                                                                          \
		"nic-beyond", WEIR_INFO | WEIR_IS_NIC,                                             \
			"by how much the largest of the driver's own counters is above the sum "   \
			"of the kernel's four, which may count the same packets"                   \
	}

struct weir_nics;

/*
 * From start(): takes the state of the counters of these interfaces as their 0, and from then on
 * sets those of the source, of which `first` is the first of WEIR_NIC_ROWS, from a thread of its
 * own once a second.  One that no interface has stays absent.  self: of the node.  NULL after
 * weir_error().
 */
struct weir_nics *weir_nics_start(struct weir_self *self, unsigned first,
				  const char *const *interfaces);
/* From close(): sets them for the last time.  Takes NULL. */
void weir_nics_end(struct weir_nics *nics);

/* ---- What it does to packets ---- */

/*
 * Warns, in one line, if offloads show packets that were never on the wire, or hide some that were,
 * and says how they are switched off.  sent: packets that the interfaces send are seen, too.
 * promiscuous: they filter no addresses and VLANs.  Silent for loopback, which has no wire.
 */
void weir_nic_warn_offloads(struct weir_self *self, const char *const *interfaces, bool sent,
			    bool promiscuous);

/* Receive queues and how packets are spread over them, in words for `weir plan`: for free(); NULL:
 * there is no such interface. */
char *weir_nic_queues(const char *interface);

#ifdef __cplusplus
}
#endif

#endif
