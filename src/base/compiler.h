/* compiler.h - the only place for compiler extensions. */
#ifndef GALLEY_BASE_COMPILER_H
#define GALLEY_BASE_COMPILER_H

#if defined(__GNUC__)
#define GALLEY_MUST_USE          __attribute__((warn_unused_result))
#define GALLEY_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define GALLEY_INLINE            inline __attribute__((always_inline))
#define GALLEY_PREFETCH(p)       __builtin_prefetch(p)       /* a hint: any address is fine */
#define GALLEY_PREFETCH_FAR(p)   __builtin_prefetch(p, 0, 2) /* into the second cache only */
#define GALLEY_PREFETCH_WRITE(p) __builtin_prefetch(p, 1)
#else
#define GALLEY_MUST_USE
#define GALLEY_PRINTF(fmt, args)
#define GALLEY_INLINE            inline
#define GALLEY_PREFETCH(p)       ((void)(p))
#define GALLEY_PREFETCH_FAR(p)   ((void)(p))
#define GALLEY_PREFETCH_WRITE(p) ((void)(p))
#endif

/* Before a loop whose bounds are constants: unrolled whole, so that its arrays become registers.
 * clang does so unasked, and spills when told. */
#if defined(__GNUC__) && !defined(__clang__)
#define GALLEY_UNROLL _Pragma("GCC unroll 64")
#else
#define GALLEY_UNROLL
#endif

/* The compiler forgets what it knew of an integer variable: addresses made of it before are not
 * kept in registers until they are needed again. */
#if defined(__GNUC__)
#define GALLEY_FORGET(x) __asm__("" : "+r"(x))
#else
#define GALLEY_FORGET(x) ((void)(x))
#endif

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static inline int min_int(int a, int b)
{
    return a < b ? a : b;
}

#endif
