/*
 * clock.h: time stamps by the NIC.
 */
#ifndef AFPACKET_CLOCK_H
#define AFPACKET_CLOCK_H

/* Makes an interface stamp every packet that it receives: 0 or -errno, -EOPNOTSUPP if it has no
 * clock for that.  Needs CAP_NET_ADMIN unless it already does.  Stays so after the run: others may
 * have come to rely on it. */
int clock_switch_on(int fd, const char *interface);

#endif
