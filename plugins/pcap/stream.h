/*
 * stream.h: the bytes of a lane's file, cut into blocks for the writer.
 *
 * The file is a stream: records span blocks, and a block's place in the file is its place in the
 * stream, so that whole blocks can be written past the page cache.
 */
#ifndef PCAP_STREAM_H
#define PCAP_STREAM_H

#include "lane.h"

static inline uint64_t stream_bytes(const struct lane *lane)
{
	return lane->block_at + lane->fill;
}

/* Takes blocks in advance for `need` bytes, of a new file if `fresh`; may wait. false: there are
 * none. */
bool stream_reserve(struct lane *lane, bool fresh, size_t need);

/* Begins a file of that name, which is taken over, in a reserved block. false: out of memory. */
bool stream_begin(struct lane *lane, char *path);
/* Hands over all that there is; the writer closes the file. */
void stream_finish(struct lane *lane);
/* Hands over what is unsent and goes on in the same block. */
void stream_flush(struct lane *lane);

/* A header or interface block, which is taken over: room must have been reserved. */
void stream_put_header(struct lane *lane, struct header *header);
/* The same before the records that have not been handed over, as far as they can make room. */
void stream_insert_header(struct lane *lane, struct header *header);
/* Whole blocks that the file can do without: room must have been reserved. */
void stream_put_block(struct lane *lane, const uint8_t *bytes, size_t len);
void stream_insert_block(struct lane *lane, const uint8_t *bytes, size_t len);
/* A record: room must have been reserved. */
void stream_put_record(struct lane *lane, const struct weir_packet *packet, uint32_t file_iface,
		       size_t size);

/* A record of which is known that it fits into the block. */
static inline void stream_append(struct lane *lane, const struct weir_packet *packet,
				 uint32_t file_iface)
{
	uint32_t size = (uint32_t)format_record(
		&lane->node->site.format, lane->block->bytes + lane->fill, packet, file_iface);

	lane->fill += size;
	lane->sum.packets++;
	lane->sum.packet_bytes += packet->caplen;
	lane->sum.record_bytes += size;
}

#endif
