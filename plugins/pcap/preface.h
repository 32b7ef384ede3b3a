/*
 * preface.h: what stands in a file besides packets: its header, interfaces, keys and statistics.
 */
#ifndef PCAP_PREFACE_H
#define PCAP_PREFACE_H

#include "lane.h"

/* Begins a file whose name is of the time ts_ns, in a reserved block. false: out of memory. */
bool preface_begin(struct lane *lane, int64_t ts_ns);
/* Makes an interface known to the file; room must have been reserved. false: out of memory. */
bool preface_introduce(struct lane *lane, uint16_t id);
/* How long that is, in a new file or in this one, with what an interface adds to the file's end. */
size_t preface_bytes(struct lane *lane, uint16_t id, bool begins);
/* How much will be added to the file's end. */
size_t preface_tail_bytes(const struct lane *lane);

/* All interfaces that are known by now, in a file that has no packets.  They may not all fit. */
void preface_introduce_all(struct lane *lane);
/* Statistics of the interfaces that the file has, within it or as its end. */
void preface_put_statistics(struct lane *lane, int64_t ts_ns);
void preface_put_tail(struct lane *lane);
/* Keys that are new, before what has not been handed over yet, if `need` bytes have room besides.
 */
void preface_put_keys(struct lane *lane, size_t need);

/* Whether so many bytes more, beyond all that must come, keep the file within its limit. */
bool preface_fits(const struct lane *lane, size_t bytes);

/* A place for what is known of the interface. false: out of memory. */
bool preface_make_known(struct lane *lane, uint16_t id);

static inline bool preface_is_known(const struct lane *lane, uint16_t id)
{
	return id < lane->n_known && lane->known[id].serial == lane->serial;
}

const struct weir_interface *preface_interface(struct lane *lane, uint16_t id);

#endif
