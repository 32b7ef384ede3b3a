/*
 * The first byte chooses the link type, the rest is a packet.  Checks what a caller relies on, so
 * that a wrong offset is found as well as a wrong read.
 */
#include <weir/dissect.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t linktypes[] = {0, 1, 9, 12, 50, 101, 104, 108, 113, 228, 229, 276};

	if (size < 1 || size > 262144)
		return 0;
	uint32_t linktype = linktypes[data[0] % (sizeof(linktypes) / sizeof(linktypes[0]))];
	uint32_t len = (uint32_t)size - 1;
	struct weir_packet packet = {.data = data + 1, .caplen = len, .wirelen = len};
	uint32_t flow = weir_flow(&packet, linktype);

	demand(flow != 0 && packet.flags & WEIR_F_DISSECTED);
	demand(!(packet.flags & WEIR_F_IP4) || packet.l3 + 20u <= len);
	demand(!(packet.flags & WEIR_F_IP6) || packet.l3 + 40u <= len);
	demand(packet.l4 == 0 || (packet.l4 > packet.l3 && packet.l4 + 4u <= len));
	demand(packet.l4 == 0 || packet.flags & (WEIR_F_IP4 | WEIR_F_IP6));
	return 0;
}
