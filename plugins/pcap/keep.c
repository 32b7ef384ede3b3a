/*
 * keep.c: retention.
 *
 * Removing a large file takes a quarter of a second, in which buffers would fill: so a file goes by
 * its name at once, and its blocks go bit by bit between two writes.
 */
#include "keep.h"
#include "state.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S   1000000000LL
#define BITE_BYTES (128LL << 20)

/* A file without a name, whose blocks are being given back. */
struct doomed {
	struct doomed *next;
	int fd;
	off_t bytes;
};

struct keeper {
	struct weir_self *self;
	const struct config *config;
	struct state state;
	struct doomed *doomed;
	uint64_t doomed_bytes, freed_bytes;
	int64_t growing_bytes;
	int64_t swept_s, mended_s; /* clock */
};

static int64_t clock_s(void)
{
	return (int64_t)time(NULL);
}

bool keeper_is_wanted(const struct config *config)
{
	return config->keep_ns || config->keep_bytes || config->keep_files ||
	       config->keep_free.bytes || config->keep_free.percent > 0;
}

struct keeper *keeper_new(struct weir_self *self, const char *folder)
{
	struct keeper *keeper = calloc(1, sizeof(*keeper));

	if (!keeper) {
		weir_error(self, NULL, "out of memory");
		return NULL;
	}
	keeper->self = self;
	keeper->config = self->config;
	if (state_open(&keeper->state, self, folder))
		return keeper;
	keeper_free(keeper);
	return NULL;
}

void keeper_free(struct keeper *keeper)
{
	if (!keeper)
		return;
	for (struct doomed *next, *doomed = keeper->doomed; doomed; doomed = next) {
		next = doomed->next;
		close(doomed->fd);
		free(doomed);
	}
	state_clear(&keeper->state);
	free(keeper);
}

void keeper_closed(struct keeper *keeper, const char *name)
{
	const char *inside = name + strlen(keeper->state.folder);

	state_add(&keeper->state, inside + (*inside == '/'));
}

void keeper_grow(struct keeper *keeper, int64_t bytes)
{
	keeper->growing_bytes += bytes;
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
	keeper->doomed_bytes += (uint64_t)bytes;
}

static void take_bite(struct keeper *keeper)
{
	struct doomed *doomed = keeper->doomed;
	off_t bite = doomed->bytes < BITE_BYTES ? doomed->bytes : BITE_BYTES;

	if (bite < doomed->bytes && ftruncate(doomed->fd, doomed->bytes - bite) == 0) {
		doomed->bytes -= bite;
	} else {
		bite = doomed->bytes;
		keeper->doomed = doomed->next;
		close(doomed->fd);
		free(doomed);
	}
	keeper->doomed_bytes -= (uint64_t)bite;
	keeper->freed_bytes += (uint64_t)bite;
}

static void tell_removed(struct keeper *keeper, const struct kept *kept, const char *why)
{
	weir_count(keeper->self, REMOVED, 1);
	if (clock_s() - kept->closed_s < keeper->config->keep_ns / NS_PER_S)
		weir_count(keeper->self, REMOVED_EARLY, 1);
	weir_event(keeper->self, "file-removed", "%s/%s bytes=%llu %s", keeper->state.folder,
		   kept->name, (unsigned long long)kept->bytes, why);
}

static void unlink_kept(struct keeper *keeper, const struct kept *kept, const char *why)
{
	int folder_fd = keeper->state.folder_fd;
	int fd = openat(folder_fd, kept->name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;
	bool gone = state_is_ours(&keeper->state, kept, &status) &&
		    unlinkat(folder_fd, kept->name, 0) == 0;

	if (gone)
		tell_removed(keeper, kept, why);
	if (gone && fd >= 0 && status.st_nlink == 1)
		doom(keeper, fd, status.st_size);
	else if (fd >= 0)
		close(fd);
}

static void remove_oldest(struct keeper *keeper, const char *why)
{
	unlink_kept(keeper, keeper->state.oldest, why);
	state_remove_oldest(&keeper->state);
}

/* ---- Reasons ---- */

static bool is_too_old(const struct keeper *keeper)
{
	int64_t keep_ns = keeper->config->keep_ns;

	return keep_ns > 0 && clock_s() - keeper->state.oldest->closed_s >= keep_ns / NS_PER_S;
}

static bool is_too_large(const struct keeper *keeper, uint64_t more)
{
	uint64_t limit = keeper->config->keep_bytes;

	return limit &&
	       keeper->state.bytes + keeper->doomed_bytes + (uint64_t)keeper->growing_bytes + more >
		       limit;
}

static bool are_too_many(const struct keeper *keeper, uint64_t more)
{
	uint64_t limit = (uint64_t)keeper->config->keep_files;

	return limit && keeper->state.n_files + more > limit;
}

static bool is_short_of_room(const struct keeper *keeper, uint64_t more)
{
	const struct weir_amount *keep = &keeper->config->keep_free;
	struct statvfs fs;
	double wanted;

	if ((keep->bytes == 0 && keep->percent <= 0) ||
	    fstatvfs(fileno(keeper->state.journal), &fs) != 0)
		return false;
	wanted = keep->bytes ? (double)keep->bytes
			     : keep->percent / 100 * (double)fs.f_blocks * (double)fs.f_frsize;
	return (double)fs.f_bavail * (double)fs.f_frsize < wanted + (double)more;
}

/* Files that somebody else has taken away do not count.  To look at all of them takes a while. */
static void sweep_if_due(struct keeper *keeper)
{
	if (keeper->swept_s == clock_s())
		return;
	keeper->swept_s = clock_s();
	state_sweep(&keeper->state);
}

/* Why the oldest file has to go, if so many bytes and files are to come; NULL: it may stay. */
static const char *reason(struct keeper *keeper, uint64_t bytes, uint64_t files)
{
	if (are_too_many(keeper, files) || is_too_large(keeper, bytes))
		sweep_if_due(keeper);
	if (!keeper->state.oldest)
		return NULL;
	if (is_too_old(keeper))
		return "age";
	if (are_too_many(keeper, files))
		return "files";
	if (is_too_large(keeper, bytes))
		return "size";
	return is_short_of_room(keeper, bytes) ? "room" : NULL;
}

/* Blocks of what is removed already first. */
static void give_back(struct keeper *keeper, const char *why)
{
	if (!keeper->doomed && why)
		remove_oldest(keeper, why);
	if (keeper->doomed)
		take_bite(keeper);
}

void keeper_make_room(struct keeper *keeper, uint64_t bytes)
{
	uint64_t freed_bytes = keeper->freed_bytes;
	const char *why;

	/* Not all at once where others have filled the disk: buffers would fill meanwhile. */
	while (keeper->freed_bytes - freed_bytes <= bytes && (why = reason(keeper, bytes, 0)))
		give_back(keeper, why);
}

void keeper_make_way(struct keeper *keeper)
{
	const char *why;

	while (are_too_many(keeper, 1) && (why = reason(keeper, 0, 1)))
		remove_oldest(keeper, why);
}

bool keeper_work(struct keeper *keeper)
{
	const char *why = reason(keeper, 0, 0);

	if (keeper->mended_s != clock_s()) {
		keeper->mended_s = clock_s();
		state_mend(&keeper->state);
	}
	if (!why && !keeper->doomed)
		return false;
	give_back(keeper, why);
	return true;
}
