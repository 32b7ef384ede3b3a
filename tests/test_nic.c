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
	enum weir_nic_group group;
	bool numbered;
};

ParameterizedTestParameters(nic, names)
{
	static struct name names[] = {
		{"rx_out_of_buffer", WEIR_NIC_GROUP_MISSED, false},      /* mlx5 */
		{"rx_discards_phy", WEIR_NIC_GROUP_DROPPED, false},      /* mlx5 */
		{"rx_prio0_discards", WEIR_NIC_GROUP_DROPPED, true},     /* mlx5 */
		{"rx_steer_missed_packets", WEIR_NIC_GROUP_NONE, false}, /* mlx5: meant */
		{"rx_no_dma_resources", WEIR_NIC_GROUP_MISSED, false},   /* ixgbe */
		{"rx_missed_errors", WEIR_NIC_GROUP_MISSED, false},      /* ixgbe */
		{"rx_fifo_errors", WEIR_NIC_GROUP_OVERRUNS, false},      /* ixgbe, igb */
		{"rx_over_errors", WEIR_NIC_GROUP_OVERRUNS, false},      /* ixgbe, igb */
		{"rx_no_buffer_count", WEIR_NIC_GROUP_NONE, false},  /* igb: they may still come */
		{"rx_queue_3_drops", WEIR_NIC_GROUP_DROPPED, true},  /* igb, veth, virtio_net */
		{"rx_queue_0_xdp_drops", WEIR_NIC_GROUP_NONE, true}, /* veth: somebody's program */
		{"port.rx_dropped", WEIR_NIC_GROUP_DROPPED, false},  /* i40e */
		{"rx_dropped.nic", WEIR_NIC_GROUP_DROPPED, false},   /* ice */
		{"rx_drops", WEIR_NIC_GROUP_DROPPED, false},         /* ena */
		{"rx_overruns", WEIR_NIC_GROUP_OVERRUNS, false},     /* ena */
		{"rx_total_discard_pkts", WEIR_NIC_GROUP_DROPPED, false}, /* bnxt_en */
		{"rx_pause_frames", WEIR_NIC_GROUP_NONE, false},          /* bnxt_en */
		{"port_rx_nodesc_drops", WEIR_NIC_GROUP_MISSED, false},   /* sfc */
		{"port_rx_overflow", WEIR_NIC_GROUP_OVERRUNS, false},     /* sfc */
		{"rx_missed", WEIR_NIC_GROUP_MISSED, false},              /* r8169 */
		{"tx_dropped", WEIR_NIC_GROUP_NONE, false},
		{"rx_packets", WEIR_NIC_GROUP_NONE, false},
		{"fdir_overflow", WEIR_NIC_GROUP_NONE, false}, /* ixgbe: no packets */
	};
	return cr_make_param_array(struct name, names, sizeof(names) / sizeof(names[0]));
}

ParameterizedTest(struct name *row, nic, names)
{
	cr_expect_eq(weir_nic_group_of(row->name), row->group, "%s: group %u, not %u", row->name,
		     weir_nic_group_of(row->name), row->group);
	cr_expect_eq(weir_nic_name_is_numbered(row->name), row->numbered, "%s", row->name);
}

Test(nic, largest_total_stands_for_its_group)
{
	struct weir_nic_stat stats[] = {
		{WEIR_NIC_GROUP_DROPPED, false, 0, 10}, {WEIR_NIC_GROUP_DROPPED, false, 0, 12},
		{WEIR_NIC_GROUP_DROPPED, true, 0, 100}, {WEIR_NIC_GROUP_OVERRUNS, true, 0, 3},
		{WEIR_NIC_GROUP_OVERRUNS, true, 0, 4},
	};
	struct weir_nic_driver driver = {
		.n = 5, .stats = stats, .before = {[WEIR_NIC_GROUP_OVERRUNS] = 1}};
	uint64_t grown;

	cr_assert(weir_nic_driver_growth(&driver, WEIR_NIC_GROUP_DROPPED, &grown));
	cr_expect_eq(grown, 12);
	cr_assert(weir_nic_driver_growth(&driver, WEIR_NIC_GROUP_OVERRUNS, &grown));
	cr_expect_eq(grown, 8, "no total: the queues together, and what they had before");
	cr_expect_not(weir_nic_driver_growth(&driver, WEIR_NIC_GROUP_MISSED, &grown),
		      "unknown is not 0");
}

Test(nic, counters_that_begin_anew)
{
	cr_expect_eq(weir_nic_growth(5, 8), 3);
	cr_expect_eq(weir_nic_growth(5, 2), 2);
}

Test(nic, symmetric_keys)
{
	uint8_t key[40];
	/* Microsoft's, of the specification of RSS, which drivers have as their default. */
	static const uint8_t common[] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2};

	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = i % 2 ? 0x5a : 0x6d;
	cr_expect(weir_nic_key_is_symmetric(key, sizeof(key)));
	key[39] ^= 1;
	cr_expect_not(weir_nic_key_is_symmetric(key, sizeof(key)));
	cr_expect_not(weir_nic_key_is_symmetric(common, sizeof(common)));
	cr_expect_not(weir_nic_key_is_symmetric(common, 0));
}
