/* attn_body.h - attn.h over v16.  Included after a v16_*.h and the tile sizes:
 * ATTN_ACC accumulators of v16, of which ATTN_VEC at most lie side by side. */
#ifndef GALLEY_KERNELS_ATTN_BODY_H
#define GALLEY_KERNELS_ATTN_BODY_H

#include <math.h>

#include "kernels/attn.h"
#include "kernels/device.h"
#include "kernels/x86/exp_body.h"
#include "src/base/compiler.h"

static inline struct v16 v16_exp2(struct v16 x) /* x <= 0 */
{
    x = v16_max(v16_set1(EXP2_LO), x);
    const struct v16 magic = v16_set1(EXP2_MAGIC);
    const struct v16 t = v16_add(x, magic);
    const struct v16 r = v16_sub(x, v16_sub(t, magic));
    struct v16 p = v16_horner(v16_set1(EXP2_C5), r, EXP2_C4);
    p = v16_horner(p, r, EXP2_C3);
    p = v16_horner(p, r, EXP2_C2);
    p = v16_horner(p, r, EXP2_C1);
    p = v16_horner(p, r, 1.0f);
    return v16_mul(p, v16_power(t));
}

/* rows and nv are constants at every call of these two, so that acc lives in registers. */
static GALLEY_INLINE void scores_tile(float *s, const float *q, const float *k, int head_dim,
                                      const char *next, size_t step, const int rows, const int nv)
{
    struct v16 acc[ATTN_ACC], w[ATTN_VEC];
    GALLEY_UNROLL
    for (int i = 0; i < rows * nv; i++) {
        acc[i] = v16_set1(0.0f);
    }
    for (int d = 0; d < head_dim; d++, q += ATTN_GROUP, k += KV_BLOCK, next += step) {
        GALLEY_PREFETCH(next);
        GALLEY_UNROLL
        for (int v = 0; v < nv; v++) {
            w[v] = v16_load(k + 16 * v);
        }
        GALLEY_UNROLL
        for (int r = 0; r < rows; r++) {
            const struct v16 b = v16_set1(q[r]);
            GALLEY_UNROLL
            for (int v = 0; v < nv; v++) {
                acc[r * nv + v] = v16_fma(b, w[v], acc[r * nv + v]);
            }
        }
    }
    GALLEY_UNROLL
    for (int i = 0; i < rows * nv; i++) {
        v16_store(s + i / nv * KV_BLOCK + 16 * (i % nv), acc[i]);
    }
}

static GALLEY_INLINE void sums_tile(const struct attn_sums *a, int row, int vec, const int rows,
                                    const int nv)
{
    struct v16 acc[ATTN_ACC], w[ATTN_VEC];
    float *const o = a->o + (size_t)row * a->o_ld + 16 * (size_t)vec;
    const float *p = a->p + (size_t)row * KV_BLOCK, *from = a->v + 16 * (size_t)vec;
    const float *const end = p + a->n;
    const size_t step = row == 0 ? a->next_step : 0; /* the first rows ask for all */
    const char *next = a->next + (size_t)(vec / ATTN_NEXT * a->n) * step;
    size_t ld = a->o_ld;
    GALLEY_UNROLL
    for (int i = 0; i < rows * nv; i++) {
        acc[i] = v16_load(o + (size_t)(i / nv) * ld + 16 * (size_t)(i % nv));
    }
    for (; p < end; p++, from += a->v_ld, next += step) {
        GALLEY_PREFETCH(next);
        GALLEY_UNROLL
        for (int v = 0; v < nv; v++) {
            w[v] = v16_load(from + 16 * v);
        }
        GALLEY_UNROLL
        for (int r = 0; r < rows; r++) {
            const struct v16 b = v16_set1(p[r * KV_BLOCK]);
            GALLEY_UNROLL
            for (int v = 0; v < nv; v++) {
                acc[r * nv + v] = v16_fma(b, w[v], acc[r * nv + v]);
            }
        }
    }
    GALLEY_FORGET(ld);
    GALLEY_UNROLL
    for (int i = 0; i < rows * nv; i++) {
        v16_store(o + (size_t)(i / nv) * ld + 16 * (size_t)(i % nv), acc[i]);
    }
}

