/*
 * outlet.c: writing to a pipe without being held up by it.
 *
 * Standard output may be shared with the shell and other programs, so its flags are left alone: a
 * pipe is opened once more, which gives a description of our own that does not block.
 */
#include "chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS     1000000LL
#define PIPE_BYTES    (1 << 20)
#define CHUNKS        4u
#define OPEN_RETRY_MS 20
#define READ_LOOK_MS  20 /* how much of the pipe has been read: nothing else tells */
#define CLOSE_LOOK_MS 50
#define LOST_GRACE_NS (1000 * NS_PER_MS) /* of a program that has closed its input */

static int64_t clock_mono_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

static void set_flag(int *flag, int value)
{
	__atomic_store_n(flag, value, __ATOMIC_RELAXED);
}

/* ---- Opening ---- */

static bool open_stdout(struct outlet *outlet, struct weir_self *self)
{
	struct stat status;

	if (isatty(STDOUT_FILENO)) {
		weir_error(self, "to",
			   "standard output is a terminal: add a reader, as in | tshark -r -");
		return false;
	}
	if (fstat(STDOUT_FILENO, &status) != 0) {
		weir_error(self, "to", "standard output: %s", strerror(errno));
		return false;
	}
	outlet->is_socket = S_ISSOCK(status.st_mode);
	outlet->is_pipe = S_ISFIFO(status.st_mode);
	if (outlet->is_pipe)
		outlet->fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (outlet->fd < 0) { /* the pipe may be another user's */
		outlet->may_block = outlet->is_pipe;
		outlet->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	}
	if (outlet->fd < 0)
		weir_error(self, "to", "standard output: %s", strerror(errno));
	return outlet->fd >= 0;
}

static bool check_fifo(struct weir_self *self, const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0)
		weir_error(self, "to", "%s: %s%s", path, strerror(errno),
			   errno == ENOENT ? "; make it with mkfifo" : "");
	else if (!S_ISFIFO(status.st_mode))
		weir_error(self, "to", "%s is no FIFO; for a file use pcap", path);
	else if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
		weir_error(self, "to", "%s: %s", path, strerror(errno));
	else
		return true;
	return false;
}

static bool open_reader(struct outlet *outlet, const struct outlet_reader *reader)
{
	struct weir_self *self = outlet->self;

	if (reader->exec) {
		outlet->is_child = outlet->is_pipe = true;
		return child_prepare(&outlet->child, self, reader->exec);
	}
	if (strcmp(reader->to, "-") == 0)
		return open_stdout(outlet, self);
	outlet->is_pipe = true;
	outlet->path = weir_pattern_has(reader->to, "lane")
			       ? weir_expand(self, reader->to, 0, false, NULL, 0)
			       : strdup(reader->to);
	if (outlet->path)
		return check_fifo(self, outlet->path);
	weir_error(self, "to", "%s is no pattern", reader->to);
	return false;
}

bool outlet_open(struct outlet *outlet, struct weir_self *self, const struct outlet_reader *reader)
{
	pthread_mutex_init(&outlet->lock, NULL);
	outlet->self = self;
	outlet->newest_end = &outlet->oldest;
	outlet->fd = outlet->child.pidfd = -1;
	outlet->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (outlet->wake_fd >= 0)
		return open_reader(outlet, reader);
	weir_error(self, NULL, "eventfd: %s", strerror(errno));
	return false;
}

bool outlet_make_chunks(struct outlet *outlet, size_t bytes)
{
	outlet->chunk_bytes = bytes / CHUNKS;
	outlet->chunks = calloc(CHUNKS, sizeof(*outlet->chunks));
	for (unsigned i = 0; outlet->chunks && i < CHUNKS; i++) {
		struct chunk *chunk = &outlet->chunks[i];

		chunk->bytes = malloc(outlet->chunk_bytes);
		if (!chunk->bytes)
			return false;
		chunk->next = outlet->free;
		outlet->free = chunk;
	}
	return outlet->chunks != NULL;
}

/* Once it has a reader; else -1.  Whoever may write to its folder may have put something else in
 * its place since it was checked. */
static int open_fifo(struct outlet *outlet)
{
	struct stat status;
	const char *why = NULL;
	int fd = open(outlet->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 && errno != ENXIO)
		why = strerror(errno);
	else if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)))
		why = "it is no FIFO any more";
	if (why && !outlet->has_said_why)
		weir_log(outlet->self, WEIR_WARN, "%s: %s; waiting for a FIFO that has a reader",
			 outlet->path, why);
	outlet->has_said_why = why != NULL;
	if (!why || fd < 0)
		return fd;
	close(fd);
	return -1;
}

