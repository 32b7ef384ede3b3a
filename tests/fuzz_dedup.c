/*
 * Two bytes choose the link type, the snaplen and what is ignored, the rest is a packet.  A packet
 * must equal itself, whatever is in it.
 */
#include "../plugins/dedup/key.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t linktypes[] = {0, 1, 9, 12, 101, 104, 113, 276};
	static const uint8_t secret[KEY_SECRET] = {1};

	if (size < 2 || size > 262144)
		return 0;
	uint32_t linktype = linktypes[data[0] & 7], ignore = data[0] >> 4, snaplen = data[1];
	uint32_t len = (uint32_t)size - 2;
	struct weir_packet packet = {
		.data = data + 2, .caplen = len, .wirelen = len + (data[0] & 8)};
	struct weir_packet again = packet;
	struct key a = key_mirror(secret, &packet, linktype, snaplen, ignore);
	struct key b = key_mirror(secret, &again, linktype, snaplen, ignore);
	if (a.low != b.low || a.high != b.high)
		abort();
	return 0;
}
