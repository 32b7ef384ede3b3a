/*
 * stream.c: an open capture file, read in chunks into one buffer that is parsed in place.
 *
 * Chunks, not a mapping: a mapping costs a fault and a cache miss a packet.  What is left of a
 * record at the end of a chunk is moved to just before the place of the next one, so that every
 * read is aligned to pages in memory and file.
 */
#include "replay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096u
#define HEAD (64u << 10)
/* For the header of a pipe, so that in the usual case its link type is known before the run. */
#define HEADER_WAIT_NS NS_PER_S

static uint16_t add_interface(void *user, const struct weir_interface *interface)
{
	struct stream *stream = user;
	stream->interfaces++;
	return weir_interface_add(stream->self, interface);
}

static void warn(void *user, uint64_t offset, const char *message)
{
	struct stream *stream = user;
	if (stream->quiet)
		return;
	stream->warnings++;
	weir_log(stream->self, WEIR_WARN, "%s: at byte %llu: %s", stream->path,
		 (unsigned long long)offset, message);
}

/* Moves what is not parsed yet in front of the place of the next chunk, in bigger memory if the
 * room there does not do. */
static bool make_room(struct stream *stream)
{
	size_t left = (size_t)(stream->end - stream->at);
	uint8_t *old = NULL;
	if (!stream->memory || left > stream->head) {
		size_t head = left > HEAD ? (2 * left + PAGE - 1) / PAGE * PAGE : HEAD;
		uint8_t *memory = aligned_alloc(PAGE, head + stream->chunk);
		if (!memory)
			return false;
		old = stream->memory;
		stream->memory = memory;
		stream->head = head;
	}
	uint8_t *chunk = stream->memory + stream->head;
	if (left > 0)
		memmove(chunk - left, stream->at, left);
	stream->at = chunk - left;
	stream->end = chunk;
	free(old);
	return true;
}

