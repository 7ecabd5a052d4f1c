/* gemm.c - see gemm.h. */
#include "kernels/gemm.h"

#include <math.h>
#include <stdint.h>

#include "src/base/half.h"

static float element(const void *w, size_t at, enum dtype type)
{
    if (type == DTYPE_F32) {
        return ((const float *)w)[at];
    }
    const uint16_t h = ((const uint16_t *)w)[at];
    return type == DTYPE_F16 ? f16_to_f32(h) : bf16_to_f32(h);
}

void gemm_widen_ref(float *dst, const void *src, enum dtype type, int n_k)
{
    for (int k = 0; k < n_k; k++) {
        for (int j = 0; j < GEMM_NR; j++) {
            const size_t at = (size_t)k * GEMM_NR + (size_t)gemm_place(j, type);
            dst[k * GEMM_NR + j] = element(src, at, type);
        }
    }
}

void gemm_tile_ref(const struct gemm_tile *t)
{
    for (int r = 0; r < t->rows; r++) {
        const float *x = t->x + (size_t)r * t->x_ld;
        float *c = t->c + (size_t)r * t->c_ld;
        for (int j = 0; j < t->n; j++) {
            size_t at =
                (size_t)(j / GEMM_NR) * t->panel + (size_t)gemm_place(j % GEMM_NR, t->w_type);
            float acc = t->more ? c[j] : 0.0f;
            for (int k = 0; k < t->k; k++, at += t->w_ld) {
                acc = fmaf(x[k], element(t->w, at, t->w_type), acc);
            }
            c[j] = t->bias ? acc + t->bias[j] : acc;
        }
    }
}