/* A program is started once it is time. */
static void try_open(struct outlet *outlet)
{
	if (outlet->is_child)
		outlet->fd = child_start(&outlet->child, clock_mono_ns());
	else if (outlet->fd < 0)
		outlet->fd = open_fifo(outlet);
	if (outlet->fd < 0)
		return;
	/* A refusal only means more waiting. */
	(void)fcntl(outlet->fd, F_SETPIPE_SZ, PIPE_BYTES);
	set_flag(&outlet->reading, 1);
	if (!outlet->is_child)
		weir_event(outlet->self, "consumer-came", "%s", outlet->path ? outlet->path : "-");
}

/* ---- Chunks ---- */

static void wake(struct outlet *outlet)
{
	uint64_t one = 1;

	(void)!write(outlet->wake_fd, &one, sizeof(one));
}

struct chunk *outlet_take(struct outlet *outlet)
{
	struct chunk *chunk;

	pthread_mutex_lock(&outlet->lock);
	chunk = outlet->free;
	if (chunk) {
		outlet->free = chunk->next;
		*chunk = (struct chunk){
			.bytes = chunk->bytes,
			.generation = __atomic_load_n(&outlet->generation, __ATOMIC_RELAXED)};
	}
	pthread_mutex_unlock(&outlet->lock);
	return chunk;
}

void outlet_publish(struct outlet *outlet, struct chunk *chunk, bool closed)
{
	pthread_mutex_lock(&outlet->lock);
	if (!chunk->listed) {
		chunk->listed = true;
		*outlet->newest_end = chunk;
		outlet->newest_end = &chunk->next;
	}
	chunk->closed = closed;
	chunk->ready = chunk->len;
	chunk->ready_sum = chunk->sum;
	pthread_mutex_unlock(&outlet->lock);
	wake(outlet);
}

bool outlet_is_idle(struct outlet *outlet)
{
	size_t ready;

	return chunks_next(outlet, &ready) == NULL;
}

/* ---- The thread ---- */

static uint64_t unread_bytes(const struct outlet *outlet, int fd)
{
	int bytes = 0;

	if (!outlet->is_pipe || fd < 0 || ioctl(fd, FIONREAD, &bytes) != 0 || bytes < 0)
		return 0;
	return (uint64_t)bytes < outlet->written ? (uint64_t)bytes : outlet->written;
}

static void close_reader(struct outlet *outlet)
{
	close(outlet->fd);
	outlet->fd = -1;
	set_flag(&outlet->reading, 0);
}

static void lose_child(struct outlet *outlet)
{
	uint64_t unread = unread_bytes(outlet, outlet->fd);

	close_reader(outlet);
	chunks_bury(outlet, unread);
	child_end(&outlet->child, LOST_GRACE_NS);
}

static void lose_reader(struct outlet *outlet, int error)
{
	if (outlet->is_child) {
		lose_child(outlet);
		return;
	}
	if (error == EPIPE || error == ECONNRESET)
		weir_log(outlet->self, WEIR_INFORM, "the reader has gone");
	else
		weir_log(outlet->self, WEIR_WARN, "the reader is given up: %s", strerror(error));
	weir_event(outlet->self, "consumer-went", "%s", outlet->path ? outlet->path : "-");
	set_flag(&outlet->gone, 1);
	chunks_bury(outlet, unread_bytes(outlet, outlet->fd));
	if (__atomic_sub_fetch(outlet->readers, 1, __ATOMIC_RELAXED) == 0)
		weir_finish(outlet->self);
}

/* How much of it can be written without blocking: a pipe with any room at all has that much, see
 * pipe(7). */
static size_t room_for(const struct outlet *outlet, size_t len)
{
	struct pollfd fd = {.fd = outlet->fd, .events = POLLOUT};

	if (!outlet->may_block)
		return len;
	if (poll(&fd, 1, 0) <= 0)
		return 0;
	return len < PIPE_BUF ? len : PIPE_BUF;
}

static void write_some(struct outlet *outlet, struct chunk *chunk, size_t ready)
{
	const uint8_t *from = chunk->bytes + chunk->done;
	size_t len = room_for(outlet, ready - chunk->done);

	if (len == 0)
		return;
	ssize_t n = outlet->is_socket ? send(outlet->fd, from, len, MSG_DONTWAIT)
				      : write(outlet->fd, from, len);

	if (n >= 0) {
		if (chunk->done == 0)
			chunk->start = outlet->written;
		outlet->progress_ns = clock_mono_ns();
		outlet->written += (uint64_t)n;
		weir_count(outlet->self, STREAM_BYTES, (uint64_t)n);
		pthread_mutex_lock(&outlet->lock);
		chunk->done += (size_t)n;
		pthread_mutex_unlock(&outlet->lock);
	} else if (errno != EAGAIN && errno != EINTR) {
		lose_reader(outlet, errno);
	}
}

