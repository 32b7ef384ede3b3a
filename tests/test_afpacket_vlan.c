/*
 * A tag that the kernel took off goes back where IEEE 802.1Q puts it: behind the addresses.
 */
#include "../plugins/afpacket/vlan.h"

#include <criterion/criterion.h>

static const uint8_t frame[] = {0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0x00, 'a', 'b'};

static struct weir_packet reinsert(uint8_t *buffer, uint32_t caplen, uint16_t tpid, uint16_t tci)
{
	uint8_t *data = buffer + VLAN_TAG_BYTES;
	struct weir_packet packet = {.data = data, .caplen = caplen, .wirelen = sizeof(frame)};

	memcpy(data, frame, sizeof(frame));
	vlan_reinsert(&packet, data, tpid, tci);
	return packet;
}

Test(vlan, tag_is_behind_the_addresses)
{
	static const uint8_t expected[] = {0x02, 0, 0,    0,    0,    1,    0x02, 0,    0,   0,
					   0,    2, 0x88, 0xa8, 0xe0, 0x1d, 0x08, 0x00, 'a', 'b'};
	uint8_t buffer[64];
	struct weir_packet packet = reinsert(buffer, sizeof(frame), 0x88a8, 0xe01d);

	cr_assert_eq(packet.caplen, sizeof(expected));
	cr_assert_eq(packet.wirelen, sizeof(expected));
	cr_assert_arr_eq(packet.data, expected, sizeof(expected));
}

Test(vlan, priority_tag_is_all_zeros)
{
	uint8_t buffer[64];
	struct weir_packet packet = reinsert(buffer, sizeof(frame), 0x8100, 0);
	static const uint8_t tag[] = {0x81, 0x00, 0x00, 0x00, 0x08, 0x00};

	cr_assert_arr_eq(packet.data + 12, tag, sizeof(tag));
}

Test(vlan, frame_cut_behind_the_addresses)
{
	uint8_t buffer[64];
	struct weir_packet packet = reinsert(buffer, 12, 0x8100, 5);

	cr_assert_eq(packet.caplen, 16);
	cr_assert_eq(packet.wirelen, sizeof(frame) + 4);
}

Test(vlan, frame_cut_within_the_addresses)
{
	uint8_t buffer[64];
	struct weir_packet packet = reinsert(buffer, 11, 0x8100, 5);

	cr_assert_eq(packet.caplen, 11);
	cr_assert_eq(packet.wirelen, sizeof(frame) + 4);
	cr_assert_arr_eq(packet.data, frame, 11);
}
