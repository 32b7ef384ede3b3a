/* arrivals: a sink that writes down when each packet arrived, by both clocks, and its own time. */
#include <weir/plugin.h>

#include <stdio.h>
#include <time.h>

struct config {
	const char *path;
};

struct node {
	FILE *file;
};

static bool arrivals_open(struct weir_self *self)
{
	const struct config *config = self->config;
	struct node *node = self->node;

	node->file = fopen(config->path, "we");
	if (!node->file)
		weir_error(self, "path", "cannot be written");
	return node->file != NULL;
}

static long long clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void arrivals_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	struct node *node = self->node;

	for (unsigned i = 0; i < n; i++)
		fprintf(node->file, "%lld %lld %lld\n", clock_ns(CLOCK_MONOTONIC),
			clock_ns(CLOCK_REALTIME), (long long)packets[i].ts_ns);
	fflush(node->file);
}

static void arrivals_close(struct weir_self *self)
{
	struct node *node = self->node;

	if (node->file)
		fclose(node->file);
}

static const struct weir_option options[] = {
	{"path", WEIR_OUTFILE, offsetof(struct config, path), NULL, NULL, "Where to."},
	{0},
};
static const struct weir_output outputs[] = {{"seen", WEIR_PASS, WEIR_PACKETS, "all"}, {0}};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SINK,
	.lanes_kind = WEIR_LANES_ONE,
	.name = "arrivals",
	.version = "1",
	.summary = "Writes down when packets arrive",
	.example = "numbers -> arrivals times.txt",
	.options = options,
	.outputs = outputs,
	.config_size = sizeof(struct config),
	.node_size = sizeof(struct node),
	.open = arrivals_open,
	.judge = arrivals_judge,
	.close = arrivals_close,
};