static int look_again_ms(const struct outlet *outlet, uint64_t unread)
{
	if (!outlet_flag(&outlet->reading) && !outlet_flag(&outlet->gone))
		return OPEN_RETRY_MS;
	if (unread > 0)
		return READ_LOOK_MS;
	return outlet_flag(&outlet->closing) ? CLOSE_LOOK_MS : -1;
}

/* Until the lane has something, the reader takes something, or it is time to look again. */
static void wait_for_both(struct outlet *outlet, bool want_room, uint64_t unread)
{
	bool gone = outlet_flag(&outlet->gone);
	struct pollfd fds[] = {
		{.fd = outlet->wake_fd, .events = POLLIN},
		{.fd = gone ? -1 : outlet->fd, .events = want_room ? POLLOUT : 0},
		{.fd = outlet->child.pidfd, .events = POLLIN},
	};
	uint64_t count;

	if (poll(fds, 3, look_again_ms(outlet, unread)) <= 0)
		return;
	if (fds[0].revents)
		(void)!read(outlet->wake_fd, &count, sizeof(count));
	if (fds[1].revents & (POLLERR | POLLNVAL))
		lose_reader(outlet, EPIPE);
	else if (fds[2].revents && child_wait(&outlet->child, 0) && outlet->fd >= 0)
		lose_child(outlet);
}

/* Nothing is left to do, or the reader has taken nothing for too long. */
static bool is_over(struct outlet *outlet, bool more)
{
	int64_t now_ns = clock_mono_ns();

	if (!outlet_flag(&outlet->closing))
		return false;
	if (!outlet->closing_ns)
		outlet->closing_ns = now_ns;
	return !more || weir_abandoned(outlet->self) ||
	       (now_ns - outlet->progress_ns > outlet->linger_ns &&
		now_ns - outlet->closing_ns > outlet->linger_ns);
}

/* The end of its input is the end of the stream; what it leaves unread then is seen from the
 * reading end, opened once more. */
static void end_child(struct outlet *outlet)
{
	char name[32];
	int reading;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", outlet->fd);
	reading = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	close_reader(outlet);
	child_end(&outlet->child, outlet->grace_ns);
	chunks_bury(outlet, unread_bytes(outlet, reading));
	if (reading >= 0)
		close(reading);
}

static void finish(struct outlet *outlet)
{
	bool reading = outlet_flag(&outlet->reading);

	chunks_cut(outlet, reading ? READER_SLOW : NO_READER);
	if (outlet->is_child && outlet->fd >= 0)
		end_child(outlet);
	/* What is in the pipe is the reader's. */
	chunks_settle_read(outlet, 0);
}

static void *run(void *user)
{
	struct outlet *outlet = user;
	struct chunk *chunk = NULL;
	uint64_t unread = 0;
	size_t ready;

	if (outlet->is_child)
		child_drop_capabilities();
	do {
		wait_for_both(outlet, chunk != NULL, unread);
		chunk = chunks_next(outlet, &ready);
		if (outlet_flag(&outlet->gone))
			chunks_bury(outlet, 0);
		else if (!outlet_flag(&outlet->reading))
			try_open(outlet);
		else if (chunk)
			write_some(outlet, chunk, ready);
		unread = unread_bytes(outlet, outlet->fd);
		chunks_settle_read(outlet, unread);
		chunk = chunks_next(outlet, &ready);
	} while (!is_over(outlet, chunk != NULL));
	finish(outlet);
	return NULL;
}

bool outlet_start(struct outlet *outlet)
{
	sigset_t all, before;

	if (outlet->path && !check_fifo(outlet->self, outlet->path))
		return false;
	/* Signals are the main thread's, and SIGPIPE nobody's: EPIPE says the same. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	outlet->started = pthread_create(&outlet->thread, NULL, run, outlet) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!outlet->started)
		weir_error(outlet->self, NULL, "its thread cannot be started");
	else
		pthread_setname_np(outlet->thread, "weir-pipe");
	return outlet->started;
}

void outlet_end(struct outlet *outlet)
{
	set_flag(&outlet->closing, 1);
	if (outlet->started)
		wake(outlet);
}

void outlet_clear(struct outlet *outlet)
{
	if (outlet->started)
		pthread_join(outlet->thread, NULL);
	outlet->started = false;
	if (outlet->fd >= 0)
		close(outlet->fd);
	if (outlet->wake_fd >= 0)
		close(outlet->wake_fd);
	outlet->fd = outlet->wake_fd = -1;
	for (unsigned i = 0; outlet->chunks && i < CHUNKS; i++)
		free(outlet->chunks[i].bytes);
	free(outlet->chunks);
	outlet->chunks = NULL;
	child_free(&outlet->child);
	free(outlet->path);
	outlet->path = NULL;
}
