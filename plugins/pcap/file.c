/*
 * file.c: writing one file.
 *
 * Whole blocks go past the page cache, which keeps up with any link for a tenth of the processor
 * time; all else goes through it by a second descriptor.  Nothing is ever padded, and nothing is
 * written past the cache where the cache has held bytes: readers were seen to get zeros after
 * either.
 */
#include "command.h"
#include "file.h"
#include "keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL
#define RETRY_NS NS_PER_S

int64_t clock_mono_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

struct file *file_new(char *path)
{
	struct file *file = path ? calloc(1, sizeof(*file)) : NULL;

	if (!file) {
		free(path);
		return NULL;
	}
	file->path = path;
	file->cached_fd = file->direct_fd = -1;
	file->headers_end = &file->headers;
	return file;
}

void file_free(struct file *file)
{
	if (!file)
		return;
	if (file->cached_fd >= 0)
		close(file->cached_fd);
	if (file->direct_fd >= 0)
		close(file->direct_fd);
	for (struct header *next, *header = file->headers; header; header = next) {
		next = header->next;
		free(header);
	}
	free(file->tail);
	free(file->path);
	free(file->part);
	free(file);
}

static bool open_file(struct site *site, struct file *file, struct namer *namer)
{
	file->cached_fd = name_open_part(namer, file->path, site->folder_len, &site->access,
					 &file->part);
	if (file->cached_fd < 0)
		return false;
	/* Says that the file is not left over: see recover.c. */
	flock(file->cached_fd, LOCK_EX | LOCK_NB);
	if (site->config->direct != DIRECT_NO)
		file->direct_fd = open(file->part, O_WRONLY | O_DIRECT | O_CLOEXEC);
	return true;
}

/* Stores at the end of the file; returns how much, less than len with errno. */
static size_t put(struct file *file, const uint8_t *bytes, size_t len, bool direct)
{
	size_t done = 0;

	while (done < len) {
		int fd = direct ? file->direct_fd : file->cached_fd;
		ssize_t n = pwrite(fd, bytes + done, len - done, (off_t)file->end);

		if (n > 0) {
			done += (size_t)n;
			file->end += (uint64_t)n;
		} else if (n == 0) {
			errno = ENOSPC;
		}
		if (n < 0 && errno == EINTR)
			continue;
		/* Full with room for less than a block, cut short, or refused: the cache will tell.
		 */
		if (!direct && n <= 0)
			break;
		direct = false;
	}
	return done;
}

static void note_full(struct site *site, const struct file *file)
{
	if (site->full)
		return;
	site->full = true;
	weir_log(site->self, WEIR_WARN,
		 "%s: the disk is full; packets are lost until there is room", file->path);
	weir_event(site->self, "disk-full", "%s", file->path);
}

static void note_room(struct site *site, const struct file *file)
{
	if (!site->full)
		return;
	site->full = false;
	weir_log(site->self, WEIR_INFORM, "%s: the disk has room again", file->path);
	weir_event(site->self, "disk-back", "%s", file->path);
}

/* Something could not be written, as errno says: leaves the file whole, and waits for a while. */
static void give_up(struct site *site, struct file *file)
{
	int error = errno;

	if (file->end != file->whole)
		(void)!ftruncate(file->cached_fd, (off_t)file->whole);
	file->end = file->whole;
	file->gap = true;
	file->retry_ns = clock_mono_ns() + RETRY_NS;
	file->trouble = error == ENOSPC || error == EDQUOT ? DISK_FULL : WRITE_ERROR;
	if (file->trouble == DISK_FULL)
		note_full(site, file);
	else
		weir_log(site->self, WEIR_WARN, "%s: %s", file->path, strerror(error));
}

/*
 * Somebody has removed the file while it was written: what it had is gone, and the rest goes into a
 * new one, with all headers.
 */
