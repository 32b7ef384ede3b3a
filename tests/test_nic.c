/*
 * Names as drivers of Linux give them (ethtool -S), and keys of RSS as their documents do: what
 * means loss, and what is symmetric.
 */
#include "nic_driver.h"
#include "nic_queues.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <glib.h>

struct name {
	char name[40];
	enum nic_group group;
	bool numbered;
};

ParameterizedTestParameters(nic, names)
{
	static struct name names[] = {
		{"rx_out_of_buffer", NIC_MISSED, false},          /* mlx5 */
		{"rx_discards_phy", NIC_DROPPED, false},          /* mlx5 */
		{"rx_prio0_discards", NIC_DROPPED, true},         /* mlx5 */
		{"rx_steer_missed_packets", NIC_NO_GROUP, false}, /* mlx5: meant */
		{"rx_no_dma_resources", NIC_MISSED, false},       /* ixgbe */
		{"rx_missed_errors", NIC_MISSED, false},          /* ixgbe */
		{"rx_fifo_errors", NIC_OVERRUNS, false},          /* ixgbe, igb */
		{"rx_over_errors", NIC_OVERRUNS, false},          /* ixgbe, igb */
		{"rx_no_buffer_count", NIC_NO_GROUP, false},      /* igb: they may still come */
		{"rx_queue_3_drops", NIC_DROPPED, true},          /* igb, veth, virtio_net */
		{"rx_queue_0_xdp_drops", NIC_NO_GROUP, true},     /* veth: somebody's program */
		{"port.rx_dropped", NIC_DROPPED, false},          /* i40e */
		{"rx_dropped.nic", NIC_DROPPED, false},           /* ice */
		{"rx_drops", NIC_DROPPED, false},                 /* ena */
		{"rx_overruns", NIC_OVERRUNS, false},             /* ena */
		{"rx_total_discard_pkts", NIC_DROPPED, false},    /* bnxt_en */
		{"rx_pause_frames", NIC_NO_GROUP, false},         /* bnxt_en */
		{"port_rx_nodesc_drops", NIC_MISSED, false},      /* sfc */
		{"port_rx_overflow", NIC_OVERRUNS, false},        /* sfc */
		{"rx_missed", NIC_MISSED, false},                 /* r8169 */
		{"tx_dropped", NIC_NO_GROUP, false},
		{"rx_packets", NIC_NO_GROUP, false},
		{"fdir_overflow", NIC_NO_GROUP, false}, /* ixgbe: no packets */
	};
	return cr_make_param_array(struct name, names, sizeof(names) / sizeof(names[0]));
}

ParameterizedTest(struct name *row, nic, names)
{
	cr_expect_eq(nic_group_of(row->name), row->group, "%s: group %u, not %u", row->name,
		     nic_group_of(row->name), row->group);
	cr_expect_eq(nic_name_is_numbered(row->name), row->numbered, "%s", row->name);
}

Test(nic, largest_total_stands_for_its_group)
{
	struct nic_stat stats[] = {
		{NIC_DROPPED, false, 0, 10}, {NIC_DROPPED, false, 0, 12},
		{NIC_DROPPED, true, 0, 100}, {NIC_OVERRUNS, true, 0, 3},
		{NIC_OVERRUNS, true, 0, 4},
	};
	struct nic_driver driver = {.n = 5, .stats = stats, .before = {[NIC_OVERRUNS] = 1}};
	uint64_t grown;

	cr_assert(nic_driver_growth(&driver, NIC_DROPPED, &grown));
	cr_expect_eq(grown, 12);
	cr_assert(nic_driver_growth(&driver, NIC_OVERRUNS, &grown));
	cr_expect_eq(grown, 8, "no total: the queues together, and what they had before");
	cr_expect_not(nic_driver_growth(&driver, NIC_MISSED, &grown), "unknown is not 0");
}

Test(nic, counters_that_begin_anew)
{
	cr_expect_eq(nic_growth(5, 8), 3);
	cr_expect_eq(nic_growth(5, 2), 2);
}

Test(nic, symmetric_keys)
{
	uint8_t key[40];
	/* Microsoft's, of the specification of RSS, which drivers have as their default. */
	static const uint8_t common[] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2};

	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = i % 2 ? 0x5a : 0x6d;
	cr_expect(nic_key_is_symmetric(key, sizeof(key)));
	key[39] ^= 1;
	cr_expect_not(nic_key_is_symmetric(key, sizeof(key)));
	cr_expect_not(nic_key_is_symmetric(common, sizeof(common)));
	cr_expect_not(nic_key_is_symmetric(common, 0));
}
