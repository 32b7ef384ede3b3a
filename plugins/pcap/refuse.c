/* refuse.c: looks before it leaps. */
#include "refuse.h"
#include "command.h"
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool refuse_is_pcapng(const struct config *config)
{
	return config->format == FORMAT_PCAPNG ||
	       (config->format == FORMAT_AUTO && format_name_is_pcapng(config->path));
}

/* Whether every file would have the same name. */
static bool is_fixed(const char *path)
{
	return !weir_pattern_has(path, "time") && !weir_pattern_has(path, "seq");
}

/* ---- Options ---- */

static bool check_path(struct weir_self *self, const struct config *config)
{
	char *name = weir_expand(self, config->path, 0, false, "eth0", 0);

	free(name);
	if (!name)
		weir_error(self, "path",
			   "'%s' has a %% that stands for nothing: strftime's letters, %%{iface}, "
			   "%%{lane}, %%{node} and %%{seq} do, and %%%% for itself",
			   config->path);
	return name;
}

/* A later run would take such a file for one that a crash has left unfinished. */
static bool check_ending(struct weir_self *self, const struct config *config)
{
	size_t len = strlen(config->path), ending = strlen(PART_ENDING);

	if (len < ending || strcmp(config->path + len - ending, PART_ENDING) != 0)
		return true;
	weir_error(self, "path",
		   "the ending " PART_ENDING " is for files that are not complete yet");
	return false;
}

static bool check_keeping(struct weir_self *self, const struct config *config)
{
	bool ok = true;

	if (config->keep_free.percent >= 100) {
		weir_error(self, "keep-free", "keep-free must be below 100%%: nothing could stay");
		ok = false;
	}
	if (config->keep_bytes && config->keep_bytes < config->rotate_bytes) {
		weir_error(self, "keep-size",
			   "keep-size must be at least rotate-size: one file would be too large");
		ok = false;
	}
	return ok;
}

static bool check_format(struct weir_self *self, const struct config *config)
{
	bool pcapng = refuse_is_pcapng(config);

	if (config->tls_keys && !pcapng)
		weir_error(self, "tls-keys",
			   "classic pcap cannot hold keys: name the file .pcapng");
	else if (config->precision && pcapng)
		weir_error(self, "precision",
			   "pcapng is written with nanoseconds, which its readers "
			   "know; precision=us is for classic pcap");
	else
		return true;
	return false;
}

bool refuse_options(struct weir_self *self)
{
	const struct config *config = self->config;
	struct access access;
	bool ok = check_path(self, config);

	ok = check_ending(self, config) && ok;
	ok = check_keeping(self, config) && ok;
	ok = check_format(self, config) && ok;
	ok = access_resolve(&access, self) && ok;
	return command_check(self) && ok;
}

/* ---- Names and link types ---- */

/* With the ending that it has until it is complete. */
static bool is_too_long(const char *name)
{
	char *part = NULL;
	bool too_long;

	if (asprintf(&part, "%s" PART_ENDING, name) < 0)
		return false;
	too_long = access(part, F_OK) != 0 && errno == ENAMETOOLONG;
	free(part);
	return too_long;
}

static bool check_name(struct weir_self *self, const struct config *config, const char *name)
{
	struct stat taken;

	if (is_too_long(name)) {
		weir_error(self, "path", "%s" PART_ENDING ": %s", name, strerror(ENAMETOOLONG));
		return false;
	}
	if (stat(name, &taken) != 0)
		return true;
	if (S_ISDIR(taken.st_mode))
		weir_error(self, "path",
			   "%s is a folder: the name of a file is wanted, such as "
			   "%s/%%Y%%m%%d-%%H%%M%%S.pcap",
			   name, name);
	else if (!S_ISREG(taken.st_mode))
		weir_error(self, "path",
			   "%s is no regular file, and is not replaced by one: pipe writes into "
			   "what is there",
			   name);
	else if (!config->overwrite)
		weir_error(self, "path",
			   "%s exists already: remove it, say overwrite=yes, or put "
			   "%%Y%%m%%d-%%H%%M%%S into the name",
			   name);
	return S_ISREG(taken.st_mode) && config->overwrite;
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

	for (unsigned i = 1; i < n && i < 64 && !refuse_is_pcapng(config); i++) {
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

bool refuse_inputs(struct weir_self *self)
{
	const struct config *config = self->config;
	bool ok = check_free(self, config);

	return check_linktypes(self, config) && ok;
}

/* ---- What lanes share ---- */

bool refuse_lanes(struct weir_self *self)
{
	const struct config *config = self->config;
	uint32_t n = self->lane_count;

	if (config->buffer_bytes / n < 2 * BLOCK_BYTES_MIN) {
		weir_error(self, "buffer",
			   "buffer must be at least %uMiB: 1MiB for each of %u lanes", n, n);
		return false;
	}
	if (config->keep_bytes && config->keep_bytes / n < config->rotate_bytes) {
		weir_error(self, "keep-size",
			   "keep-size must be at least %u times rotate-size: %u lanes have a file "
			   "open",
			   n, n);
		return false;
	}
	return true;
}

/* ---- The folder ---- */

char *literal_folder(const char *path, unsigned *ret_len)
{
	size_t len = strcspn(path, "%");

	while (len > 0 && path[len - 1] != '/')
		len--;
	*ret_len = len > 0 ? (unsigned)len - 1 : 0;
	return len == 0 ? strdup(".") : len == 1 ? strdup("/") : strndup(path, len - 1);
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

bool refuse_folder(struct weir_self *self, const char *folder, const struct access *access)
{
	const struct config *config = self->config;
	bool direct = config->direct == DIRECT_YES;
	int fd = make_probe(folder, direct);
	bool ok = fd >= 0 && access_apply(access, fd, false);

	if (fd < 0 && errno == EINVAL && direct)
		weir_error(self, "direct",
			   "direct=yes: the file system of %s cannot write past the page cache",
			   folder);
	else if (fd < 0)
		weir_error(self, "path", "no file can be made in %s: %s%s", folder, strerror(errno),
			   errno == ENOENT ? "; make it, or mount its disk, first" : "");
	else if (!ok)
		weir_error(self,
			   config->owner   ? "owner"
			   : config->group ? "group"
					   : "mode",
			   "owner, group or mode cannot be set in %s: %s", folder, strerror(errno));
	if (fd >= 0)
		close(fd);
	return ok;
}
