/* nic_queues.h: what tests want to know of nic_queues.c. */
#ifndef WEIR_NIC_QUEUES_H
#define WEIR_NIC_QUEUES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a Toeplitz hash by this key is the same with source and destination exchanged: addresses
 * and ports are fields of whole 16-bit words, so a key that repeats every 16 bits is. */
bool weir_nic_key_is_symmetric(const uint8_t *key, uint32_t size);

#endif
