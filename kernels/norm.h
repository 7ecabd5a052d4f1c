/* norm.h - RMSNorm and LayerNorm of rows.
 *
 * Sums run in 16 lanes: lane i takes the elements i, i + 16, i + 32 ... in ascending order,
 * the missing ones of the last group as 0; then tree(l) adds lanes i and i + 8, i and i + 4,
 * i and i + 2, i and i + 1.
 *     rms:   q = tree(fma(x, x, l));  y = (x * (1 / sqrt(q / dim + eps))) * weight
 *     layer: m = tree(l + x) / dim;  d = x - m;  q = tree(fma(d, d, l));
 *            y = fma(d * (1 / sqrt(q / dim + eps)), weight, bias)
 * Tolerance against exact arithmetic: 1e-5 relative to the row's largest |y| for rms and for
 * layer with |m| below 100 standard deviations. */
#ifndef GALLEY_KERNELS_NORM_H
#define GALLEY_KERNELS_NORM_H

/* y may be x.  weight, bias: [dim]. */
typedef void norm_rms_fn(float *y, const float *x, const float *weight, int rows, int dim,
                         float eps);
norm_rms_fn norm_rms_ref, norm_rms_avx2, norm_rms_avx512;

typedef void norm_layer_fn(float *y, const float *x, const float *weight, const float *bias,
                           int rows, int dim, float eps);
norm_layer_fn norm_layer_ref, norm_layer_avx2, norm_layer_avx512;

#endif
