/*
 * pcap.c: the sink that writes capture files: its tables, and what is refused before capture
 * starts.
 *
 * A lane encodes packets into blocks (lane.c, stream.c); the node's one writer brings them to disk
 * (writer.c, file.c), names the files (name.c) and removes old ones (keep.c).
 */
#include "keep.h"
#include "lane.h"
#include "recover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const struct weir_option options[] = {
	{"path", WEIR_OUTFILE, offsetof(struct config, path), NULL, NULL,
	 "Name of the files; strftime's letters, %{iface}, %{lane}, %{node}, %{seq} are filled "
	 "in."},
	{"format", WEIR_CHOICE, offsetof(struct config, format), "auto", "auto|pcap|pcapng",
	 "What files are written; auto: pcapng if the name ends in .pcapng, else pcap."},
	{"precision", WEIR_CHOICE, offsetof(struct config, precision), "ns", "ns|us",
	 "Times in classic pcap; us for readers that do not know ns."},
	{"extras", WEIR_BOOL, offsetof(struct config, extras), "yes", NULL,
	 "Write direction, queue, drops and mark of each packet into pcapng."},
	{"rotate-size", WEIR_SIZE, offsetof(struct config, rotate_bytes), "", "4KiB..1PiB",
	 "Start a new file before this one would be larger."},
	{"rotate-time", WEIR_TIME, offsetof(struct config, rotate_ns), "", "1s..366d",
	 "Start a new file at each multiple of this time on the clock."},
	{"rotate-packets", WEIR_NUMBER, offsetof(struct config, rotate_packets), "",
	 "1..1000000000000", "Start a new file after so many packets."},
	{"stop-size", WEIR_SIZE, offsetof(struct config, stop_bytes), "", "4KiB..1EiB",
	 "Finish before all files together would be larger."},
	{"stop-packets", WEIR_NUMBER, offsetof(struct config, stop_packets), "",
	 "1..1000000000000000", "Finish after so many packets."},
	{"clock", WEIR_CHOICE, offsetof(struct config, clock), "utc", "utc|local",
	 "The clock of names and of rotate-time."},
	{"overwrite", WEIR_BOOL, offsetof(struct config, overwrite), "no", NULL,
	 "Replace older files of the same name; no: a taken name gets -1, -2 and so on."},
	{"keep-age", WEIR_TIME, offsetof(struct config, keep_ns), "", "1s..36500d",
	 "Remove files of this node that were closed longer ago."},
	{"keep-free", WEIR_AMOUNT, offsetof(struct config, keep_free), "", NULL,
	 "Remove the oldest files of this node while the file system has less room than this."},
	{"buffer", WEIR_SIZE, offsetof(struct config, buffer_bytes), "128MiB", "1MiB..64GiB",
	 "Memory for packets that wait for the disk, divided among the lanes."},
	{"direct", WEIR_CHOICE, offsetof(struct config, direct), "auto", "auto|yes|no",
	 "Write past the page cache; auto: where the file system can; yes: or refuse to start."},
	{NULL, 0, 0, NULL, NULL, NULL},
};

static const struct weir_output outcomes[] = {
	[WRITTEN] = {"written", WEIR_PASS, WEIR_PACKETS, "on disk, or in the system's hands"},
	[DISK_FULL] = {"disk-full", WEIR_LOSS, WEIR_PACKETS, "the file system had no room"},
	[WRITE_ERROR] = {"write-error", WEIR_LOSS, WEIR_PACKETS, "the file system refused"},
	[NO_BUFFER] = {"no-buffer", WEIR_LOSS, WEIR_PACKETS, "the disk was too slow: see buffer"},
	[OTHER_LINKTYPE] = {"other-linktype", WEIR_LOSS, WEIR_PACKETS,
			    "of a second link type, which classic pcap cannot hold"},
	[TOO_LONG] = {"too-long", WEIR_LOSS, WEIR_PACKETS, "alone larger than rotate-size"},
	[STOPPED] = {"stopped", WEIR_DISCARD, WEIR_PACKETS, "came after stop-size or stop-packets"},
	{NULL, 0, 0, NULL},
};

