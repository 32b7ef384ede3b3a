/*
 * program.h: a filter compiled by libpcap for one link type.
 */
#ifndef BPF_PROGRAM_H
#define BPF_PROGRAM_H

#include <pcap/pcap.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* linktype is a LINKTYPE_*.  False with libpcap's words in why.  To be freed with pcap_freecode().
 * Any thread. */
bool program_compile(struct bpf_program *ret, const char *filter, uint32_t linktype, char *why,
		     size_t why_size);

/* False if no link type gives the filter a meaning: then why holds what libpcap says of Ethernet.
 */
bool program_makes_sense(const char *filter, char *why, size_t why_size);

/* Whether it compares anything with the types of VLAN tags. */
bool program_sees_tags(const struct bpf_program *program);

#endif