static void note_vanished(struct site *site, struct file *file)
{
	weir_log(site->self, WEIR_WARN, "%s was removed by somebody, with %llu packets", file->part,
		 (unsigned long long)file->packets);
	weir_event(site->self, "file-vanished", "%s packets=%llu bytes=%llu", file->part,
		   (unsigned long long)file->packets, (unsigned long long)file->whole);
	weir_count(site->self, VANISHED, file->packets);
	weir_count(site->self, FILE_BYTES, file->whole);
	close(file->cached_fd);
	if (file->direct_fd >= 0)
		close(file->direct_fd);
	free(file->part);
	file->part = NULL;
	file->cached_fd = file->direct_fd = -1;
	file->end = file->whole = file->whole_at = file->packets = 0;
	/* A record may have been cut in two. */
	file->gap = true;
	file->trouble = WRITE_ERROR;
}

static void look_after(struct site *site, struct file *file)
{
	struct stat status;

	if (file->part && fstat(file->cached_fd, &status) == 0 && status.st_nlink == 0)
		note_vanished(site, file);
}

/* Headers that a gap has swallowed; what follows is at that place of the stream. */
static bool put_headers(struct site *site, struct file *file, uint64_t at)
{
	for (struct header *header = file->headers; header; header = header->next) {
		if (header->at < file->whole_at || header->at >= at)
			continue;
		if (put(file, header->bytes, header->len, false) < header->len)
			return false;
		file->whole = file->end;
		file->whole_at = header->at + 1;
		weir_count(site->self, HEADER_BYTES, header->len);
	}
	file->gap = false;
	return true;
}

/* Whether bytes can be stored that are at that place of the stream. */
static bool ready(struct site *site, struct file *file, struct namer *namer, uint64_t at)
{
	if (file->retry_ns && clock_mono_ns() < file->retry_ns)
		return false;
	if ((file->part || open_file(site, file, namer)) &&
	    (!file->gap || put_headers(site, file, at))) {
		file->retry_ns = 0;
		return true;
	}
	give_up(site, file);
	return false;
}

static void settle(struct site *site, struct file *file, const struct stretch *stretch,
		   const struct weir_extent *stored)
{
	uint64_t lost = stretch->sum.packets - stored->packets;

	file->packets += stored->packets;
	weir_count(site->self, HEADER_BYTES, stored->header_bytes);
	weir_count(site->self, RECORD_BYTES, stored->record_bytes);
	if (stored->packets > 0)
		weir_settle(stretch->self, WRITTEN, stored->packets, stored->packet_bytes);
	if (lost > 0)
		weir_settle(stretch->self, file->trouble, lost,
			    stretch->sum.packet_bytes - stored->packet_bytes);
}

/* The record that ends in the stretch and did not start in it. */
static struct weir_extent spilled(const struct stretch *stretch, bool pcapng)
{
	struct weir_extent spill = stretch->sum, rest = {0};

	weir_capfile_walk(stretch->bytes, stretch->first, stretch->whole, pcapng, &rest);
	spill.packets -= rest.packets;
	spill.packet_bytes -= rest.packet_bytes;
	spill.record_bytes -= rest.record_bytes;
	spill.header_bytes -= rest.header_bytes;
	return spill;
}

/*
 * Bytes of the block from `begin` up to `reached` are on disk, the first one at `start`: what of
 * the stretch is whole.
 */
static struct weir_extent take_stock(const struct site *site, struct file *file,
				     const struct stretch *stretch, uint32_t begin, uint64_t start,
				     uint32_t reached)
{
	bool pcapng = site->format.pcapng;
	struct weir_extent stored = {0};
	size_t cut;

	if (reached < stretch->first)
		return stored;
	if (begin == stretch->from)
		stored = spilled(stretch, pcapng);
	if (reached > stretch->whole)
		reached = stretch->whole;
	cut = weir_capfile_walk(stretch->bytes, stretch->first, reached, pcapng, &stored);
	file->whole = start + cut - begin;
	file->whole_at = stretch->block_at + cut;
	return stored;
}

static void take_headers(struct file *file, struct stretch *stretch)
{
	*file->headers_end = stretch->headers;
	while (*file->headers_end)
		file->headers_end = &(*file->headers_end)->next;
}

