/* arena.h - many blocks that live about as long as each other, on few large pieces of memory.
 *
 * For weights: matrices of one or two megabytes, each allocated alone, would sit on 4 KiB pages,
 * whose faults are half of the time it takes to open a small model.  Blocks of one piece go back
 * together, when the last of them is freed.  One thread at a time. */
#ifndef GALLEY_BASE_ARENA_H
#define GALLEY_BASE_ARENA_H

#include <stddef.h>

struct arena_piece;

/* Zeroed is empty and ready. */
struct arena {
    struct arena_piece *pieces;
    int n, cap;
};

/* 64-byte aligned, not cleared; NULL without memory. */
void *arena_alloc(struct arena *a, size_t size);
void arena_free(struct arena *a, void *p); /* NULL is fine */
void arena_deinit(struct arena *a);        /* every block has been freed */

#endif
