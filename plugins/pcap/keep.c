/*
 * keep.c: retention.
 *
 * The state file is a journal: "+ TIME INODE NAME" for each file that was made, "- NAME" for each
 * one removed; a start writes it anew without the pairs.  A file is known by its inode too, so that
 * another one of the same name is never removed.
 *
 * Removing a large file takes a quarter of a second, in which buffers would fill: so a file goes by
 * its name at once, and its blocks go bit by bit between two writes.
 */
#include "keep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S   1000000000LL
#define BITE_BYTES (128LL << 20)

struct kept {
	struct kept *next;
	int64_t closed_s; /* clock */
	uint64_t inode;
	char name[]; /* in the folder */
};

/* A file without a name, whose blocks are being given back. */
struct doomed {
	struct doomed *next;
	int fd;
	off_t bytes;
};

struct keeper {
	struct weir_self *self;
	char *folder, *state_path;
	int folder_fd;
	FILE *state;
	struct kept *oldest, **newest_end;
	struct doomed *doomed;
	off_t doomed_bytes;
};

static int64_t clock_s(void)
{
	return (int64_t)time(NULL);
}

/* ---- The list of files ---- */

static void remember(struct keeper *keeper, int64_t closed_s, uint64_t inode, const char *name)
{
	struct kept *kept = malloc(sizeof(*kept) + strlen(name) + 1);

	if (!kept)
		return;
	*kept = (struct kept){.closed_s = closed_s, .inode = inode};
	strcpy(kept->name, name);
	*keeper->newest_end = kept;
	keeper->newest_end = &kept->next;
}

/* Takes the entry out of the list that *at leads to. */
static void forget(struct keeper *keeper, struct kept **at)
{
	struct kept *kept = *at;

	*at = kept->next;
	if (!kept->next)
		keeper->newest_end = at;
	free(kept);
}

static void forget_name(struct keeper *keeper, const char *name)
{
	for (struct kept **at = &keeper->oldest; *at; at = &(*at)->next) {
		if (strcmp((*at)->name, name) == 0) {
			forget(keeper, at);
			return;
		}
	}
}

static bool is_ours(const struct keeper *keeper, const struct kept *kept, struct stat *status)
{
	return fstatat(keeper->folder_fd, kept->name, status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(status->st_mode) && status->st_ino == kept->inode;
}

/* ---- The state file ---- */

static void load_line(struct keeper *keeper, char *line)
{
	int64_t closed_s;
	uint64_t inode;
	int name_at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "+ %" SCNd64 " %" SCNu64 " %n", &closed_s, &inode, &name_at) == 2 &&
	    name_at > 0 && line[name_at])
		remember(keeper, closed_s, inode, line + name_at);
	else if (line[0] == '-' && line[1] == ' ')
		forget_name(keeper, line + 2);
}

static void load(struct keeper *keeper)
{
	FILE *old = fopen(keeper->state_path, "re");
	char *line = NULL;
	size_t room = 0;

	while (old && getline(&line, &room, old) > 0)
		load_line(keeper, line);
	free(line);
	if (old)
		fclose(old);
}

static void write_down(FILE *state, const struct kept *kept)
{
	fprintf(state, "+ %" PRId64 " %" PRIu64 " %s\n", kept->closed_s, kept->inode, kept->name);
}

/* Writes the journal anew, and locks it before anybody else sees it. */
static bool write_state(struct keeper *keeper)
{
	char *path;
	bool ok;

	if (asprintf(&path, "%s.new", keeper->state_path) < 0)
		return false;
	keeper->state = fopen(path, "we");
	if (!keeper->state) {
		free(path);
		return false;
	}
	flock(fileno(keeper->state), LOCK_EX | LOCK_NB);
	for (const struct kept *kept = keeper->oldest; kept; kept = kept->next) {
		struct stat status;

		if (is_ours(keeper, kept, &status))
			write_down(keeper->state, kept);
	}
	ok = fflush(keeper->state) == 0 && rename(path, keeper->state_path) == 0;
	free(path);
	return ok;
}

/* Whether another process has the state file; else it stays locked by the descriptor. */
static bool is_taken(const char *path, int *ret_fd)
{
	*ret_fd = open(path, O_RDWR | O_CLOEXEC);
	return *ret_fd >= 0 && flock(*ret_fd, LOCK_EX | LOCK_NB) != 0;
}

static bool open_state(struct keeper *keeper)
{
	int old_fd;
	bool taken = is_taken(keeper->state_path, &old_fd);
	bool ok = false;

	if (taken) {
		weir_error(keeper->self, "path",
			   "another run keeps its files in %s by the name %s; give this node "
			   "another name",
			   keeper->folder, keeper->self->name);
	} else {
		load(keeper);
		ok = write_state(keeper);
		if (!ok)
			weir_error(keeper->self, "path", "%s: %s", keeper->state_path,
				   strerror(errno));
	}
	if (old_fd >= 0)
		close(old_fd);
	return ok;
}