/* Of the stretch from `begin` on; returns what has come to be whole on disk. */
static struct weir_extent store(struct site *site, struct file *file, const struct stretch *stretch,
				uint32_t begin)
{
	uint32_t len = stretch->to - begin;
	uint64_t start = file->end;
	bool direct = begin == 0 && len == stretch->block_bytes && file->direct_fd >= 0 &&
		      start == stretch->block_at;
	size_t done = put(file, stretch->bytes + begin, len, direct);
	struct weir_extent stored = stretch->sum;

	if (done == len && begin == stretch->from) {
		file->whole = start + (stretch->whole - begin);
		file->whole_at = stretch->block_at + stretch->whole;
	} else {
		int error = errno;

		stored = take_stock(site, file, stretch, begin, start, begin + (uint32_t)done);
		errno = error;
	}
	if (done < len)
		give_up(site, file);
	else
		note_room(site, file);
	return stored;
}

/* Of a file that is open, so many bytes are on disk. */
static void tell_keeper(struct site *site, struct file *file, uint64_t bytes)
{
	if (!site->keeper)
		return;
	keeper_grow(site->keeper, (int64_t)(bytes - file->counted));
	file->counted = bytes;
}

void file_write(struct site *site, struct file *file, struct stretch *stretch)
{
	struct weir_extent stored = {0};
	uint32_t begin;

	look_after(site, file);
	begin = file->gap ? stretch->first : stretch->from;
	take_headers(file, stretch);
	if (site->keeper)
		keeper_make_room(site->keeper, stretch->to - begin);
	if (ready(site, file, stretch->namer, stretch->block_at + begin))
		stored = store(site, file, stretch, begin);
	settle(site, file, stretch, &stored);
	tell_keeper(site, file, file->end);
}

static void report(struct site *site, const struct file *file, const char *name, uint64_t bytes)
{
	weir_count(site->self, FILES, 1);
	weir_event(site->self, "file-closed",
		   "%s packets=%llu bytes=%llu first=%lld.%09lld last=%lld.%09lld", name,
		   (unsigned long long)file->packets, (unsigned long long)bytes,
		   (long long)(file->first_ns / NS_PER_S), (long long)(file->first_ns % NS_PER_S),
		   (long long)(file->last_ns / NS_PER_S), (long long)(file->last_ns % NS_PER_S));
}

static void publish(struct site *site, struct file *file, struct namer *namer, uint64_t bytes)
{
	char *name;

	if (site->keeper)
		keeper_make_way(site->keeper);
	name = name_publish(namer, file->part, file->path, site->config->overwrite);
	if (!name) {
		weir_log(site->self, WEIR_WARN, "%s cannot be renamed to %s: %s", file->part,
			 file->path, strerror(errno));
		return;
	}
	report(site, file, name, bytes);
	if (site->keeper)
		keeper_closed(site->keeper, name);
	if (site->commands)
		commands_run(site->commands, name);
	free(name);
}

/* What stands behind all packets; not at all where it has no room. */
static void put_tail(struct site *site, struct file *file)
{
	if (!file->part || file->gap || file->tail_len == 0)
		return;
	if (site->keeper)
		keeper_make_room(site->keeper, file->tail_len);
	if (put(file, file->tail, file->tail_len, false) < file->tail_len) {
		give_up(site, file);
		return;
	}
	file->whole = file->end;
	weir_count(site->self, HEADER_BYTES, file->tail_len);
}

void file_finish(struct site *site, struct file *file, struct namer *namer)
{
	struct stat status;

	look_after(site, file);
	/* Even a file that has lost all of its packets says what it is. */
	file->retry_ns = 0;
	if (!file->part || file->gap)
		ready(site, file, namer, UINT64_MAX);
	put_tail(site, file);
	tell_keeper(site, file, 0);
	if (!file->part || fstat(file->cached_fd, &status) != 0)
		return;
	if (status.st_size == 0) {
		unlink(file->part);
		return;
	}
	weir_count(site->self, FILE_BYTES, (uint64_t)status.st_size);
	publish(site, file, namer, (uint64_t)status.st_size);
}
