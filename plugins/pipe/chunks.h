/*
 * chunks.h: which packets of an outlet's chunks have been read, and what becomes of the others.
 *
 * All are called by the outlet's thread.
 */
#ifndef PIPE_CHUNKS_H
#define PIPE_CHUNKS_H

#include "outlet.h"

/* The first chunk that has something to write for this reader; NULL: none. *ret_ready is how much
 * of it may be written. */
struct chunk *chunks_next(struct outlet *outlet, size_t *ret_ready);
/* Settles what of chunks has been read wholly, given how many bytes of the stream are unread, and
 * gives back those that are done with. */
void chunks_settle_read(struct outlet *outlet, uint64_t unread);
/* Nothing more will be written, and the packets that have not been get that outcome. */
void chunks_cut(struct outlet *outlet, enum outcome outcome);
/* The reader has gone, with so many bytes unread: all packets that it has not read wholly are lost,
 * and so are those that were meant for it. */
void chunks_bury(struct outlet *outlet, uint64_t unread);

#endif
