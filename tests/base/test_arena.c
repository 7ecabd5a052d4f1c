/* test_arena.c - blocks are apart, aligned and usable, pieces come and go with their blocks. */
#include <stdint.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/base/mem.h"
#include "tests/t.h"

#define N 200

static void blocks_are_apart(void)
{
    static const size_t sizes[] = { 0, 1, 63, 64, 65, 4096, 1 << 20, 3 << 20, 70u << 20 };
    struct arena a = { 0 };
    uint8_t *block[N];
    size_t size[N];
    for (int i = 0; i < N; i++) {
        /* one of 70 MiB, which is more than a piece */
        size[i] = sizes[i == 100 ? 8 : (size_t)(i * 7 % 8)];
        block[i] = arena_alloc(&a, size[i]);
        T_OK(block[i] != NULL);
        T_EQ((uintptr_t)block[i] % 64, 0u);
        memset(block[i], i, size[i]);
    }
    for (int i = 0; i < N; i++) {
        T_OK(size[i] == 0 || (block[i][0] == i && block[i][size[i] - 1] == i));
    }
    for (int i = 0; i < N; i++) { /* in another order than they came */
        arena_free(&a, block[i * 37 % N]);
    }
    T_EQ(a.n, 0);
    arena_free(&a, NULL);
    arena_deinit(&a);
}

static void no_memory_is_said(void)
{
    struct arena a = { 0 };
    for (long n = 1; n <= 2; n++) { /* the list, then the piece */
        mem_fail_at(n);
        T_OK(arena_alloc(&a, 100) == NULL);
        mem_fail_at(0);
        T_EQ(a.n, 0);
    }
    T_OK(arena_alloc(&a, SIZE_MAX) == NULL);
    void *p = arena_alloc(&a, 100);
    T_OK(p != NULL);
    arena_free(&a, p);
    arena_deinit(&a);
}

static const struct t_case cases[] = {
    { "blocks_are_apart", blocks_are_apart },
    { "no_memory_is_said", no_memory_is_said },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
