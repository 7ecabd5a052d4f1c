/* qgemm.h - y = x w for block-quantised w: exact integers inside a block, one float chain.
 *
 * Activations are quantised first, by one routine for every number of rows: to the codes and
 * scales of ggml's Q8_K (256 columns, weights of the K kind: Q*_K and IQ4_XS) or of its Q8_0
 * (32 columns, weights of the block kind: all others), so that tokens agree with llama.cpp's.
 *
 * Order, the contract every implementation keeps, for each output column and row.  dot_j is
 * the exact int32 sum of weight code times activation code over sub-block j; w_* and x_* are the
 * scales widened exactly to f32; every fma and product rounds once, to f32.
 *     acc = 0, then for each block of columns, ascending:
 *     K kind:     s = sum_j dot_j w_scale_j, the exact int32 rounded to f32; of IQ4_XS, whose dots
 *                 are wide: s = 0;  s = fma(dot_j, w_scale_j, s) for the sub-blocks j ascending;
 *                 acc = fma(s, w_d * x_d, acc);
 *                 with minima: acc = fma(sum_j w_min_j * x_sum_j, -(w_dmin * x_d), acc),
 *                 the sum being an exact int32;
 *     block kind: acc = fma(dot, w_d * x_d, acc);
 *                 with minima: acc = fma(w_m, x_d * x_sum, acc);
 *     y = acc + bias (no add without a bias).
 * Lanes run across columns, never along k, so rows, tiles, threads and instruction sets cannot
 * change a bit.  Against exact arithmetic on the quantised rows an element errs by at most (2
 * n_steps + 4) * 2^-24 * (sum of |terms|), n_steps being the number of fmas above.
 *
 * Packed weights: units of QGEMM_NR columns x 256 k (the last of the block kind may have fewer
 * blocks of 32), k ascending inside a column group, so that a group is one stream.  A unit holds
 * the fields of the file's blocks, field after field, each as [block][item][QGEMM_NR columns];
 * items are 4-byte words, or f16s or bytes for scales (qgemm_pack.c has the table).  It is a
 * permutation: nothing is rounded and no byte is added but for padding columns. */
#ifndef GALLEY_KERNELS_QGEMM_H
#define GALLEY_KERNELS_QGEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/tensor.h"

#define QGEMM_NR    32  /* columns of a unit: two AVX-512 vectors */
#define QGEMM_K     256 /* k of a unit */
#define QGEMM_ALIGN 64  /* of packed weights, panels and rows */

/* --- activations --- */
enum qact_kind { QACT_K, QACT_BLOCK, QACT_KIND_COUNT };

/* What goes with 256 codes of one row. */
union qact_meta {
    struct {
        float d;
        /* Sums of 32 and of 16 codes; pair p of four sums i.. is (i, i + 2) or (i + 1, i + 3). */
        int16_t pair32[4][2], pair16[8][2];
        int32_t reach32; /* the most that the codes above 0, or below, of 32 sum to */
        int32_t reach16; /* the most that the magnitudes of 16 sum to */
        int32_t spare;
        int32_t minus16[16]; /* -32 times the sums of 16 codes */
    } k;
    struct {
        float d[8];
        int32_t minus32[8]; /* minus the sums of 32 codes */
        float sum[8];       /* d * sum, rounded */
        int32_t spare[8];
    } block;
};

/* Quantised rows: the codes of k-unit u of row r are at code + (u * rows + r) * QGEMM_K. */
struct qact {
    int8_t *code;
    union qact_meta *meta; /* [n_units][rows] */
    int rows;
};

static inline enum qact_kind qact_kind_of(enum dtype t)
{
    return dtype_info(t)->block == 256 ? QACT_K : QACT_BLOCK;
}

static inline int qgemm_n_units(int n_in)
{
    return (n_in + QGEMM_K - 1) / QGEMM_K;
}

/* Quantises rows r0 .. r0 + n - 1 of x into a.  A block with an infinity or a NaN gets zero codes
 * and d = NaN; one so small that its inverse scale overflows gets zero codes and d = 0. */
