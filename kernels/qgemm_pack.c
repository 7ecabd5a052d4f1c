/* qgemm_pack.c - the permutation from a file's blocks to units (qgemm.h). */
#include <assert.h>
#include <string.h>

#include "kernels/qgemm.h"
#include "src/base/compiler.h"

/* What happens to a word on the way: nothing, the sign bit of each byte flipped (Q8_0), or the 32
 * fifth bits regrouped so that bit g of byte i belongs to element 4 g + i, as the words of codes
 * want it. */
enum word_op { WORD_AS_IS, WORD_FLIP, WORD_FIFTH };

struct field {
    int at, size, n; /* offset in the block, bytes of an item (0: no field), items */
    enum word_op op;
};

#define FIELDS_MAX 5

static const struct field *fields_of(enum dtype t)
{
    static const struct field fields[DTYPE_COUNT][FIELDS_MAX] = {
        [DTYPE_Q4_0] = { { 2, 4, 4, 0 }, { 0, 2, 1, 0 } },
        [DTYPE_Q4_1] = { { 4, 4, 4, 0 }, { 0, 2, 1, 0 }, { 2, 2, 1, 0 } },
        [DTYPE_Q5_0] = { { 6, 4, 4, 0 }, { 2, 4, 1, WORD_FIFTH }, { 0, 2, 1, 0 } },
        [DTYPE_Q5_1] = { { 8, 4, 4, 0 }, { 4, 4, 1, WORD_FIFTH }, { 0, 2, 1, 0 }, { 2, 2, 1, 0 } },
        [DTYPE_Q8_0] = { { 2, 4, 8, WORD_FLIP }, { 0, 2, 1, 0 } },
        [DTYPE_Q2_K] = { { 16, 4, 16, 0 }, { 0, 4, 4, 0 }, { 80, 2, 1, 0 }, { 82, 2, 1, 0 } },
        [DTYPE_Q3_K] = { { 32, 4, 16, 0 }, { 0, 4, 8, 0 }, { 96, 4, 3, 0 }, { 108, 2, 1, 0 } },
        [DTYPE_Q4_K] = { { 16, 4, 32, 0 }, { 4, 4, 3, 0 }, { 0, 2, 1, 0 }, { 2, 2, 1, 0 } },
        [DTYPE_Q5_K] = { { 48, 4, 32, 0 },
                         { 16, 4, 8, 0 },
                         { 4, 4, 3, 0 },
                         { 0, 2, 1, 0 },
                         { 2, 2, 1, 0 } },
        [DTYPE_Q6_K] = { { 0, 4, 32, 0 }, { 128, 4, 16, 0 }, { 192, 4, 4, 0 }, { 208, 2, 1, 0 } },
        [DTYPE_IQ4_NL] = { { 2, 4, 4, 0 }, { 0, 2, 1, 0 } },
        [DTYPE_IQ4_XS] = { { 8, 4, 32, 0 }, { 4, 4, 1, 0 }, { 2, 2, 1, 0 }, { 0, 2, 1, 0 } },
        [DTYPE_MXFP4] = { { 1, 4, 4, 0 }, { 0, 1, 1, 0 } },
    };
    assert(t >= DTYPE_N_DENSE && t < DTYPE_COUNT);
    return fields[t];
}

size_t qgemm_unit_bytes(enum dtype t, int n_blocks)
{
    /* The fields are all of a block. */
    const size_t bytes = (size_t)dtype_info(t)->n_bytes * (size_t)n_blocks * QGEMM_NR;
    return (bytes + QGEMM_ALIGN - 1) / QGEMM_ALIGN * QGEMM_ALIGN;
}

static int unit_blocks(enum dtype t) /* of a whole unit */
{
    return QGEMM_K / dtype_info(t)->block;
}

size_t qgemm_group_bytes(enum dtype t, int n_in)
{
    const int whole = n_in / QGEMM_K, rest = n_in % QGEMM_K / dtype_info(t)->block;
    return (size_t)whole * qgemm_unit_bytes(t, unit_blocks(t)) +
           (rest ? qgemm_unit_bytes(t, rest) : 0);
}

/* Four words of four columns, as vectors that every compiler's target can hold. */
typedef uint32_t word4 __attribute__((vector_size(16)));

/* Where bits p and q of a bit's index differ, the two such bits change places; mask has those with
 * p set and q not, by is 2^q - 2^p (Warren, Hacker's Delight, 7-6). */
static GALLEY_INLINE word4 index_swap(word4 x, int by, uint32_t mask)
{
    const word4 t = (x ^ x >> by) & mask;
    return x ^ t ^ t << by;
}

/* Bit 4 g + i to bit 8 i + g: the five bits of an index turn by two. */
static GALLEY_INLINE word4 fifth_order(word4 x)
{
    x = index_swap(x, 3, 0x0a0a0a0au);
    x = index_swap(x, 6, 0x00cc00ccu);
    x = index_swap(x, 12, 0x0000f0f0u);
    return index_swap(x, 8, 0x0000ff00u);
}

static GALLEY_INLINE word4 word_change(word4 w, enum word_op op)
{
    return op == WORD_FLIP ? w ^ 0x80808080u : op == WORD_FIFTH ? fifth_order(w) : w;
}

