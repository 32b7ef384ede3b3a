/*
 * capfile_walk.c: from record to record of what capfile_write.c has written, so that a sink whose
 * write came short knows what is whole.
 */
#include <weir/capfile.h>

#include <endian.h>
#include <string.h>

#define BLOCK_EPB  6u
#define EPB_CAPLEN 20u /* where it stands in the block */
#define BLOCK_MIN  12u
#define EPB_MIN    32u

static uint32_t get32(const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return le32toh(value);
}

static size_t step_record(const uint8_t *bytes, size_t len, struct weir_extent *extent)
{
	uint32_t caplen;

	if (len < WEIR_PCAP_RECORD)
		return 0;
	caplen = get32(bytes + 8);
	if (len - WEIR_PCAP_RECORD < caplen)
		return 0;
	extent->packets++;
	extent->packet_bytes += caplen;
	extent->record_bytes += WEIR_PCAP_RECORD + caplen;
	return WEIR_PCAP_RECORD + caplen;
}

static size_t step_block(const uint8_t *bytes, size_t len, struct weir_extent *extent)
{
	uint32_t size = len < 8 ? 0 : get32(bytes + 4);

	if (size < BLOCK_MIN || size % 4 || len < size)
		return 0;
	if (get32(bytes) == BLOCK_EPB && size >= EPB_MIN) {
		extent->packets++;
		extent->packet_bytes += get32(bytes + EPB_CAPLEN);
		extent->record_bytes += size;
	} else {
		extent->header_bytes += size;
	}
	return size;
}

size_t weir_capfile_walk(const uint8_t *bytes, size_t at, size_t end, bool pcapng,
			 struct weir_extent *extent)
{
	size_t size = 1;

	while (at < end && size > 0) {
		size = pcapng ? step_block(bytes + at, end - at, extent)
			      : step_record(bytes + at, end - at, extent);
		at += size;
	}
	return at;
}
