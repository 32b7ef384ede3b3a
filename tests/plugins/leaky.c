/* leaky: a stage that makes packets disappear without a word, which the ledger must notice. */
#include <weir/plugin.h>

static void leaky_transform(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		weir_emit(self, 0, &packets[i]);
}

static const struct weir_output outputs[] = {{"out", WEIR_PASS, WEIR_PACKETS, "most"}, {0}};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_STAGE,
	.name = "leaky",
	.version = "1",
	.summary = "Loses the first packet of each batch",
	.example = "numbers -> leaky -> null",
	.outputs = outputs,
	.transform = leaky_transform,
};
