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
static GALLEY_INLINE void qwiden_scales(struct qwiden_sub *s, const struct qgemm_panel *p, int j,
                                        enum qgemm_form form)
{
    for (int c = 0; c < QGEMM_NR; c++) {
        if (form == QGEMM_BLOCK || form == QGEMM_BLOCK_MIN) {
            s->scale[c] = p->scale[j][c];
            s->min[c] = form == QGEMM_BLOCK_MIN ? -p->min[j][c] : 0.0f;
        } else {
            s->scale[c] = p->d[c] * p->scale[j][c];
            s->min[c] = form == QGEMM_K32_MIN || form == QGEMM_K16_MIN
                            ? p->dmin[c] * (float)p->pair[j / 4 * 2 + j % 2][c][j % 4 / 2]
                            : 0.0f;
        }
    }
}

/* dst [n * 32][QGEMM_NR] (K kind: [QGEMM_K]) from the panel of a unit of n blocks. */
static void qwiden(float *dst, const struct qgemm_panel *p, enum dtype t, int n)
{
    const enum qgemm_form form = qgemm_form_of(t);
    const bool min = form == QGEMM_K32_MIN || form == QGEMM_K16_MIN || form == QGEMM_BLOCK_MIN;
    const int n_k = dtype_info(t)->block == QGEMM_K ? QGEMM_K : 32 * n;
    const int sub = form == QGEMM_K16 || form == QGEMM_K16_MIN ? 16 : 32;
    const int32_t offset = min ? 0 : 1 << qgemm_shift(t);
    for (int k = 0; k < n_k; k += sub) {
        struct qwiden_sub s;
        qwiden_scales(&s, p, k / sub, form);
        for (int i = k; i < k + sub; i++, dst += QGEMM_NR) {
            uint32_t word[QGEMM_NR]; /* four k of each column, the lowest first */
            memcpy(word, p->code + (size_t)(i / 4) * sizeof(word), sizeof(word));
            for (int c = 0; c < QGEMM_NR; c++) {
                const int32_t code = (int32_t)(word[c] >> (8 * (i % 4)) & 255);
                dst[c] = s.scale[c] * (float)(code - offset);
            }
            for (int c = 0; min && c < QGEMM_NR; c++) {
                dst[c] -= s.min[c];
            }
        }
    }
}

#endif
