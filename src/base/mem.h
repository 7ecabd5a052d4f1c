/* mem.h - the one door to the heap.
 *
 * Everything Galley allocates goes through here, so that a test can make the
 * n-th allocation fail.  Any thread. */
#ifndef GALLEY_BASE_MEM_H
#define GALLEY_BASE_MEM_H

#include <stddef.h>

/* All return NULL when memory is short or n * size overflows; zero sizes give a
 * valid pointer.  mem_array and mem_zero_array check the multiply. */
void *mem_alloc(size_t size);
void *mem_array(size_t n, size_t size);
void *mem_zero_array(size_t n, size_t size);
/* Grows or shrinks; on failure the old block stays valid and owned by the caller. */
void *mem_resize_array(void *p, size_t n, size_t size);
/* 64-byte aligned, for vector kernels.  Release with mem_free as well. */
void *mem_aligned(size_t size);
/* The same for weights and other large blocks that are streamed: whole 2 MiB pages inside it are
 * asked of the system, which saves walks of the page tables. */
void *mem_huge(size_t size);
void mem_free(void *p); /* NULL is fine */

/* From now on blocks of 256 KiB and more go back to the system when they are freed.  glibc raises
 * that limit by itself to what is freed, and then small blocks that live long between large ones
 * that do not hold the heap open: a process that serves for days would grow.  Process-wide. */
void mem_return_large(void);

/* Copies; the result is the caller's. */
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);

#define mem_new(type)     ((type *)mem_zero_array(1, sizeof(type)))
#define mem_many(type, n) ((type *)mem_zero_array((n), sizeof(type)))

/* Tests only: the n-th allocation from now (1 is the next) fails, then all
 * succeed again; 0 switches it off.  Process-wide. */
void mem_fail_at(long n);
/* Allocations since the last mem_fail_at call: how far a test must count. */
long mem_count(void);

#endif
