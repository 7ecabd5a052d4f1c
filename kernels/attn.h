/* attn.h - the steps of blocked attention, and the walk they belong to.
 *
 * A query row meets its keys in blocks of KV_BLOCK at absolute logical positions, blocks
 * ascending.  Scores are in units of log2: the query is multiplied by scale * log2(e) first (one
 * rounding each).  Per block, over the keys j the row sees, first..n-1 of 0..KV_BLOCK-1:
 *     s[j] = chain of fma over d ascending, from 0 (attn_scores)
 *     m'   = max(m, s[first..n-1]);  p[j] = exp2(s[j] - m'), 0 for the unseen
 *     f    = exp2(m - m');  l[i] = fma(l[i], f, p[i] + p[i + 16]) for 16 lanes i
 *     o[d] = o[d] * f, then o[d] = fma(p[j], v[j][d], o[d]) over the seen j ascending
 * from m = -inf, l = 0, o = 0.
 * With a softcap the query is multiplied by scale / softcap, and between chain and maximum
 *     s[j] = tanh(s[j]) * (softcap * log2(e)),  tanh(x) = sign(x) (1 - e) / (1 + e),
 *     e = exp(-2 |x|) of exp.h
 *
 * The paged cache is walked in spans of ATTN_SPAN keys at absolute logical positions, so that one
 * long row can be shared out: each span starts anew, and a span in which the row sees a key is
 * merged into (m, l, o) of the spans before it, the first one being taken as it is:
 *     m' = max(m, m_s);  f = exp2(m - m');  g = exp2(m_s - m')
 *     l[i] = fma(l[i], f, l_s[i] * g);  o[d] = fma(o[d], f, o_s[d] * g);  m = m'
 * Segments (attn_seg) are one span however long.
 *
 * At the end out[d] = o[d] * (1 / tree(l)) + 0, tree as in norm.h; the sum turns -0 into 0.
 *
 * A window cuts `first`.  A row of a draft tree sees its prefix and its ancestors; counted as
 * adjacent they have logical positions, and these make its blocks and spans.
 *
 * What a row does not see leaves no trace in its bits: an unseen key has p = 0, and adding
 * 0 * v changes o only in the sign of a zero, which the last line removes.  (Where v is infinite
 * or NaN, the rows of a tile that see it are kept apart from those that do not.)  So a row's bits
 * depend on its own keys only.
 *
 * Stored keys and values (device.h) are widened exactly before all this, those of KV_Q8 as
 * code * scale, rounded once.  Against exact arithmetic on the stored values: 6e-6 * max|v| while
 * |q k scale| stays below 30; with a softcap 1e-7 * softcap more.
 *
 * exp2(x), x <= 0: x clamped at EXP2_LO; t = x + EXP2_MAGIC; r = x - (t - EXP2_MAGIC); a polynomial
 * of degree 5 in r by Horner, times the power of two whose exponent field is t's low byte.
 * exp2(0) is exactly 1, NaN stays NaN.  Coefficients: minimax of the relative error, 9.2e-8, with
 * the constant held at 1. */
#ifndef GALLEY_KERNELS_ATTN_H
#define GALLEY_KERNELS_ATTN_H

#include <stdbool.h>
#include <stddef.h>

#define ATTN_LANES 16
#define ATTN_SPAN  512 /* a multiple of KV_BLOCK */
#define ATTN_LOG2E 1.442695f

#define EXP2_LO    (-125.0f)
#define EXP2_MAGIC 12583039.0f /* 1.5 * 2^23 + 127: the sum's low byte is the biased exponent */
#define EXP2_C5    0.0013264701f
#define EXP2_C4    0.009671515f
#define EXP2_C3    0.05550734f
#define EXP2_C2    0.24022242f
#define EXP2_C1    0.693147f

/* Queries are packed in groups: element d of vector i lies at (i / ATTN_GROUP * head_dim + d) *
 * ATTN_GROUP + i % ATTN_GROUP.  This packs one: dst[d][i] = src[i][d] * by, 0 where src[i] is
 * NULL. */
#define ATTN_GROUP 8
typedef void attn_pack_fn(float *dst, const float *const src[ATTN_GROUP], float by, int head_dim);
attn_pack_fn attn_pack_ref, attn_pack_avx2, attn_pack_avx512;

/* s[r][j] = chain over d ascending, from 0, of fma(q[r][d], k[d][j], s) for all KV_BLOCK keys. */
struct attn_scores {
    float *s;       /* [rows][KV_BLOCK] */
    const float *q; /* packed */
    const float *k; /* [head_dim][KV_BLOCK] */
    int rows, head_dim;
    /* What the next block will read, asked for along the way, `step` bytes with each d: a burst
     * would wait for the few misses a core has in flight.  Only a hint: NULL is fine. */
    const char *next;
    size_t next_step;
};
typedef void attn_scores_fn(const struct attn_scores *a);
attn_scores_fn attn_scores_ref, attn_scores_avx2, attn_scores_avx512;

/* o[r][d] = fma(p[r][j], v[j][d], o[r][d]) over the n keys j ascending, KV_BLOCK at most. */
struct attn_sums {
    float *o; /* [rows][o_ld] */
    size_t o_ld;
    const float *p; /* [rows][KV_BLOCK]; may begin inside a row */
    const float *v; /* [n][v_ld], whole vectors */
    size_t v_ld;
    int rows, n_vec, n; /* n_vec: o_ld / ATTN_LANES */
    const char *next;   /* as in attn_scores, with each j and ATTN_NEXT vectors */
    size_t next_step;
};
#define ATTN_NEXT 4
typedef void attn_sums_fn(const struct attn_sums *a);
attn_sums_fn attn_sums_ref, attn_sums_avx2, attn_sums_avx512;

struct attn_soft {
    float *s;   /* [rows][KV_BLOCK]: scores in, p out */
    float *max; /* [rows] */
    float *sum; /* [rows][ATTN_LANES] */
    float *o;   /* [rows][o_ld], o_ld a multiple of 16 */
    size_t o_ld;
    const int *first, *n; /* [rows]: the keys seen; first >= n: none, and then p is 0 */
    int rows;
    float cap; /* softcap * log2(e); 0: none */
};
typedef void attn_soft_fn(const struct attn_soft *a);
attn_soft_fn attn_soft_ref, attn_soft_avx2, attn_soft_avx512;

/* Merges a span's (max, sum, o) into those of the spans before it: one row, o_ld floats of o. */
struct attn_part {
    float *max, *sum, *o;
};
typedef void attn_merge_fn(const struct attn_part *to, const struct attn_part *from, size_t o_ld);
attn_merge_fn attn_merge_ref, attn_merge_avx2, attn_merge_avx512;

/* out[d] = o[d] * (1 / tree(sum)) + 0; zeros for a row that saw no key. */
typedef void attn_result_fn(float *out, const float *o, const float sum[ATTN_LANES], int head_dim);
attn_result_fn attn_result_ref, attn_result_avx2, attn_result_avx512;

/* dst[d][j] = src[j * ld + d] for n keys j and head_dim d; lanes n..KV_BLOCK-1 become 0. */
typedef void attn_turn_fn(float *dst, const float *src, size_t ld, int n, int head_dim);
attn_turn_fn attn_turn_ref, attn_turn_avx2, attn_turn_avx512;

#endif
