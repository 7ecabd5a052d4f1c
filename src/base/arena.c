/* arena.c - see arena.h. */
#include "src/base/arena.h"

#include <assert.h>
#include <stdint.h>

#include "src/base/mem.h"

#if defined(__SANITIZE_ADDRESS__)
#define PIECE ((size_t)0) /* each block alone: a write beside it is noticed */
#else
#define PIECE ((size_t)64 << 20)
#endif
#define ALIGN ((size_t)64)

struct arena_piece {
    uint8_t *base;
    size_t size, used;
    int n_live; /* blocks */
};

static struct arena_piece *piece_new(struct arena *a, size_t size)
{
    if (a->n == a->cap) {
        const int cap = a->cap ? 2 * a->cap : 8;
        struct arena_piece *more = mem_resize_array(a->pieces, (size_t)cap, sizeof(*more));
        if (!more) {
            return NULL;
        }
        a->pieces = more;
        a->cap = cap;
    }
    uint8_t *base = mem_huge(size);
    if (!base) {
        return NULL;
    }
    a->pieces[a->n] = (struct arena_piece){ .base = base, .size = size };
    return &a->pieces[a->n++];
}

void *arena_alloc(struct arena *a, size_t size)
{
    if (size > SIZE_MAX - ALIGN) {
        return NULL;
    }
    size = size ? (size + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    struct arena_piece *p = NULL;
    for (int i = 0; i < a->n && !p; i++) {
        p = a->pieces[i].size - a->pieces[i].used >= size ? &a->pieces[i] : NULL;
    }
    p = p ? p : piece_new(a, size > PIECE ? size : PIECE);
    if (!p) {
        return NULL;
    }
    void *block = p->base + p->used;
    p->used += size;
    p->n_live++;
    return block;
}

void arena_free(struct arena *a, void *block)
{
    if (!block) {
        return;
    }
    const uintptr_t at = (uintptr_t)block;
    for (int i = 0; i < a->n; i++) {
        struct arena_piece *p = &a->pieces[i];
        const uintptr_t base = (uintptr_t)p->base;
        if (at >= base && at < base + p->size) {
            if (--p->n_live == 0) {
                mem_free(p->base);
                *p = a->pieces[--a->n];
            }
            return;
        }
    }
    assert(!"a block of another arena");
}

void arena_deinit(struct arena *a)
{
    assert(a->n == 0);
    mem_free(a->pieces);
    *a = (struct arena){ 0 };
}
