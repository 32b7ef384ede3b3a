/*
 * memory.h: whether there is memory for what a source wants the kernel to fill.
 */
#ifndef AFPACKET_MEMORY_H
#define AFPACKET_MEMORY_H

#include <weir/plugin.h>

/* The kernel would not refuse: it kills processes for the memory.  false after weir_error(), which
 * points at the option that said how much. */
bool memory_check(struct weir_self *self, const char *option, uint64_t bytes);

#endif
