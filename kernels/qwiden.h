/* qwiden.h - an unpacked unit as f32: what a .c file with an unpack of its own includes.
 *
 * The products and differences are those of quant_decode, in its order, so its bits. */
#ifndef GALLEY_KERNELS_QWIDEN_H
#define GALLEY_KERNELS_QWIDEN_H

#include <string.h>

#include "kernels/qgemm.h"
#include "src/base/compiler.h"

struct qwiden_sub {
    float scale[QGEMM_NR], min[QGEMM_NR];
};

/* Sub-block j of a form. */
static GALLEY_INLINE void qwiden_scales(struct qwiden_sub *restrict s,
                                        const struct qgemm_panel *restrict p, int j,
                                        enum qgemm_form form)
{
    const bool block = form == QGEMM_BLOCK || form == QGEMM_BLOCK_MIN;
    const int16_t(*pair)[2] = p->pair[j / 4 * 2 + j % 2];
    const int second = j % 4 / 2;
    for (int c = 0; !block && form != QGEMM_K32 && c < QGEMM_NR; c++) {
        s->scale[c] = p->d[c] * (float)p->factor[j][c][0];
    }
    for (int c = 0; form == QGEMM_K32 && c < QGEMM_NR; c++) {
        s->scale[c] = p->d[c] * p->scale[j][c];
    }
    for (int c = 0; block && c < QGEMM_NR; c++) {
        s->scale[c] = p->scale[j][c];
    }
    if (form == QGEMM_BLOCK_MIN) {
        for (int c = 0; c < QGEMM_NR; c++) {
            s->min[c] = -p->min[j][c];
        }
    } else if (form == QGEMM_K32_MIN || form == QGEMM_K16_MIN) {
        for (int c = 0; c < QGEMM_NR; c++) {
            s->min[c] = p->dmin[c] * (float)pair[c][second];
        }
    }
}

/* Four k of each column, the lowest first, from the words at code; min and q are constants. */
static GALLEY_INLINE void qwiden_row(float *restrict dst, const uint8_t *code,
                                     const struct qwiden_sub *s, int32_t offset, const bool min,
                                     const int q)
{
    for (int c = 0; c < QGEMM_NR; c++) {
        uint32_t word;
        memcpy(&word, code + 4 * c, sizeof(word));
        const float v = s->scale[c] * (float)((int32_t)(word >> (8 * q) & 255) - offset);
        dst[c] = min ? v - s->min[c] : v;
    }
}

static GALLEY_INLINE void qwiden_sub(float *dst, const uint8_t *code, const struct qwiden_sub *s,
                                     int32_t offset, const bool min, int n_k)
{
    for (int k = 0; k < n_k; k += 4, dst += 4 * QGEMM_NR, code += 4 * QGEMM_NR) {
        qwiden_row(dst, code, s, offset, min, 0);
        qwiden_row(dst + QGEMM_NR, code, s, offset, min, 1);
        qwiden_row(dst + 2 * QGEMM_NR, code, s, offset, min, 2);
        qwiden_row(dst + 3 * QGEMM_NR, code, s, offset, min, 3);
    }
}

/* dst [n * 32][QGEMM_NR] (K kind: [QGEMM_K]) from the panel of a unit of n blocks. */
static void qwiden(float *dst, const struct qgemm_panel *p, enum dtype t, int n)
{
    const enum qgemm_form form = qgemm_form_of(t);
    const bool min = form == QGEMM_K32_MIN || form == QGEMM_K16_MIN || form == QGEMM_BLOCK_MIN;
    const int n_k = dtype_info(t)->block == QGEMM_K ? QGEMM_K : 32 * n;
    const int sub = form == QGEMM_K16 || form == QGEMM_K16_MIN ? 16 : 32;
    for (int k = 0; k < n_k; k += sub) {
        struct qwiden_sub s;
        qwiden_scales(&s, p, k / sub, form);
        float *to = dst + (size_t)k * QGEMM_NR;
        const uint8_t *code = p->code + (size_t)k * QGEMM_NR;
        if (min) {
            qwiden_sub(to, code, &s, 0, true, sub);
        } else {
            qwiden_sub(to, code, &s, 1 << qgemm_shift(t), false, sub);
        }
    }
}

#endif
