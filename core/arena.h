/*
 * arena.h: memory that lives as long as a batch: handed out by moving a pointer, taken back all at
 * once.
 */
#ifndef WEIR_ARENA_H
#define WEIR_ARENA_H

#include <glib.h>
#include <stdint.h>

struct weir_arena {
	GPtrArray *blocks;
	unsigned block; /* the one in use */
	size_t used;    /* of it */
};

void weir_arena_init(struct weir_arena *arena);
void weir_arena_clear(struct weir_arena *arena);
/* Takes everything back; the blocks stay for the next batch. */
void weir_arena_reset(struct weir_arena *arena);
/* Aligned to 16; NULL: out of memory. */
uint8_t *weir_arena_take(struct weir_arena *arena, size_t size);

#endif
