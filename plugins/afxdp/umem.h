/*
 * umem.h: the memory that the kernel writes the frames of one queue to, in chunks of one size, and
 * the fill ring by which it gets them.
 *
 * The fill ring has room for all chunks: giving them back never waits, and if it runs empty, every
 * chunk holds a frame that was not read yet.
 */
#ifndef AFXDP_UMEM_H
#define AFXDP_UMEM_H

#include <stdint.h>
#include <xdp/xsk.h>

/* The kernel's, in front of each frame. */
#define UMEM_HEADROOM_BYTES 256u

struct umem {
	uint8_t *area;
	uint32_t chunks, chunk_bytes;
	uint32_t ring_size; /* the power of two that is not below chunks */
	struct xsk_umem *handle;
	struct xsk_ring_prod fill;
	struct xsk_ring_cons completion; /* nothing is ever sent, but libxdp wants one */
};

/* All chunks are the kernel's then.  0 or -errno; umem_close() in either case. */
int umem_open(struct umem *umem, uint32_t chunks, uint32_t chunk_bytes);

/* Once its socket is closed; takes one that was never opened. */
void umem_close(struct umem *umem);

/* Allows the process to lock as many bytes as it may allow itself. */
void umem_raise_limit(void);

/* The bytes that it may lock; UINT64_MAX: any number. */
uint64_t umem_limit(void);

#endif
