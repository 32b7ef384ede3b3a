/*
 * ethtool.h: questions to a network driver, by the ioctl that ethtool(8) uses.
 *
 * Asking needs no privileges, but the lock of all interfaces: not for lanes.
 */
#ifndef WEIR_ETHTOOL_H
#define WEIR_ETHTOOL_H

#include <linux/ethtool.h>
#include <stdbool.h>
#include <stdint.h>

/* request: a struct of linux/ethtool.h that begins with its command, and takes the answer.  false:
 * the driver does not answer that, or there is no such interface. */
bool weir_ethtool_ask(const char *interface, void *request);

/* How many strings a set (ETH_SS_*) has; 0: none, or unknown. */
uint32_t weir_ethtool_count(const char *interface, uint32_t set);

/* The strings, n = weir_ethtool_count(), NULL-terminated; g_strfreev(); NULL: unknown. */
char **weir_ethtool_strings(const char *interface, uint32_t set, uint32_t n);

#endif