struct keeper *keeper_new(struct weir_self *self, const char *folder)
{
	struct keeper *keeper = calloc(1, sizeof(*keeper));

	if (!keeper)
		return NULL;
	keeper->self = self;
	keeper->newest_end = &keeper->oldest;
	keeper->folder = strdup(folder);
	keeper->folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (keeper->folder_fd < 0)
		weir_error(self, "path", "%s: %s", folder, strerror(errno));
	else if (asprintf(&keeper->state_path, "%s/.weir-%s", folder, self->name) >= 0 &&
		 open_state(keeper))
		return keeper;
	keeper_free(keeper);
	return NULL;
}

void keeper_free(struct keeper *keeper)
{
	if (!keeper)
		return;
	while (keeper->oldest)
		forget(keeper, &keeper->oldest);
	for (struct doomed *next, *doomed = keeper->doomed; doomed; doomed = next) {
		next = doomed->next;
		close(doomed->fd);
		free(doomed);
	}
	if (keeper->state)
		fclose(keeper->state);
	if (keeper->folder_fd >= 0)
		close(keeper->folder_fd);
	free(keeper->folder);
	free(keeper->state_path);
	free(keeper);
}

void keeper_closed(struct keeper *keeper, const char *name)
{
	const char *inside = name + strlen(keeper->folder);
	struct stat status;
	struct kept **at = keeper->newest_end;

	inside += *inside == '/';
	/* A name that would break the journal's lines is kept for ever. */
	if (strchr(inside, '\n') || fstatat(keeper->folder_fd, inside, &status, 0) != 0)
		return;
	remember(keeper, clock_s(), status.st_ino, inside);
	if (!*at)
		return;
	write_down(keeper->state, *at);
	fflush(keeper->state);
}

/* ---- Removing ---- */

static void doom(struct keeper *keeper, int fd, off_t bytes)
{
	struct doomed *doomed = malloc(sizeof(*doomed));

	if (!doomed) {
		close(fd);
		return;
	}
	*doomed = (struct doomed){keeper->doomed, fd, bytes};
	keeper->doomed = doomed;
	keeper->doomed_bytes += bytes;
}

static void take_bite(struct keeper *keeper)
{
	struct doomed *doomed = keeper->doomed;
	off_t bite = doomed->bytes < BITE_BYTES ? doomed->bytes : BITE_BYTES;

	doomed->bytes -= bite;
	keeper->doomed_bytes -= bite;
	if (doomed->bytes > 0 && ftruncate(doomed->fd, doomed->bytes) == 0)
		return;
	keeper->doomed_bytes -= doomed->bytes;
	keeper->doomed = doomed->next;
	close(doomed->fd);
	free(doomed);
}

static void unlink_kept(struct keeper *keeper, const struct kept *kept, const char *why)
{
	const struct config *config = keeper->self->config;
	int fd = openat(keeper->folder_fd, kept->name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (!is_ours(keeper, kept, &status) || unlinkat(keeper->folder_fd, kept->name, 0) != 0) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (fd >= 0 && status.st_nlink == 1)
		doom(keeper, fd, status.st_size);
	else if (fd >= 0)
		close(fd);
	weir_count(keeper->self, REMOVED, 1);
	if (clock_s() - kept->closed_s < config->keep_ns / NS_PER_S)
		weir_count(keeper->self, REMOVED_EARLY, 1);
	weir_event(keeper->self, "file-removed", "%s/%s bytes=%lld %s", keeper->folder, kept->name,
		   (long long)status.st_size, why);
}

static void remove_oldest(struct keeper *keeper, const char *why)
{
	unlink_kept(keeper, keeper->oldest, why);
	fprintf(keeper->state, "- %s\n", keeper->oldest->name);
	fflush(keeper->state);
	forget(keeper, &keeper->oldest);
}

static bool is_too_old(const struct keeper *keeper)
{
	const struct config *config = keeper->self->config;

	return config->keep_ns > 0 &&
	       clock_s() - keeper->oldest->closed_s >= config->keep_ns / NS_PER_S;
}

static bool is_short_of_room(const struct keeper *keeper)
{
	const struct weir_amount *keep = &((const struct config *)keeper->self->config)->keep_free;
	struct statvfs fs;
	double wanted, free_bytes;

	if ((keep->bytes == 0 && keep->percent <= 0) || fstatvfs(fileno(keeper->state), &fs) != 0)
		return false;
	wanted = keep->bytes ? (double)keep->bytes
			     : keep->percent / 100 * (double)fs.f_blocks * (double)fs.f_frsize;
	free_bytes = (double)fs.f_bavail * (double)fs.f_frsize + (double)keeper->doomed_bytes;
	return free_bytes < wanted;
}

bool keeper_work(struct keeper *keeper)
{
	if (keeper->oldest && is_too_old(keeper))
		remove_oldest(keeper, "age");
	else if (keeper->oldest && is_short_of_room(keeper))
		remove_oldest(keeper, "room");
	else if (!keeper->doomed)
		return false;
	if (keeper->doomed)
		take_bite(keeper);
	return true;
}
