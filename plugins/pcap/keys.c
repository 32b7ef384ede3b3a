/*
 * keys.c: following a key log.
 *
 * It is read every 10 ms: keys are worth most before the packets that they belong to, and a look
 * costs a microsecond.  A file that has been replaced or cut is read from its start.
 */
#include "keys.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_NS      10000000LL
#define FIND_NS      1000000000LL
#define PIECE_BYTES  65536u
#define LINE_MAX_LEN 1024u

struct keys {
	char *path;
	int fd; /* -1: not there */
	off_t at;
	int64_t look_ns, find_ns; /* CLOCK_MONOTONIC: not before */
	char piece[PIECE_BYTES];
	size_t rest; /* bytes of piece that are no whole line yet */

	pthread_mutex_t lock;
	uint8_t text[2 * KEYS_BYTES_MAX]; /* under lock */
	size_t len;                       /* under lock */
	uint64_t end;                     /* of text, counted from the first byte ever; atomic */
};

bool keys_is_line(const char *line, size_t len)
{
	static const char label[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	static const char hex[] = "0123456789abcdefABCDEF";
	unsigned words = 0;
	size_t at = 0;

	if (len > LINE_MAX_LEN)
		return false;
	for (; words < 3; words++) {
		size_t start = at;

		while (at < len && line[at] && strchr(words == 0 ? label : hex, line[at]))
			at++;
		if (at == start)
			return false;
		if (words < 2 && (at == len || line[at++] != ' '))
			return false;
	}
	return at == len;
}

/* ---- The writer ---- */

struct keys *keys_new(const char *path)
{
	struct keys *keys = calloc(1, sizeof(*keys));

	if (!keys)
		return NULL;
	pthread_mutex_init(&keys->lock, NULL);
	keys->path = strdup(path);
	keys->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (keys->path)
		return keys;
	keys_free(keys);
	return NULL;
}

void keys_free(struct keys *keys)
{
	if (!keys)
		return;
	if (keys->fd >= 0)
		close(keys->fd);
	pthread_mutex_destroy(&keys->lock);
	free(keys->path);
	free(keys);
}

/* Another file may have the name now. */
static void find(struct keys *keys)
{
	struct stat is, was;
	int fd;

	if (keys->fd >= 0 && stat(keys->path, &is) == 0 && fstat(keys->fd, &was) == 0 &&
	    is.st_ino == was.st_ino && is.st_dev == was.st_dev && is.st_size >= keys->at)
		return;
	fd = open(keys->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	if (keys->fd >= 0)
		close(keys->fd);
	keys->fd = fd;
	keys->at = 0;
	keys->rest = 0;
}

/* Where the first line starts of which `max` bytes or fewer follow. */
static size_t newest(const uint8_t *text, size_t len, size_t max)
{
	const uint8_t *end;

	if (len <= max)
		return 0;
	end = memchr(text + len - max - 1, '\n', max + 1);
	return end ? (size_t)(end - text) + 1 : len;
}

static void add_line(struct keys *keys, const char *line, size_t len)
{
	pthread_mutex_lock(&keys->lock);
	if (keys->len + len + 1 > sizeof(keys->text)) {
		size_t start = newest(keys->text, keys->len, KEYS_BYTES_MAX);

		keys->len -= start;
		memmove(keys->text, keys->text + start, keys->len);
	}
	memcpy(keys->text + keys->len, line, len);
	keys->text[keys->len + len] = '\n';
	keys->len += len + 1;
	__atomic_store_n(&keys->end, keys->end + len + 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&keys->lock);
}

static void add_lines(struct keys *keys, size_t len)
{
	size_t start = 0;
	const char *end;

	while ((end = memchr(keys->piece + start, '\n', len - start))) {
		size_t line_len = (size_t)(end - keys->piece) - start;
		size_t is_dos = line_len > 0 && end[-1] == '\r';

		if (keys_is_line(keys->piece + start, line_len - is_dos))
			add_line(keys, keys->piece + start, line_len - is_dos);
		start += line_len + 1;
	}
	keys->rest = len - start;
	memmove(keys->piece, keys->piece + start, keys->rest);
	/* A line that fills the whole piece is none. */
	if (keys->rest == sizeof(keys->piece))
		keys->rest = 0;
}

void keys_read(struct keys *keys, int64_t mono_ns)
{
	ssize_t n;

	if (mono_ns < keys->look_ns)
		return;
	keys->look_ns = mono_ns + LOOK_NS;
	if (mono_ns >= keys->find_ns) {
		keys->find_ns = mono_ns + FIND_NS;
		find(keys);
	}
	while (keys->fd >= 0 && (n = pread(keys->fd, keys->piece + keys->rest,
					   sizeof(keys->piece) - keys->rest, keys->at)) > 0) {
		keys->at += n;
		add_lines(keys, keys->rest + (size_t)n);
	}
}

/* ---- Lanes ---- */

uint64_t keys_end(const struct keys *keys)
{
	return __atomic_load_n(&keys->end, __ATOMIC_ACQUIRE);
}

size_t keys_take(struct keys *keys, uint64_t *from, uint8_t *to, size_t room, unsigned *ret_lines)
{
	size_t start, len;

	pthread_mutex_lock(&keys->lock);
	start = keys->end - *from < keys->len ? keys->len - (size_t)(keys->end - *from) : 0;
	start += newest(keys->text + start, keys->len - start, room);
	len = keys->len - start;
	memcpy(to, keys->text + start, len);
	*from = keys->end;
	pthread_mutex_unlock(&keys->lock);
	*ret_lines = 0;
	for (size_t i = 0; i < len; i++)
		*ret_lines += to[i] == '\n';
	return len;
}
