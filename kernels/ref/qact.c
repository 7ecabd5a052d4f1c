/* qact.c - quantised activation rows in plain C; see qgemm.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/qgemm.h"
#include "src/base/half.h"

#define ROUNDER 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer, ties to even */

/* The element of largest magnitude, the first of equals; NaN when one is not finite. */
static float extreme(const float *x, int n)
{
    float best = 0.0f;
    for (int i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return NAN;
        }
        best = fabsf(x[i]) > fabsf(best) ? x[i] : best;
    }
    return best;
}

/* Codes at this inverse scale; none of them when it is not finite. */
static void codes(int8_t *q, const float *x, int n, float inverse)
{
    for (int i = 0; i < n; i++) {
        const float v = isfinite(inverse) ? inverse * x[i] + ROUNDER - ROUNDER : 0.0f;
        q[i] = (int8_t)(v < 127.0f ? v : 127.0f);
    }
}

static int sum_of(const int8_t *q, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        sum += q[i];
    }
    return sum;
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

/* How much of n codes is above 0, and below. */
static void sides_of(int side[2], const int8_t *q, int n)
{
    side[0] = side[1] = 0;
    for (int i = 0; i < n; i++) {
        side[q[i] < 0] += abs(q[i]);
    }
}

static void reach_of(union qact_meta *m, const int8_t *q)
{
    m->k.reach32 = m->k.reach16 = 0;
    for (int i = 0; i < QGEMM_K; i += 16) {
        int side[2];
        sides_of(side, q + i, 16);
        m->k.reach16 = max_int(m->k.reach16, side[0] + side[1]);
        if (i % 32 == 0) {
            sides_of(side, q + i, 32);
            m->k.reach32 = max_int(m->k.reach32, max_int(side[0], side[1]));
        }
    }
}

static void block_k(int8_t *q, union qact_meta *m, const float *x)
{
    const float max = extreme(x, QGEMM_K), inverse = -127.0f / max;
    codes(q, x, QGEMM_K, inverse);
    m->k.d = isnan(max) ? NAN : isfinite(inverse) ? 1.0f / inverse : 0.0f;
    reach_of(m, q);
    int sum[16];
    for (int i = 0; i < 16; i++) {
        sum[i] = sum_of(q + 16 * i, 16);
        m->k.minus16[i] = -32 * sum[i];
    }
    for (int i = 0; i < 16; i++) {
        const int at = i / 4 * 2 + i % 2, half = i % 4 / 2;
        m->k.pair16[at][half] = (int16_t)sum[i];
        if (i < 8) {
            m->k.pair32[at][half] = (int16_t)(sum[2 * i] + sum[2 * i + 1]);
        }
    }
}

static void block_32(int8_t *q, union qact_meta *m, int b, const float *x)
{
    const float max = fabsf(extreme(x, 32)), inverse = 127.0f / max;
    codes(q, x, 32, inverse);
    const int sum = sum_of(q, 32);
    m->block.d[b] = isnan(max)          ? NAN
                    : isfinite(inverse) ? f16_to_f32(f16_from_f32(max / 127.0f))
                                        : 0.0f;
    m->block.minus32[b] = -sum;
    m->block.sum[b] = m->block.d[b] * (float)sum;
}

void qact_ref(const struct qact_args *a)
{
    for (int r = a->r0; r < a->r0 + a->n; r++) {
        const float *x = a->x + (size_t)r * a->x_ld;
        for (int u = 0; u < qgemm_n_units(a->n_in); u++, x += QGEMM_K) {
            const size_t at = (size_t)u * (size_t)a->a->rows + (size_t)r;
            int8_t *q = a->a->code + at * QGEMM_K;
            const int n = a->n_in - u * QGEMM_K < QGEMM_K ? a->n_in - u * QGEMM_K : QGEMM_K;
            if (a->kind == QACT_K) {
                block_k(q, a->a->meta + at, x);
                continue;
            }
            for (int b = 0; b < n / 32; b++) {
                block_32(q + 32 * b, a->a->meta + at, b, x + 32 * b);
            }
        }
    }
}
