/*
 * pcap.c: the sink that writes capture files.
 *
 * A lane encodes packets into blocks (lane.c, preface.c, stream.c); the node's one writer brings
 * them to disk (writer.c, file.c), names the files (name.c), removes old ones (keep.c) and runs
 * commands for those that are complete (command.c).
 */
#include "command.h"
#include "keep.h"
#include "keys.h"
#include "lane.h"
#include "recover.h"
#include "refuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool pcap_check(struct weir_self *self)
{
	return refuse_options(self);
}

static uint32_t pcap_affinity(struct weir_self *self)
{
	const struct config *config = self->config;

	return weir_pattern_has(config->path, "lane") ? WEIR_LANES_ANY : WEIR_LANES_ONE;
}

/* A header of which no packet has room beside it would make all packets too long. */
static uint64_t comment_bytes(const struct config *config)
{
	uint64_t quarter = config->rotate_bytes / 4;

	return quarter && quarter < WEIR_PCAPNG_COMMENT_MAX / 2 ? quarter
								: WEIR_PCAPNG_COMMENT_MAX / 2;
}

static bool set_format(struct weir_self *self, struct format *format)
{
	const struct config *config = self->config;

	format->pcapng = refuse_is_pcapng(config);
	format->extras = config->extras;
	format->precision = config->precision ? WEIR_PRECISION_US : WEIR_PRECISION_NS;
	uname(&format->system);
	return format_describe(format, weir_pipeline(self), weir_pipeline_sha256(self),
			       comment_bytes(config));
}

/* Before privileges are dropped: others than root cannot read the keys of servers, as a rule. */
static bool open_keys(struct weir_self *self, struct site *site)
{
	const char *path = site->config->tls_keys;

	if (path && access(path, R_OK) != 0 && errno != ENOENT) {
		weir_error(self, "tls-keys", "%s cannot be read: %s", path, strerror(errno));
		return false;
	}
	if (path && access(path, F_OK) != 0)
		weir_log(self, WEIR_INFORM, "tls-keys: %s is not there yet", path);
	if (path)
		site->keys = keys_new(path);
	if (path && !site->keys)
		weir_error(self, "tls-keys", "out of memory");
	return !path || site->keys;
}

static bool pcap_open(struct weir_self *self)
{
	const struct config *config = self->config;
	struct node *node = self->node;
	struct site *site = &node->site;
	char *folder = literal_folder(config->path, &site->folder_len);
	bool ok = access_resolve(&site->access, self) && refuse_folder(self, folder, &site->access);

	/* All that is wrong is said at once. */
	ok = refuse_inputs(self) && ok;
	free(folder);
	site->self = self;
	site->config = config;
	node->first_ns = INT64_MAX;
	writer_init(&node->writer, site);
	ok = open_keys(self, site) && ok;
	if (set_format(self, &site->format))
		return ok;
	weir_error(self, NULL, "out of memory");
	return false;
}

static bool pcap_lane_open(struct weir_self *self)
{
	if (!refuse_lanes(self))
		return false;
	if (lane_init(self->lane, self))
		return true;
	weir_error(self, "buffer", "out of memory");
	return false;
}

/* What needs the rights that the run will have. */
static bool start_keeping(struct weir_self *self, struct site *site)
{
	const struct config *config = self->config;
	unsigned folder_len;
	char *folder = literal_folder(config->path, &folder_len);
	bool ok = refuse_folder(self, folder, &site->access);

	if (ok && keeper_is_wanted(config)) {
		site->keeper = keeper_new(self, folder);
		ok = site->keeper;
	}
	free(folder);
	if (ok && config->on_close) {
		site->commands = commands_new(self);
		ok = site->commands;
	}
	return ok;
}

static bool pcap_start(struct weir_self *self)
{
	struct node *node = self->node;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	node->start_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
	if (!start_keeping(self, &node->site))
		return false;
	recover_files(&node->site);
	if (!writer_start(&node->writer))
		weir_error(self, NULL, "the writer's thread cannot be started");
	return node->writer.started;
}

static void pcap_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	lane_judge(self->lane, packets, n);
}

static void pcap_tick(struct weir_self *self, const struct weir_now *now, unsigned why)
{
	lane_tick(self->lane, now, why);
}

static void end_lanes(struct node *node)
{
	for (struct lane *lane = node->lanes; lane; lane = lane->next)
		lane_end(lane);
}

/* Not when a lane is closed: the last figures of a file are those of all lanes. */
static void pcap_close(struct weir_self *self)
{
	struct node *node = self->node;

	if (node->writer.started)
		end_lanes(node);
	writer_clear(&node->writer);
	for (struct lane *lane = node->lanes; lane; lane = lane->next)
		lane_clear(lane);
	keeper_free(node->site.keeper);
	commands_free(node->site.commands);
	keys_free(node->site.keys);
	free(node->site.format.comment);
}

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SINK,
	.lanes_kind = WEIR_LANES_ONE,
	.name = "pcap",
	.version = WEIR_VERSION,
	.summary = "writes capture files, classic pcap or pcapng, with rotation and retention",
	.example = "tap -> pcap /srv/capture/%Y%m%d-%H%M%S.pcapng rotate-size=1GiB keep-age=30d",
	.options = options,
	.outputs = outcomes,
	.counters = counters,
	.config_size = sizeof(struct config),
	.node_size = sizeof(struct node),
	.lane_size = sizeof(struct lane),
	.check = pcap_check,
	.affinity = pcap_affinity,
	.open = pcap_open,
	.lane_open = pcap_lane_open,
	.start = pcap_start,
	.judge = pcap_judge,
	.tick = pcap_tick,
	.close = pcap_close,
	.memory = "buffer",
};
