/* scribble: a stage that inverts the bytes of its packets. */
#include <weir/plugin.h>

static void scribble_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t *bytes = weir_writable(self, &packets[i]);

		for (unsigned at = 0; bytes && at < packets[i].caplen; at++)
			bytes[at] ^= 0xff;
	}
}

static const struct weir_output outputs[] = {{"out", WEIR_PASS, WEIR_PACKETS, "inverted"}, {0}};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_STAGE,
	.flags = WEIR_CHANGES_BYTES,
	.name = "scribble",
	.version = "1",
	.summary = "Inverts bytes",
	.example = "numbers -> scribble -> null",
	.outputs = outputs,
	.judge = scribble_judge,
};
