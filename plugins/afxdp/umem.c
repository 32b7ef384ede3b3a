/*
 * umem.c: see umem.h.
 */
#include "umem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define COMPLETION_SIZE 64

static uint32_t power_of_two(uint32_t at_least)
{
	uint32_t power = 1;

	while (power < at_least)
		power *= 2;
	return power;
}

static int map_area(struct umem *umem)
{
	size_t bytes = (size_t)umem->chunks * umem->chunk_bytes;
	void *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (area == MAP_FAILED)
		return -errno;
	umem->area = area;
	madvise(area, bytes, MADV_HUGEPAGE);
	/* It is pinned: a child, as of a command that a sink runs, would get a copy of all of it.
	 */
	madvise(area, bytes, MADV_DONTFORK);
	return 0;
}

static void give_all(struct umem *umem)
{
	uint32_t at = 0;

	xsk_ring_prod__reserve(&umem->fill, umem->chunks, &at);
	for (uint32_t i = 0; i < umem->chunks; i++)
		*xsk_ring_prod__fill_addr(&umem->fill, at + i) = (uint64_t)i * umem->chunk_bytes;
	xsk_ring_prod__submit(&umem->fill, umem->chunks);
}

int umem_open(struct umem *umem, uint32_t chunks, uint32_t chunk_bytes)
{
	*umem = (struct umem){
		.chunks = chunks, .chunk_bytes = chunk_bytes, .ring_size = power_of_two(chunks)};
	const struct xsk_umem_config config = {
		.fill_size = umem->ring_size,
		.comp_size = COMPLETION_SIZE,
		.frame_size = chunk_bytes,
	};
	int failure = map_area(umem);

	if (!failure)
		failure = xsk_umem__create(&umem->handle, umem->area,
					   (uint64_t)chunks * chunk_bytes, &umem->fill,
					   &umem->completion, &config);
	if (failure)
		return failure;
	fcntl(xsk_umem__fd(umem->handle), F_SETFD, FD_CLOEXEC);
	give_all(umem);
	return 0;
}

void umem_close(struct umem *umem)
{
	xsk_umem__delete(umem->handle);
	umem->handle = NULL;
	if (umem->area)
		munmap(umem->area, (size_t)umem->chunks * umem->chunk_bytes);
	umem->area = NULL;
}

uint64_t umem_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

void umem_raise_limit(void)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	if (setrlimit(RLIMIT_MEMLOCK, &limit) == 0 || getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &limit);
}