/* Words i .. i + 3 of four columns' blocks, `stride` apart, to rows i .. of the unit's field. */
static GALLEY_INLINE void turn_words(char *to, const char *from, size_t stride, enum word_op op)
{
    word4 a[4];
    GALLEY_UNROLL
    for (int j = 0; j < 4; j++) {
        memcpy(&a[j], from + (size_t)j * stride, sizeof(a[j]));
        a[j] = word_change(a[j], op);
    }
    const word4 lo0 = __builtin_shufflevector(a[0], a[1], 0, 4, 1, 5);
    const word4 hi0 = __builtin_shufflevector(a[0], a[1], 2, 6, 3, 7);
    const word4 lo1 = __builtin_shufflevector(a[2], a[3], 0, 4, 1, 5);
    const word4 hi1 = __builtin_shufflevector(a[2], a[3], 2, 6, 3, 7);
    const word4 out[4] = { __builtin_shufflevector(lo0, lo1, 0, 1, 4, 5),
                           __builtin_shufflevector(lo0, lo1, 2, 3, 6, 7),
                           __builtin_shufflevector(hi0, hi1, 0, 1, 4, 5),
                           __builtin_shufflevector(hi0, hi1, 2, 3, 6, 7) };
    GALLEY_UNROLL
    for (int i = 0; i < 4; i++) {
        memcpy(to + (size_t)i * 4 * QGEMM_NR, &out[i], sizeof(out[i]));
    }
}

static GALLEY_INLINE uint32_t word_at(const char *p)
{
    uint32_t w;
    memcpy(&w, p, sizeof(w));
    return w;
}

/* One word of each of four columns' blocks, or of the last n. */
static GALLEY_INLINE void one_row(char *to, const char *from, size_t stride, enum word_op op)
{
    const word4 v = word_change((word4){ word_at(from), word_at(from + stride),
                                         word_at(from + 2 * stride), word_at(from + 3 * stride) },
                                op);
    memcpy(to, &v, sizeof(v));
}

static void part_row(char *to, const char *from, size_t stride, int n, enum word_op op)
{
    for (int j = 0; j < n; j++, from += stride, to += sizeof(uint32_t)) {
        const word4 v = word_change((word4){ word_at(from) }, op);
        memcpy(to, &v, sizeof(uint32_t));
    }
}

/* The words of field f of one block of each of n columns, whose blocks are `stride` apart. */
static GALLEY_INLINE void pack_words(char *to, const char *from, size_t stride, int n,
                                     const struct field *f, enum word_op op)
{
    for (int j = 0; j < n; j += 4, to += 16, from += 4 * stride) {
        int i = 0;
        if (n - j >= 4) {
            for (; i < f->n / 4 * 4; i += 4) {
                turn_words(to + (size_t)i * 4 * QGEMM_NR, from + 4 * (size_t)i, stride, op);
            }
            for (; i < f->n; i++) {
                one_row(to + (size_t)i * 4 * QGEMM_NR, from + 4 * (size_t)i, stride, op);
            }
        } else {
            for (; i < f->n; i++) {
                part_row(to + (size_t)i * 4 * QGEMM_NR, from + 4 * (size_t)i, stride, n - j, op);
            }
        }
    }
}

/* Field f of one block of each of n columns; to is the block's first item. */
static void pack_field(char *to, const char *from, size_t stride, int n, const struct field *f)
{
    if (f->size == 4 && f->op == WORD_AS_IS) {
        pack_words(to, from, stride, n, f, WORD_AS_IS);
    } else if (f->size == 4 && f->op == WORD_FLIP) {
        pack_words(to, from, stride, n, f, WORD_FLIP);
    } else if (f->size == 4) {
        pack_words(to, from, stride, n, f, WORD_FIFTH);
    } else if (f->size == 2) {
        for (int j = 0; j < n; j++) {
            memcpy(to + 2 * (size_t)j, from + (size_t)j * stride, 2);
        }
    } else {
        for (int j = 0; j < n; j++) {
            to[j] = from[(size_t)j * stride];
        }
    }
}

/* The next unit of every column, and where it goes: 32 rows a page apart are no stream that the
 * hardware would guess, and packing waits for memory (1.2 to 1.6 times as fast with this). */
static void look_ahead(const char *next, size_t row_bytes, size_t bytes, int columns,
                       const char *to, size_t unit_bytes)
{
    for (int j = 0; j < columns; j++, next += row_bytes) {
        for (size_t i = 0; i < bytes; i += 64) {
            GALLEY_PREFETCH(next + i);
        }
    }
    for (size_t i = 0; i < unit_bytes; i += 64) {
        GALLEY_PREFETCH_WRITE(to + i);
    }
}

void qgemm_pack(void *dst, const void *src, enum dtype t, int columns, int n_in)
{
    const struct field *fields = fields_of(t);
    const size_t block_bytes = (size_t)dtype_info(t)->n_bytes;
    const size_t row_bytes = (size_t)dtype_row_bytes(t, (uint64_t)n_in);
    const int n_blocks = n_in / dtype_info(t)->block, each = unit_blocks(t);
    const char *row0 = src;
    char *unit = dst;
    assert(columns > 0 && columns <= QGEMM_NR);
    if (columns < QGEMM_NR) {
        memset(dst, 0, qgemm_group_bytes(t, n_in));
    }
    for (int b0 = 0; b0 < n_blocks; b0 += each) {
        const int n = n_blocks - b0 < each ? n_blocks - b0 : each;
        const size_t unit_bytes = qgemm_unit_bytes(t, n);
        char *to = unit;
        if (b0 + n < n_blocks) {
            look_ahead(row0 + (size_t)(b0 + n) * block_bytes, row_bytes, (size_t)n * block_bytes,
                       columns, unit + unit_bytes, unit_bytes);
        }
        for (int f = 0; f < FIELDS_MAX && fields[f].size; f++) {
            const char *from = row0 + (size_t)b0 * block_bytes + (size_t)fields[f].at;
            for (int b = 0; b < n; b++, from += block_bytes) {
                pack_field(to, from, row_bytes, columns, &fields[f]);
                to += (size_t)fields[f].size * (size_t)fields[f].n * QGEMM_NR;
            }
        }
        unit += unit_bytes;
    }
}
