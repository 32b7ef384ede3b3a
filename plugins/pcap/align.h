/* align.h: multiples of a time on the clock. */
#ifndef PCAP_ALIGN_H
#define PCAP_ALIGN_H

#include <stdbool.h>
#include <stdint.h>

/* The first multiple of period_ns after ts_ns, as a clock in UTC or in local time shows it. */
int64_t align_after(int64_t ts_ns, int64_t period_ns, bool local);
/* That much later, or the end of time. */
int64_t align_later(int64_t ts_ns, int64_t ns);

#endif
