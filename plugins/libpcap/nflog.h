/*
 * nflog.h: what libpcap does not set on its socket to netfilter's log.
 */
#ifndef LIBPCAP_NFLOG_H
#define LIBPCAP_NFLOG_H

#include <stdint.h>

/*
 * The kernel gathers packets for a second before it hands them over, which is long, and more than a
 * stop can wait for.  device: as libpcap takes it, nflog or nflog:GROUP,GROUP…  0 or -errno.
 */
int nflog_set_timeout(int fd, const char *device, int64_t timeout_ns);

#endif
