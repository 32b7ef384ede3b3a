/*
 * What plugins that are out there were built with.  These numbers may grow where fields are
 * appended to struct weir_plugin or to entries of tables; no other change of them is one of 1.x.
 */
#include <weir/plugin.h>

#include <criterion/criterion.h>

#define PIN(number, expected)                                                                      \
	cr_expect_eq((number), (expected), #number " is %zu, not %d", (size_t)(number), (expected))

Test(plugin, sizes)
{
	PIN(sizeof(struct weir_packet), 64);
	PIN(sizeof(struct weir_interface), 56);
	PIN(sizeof(struct weir_self), 40);
	PIN(sizeof(struct weir_now), 16);
	PIN(sizeof(struct weir_output), 24);
	PIN(sizeof(struct weir_counter), 24);
	PIN(sizeof(struct weir_option), 40);
	PIN(sizeof(struct weir_rate), 16);
	PIN(sizeof(struct weir_amount), 16);
	PIN(sizeof(struct weir_insn), 8);
	PIN(sizeof(struct weir_reduction), 24);
	PIN(sizeof(struct weir_plugin), 280);
}

Test(plugin, what_never_moves)
{
	PIN(offsetof(struct weir_plugin, abi), 0);
	PIN(offsetof(struct weir_plugin, size), 4);
	PIN(offsetof(struct weir_plugin, packet_size), 8);
	PIN(offsetof(struct weir_plugin, kind), 16);
	PIN(offsetof(struct weir_plugin, name), 32);
	PIN(offsetof(struct weir_plugin, options), 64);
	PIN(offsetof(struct weir_plugin, config_size), 88);
	PIN(offsetof(struct weir_plugin, check), 112);
	PIN(offsetof(struct weir_plugin, poll), 176);
	PIN(offsetof(struct weir_plugin, close), 232);
	PIN(offsetof(struct weir_plugin, memory), 248);
	PIN(offsetof(struct weir_packet, data), 0);
	PIN(offsetof(struct weir_packet, iface), 40);
	PIN(offsetof(struct weir_packet, verdict), 51);
	PIN(offsetof(struct weir_packet, reserved), 54);
}
