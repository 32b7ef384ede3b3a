/*
 * fits.h: one filter, compiled once for each link type that packets come with.
 */
#ifndef BPF_FITS_H
#define BPF_FITS_H

#include <pcap/pcap.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct fit {
	struct fit *next;
	uint32_t linktype;
	bool compiled;
	bool sees_tags; /* it compares something with the types of VLAN tags */
	struct bpf_program program;
	char why[PCAP_ERRBUF_SIZE]; /* why it is not compiled */
};

struct fits {
	pthread_mutex_t lock;
	struct fit *first;
	char *text;
	bool tags_taken_off; /* a filter that asks for them is refused */
};

/* Takes the text over, to be freed with the rest. */
void fits_init(struct fits *fits, char *text, bool tags_taken_off);
void fits_clear(struct fits *fits); /* takes one that is all zero */

/* Compiles if need be.  What is returned stays unchanged until fits_clear(); NULL: out of memory.
 * *ret_new: nobody has asked for this link type before. Any thread. */
const struct fit *fits_find(struct fits *fits, uint32_t linktype, bool *ret_new);

#endif