static int open_path(const char *path)
{
	if (strcmp(path, "-") == 0)
		return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	/* Not blocking: a FIFO is waited for below, where poll() says that it has a writer. */
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static void look_at(struct stream *stream)
{
	struct stat about;
	bool regular = fstat(stream->fd, &about) == 0 && S_ISREG(about.st_mode);
	stream->may_block = !regular;
	stream->size = regular ? (uint64_t)about.st_size : 0;
	posix_fadvise(stream->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
}

struct stream *stream_open(struct weir_self *self, const char *path, size_t chunk)
{
	struct stream *stream = calloc(1, sizeof(*stream));
	if (!stream) {
		weir_error(self, "files", "%s: out of memory", path);
		return NULL;
	}
	stream->self = self;
	stream->path = path;
	stream->chunk = chunk;
	stream->reader = weir_reader_new(add_interface, warn, stream);
	stream->fd = open_path(path);
	if (stream->fd < 0 || !stream->reader || !make_room(stream)) {
		weir_error(self, "files", "%s: %s", path, strerror(errno));
		stream_free(stream);
		return NULL;
	}
	look_at(stream);
	return stream;
}

void stream_free(struct stream *stream)
{
	if (!stream)
		return;
	if (stream->fd >= 0)
		close(stream->fd);
	weir_reader_free(stream->reader);
	free(stream->memory);
	free(stream);
}

/* Reads the next chunk: bytes, 0 at the end, -1 with errno; EAGAIN: nothing within the timeout. */
static ssize_t read_chunk(struct stream *stream, int timeout_ms)
{
	if (stream->may_block) {
		struct pollfd ready = {.fd = stream->fd, .events = POLLIN};
		int n = poll(&ready, 1, timeout_ms);
		if (n <= 0) {
			errno = n < 0 ? errno : EAGAIN;
			return -1;
		}
	}
	return read(stream->fd, stream->end, stream->chunk);
}

/* 1: there are new bytes, or the end is known; 0: nothing within the timeout; STREAM_FAILED. */
static int refill(struct stream *stream, int timeout_ms)
{
	if (!make_room(stream)) {
		weir_error(stream->self, NULL, "%s: out of memory", stream->path);
		return STREAM_FAILED;
	}
	ssize_t got = read_chunk(stream, timeout_ms);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got < 0) {
		weir_error(stream->self, NULL, "%s: %s", stream->path, strerror(errno));
		return STREAM_FAILED;
	}
	stream->ended = got == 0;
	stream->end += got;
	stream->bytes_read += (uint64_t)got;
	return 1;
}

/* The packets of what is in memory; *ret_n is 0 if that needs more. */
static enum weir_reader_status parse(struct stream *stream, struct weir_packet *packets,
				     unsigned max, unsigned *ret_n)
{
	size_t used, need;
	enum weir_reader_status status = weir_reader_read(stream->reader, stream->at,
							  (size_t)(stream->end - stream->at),
							  packets, max, ret_n, &used, &need);
	stream->at += used;
	return status;
}

static void tell_torn(struct stream *stream, size_t left)
{
	stream->torn_bytes = left;
	stream->at = stream->end;
	stream->warnings++;
	weir_log(stream->self, WEIR_WARN,
		 "%s: truncated: it ends within a record, whose %zu bytes are left out",
		 stream->path, left);
	weir_event(stream->self, "truncated", "%s: %zu bytes", stream->path, left);
}

static int finish(struct stream *stream)
{
	size_t left = (size_t)(stream->end - stream->at);
	bool torn = weir_reader_end(stream->reader, left);
	if (torn && !stream->quiet)
		tell_torn(stream, left);
	return weir_reader_error(stream->reader) ? STREAM_FAILED : STREAM_END;
}

static int fail(struct stream *stream)
{
	weir_error(stream->self, NULL, "%s: %s", stream->path, weir_reader_error(stream->reader));
	return STREAM_FAILED;
}

int stream_read(struct stream *stream, struct weir_packet *packets, unsigned max, int timeout_ms)
{
	unsigned n;
	bool tried = false;
	for (;;) {
		enum weir_reader_status status = parse(stream, packets, max, &n);
		if (n > 0)
			return (int)n;
		if (status == WEIR_READER_BAD || (stream->ended && finish(stream) == STREAM_FAILED))
			return fail(stream);
		if (stream->ended)
			return STREAM_END;
		if (tried)
			return 0;
		tried = true;
		int got = refill(stream, timeout_ms);
		if (got <= 0)
			return got;
	}
}

void stream_probe(struct stream *stream)
{
	struct weir_packet packets[WEIR_BATCH];
	unsigned n;
	stream->quiet = true;
	do {
		while (parse(stream, packets, WEIR_BATCH, &n) == WEIR_READER_OK &&
		       stream->at < stream->end)
			;
		if (stream->ended)
			finish(stream);
	} while (!stream->ended && !weir_reader_error(stream->reader) &&
		 stream->bytes_read < stream->chunk && refill(stream, 0) > 0);
}

/* Whether enough is known, or no more can be. */
static bool parse_header(struct stream *stream)
{
	unsigned n;
	enum weir_reader_status status = parse(stream, NULL, 0, &n);
	bool at_packet = status == WEIR_READER_OK && stream->at < stream->end;
	if (stream->ended)
		finish(stream);
	return stream->ended || at_packet || stream->interfaces > 0 || status == WEIR_READER_BAD;
}

void stream_read_header(struct stream *stream)
{
	int64_t until_ns = pace_clock() + HEADER_WAIT_NS, left_ns = HEADER_WAIT_NS;
	while (left_ns > 0 && !parse_header(stream)) {
		if (refill(stream, (int)(left_ns / NS_PER_MS)) < 0)
			return;
		left_ns = until_ns - pace_clock();
	}
}

const char *stream_refusal(const struct stream *stream)
{
	return weir_reader_is_open(stream->reader) ? NULL : weir_reader_error(stream->reader);
}

bool stream_is_foreign(const struct stream *stream)
{
	const char *format = weir_reader_format(stream->reader);
	return !format || strncmp(format, "pcap", 4) != 0;
}
