/* attn.c - see attn.h. */
#include "kernels/attn.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/device.h"
#include "kernels/ref/ref_math.h"

static_assert(ATTN_LANES == REF_LANES, "one tree folds both");

static float exp2_ref(float x) /* x <= 0 */
{
    x = EXP2_LO > x ? EXP2_LO : x; /* NaN stays */
    const float t = x + EXP2_MAGIC;
    const float r = x - (t - EXP2_MAGIC);
    float p = fmaf(EXP2_C5, r, EXP2_C4);
    p = fmaf(p, r, EXP2_C3);
    p = fmaf(p, r, EXP2_C2);
    p = fmaf(p, r, EXP2_C1);
    p = fmaf(p, r, 1.0f);
    uint32_t bits;
    memcpy(&bits, &t, sizeof(bits));
    bits <<= 23;
    float power;
    memcpy(&power, &bits, sizeof(power));
    return p * power;
}

void attn_pack_ref(float *dst, const float *const src[ATTN_GROUP], float by, int head_dim)
{
    for (int d = 0; d < head_dim; d++) {
        for (int i = 0; i < ATTN_GROUP; i++) {
            dst[d * ATTN_GROUP + i] = src[i] ? src[i][d] * by : 0.0f;
        }
    }
}

void attn_scores_ref(const struct attn_scores *a)
{
    for (int r = 0; r < a->rows; r++) {
        const float *q = a->q + r / ATTN_GROUP * a->head_dim * ATTN_GROUP + r % ATTN_GROUP;
        for (int j = 0; j < KV_BLOCK; j++) {
            float sum = 0.0f;
            for (int d = 0; d < a->head_dim; d++) {
                sum = fmaf(q[d * ATTN_GROUP], a->k[d * KV_BLOCK + j], sum);
            }
            a->s[r * KV_BLOCK + j] = sum;
        }
    }
}

void attn_sums_ref(const struct attn_sums *a)
{
    for (int r = 0; r < a->rows; r++) {
        float *o = a->o + (size_t)r * a->o_ld;
        for (int j = 0; j < a->n; j++) {
            for (int d = 0; d < a->n_vec * ATTN_LANES; d++) {
                o[d] = fmaf(a->p[r * KV_BLOCK + j], a->v[(size_t)j * a->v_ld + (size_t)d], o[d]);
            }
        }
    }
}

static void soft_row(const struct attn_soft *a, size_t r)
{
    float *s = a->s + r * KV_BLOCK, *sum = a->sum + r * ATTN_LANES, *o = a->o + r * a->o_ld;
    const int first = a->first[r], n = a->n[r];
    if (first >= n) {
        memset(s, 0, KV_BLOCK * sizeof(float));
        return;
    }
    float m = a->max[r];
    for (int j = first; j < n; j++) {
        if (a->cap > 0.0f) {
            const float e = ref_exp(fabsf(s[j]) * -2.0f);
            s[j] = copysignf((1.0f - e) / (1.0f + e), s[j]) * a->cap;
        }
        m = s[j] > m ? s[j] : m;
    }
    const float f = exp2_ref(a->max[r] - m);
    for (int j = 0; j < KV_BLOCK; j++) {
        s[j] = j >= first && j < n ? exp2_ref(s[j] - m) : 0.0f;
    }
    for (int i = 0; i < ATTN_LANES; i++) {
        sum[i] = fmaf(sum[i], f, s[i] + s[i + ATTN_LANES]);
    }
    for (size_t d = 0; d < a->o_ld; d++) {
        o[d] *= f;
    }
    a->max[r] = m;
}

void attn_soft_ref(const struct attn_soft *a)
{
    for (int r = 0; r < a->rows; r++) {
        soft_row(a, (size_t)r);
    }
}

void attn_merge_ref(const struct attn_part *to, const struct attn_part *from, size_t o_ld)
{
    if (*from->max == -INFINITY) {
        return; /* nothing seen there */
    }
    const float m = *from->max > *to->max ? *from->max : *to->max;
    const float f = exp2_ref(*to->max - m), g = exp2_ref(*from->max - m);
    for (int i = 0; i < ATTN_LANES; i++) {
        to->sum[i] = fmaf(to->sum[i], f, from->sum[i] * g);
    }
    for (size_t d = 0; d < o_ld; d++) {
        to->o[d] = fmaf(to->o[d], f, from->o[d] * g);
    }
    *to->max = m;
}

void attn_result_ref(float *out, const float *o, const float sum[ATTN_LANES], int head_dim)
{
    float lane[REF_LANES];
    memcpy(lane, sum, sizeof(lane));
    const float all = ref_tree(lane);
    const float by = all > 0.0f ? 1.0f / all : 0.0f;
    for (int d = 0; d < head_dim; d++) {
        out[d] = o[d] * by + 0.0f;
    }
}

void attn_turn_ref(float *dst, const float *src, size_t ld, int n, int head_dim)
{
    for (int d = 0; d < head_dim; d++) {
        for (int j = 0; j < KV_BLOCK; j++) {
            dst[d * KV_BLOCK + j] = j < n ? src[(size_t)j * ld + (size_t)d] : 0.0f;
        }
    }
}
