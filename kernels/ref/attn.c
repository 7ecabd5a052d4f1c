/* attn.c - see attn.h. */
#include "kernels/attn.h"

#include <math.h>

#include "kernels/device.h"
#include "kernels/ref/ref_math.h"

static void soft_row(float *s, float *max, float *sum, float *o, size_t o_ld, int n)
{
    float m = *max;
    for (int j = 0; j < n; j++) {
        m = s[j] > m ? s[j] : m;
    }
    const float f = ref_exp(*max - m);
    for (int j = 0; j < KV_BLOCK; j++) {
        s[j] = j < n ? ref_exp(s[j] - m) : 0.0f;
    }
    for (int i = 0; i < ATTN_LANES; i++) {
        sum[i] = fmaf(sum[i], f, s[i] + s[i + ATTN_LANES]);
    }
    for (size_t d = 0; d < o_ld; d++) {
        o[d] *= f;
    }
    *max = m;
}

void attn_soft_ref(const struct attn_soft *a)
{
    for (int r = 0; r < a->rows; r++) {
        const size_t i = (size_t)r;
        soft_row(a->s + i * KV_BLOCK, a->max + i, a->sum + i * ATTN_LANES, a->o + i * a->o_ld,
                 a->o_ld, a->n);
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
