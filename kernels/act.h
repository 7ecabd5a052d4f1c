/* act.h - activation functions, element by element.
 *
 * With exp and erf of exp.h:
 *     silu, quick gelu:  x / (1 + exp(-c x))           c = 1, 1.702
 *     gelu tanh:         x / (1 + exp(-u))             u = 2 sqrt(2/pi) (x + 0.044715 x^3)
 *     gelu erf:          (x / 2) (1 + erf(x / sqrt 2))
 *     softcap:           e = exp(|x| * (-2 / cap));  cap * ((1 - e) / (1 + e)) with x's sign
 * Tolerance against exact arithmetic: 1e-6 * max(1, |x|); of softcap 4e-7 * cap. */
#ifndef GALLEY_KERNELS_ACT_H
#define GALLEY_KERNELS_ACT_H

#include <stddef.h>

#include "kernels/device.h"

#define ACT_QUICK     1.702f
#define ACT_TANH_A    1.5957691216f /* 2 sqrt(2/pi) */
#define ACT_TANH_B    0.0713548163f /* 2 sqrt(2/pi) 0.044715 */
#define ACT_SQRT_HALF 0.7071067812f

typedef void act_fn(float *x, size_t n, enum act kind);
act_fn act_ref, act_avx2, act_avx512;

/* y[i] = act(gate[i]) * up[i]; y may be gate or up. */
typedef void act_gated_fn(float *y, const float *gate, const float *up, size_t n, enum act kind);
act_gated_fn act_gated_ref, act_gated_avx2, act_gated_avx512;

/* y[i] += x[i] */
typedef void act_add_fn(float *y, const float *x, size_t n);
act_add_fn act_add_ref, act_add_avx2, act_add_avx512;

/* x[i] *= by */
typedef void act_scale_fn(float *x, size_t n, float by);
act_scale_fn act_scale_ref, act_scale_avx2, act_scale_avx512;

/* x[i] = cap tanh(x[i] / cap); cap > 0 */
typedef void act_softcap_fn(float *x, size_t n, float cap);
act_softcap_fn act_softcap_ref, act_softcap_avx2, act_softcap_avx512;

#endif