struct qact_args {
    struct qact *a;
    enum qact_kind kind;
    const float *x; /* [a->rows][n_in], x_ld apart */
    size_t x_ld;
    int n_in, r0, n;
};
typedef void qact_fn(const struct qact_args *q);
qact_fn qact_ref, qact_avx2, qact_avx512;

/* --- weights --- */
/* Bytes of a unit of n_blocks blocks (1 for the K kind), of a group of columns, of all of w. */
size_t qgemm_unit_bytes(enum dtype t, int n_blocks);
size_t qgemm_group_bytes(enum dtype t, int n_in);
/* A group of columns (QGEMM_NR, the last one maybe fewer), which are as many rows [n_in] in the
 * file's blocks at src. */
void qgemm_pack(void *dst, const void *src, enum dtype t, int columns, int n_in);

/* A unit made ready for products: codes as unsigned bytes (value + qgemm_offset), four of a
 * column's k side by side; scales as f32.  Owned by a thread. */
struct qgemm_panel {
    _Alignas(QGEMM_ALIGN) uint8_t bytes[64 * QGEMM_NR * 4];
    float scale[8][QGEMM_NR];          /* of sub-block j of IQ4_XS; block kind: d of block j */
    int16_t factor[16][QGEMM_NR][2];   /* other K: of sub-block j; the second for one's own use */
    float min[8][QGEMM_NR];            /* block kind with minima: m of block j */
    float d[QGEMM_NR], dmin[QGEMM_NR]; /* K kind */
    int16_t pair[8][QGEMM_NR][2];      /* K kind with minima: as qact_meta pairs the sums */
    const uint8_t *code; /* [64][QGEMM_NR][4]: the bytes above, or the packed unit itself */
};

/* How the types differ once unpacked. */
enum qgemm_form {
    QGEMM_K32_MIN,  /* Q4_K Q5_K: eight sub-blocks of 32, minima */
    QGEMM_K16_MIN,  /* Q2_K: sixteen of 16, minima */
    QGEMM_K32,      /* IQ4_XS */
    QGEMM_K16,      /* Q3_K Q6_K */
    QGEMM_BLOCK,    /* Q4_0 Q5_0 Q8_0 IQ4_NL MXFP4 */
    QGEMM_BLOCK_MIN /* Q4_1 Q5_1 */
};

static inline enum qgemm_form qgemm_form_of(enum dtype t)
{
    switch (t) {
    case DTYPE_Q4_K:
    case DTYPE_Q5_K:
        return QGEMM_K32_MIN;
    case DTYPE_Q2_K:
        return QGEMM_K16_MIN;
    case DTYPE_IQ4_XS:
        return QGEMM_K32;
    case DTYPE_Q3_K:
    case DTYPE_Q6_K:
        return QGEMM_K16;
    case DTYPE_Q4_1:
    case DTYPE_Q5_1:
        return QGEMM_BLOCK_MIN;
    default:
        return QGEMM_BLOCK;
    }
}

/* Codes are stored as value + 2^shift in the forms without minima. */
static inline int qgemm_shift(enum dtype t)
{
    return t == DTYPE_Q3_K   ? 2
           : t == DTYPE_Q4_0 ? 3
           : t == DTYPE_Q5_0 ? 4
           : t == DTYPE_Q6_K ? 5
                             : 7;
}

/* acc[r][j] = the chain of row row0 + r and column j of the group at w, before the bias. */
struct qgemm_tile {
    float *acc; /* [rows][QGEMM_NR], aligned */
    const void *w;
    enum dtype type;
    int n_in;
    const struct qact *x;
    int row0, rows;
    struct qgemm_panel *panel; /* scratch */
};
typedef void qgemm_tile_fn(const struct qgemm_tile *t);
qgemm_tile_fn qgemm_tile_ref, qgemm_tile_avx2, qgemm_tile_avx512;

/* The unit of n_blocks blocks at w as f32, dst [k][QGEMM_NR]: the bits of quant_decode. */
typedef void qgemm_widen_fn(float *dst, const void *w, enum dtype t, int n_blocks,
                            struct qgemm_panel *scratch);
qgemm_widen_fn qgemm_widen_ref, qgemm_widen_avx2, qgemm_widen_avx512;

#endif
