/* harness.c: a source and a sink in the test's own process, around the element under test. */
#include "harness.h"

#include "run.h"
#include "variables.h"

#include <criterion/criterion.h>

#include <string.h>

/* What the source hands out; one harness runs at a time. */
static struct {
	const struct weir_packet *packets;
	unsigned n, batch, next;
	uint32_t linktype;
} input;

static GPtrArray *outputs;

/* ---- The source ---- */

static bool input_open(struct weir_self *self)
{
	const struct weir_interface interface = {.name = "harness", .linktype = input.linktype};

	return weir_interface_add(self, &interface) != UINT16_MAX;
}

static int input_poll(struct weir_self *self, struct weir_packet *packets, unsigned max,
		      int timeout_ms, int64_t *ret_mark_ns)
{
	unsigned n = MIN(MIN(max, input.batch), input.n - input.next);

	(void)self, (void)timeout_ms;
	if (n == 0)
		return WEIR_END;
	memcpy(packets, input.packets + input.next, n * sizeof(*packets));
	input.next += n;
	*ret_mark_ns = packets[n - 1].ts_ns;
	return (int)n;
}

static const struct weir_output input_outputs[] = {{"out", WEIR_LOSS, WEIR_PACKETS, "all"}, {0}};

static const struct weir_plugin input_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SOURCE,
	.lanes_kind = WEIR_LANES_ONE,
	.name = "harness-input",
	.version = "1",
	.summary = "the packets of a test",
	.example = "harness-input -> null",
	.outputs = input_outputs,
	.open = input_open,
	.poll = input_poll,
};

/* ---- The sink ---- */

static void keep(GPtrArray *kept, const struct weir_packet *packet)
{
	struct weir_packet *copy = g_memdup2(packet, sizeof(*packet));

	copy->data = g_memdup2(packet->data, packet->caplen);
	g_ptr_array_add(kept, copy);
}

/* Its node is named after the output that leads to it. */
static void output_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	for (unsigned o = 0; o < outputs->len; o++) {
		const struct harness_output *output = outputs->pdata[o];

		for (unsigned i = 0; i < n && strcmp(self->name, output->name) == 0; i++)
			keep(output->packets, &packets[i]);
	}
}

static const struct weir_output output_outcomes[] = {{"kept", WEIR_PASS, WEIR_PACKETS, "all"}, {0}};

static const struct weir_plugin output_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SINK,
	.name = "harness-output",
	.version = "1",
	.summary = "keeps packets for a test",
	.example = "harness-input -> harness-output",
	.outputs = output_outcomes,
	.judge = output_judge,
};

/* ---- The run ---- */

static void packet_free(void *packet)
{
	g_free((void *)((struct weir_packet *)packet)->data);
	g_free(packet);
}

static void output_free(void *user)
{
	struct harness_output *output = user;

	g_free(output->name);
	g_ptr_array_unref(output->packets);
	g_free(output);
}

static void add_output(struct harness *harness, GString *text, const char *name)
{
	struct harness_output *output = g_new0(struct harness_output, 1);

	output->name = g_strdup(name);
	output->packets = g_ptr_array_new_with_free_func(packet_free);
	g_ptr_array_add(harness->outputs, output);
	g_string_append_printf(text, "\n%s = harness-output\nelement.%s -> %s", name, name, name);
}

static char *pipeline(struct harness *harness, struct weir_loader *loader, const char *element)
{
	g_auto(GStrv) words = g_strsplit(element, " ", 2);
	const struct weir_plugin *plugin = weir_loader_find(loader, words[0], NULL);
	GString *text = g_string_new(NULL);

	cr_assert(plugin, "no plugin %s", words[0]);
	g_string_printf(text, "element = %s\nharness-input -> element", element);
	for (unsigned o = 0; plugin->kind == WEIR_STAGE && plugin->outputs[o].name; o++)
		add_output(harness, text, plugin->outputs[o].name);
	return g_string_free(text, FALSE);
}

struct harness *harness_run(const char *element, uint32_t linktype,
			    const struct weir_packet *packets, unsigned n, unsigned batch)
{
	const struct weir_run_options options = {.quiet = true};
	struct harness *harness = g_new0(struct harness, 1);
	struct weir_errors *errors = weir_errors_new("harness");
	g_autoptr(GHashTable) variables = weir_variables_new();
	g_auto(GStrv) path = weir_loader_default_path(NULL);
	struct weir_loader *loader = weir_loader_new((const char *const *)path);
	g_autofree char *text = NULL;
	struct weir_graph *graph;

	weir_loader_add(loader, &input_plugin);
	weir_loader_add(loader, &output_plugin);
	harness->outputs = outputs = g_ptr_array_new_with_free_func(output_free);
	input.packets = packets;
	input.n = n;
	input.batch = batch;
	input.linktype = linktype;
	input.next = 0;
	text = pipeline(harness, loader, element);
	graph = weir_graph_new(text, variables, loader, errors);
	harness->status = graph ? weir_run(graph, &options, errors) : WEIR_EXIT_USAGE;
	harness->messages = g_ptr_array_ref(errors->messages);
	weir_graph_free(graph);
	weir_loader_free(loader);
	weir_errors_free(errors);
	return harness;
}

void harness_free(struct harness *harness)
{
	g_ptr_array_unref(harness->messages);
	g_ptr_array_unref(harness->outputs);
	g_free(harness);
}

const GPtrArray *harness_output(const struct harness *harness, const char *name)
{
	for (unsigned o = 0; o < harness->outputs->len; o++) {
		const struct harness_output *output = harness->outputs->pdata[o];

		if (strcmp(output->name, name) == 0)
			return output->packets;
	}
	cr_assert_fail("no output %s", name);
	return NULL;
}
