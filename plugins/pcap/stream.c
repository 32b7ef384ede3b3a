/* stream.c: filling blocks. */
#include "stream.h"

#include <stdlib.h>
#include <string.h>

static uint32_t block_room(const struct lane *lane)
{
	return lane->pool.block_bytes - lane->fill;
}

bool stream_reserve(struct lane *lane, bool fresh, size_t need)
{
	if (!fresh && need <= block_room(lane))
		return true;
	while (!lane->spare) {
		lane->spare = writer_take(&lane->node->writer, &lane->pool);
		if (!lane->spare && !weir_wait(lane->self, 100))
			return false;
	}
	return true;
}

/* whole: where the last unit ends that is complete. */
static void submit(struct lane *lane, struct stretch *stretch, uint32_t whole)
{
	stretch->self = lane->self;
	stretch->namer = &lane->namer;
	stretch->file = lane->file;
	stretch->block = lane->block;
	stretch->bytes = lane->block->bytes;
	stretch->block_bytes = lane->pool.block_bytes;
	stretch->block_at = lane->block_at;
	stretch->from = lane->sent;
	stretch->to = lane->fill;
	stretch->first = lane->spill > lane->sent ? lane->spill : lane->sent;
	stretch->whole = whole;
	stretch->sum = lane->sum;
	stretch->headers = lane->headers;
	lane->sum = (struct weir_extent){0};
	lane->headers = NULL;
	lane->headers_end = &lane->headers;
	lane->sent = lane->fill;
	lane->unsent_since_ns = 0;
	writer_submit(&lane->node->writer, stretch);
}

static void submit_rest(struct lane *lane, uint32_t whole, bool ends_file)
{
	struct stretch *rest = &lane->block->rest;

	rest->gives_back = true;
	rest->ends_file = ends_file;
	submit(lane, rest, whole);
	lane->block = NULL;
}

static void take_spare(struct lane *lane, uint64_t block_at)
{
	lane->block = lane->spare;
	lane->spare = NULL;
	lane->block_at = block_at;
	lane->fill = lane->sent = lane->spill = 0;
}

/* One unit, of which a part may go into the next block. */
static void put(struct lane *lane, const uint8_t *bytes, uint32_t len)
{
	uint32_t head = len < block_room(lane) ? len : block_room(lane);

	memcpy(lane->block->bytes + lane->fill, bytes, head);
	lane->fill += head;
	if (head == len)
		return;
	submit_rest(lane, lane->fill - head, false);
	take_spare(lane, lane->block_at + lane->pool.block_bytes);
	memcpy(lane->block->bytes, bytes + head, len - head);
	lane->fill = lane->spill = len - head;
}

bool stream_begin(struct lane *lane, char *path)
{
	lane->file = file_new(path);
	if (!lane->file)
		return false;
	take_spare(lane, 0);
	lane->headers_end = &lane->headers;
	return true;
}

void stream_finish(struct lane *lane)
{
	lane->file->last_ns = lane->last_ns;
	submit_rest(lane, lane->fill, true);
	lane->file = NULL;
}

void stream_flush(struct lane *lane)
{
	struct block *block = lane->block;

	if (lane->sent == lane->fill || __atomic_load_n(&block->flushing, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&block->flushing, 1, __ATOMIC_RELAXED);
	submit(lane, &block->flush, lane->fill);
}

void stream_put_header(struct lane *lane, struct header *header)
{
	bool starts_file = stream_bytes(lane) == 0;

	header->at = stream_bytes(lane);
	header->next = NULL;
	*lane->headers_end = header;
	lane->headers_end = &header->next;
	put(lane, header->bytes, header->len);
	lane->sum.header_bytes += header->len;
	/* A classic file's header is no record that could be stepped over. */
	if (starts_file)
		lane->spill = lane->fill;
}

/* Links a header where it belongs among those that have started since the last stretch. */
static void link_header(struct lane *lane, struct header *header)
{
	struct header **before = &lane->headers;

	while (*before && (*before)->at < header->at)
		before = &(*before)->next;
	header->next = *before;
	*before = header;
	if (!header->next)
		lane->headers_end = &header->next;
}

static void insert(struct lane *lane, uint32_t at, const uint8_t *bytes, uint32_t len)
{
	uint8_t *place = lane->block->bytes + at;

	memmove(place + len, place, lane->fill - at);
	memcpy(place, bytes, len);
	lane->fill += len;
	lane->sum.header_bytes += len;
	for (struct header *later = lane->headers; later; later = later->next)
		later->at += later->at >= lane->block_at + at ? len : 0;
}

/* Where the first unit starts that has not been handed over. */
static uint32_t unsent_at(const struct lane *lane)
{
	return lane->spill > lane->sent ? lane->spill : lane->sent;
}

void stream_insert_header(struct lane *lane, struct header *header)
{
	uint32_t at = unsent_at(lane);

	if (header->len > block_room(lane)) {
		stream_put_header(lane, header);
		return;
	}
	insert(lane, at, header->bytes, header->len);
	header->at = lane->block_at + at;
	link_header(lane, header);
}

void stream_insert_block(struct lane *lane, const uint8_t *bytes, size_t len)
{
	if (len > block_room(lane))
		stream_put_block(lane, bytes, len);
	else
		insert(lane, unsent_at(lane), bytes, (uint32_t)len);
}

void stream_put_block(struct lane *lane, const uint8_t *bytes, size_t len)
{
	put(lane, bytes, (uint32_t)len);
	lane->sum.header_bytes += len;
}

void stream_put_record(struct lane *lane, const struct weir_packet *packet, uint32_t file_iface,
		       size_t size)
{
	if (size <= block_room(lane)) {
		stream_append(lane, packet, file_iface);
		return;
	}
	format_record(&lane->node->site.format, lane->scratch, packet, file_iface);
	put(lane, lane->scratch, (uint32_t)size);
	lane->sum.packets++;
	lane->sum.packet_bytes += packet->caplen;
	lane->sum.record_bytes += size;
}
