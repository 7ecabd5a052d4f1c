/* mem.c - checked allocation with a fault injector for tests. */
#include "src/base/mem.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Relaxed: the counters only steer tests, they order nothing. */
static _Atomic long fail_at;
static _Atomic long n_allocs;

static int must_fail(void)
{
    const long n = atomic_fetch_add_explicit(&n_allocs, 1, memory_order_relaxed) + 1;
    return n == atomic_load_explicit(&fail_at, memory_order_relaxed);
}

void mem_fail_at(long n)
{
    atomic_store_explicit(&n_allocs, 0, memory_order_relaxed);
    atomic_store_explicit(&fail_at, n, memory_order_relaxed);
}

long mem_count(void)
{
    return atomic_load_explicit(&n_allocs, memory_order_relaxed);
}

void *mem_alloc(size_t size)
{
    return must_fail() ? NULL : malloc(size ? size : 1);
}

static int product(size_t n, size_t size, size_t *out)
{
    if (size && n > SIZE_MAX / size) {
        return 0;
    }
    *out = n * size;
    return 1;
}

void *mem_array(size_t n, size_t size)
{
    size_t bytes;
    return product(n, size, &bytes) ? mem_alloc(bytes) : NULL;
}

void *mem_zero_array(size_t n, size_t size)
{
    size_t bytes;
    if (!product(n, size, &bytes) || must_fail()) {
        return NULL;
    }
    return calloc(1, bytes ? bytes : 1);
}

void *mem_resize_array(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (!product(n, size, &bytes) || must_fail()) {
        return NULL;
    }
    return realloc(p, bytes ? bytes : 1);
}

void *mem_aligned(size_t size)
{
    if (size > SIZE_MAX - 63 || must_fail()) {
        return NULL;
    }
    const size_t rounded = (size + 63) & ~(size_t)63;
    return aligned_alloc(64, rounded ? rounded : 64);
}

#define HUGE_PAGE ((size_t)2 << 20)

void *mem_huge(size_t size)
{
    if (size < 2 * HUGE_PAGE) {
        return mem_aligned(size);
    }
    if (size > SIZE_MAX - HUGE_PAGE || must_fail()) {
        return NULL;
    }
    void *p = NULL; /* aligned_alloc would want a multiple of the page */
    if (posix_memalign(&p, HUGE_PAGE, (size + 63) & ~(size_t)63) != 0) {
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    /* Only whole pages: a last, started one would be resident in full.  A refusal costs speed. */
    (void)madvise(p, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return p;
}

void mem_return_large(void)
{
#ifdef M_MMAP_THRESHOLD
    (void)mallopt(M_MMAP_THRESHOLD, 256 << 10); /* a refusal costs memory, nothing else */
#endif
}

void mem_free(void *p)
{
    free(p);
}

char *mem_strndup(const char *s, size_t n)
{
    char *copy = n < SIZE_MAX ? mem_alloc(n + 1) : NULL;
    if (copy) {
        memcpy(copy, s, n);
        copy[n] = '\0';
    }
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}