static const struct weir_counter counters[] = {
	[FILE_BYTES] = {"file-bytes", WEIR_PLUS_BYTES, "sizes of the files, from the file system"},
	[HEADER_BYTES] = {"header-bytes", WEIR_MINUS_BYTES, "of file headers and interfaces"},
	[RECORD_BYTES] = {"record-bytes", WEIR_MINUS_BYTES, "of packets' records"},
	[FILES] = {"files", WEIR_INFO, "that were completed"},
	[REMOVED] = {"removed", WEIR_INFO, "files, by keep-age or keep-free"},
	[REMOVED_EARLY] = {"removed-early", WEIR_INFO, "of these before their keep-age"},
	[RECOVERED] = {"recovered", WEIR_INFO, "files that a killed run had left as .part"},
	{NULL, 0, NULL},
};

/* ---- What can be refused ---- */

static bool is_pcapng(const struct config *config)
{
	return config->format == FORMAT_PCAPNG ||
	       (config->format == FORMAT_AUTO && format_name_is_pcapng(config->path));
}

/* Whether every file would have the same name. */
static bool is_fixed(const char *path)
{
	return !weir_pattern_has(path, "time") && !weir_pattern_has(path, "seq");
}

static bool pcap_check(struct weir_self *self)
{
	const struct config *config = self->config;
	char *name = weir_expand(self, config->path, 0, false, "eth0", 0);

	bool ok = name && config->keep_free.percent < 100;

	free(name);
	if (config->keep_free.percent >= 100)
		weir_error(self, "keep-free", "keep-free must be below 100%%: nothing could stay");
	if (!name)
		weir_error(self, "path",
			   "'%s' has a %% that stands for nothing: strftime's letters, %%{iface}, "
			   "%%{lane}, %%{node} and %%{seq} do, and %%%% for itself",
			   config->path);
	return ok;
}

static uint32_t pcap_affinity(struct weir_self *self)
{
	const struct config *config = self->config;

	return weir_pattern_has(config->path, "lane") ? WEIR_LANES_ANY : WEIR_LANES_ONE;
}

/* The folder of the path as far as it is literal; free(). */
static char *literal_folder(const char *path, unsigned *ret_len)
{
	size_t len = strcspn(path, "%");

	while (len > 0 && path[len - 1] != '/')
		len--;
	*ret_len = len > 0 ? (unsigned)len - 1 : 0;
	return len == 0 ? strdup(".") : len == 1 ? strdup("/") : strndup(path, len - 1);
}

static bool check_name(struct weir_self *self, const struct config *config, const char *name)
{
	struct stat taken;

	if (stat(name, &taken) != 0)
		return true;
	if (S_ISDIR(taken.st_mode))
		weir_error(self, "path",
			   "%s is a folder: the name of a file is wanted, such as "
			   "%s/%%Y%%m%%d-%%H%%M%%S.pcap",
			   name, name);
	else if (!config->overwrite)
		weir_error(self, "path",
			   "%s exists already: remove it, say overwrite=yes, or put "
			   "%%Y%%m%%d-%%H%%M%%S into the name",
			   name);
	return !S_ISDIR(taken.st_mode) && config->overwrite;
}

/* A fixed name that is taken, of any lane. */
static bool check_free(struct weir_self *self, const struct config *config)
{
	bool is_free = true;

	if (!is_fixed(config->path))
		return true;
	for (uint32_t lane = 0; lane < self->lane_count || lane == 0; lane++) {
		struct weir_self of_lane = *self;
		char *name;

		of_lane.lane_index = lane;
		name = weir_expand(&of_lane, config->path, 0, false, "any", 0);
		is_free &= !name || check_name(self, config, name);
		free(name);
	}
	return is_free;
}

