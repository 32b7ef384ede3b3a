/*
 * privileges.h: which of the capabilities that AF_XDP needs this process lacks.
 */
#ifndef AFXDP_PRIVILEGES_H
#define AFXDP_PRIVILEGES_H

#include <stddef.h>

/* Writes their names, such as "CAP_NET_RAW, CAP_BPF"; an empty text: none. */
void privileges_missing(char *to, size_t size);

#endif
