/*
 * writer.c: the writer's thread.
 *
 * One thread with pwrite() reaches the speed of the disk (io_uring was no faster, and containers
 * often refuse it).  The lock is taken once a block.
 */
#include "writer.h"
#include "command.h"
#include "keep.h"
#include "keys.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define KEEPER_INTERVAL_NS  1000000000LL
#define COMMAND_INTERVAL_NS 50000000LL
#define KEYS_INTERVAL_NS    10000000LL

/* ---- Blocks ---- */

static uint32_t block_bytes_for(uint64_t pool_bytes)
{
	uint64_t bytes = pool_bytes / 8;

	if (bytes > BLOCK_BYTES_MAX)
		bytes = BLOCK_BYTES_MAX;
	if (bytes < BLOCK_BYTES_MIN)
		bytes = BLOCK_BYTES_MIN;
	return (uint32_t)bytes & ~(BLOCK_ALIGNMENT - 1);
}

bool pool_init(struct pool *pool, struct weir_self *self, uint64_t bytes)
{
	pool->self = self;
	pool->block_bytes = block_bytes_for(bytes);
	pool->n_blocks = (unsigned)(bytes / pool->block_bytes);
	pool->blocks = calloc(pool->n_blocks, sizeof(*pool->blocks));
	pool->memory = mmap(NULL, (size_t)pool->n_blocks * pool->block_bytes,
			    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pool->memory == MAP_FAILED)
		pool->memory = NULL;
	if (!pool->blocks || !pool->memory)
		return false;
	/* Fewer pages to pin for each write: 1.5 GB took 0.7 s instead of 1.0 s. */
	madvise(pool->memory, (size_t)pool->n_blocks * pool->block_bytes, MADV_HUGEPAGE);
	for (unsigned i = pool->n_blocks; i-- > 0;) {
		struct block *block = &pool->blocks[i];

		block->bytes = pool->memory + (size_t)i * pool->block_bytes;
		block->pool = pool;
		block->next = pool->free;
		pool->free = block;
	}
	return true;
}

void pool_clear(struct pool *pool)
{
	if (pool->memory)
		munmap(pool->memory, (size_t)pool->n_blocks * pool->block_bytes);
	free(pool->blocks);
	*pool = (struct pool){0};
}

struct block *writer_take(struct writer *writer, struct pool *pool)
{
	struct block *block;

	pthread_mutex_lock(&writer->lock);
	block = pool->free;
	if (block)
		pool->free = block->next;
	pthread_mutex_unlock(&writer->lock);
	return block;
}

static void give_back(struct writer *writer, struct block *block)
{
	struct pool *pool = block->pool;

	pthread_mutex_lock(&writer->lock);
	block->next = pool->free;
	pool->free = block;
	pthread_mutex_unlock(&writer->lock);
	weir_notify(pool->self);
}

/* ---- The thread ---- */

void writer_submit(struct writer *writer, struct stretch *stretch)
{
	stretch->next = NULL;
	pthread_mutex_lock(&writer->lock);
	*writer->newest_end = stretch;
	writer->newest_end = &stretch->next;
	pthread_cond_signal(&writer->submitted);
	pthread_mutex_unlock(&writer->lock);
}

/* How long the thread may sleep; 0: until something is submitted. */
static int64_t interval_ns(const struct site *site)
{
	if (site->keys)
		return KEYS_INTERVAL_NS;
	if (site->commands && commands_pending(site->commands))
		return COMMAND_INTERVAL_NS;
	return site->keeper ? KEEPER_INTERVAL_NS : 0;
}

static void wait_a_while(struct writer *writer)
{
	int64_t sleep_ns = interval_ns(writer->site);
	int64_t until_ns = clock_mono_ns() + sleep_ns;
	struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};

	if (sleep_ns)
		pthread_cond_timedwait(&writer->submitted, &writer->lock, &until);
	else
		pthread_cond_wait(&writer->submitted, &writer->lock);
}

/* The next stretch.  NULL: none now, and with *ret_stop never again. */
static struct stretch *next_stretch(struct writer *writer, bool may_wait, bool *ret_stop)
{
	struct stretch *stretch;

	pthread_mutex_lock(&writer->lock);
	if (may_wait && !writer->oldest && !writer->stop)
		wait_a_while(writer);
	stretch = writer->oldest;
	if (stretch)
		writer->oldest = stretch->next;
	if (!writer->oldest)
		writer->newest_end = &writer->oldest;
	*ret_stop = writer->stop && !stretch;
	pthread_mutex_unlock(&writer->lock);
	return stretch;
}

static void serve(struct writer *writer, struct stretch *stretch)
{
	struct block *block = stretch->block;
	struct file *file = stretch->file;

	file_write(writer->site, file, stretch);
	if (stretch->ends_file) {
		file_finish(writer->site, file, stretch->namer);
		file_free(file);
	}
	if (stretch->gives_back)
		give_back(writer, block);
	else
		__atomic_store_n(&block->flushing, 0, __ATOMIC_RELEASE);
}

/* What is to do besides writing, bit by bit; true: there is more. */
static bool work(const struct site *site)
{
	if (site->commands)
		commands_work(site->commands);
	if (site->keys)
		keys_read(site->keys, clock_mono_ns());
	return site->keeper && keeper_work(site->keeper);
}

static void *run(void *user)
{
	struct writer *writer = user;
	bool busy = false, stop = false;

	while (!stop) {
		struct stretch *stretch = next_stretch(writer, !busy, &stop);

		if (stretch)
			serve(writer, stretch);
		busy = work(writer->site);
	}
	if (writer->site->commands)
		commands_finish(writer->site->commands);
	return NULL;
}

void writer_init(struct writer *writer, struct site *site)
{
	pthread_condattr_t monotonic;

	writer->site = site;
	writer->newest_end = &writer->oldest;
	pthread_mutex_init(&writer->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&writer->submitted, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

bool writer_start(struct writer *writer)
{
	sigset_t all, before;

	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	writer->started = pthread_create(&writer->thread, NULL, run, writer) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (writer->started)
		pthread_setname_np(writer->thread, "weir-writer");
	return writer->started;
}

void writer_stop(struct writer *writer)
{
	if (!writer->started)
		return;
	pthread_mutex_lock(&writer->lock);
	writer->stop = true;
	pthread_cond_signal(&writer->submitted);
	pthread_mutex_unlock(&writer->lock);
	pthread_join(writer->thread, NULL);
	writer->started = false;
}

void writer_clear(struct writer *writer)
{
	if (!writer->site)
		return;
	writer_stop(writer);
	pthread_cond_destroy(&writer->submitted);
	pthread_mutex_destroy(&writer->lock);
	writer->site = NULL;
}