static bool check_linktypes(struct weir_self *self, const struct config *config)
{
	uint16_t ids[64];
	unsigned n = weir_interfaces_upstream(self, ids, 64);
	const struct weir_interface *first, *other;

	for (unsigned i = 1; i < n && i < 64 && !is_pcapng(config); i++) {
		first = weir_interface(self, ids[0]);
		other = weir_interface(self, ids[i]);
		if (first->linktype == other->linktype)
			continue;
		weir_error(
			self, "path",
			"packets of several link types come here (%u%s%s, %u%s%s), and a classic "
			"pcap file holds one: name the file .pcapng",
			first->linktype, *first->name ? " of " : "", first->name, other->linktype,
			*other->name ? " of " : "", other->name);
		return false;
	}
	return true;
}

/* A file without a name in the folder, or one that is removed at once; -1 with errno. */
static int make_probe(const char *folder, bool direct)
{
	int flags = O_WRONLY | O_CLOEXEC | (direct ? O_DIRECT : 0);
	int fd = open(folder, O_TMPFILE | flags, 0600);
	char *name;

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	if (asprintf(&name, "%s/.weir-XXXXXX", folder) < 0)
		return -1;
	fd = mkostemp(name, flags & ~O_WRONLY);
	if (fd >= 0)
		unlink(name);
	free(name);
	return fd;
}

/* Whether files can be made in the folder, by whoever the process is by now. */
static bool probe_folder(struct weir_self *self, const char *folder, bool direct)
{
	int fd = make_probe(folder, direct);

	if (fd >= 0)
		close(fd);
	else if (errno == EINVAL && direct)
		weir_error(self, "direct",
			   "direct=yes: the file system of %s cannot write past the page cache",
			   folder);
	else
		weir_error(self, "path", "no file can be made in %s: %s", folder, strerror(errno));
	return fd >= 0;
}

/* ---- Life ---- */

static bool pcap_open(struct weir_self *self)
{
	const struct config *config = self->config;
	struct node *node = self->node;
	char *folder = literal_folder(config->path, &node->site.folder_len);
	bool ok = probe_folder(self, folder, config->direct == DIRECT_YES);

	/* All that is wrong is said at once. */
	ok = check_free(self, config) && ok;
	ok = check_linktypes(self, config) && ok;
	free(folder);
	node->site.self = self;
	node->site.config = config;
	node->site.format.pcapng = is_pcapng(config);
	node->site.format.extras = config->extras;
	node->site.format.precision = config->precision ? WEIR_PRECISION_US : WEIR_PRECISION_NS;
	uname(&node->site.format.system);
	writer_init(&node->writer, &node->site);
	return ok;
}

static bool pcap_lane_open(struct weir_self *self)
{
	const struct config *config = self->config;

	if (config->buffer_bytes / self->lane_count < 2 * BLOCK_BYTES_MIN) {
		weir_error(self, "buffer",
			   "buffer must be at least %uMiB: 1MiB for each of %u lanes",
			   self->lane_count, self->lane_count);
		return false;
	}
	if (lane_init(self->lane, self))
		return true;
	weir_error(self, "buffer", "out of memory");
	return false;
}

static bool pcap_start(struct weir_self *self)
{
	const struct config *config = self->config;
	struct node *node = self->node;
	char *folder = literal_folder(config->path, &node->site.folder_len);
	bool keeps = config->keep_ns || config->keep_free.bytes || config->keep_free.percent > 0;
	struct timespec now;
	bool ok = probe_folder(self, folder, false);

	clock_gettime(CLOCK_REALTIME, &now);
	node->start_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
	if (ok && keeps)
		node->site.keeper = keeper_new(self, folder);
	ok = ok && (!keeps || node->site.keeper);
	free(folder);
	if (!ok)
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

static void pcap_lane_close(struct weir_self *self)
{
	struct node *node = self->node;

	writer_stop(&node->writer);
	lane_clear(self->lane);
}

static void pcap_close(struct weir_self *self)
{
	struct node *node = self->node;

	writer_clear(&node->writer);
	keeper_free(node->site.keeper);
	node->site.keeper = NULL;
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
	.lane_close = pcap_lane_close,
	.close = pcap_close,
	.memory = "buffer",
};
