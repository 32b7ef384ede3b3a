/* arena.c: blocks of 1 MiB, or of the size of a larger request. */
#include "arena.h"

#define BLOCK ((size_t)1 << 20)

struct block {
	size_t size;
	size_t pad;
	uint8_t bytes[];
};

void weir_arena_init(struct weir_arena *arena)
{
	*arena = (struct weir_arena){.blocks = g_ptr_array_new_with_free_func(g_free)};
}

void weir_arena_clear(struct weir_arena *arena)
{
	if (arena->blocks)
		g_ptr_array_unref(arena->blocks);
	arena->blocks = NULL;
}

void weir_arena_reset(struct weir_arena *arena)
{
	arena->block = 0;
	arena->used = 0;
}

uint8_t *weir_arena_take(struct weir_arena *arena, size_t size)
{
	struct block *block;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + 15) & ~(size_t)15;
	for (; arena->block < arena->blocks->len; arena->block++, arena->used = 0) {
		block = arena->blocks->pdata[arena->block];
		if (block->size - arena->used >= size) {
			arena->used += size;
			return block->bytes + arena->used - size;
		}
	}
	block = g_try_malloc(sizeof(*block) + MAX(size, BLOCK));
	if (!block)
		return NULL;
	block->size = MAX(size, BLOCK);
	g_ptr_array_add(arena->blocks, block);
	arena->used = size;
	return block->bytes;
}
