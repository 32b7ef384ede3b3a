/*
 * outlet.c: writing to a pipe without being held up by it.
 *
 * Standard output may be shared with the shell and other programs, so its flags are left alone: a
 * pipe is opened once more, which gives a description of our own that does not block.
 */
#include "outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS     1000000LL
#define PIPE_BYTES    (1 << 20)
#define CHUNKS        4u
#define OPEN_RETRY_MS 20
#define CLOSE_LOOK_MS 50

static int64_t clock_mono_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

static void set_flag(int *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELAXED);
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
	if (S_ISFIFO(status.st_mode))
		outlet->fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (outlet->fd < 0)
		outlet->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
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

bool outlet_open(struct outlet *outlet, struct weir_self *self, const char *to)
{
	pthread_mutex_init(&outlet->lock, NULL);
	outlet->newest_end = &outlet->oldest;
	outlet->fd = -1;
	outlet->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (outlet->wake_fd < 0) {
		weir_error(self, NULL, "eventfd: %s", strerror(errno));
		return false;
	}
	if (strcmp(to, "-") == 0)
		return open_stdout(outlet, self);
	outlet->path = to;
	return check_fifo(self, to);
}

bool outlet_make_chunks(struct outlet *outlet, struct weir_self *lane, size_t bytes)
{
	outlet->self = lane;
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

/* A FIFO can be opened once it has a reader. */
static void try_open(struct outlet *outlet)
{
	if (outlet->fd < 0)
		outlet->fd = open(outlet->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (outlet->fd < 0)
		return;
	/* A refusal only means more waiting. */
	(void)fcntl(outlet->fd, F_SETPIPE_SZ, PIPE_BYTES);
	set_flag(&outlet->reading);
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
	if (chunk)
		outlet->free = chunk->next;
	pthread_mutex_unlock(&outlet->lock);
	if (chunk) {
		chunk->len = chunk->header_len = 0;
		chunk->sum = (struct weir_extent){0};
	}
	return chunk;
}

void outlet_submit(struct outlet *outlet, struct chunk *chunk)
{
	chunk->next = NULL;
	pthread_mutex_lock(&outlet->lock);
	*outlet->newest_end = chunk;
	outlet->newest_end = &chunk->next;
	pthread_mutex_unlock(&outlet->lock);
	wake(outlet);
}

static struct chunk *oldest(struct outlet *outlet)
{
	struct chunk *chunk;

	pthread_mutex_lock(&outlet->lock);
	chunk = outlet->oldest;
	pthread_mutex_unlock(&outlet->lock);
	return chunk;
}

bool outlet_is_idle(struct outlet *outlet)
{
	return oldest(outlet) == NULL;
}

/* The oldest chunk is done with, of which `stored` has been written. */
static void give_back(struct outlet *outlet, const struct weir_extent *stored, enum outcome rest)
{
	struct chunk *chunk = outlet->oldest;

	if (stored->packets > 0)
		weir_settle(outlet->self, WRITTEN, stored->packets, stored->packet_bytes);
	if (chunk->sum.packets > stored->packets)
		weir_settle(outlet->self, rest, chunk->sum.packets - stored->packets,
			    chunk->sum.packet_bytes - stored->packet_bytes);
	pthread_mutex_lock(&outlet->lock);
	outlet->oldest = chunk->next;
	if (!outlet->oldest)
		outlet->newest_end = &outlet->oldest;
	chunk->next = outlet->free;
	outlet->free = chunk;
	pthread_mutex_unlock(&outlet->lock);
	outlet->done = 0;
	weir_notify(outlet->self);
}

/* What has not been written will not be. */
static void give_up(struct outlet *outlet, enum outcome outcome)
{
	struct chunk *chunk;

	while ((chunk = oldest(outlet))) {
		struct weir_extent stored = {0};

		weir_capfile_walk(chunk->bytes, chunk->header_len, outlet->done, outlet->pcapng,
				  &stored);
		give_back(outlet, &stored, outcome);
	}
}

/* ---- The thread ---- */

static void lose_reader(struct outlet *outlet, int error)
{
	if (error == EPIPE || error == ECONNRESET)
		weir_log(outlet->self, WEIR_INFORM, "the reader has gone");
	else
		weir_log(outlet->self, WEIR_WARN, "the reader is given up: %s", strerror(error));
	weir_event(outlet->self, "consumer-went", "%s", outlet->path ? outlet->path : "-");
	set_flag(&outlet->gone);
	weir_finish(outlet->self);
}

static void write_some(struct outlet *outlet, struct chunk *chunk)
{
	const uint8_t *from = chunk->bytes + outlet->done;
	size_t len = chunk->len - outlet->done;
	ssize_t n = outlet->is_socket ? send(outlet->fd, from, len, MSG_DONTWAIT)
				      : write(outlet->fd, from, len);

	if (n >= 0) {
		outlet->progress_ns = clock_mono_ns();
		outlet->done += (size_t)n;
		weir_count(outlet->self, STREAM_BYTES, (uint64_t)n);
		if (outlet->done == chunk->len)
			give_back(outlet, &chunk->sum, WRITTEN);
	} else if (errno != EAGAIN && errno != EINTR) {
		lose_reader(outlet, errno);
	}
}

/* Until the lane has something, the reader takes something, or it is time to look again. */
static void wait_for_both(struct outlet *outlet, const struct chunk *chunk)
{
	bool gone = outlet_flag(&outlet->gone);
	int timeout_ms = -1;
	struct pollfd fds[] = {
		{.fd = outlet->wake_fd, .events = POLLIN},
		{.fd = gone ? -1 : outlet->fd, .events = chunk ? POLLOUT : 0},
	};
	uint64_t count;

	if (outlet_flag(&outlet->closing))
		timeout_ms = CLOSE_LOOK_MS;
	if (!outlet_flag(&outlet->reading))
		timeout_ms = OPEN_RETRY_MS;
	if (poll(fds, 2, timeout_ms) <= 0)
		return;
	if (fds[0].revents)
		(void)!read(outlet->wake_fd, &count, sizeof(count));
	if (fds[1].revents & (POLLERR | POLLNVAL))
		lose_reader(outlet, EPIPE);
}

/* Nothing is left to do, or the reader has taken nothing for too long. */
static bool is_over(struct outlet *outlet, const struct chunk *chunk)
{
	int64_t now_ns = clock_mono_ns();

	if (!outlet_flag(&outlet->closing))
		return false;
	if (!outlet->closing_ns)
		outlet->closing_ns = now_ns;
	return !chunk || (now_ns - outlet->progress_ns > outlet->linger_ns &&
			  now_ns - outlet->closing_ns > outlet->linger_ns);
}

static void *run(void *user)
{
	struct outlet *outlet = user;
	struct chunk *chunk = NULL;

	do {
		wait_for_both(outlet, chunk);
		chunk = oldest(outlet);
		if (outlet_flag(&outlet->gone))
			give_up(outlet, READER_GONE);
		else if (!outlet_flag(&outlet->reading))
			try_open(outlet);
		else if (chunk)
			write_some(outlet, chunk);
		chunk = oldest(outlet);
	} while (!is_over(outlet, chunk));
	if (chunk)
		give_up(outlet, outlet_flag(&outlet->reading) ? READER_SLOW : NO_READER);
	return NULL;
}

bool outlet_start(struct outlet *outlet, struct weir_self *self)
{
	sigset_t all, before;

	if (outlet->path && !check_fifo(self, outlet->path))
		return false;
	/* Signals are the main thread's, and SIGPIPE nobody's: EPIPE says the same. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	outlet->started = pthread_create(&outlet->thread, NULL, run, outlet) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!outlet->started)
		weir_error(self, NULL, "its thread cannot be started");
	else
		pthread_setname_np(outlet->thread, "weir-pipe");
	return outlet->started;
}

void outlet_clear(struct outlet *outlet)
{
	if (outlet->started) {
		set_flag(&outlet->closing);
		wake(outlet);
		pthread_join(outlet->thread, NULL);
		outlet->started = false;
	}
	if (outlet->fd >= 0)
		close(outlet->fd);
	if (outlet->wake_fd >= 0)
		close(outlet->wake_fd);
	outlet->fd = outlet->wake_fd = -1;
	for (unsigned i = 0; outlet->chunks && i < CHUNKS; i++)
		free(outlet->chunks[i].bytes);
	free(outlet->chunks);
	outlet->chunks = NULL;
}
