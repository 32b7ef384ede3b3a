/*
 * processors.h: the option `cpus` of sources whose lanes can have processors of their own: NULL for
 * any, "auto", or a number for each lane.
 */
#ifndef AFPACKET_PROCESSORS_H
#define AFPACKET_PROCESSORS_H

#include <weir/plugin.h>

/* Whether there is one for each lane; false after weir_error(). */
bool processors_check(struct weir_self *self, const char *const *cpus, unsigned lanes);

/* Whether they are there, for this process; false after weir_error(). */
bool processors_find(struct weir_self *self, const char *const *cpus);

/* The one of a lane; -1: any. */
int processors_of(const char *const *cpus, unsigned lane);

#endif