static inline void attn_soft_row(const struct attn_soft *a, size_t r)
{
    float *s = a->s + r * KV_BLOCK, *sum = a->sum + r * ATTN_LANES;
    const int first = a->first[r], n = a->n[r];
    const struct v16 zero = v16_set1(0.0f);
    if (first >= n) {
        v16_store(s, zero);
        v16_store(s + 16, zero);
        return;
    }
    const bool whole = first == 0 && n == KV_BLOCK;
    const size_t f0 = (size_t)first, f1 = f0 > 16 ? f0 - 16 : 0;
    const size_t n0 = (size_t)n, n1 = n0 > 16 ? n0 - 16 : 0;
    struct v16 s0 = v16_load(s), s1 = v16_load(s + 16);
    if (a->cap > 0.0f) {
        s0 = v16_mul(v16_tanh(s0), v16_set1(a->cap));
        s1 = v16_mul(v16_tanh(s1), v16_set1(a->cap));
    }
    if (!whole) {
        s0 = v16_between(s0, f0, n0, v16_set1(-INFINITY));
        s1 = v16_between(s1, f1, n1, v16_set1(-INFINITY));
    }
    const float old = a->max[r];
    const float top = v16_top(v16_max(s0, s1));
    const float m = top > old ? top : old;
    const struct v16 mv = v16_set1(m);
    struct v16 p0 = v16_exp2(v16_sub(s0, mv)), p1 = v16_exp2(v16_sub(s1, mv));
    if (!whole) {
        p0 = v16_between(p0, f0, n0, zero);
        p1 = v16_between(p1, f1, n1, zero);
    }
    v16_store(s, p0);
    v16_store(s + 16, p1);
    const struct v16 p = v16_add(p0, p1);
    a->max[r] = m;
    if (m == old || old == -INFINITY) {
        /* f is exactly 1, or meets zeros: the same bits without the pass over o. */
        v16_store(sum, v16_add(v16_load(sum), p));
        return;
    }
    const struct v16 f = v16_exp2(v16_set1(old - m));
    v16_store(sum, v16_fma(v16_load(sum), f, p));
    float *o = a->o + r * a->o_ld;
    for (size_t d = 0; d < a->o_ld; d += 16) {
        v16_store(o + d, v16_mul(v16_load(o + d), f));
    }
}

static inline void attn_soft_body(const struct attn_soft *a)
{
    for (int r = 0; r < a->rows; r++) {
        attn_soft_row(a, (size_t)r);
    }
}

static inline void attn_merge_body(const struct attn_part *to, const struct attn_part *from,
                                   size_t o_ld)
{
    if (*from->max == -INFINITY) {
        return; /* nothing seen there */
    }
    const float m = *from->max > *to->max ? *from->max : *to->max;
    const struct v16 f = v16_exp2(v16_set1(*to->max - m));
    const struct v16 g = v16_exp2(v16_set1(*from->max - m));
    v16_store(to->sum, v16_fma(v16_load(to->sum), f, v16_mul(v16_load(from->sum), g)));
    for (size_t d = 0; d < o_ld; d += 16) {
        v16_store(to->o + d, v16_fma(v16_load(to->o + d), f, v16_mul(v16_load(from->o + d), g)));
    }
    *to->max = m;
}

static inline void attn_result_body(float *out, const float *o, const float *sum, int head_dim)
{
    const size_t n = (size_t)head_dim;
    const float all = v16_sum(v16_load(sum));
    const struct v16 by = v16_set1(all > 0.0f ? 1.0f / all : 0.0f), zero = v16_set1(0.0f);
    for (size_t d = 0; d < n; d += 16) {
        v16_store_n(out + d, v16_add(v16_mul(v16_load(o + d), by), zero), n - d);
    }
}

#endif
