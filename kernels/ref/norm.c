/* norm.c - see norm.h. */
#include "kernels/norm.h"

#include <math.h>

#include "kernels/ref/ref_math.h"

void norm_rms_ref(float *y, const float *x, const float *weight, int rows, int dim, float eps)
{
    for (int r = 0; r < rows; r++, x += dim, y += dim) {
        float lane[REF_LANES] = { 0 };
        for (int i = 0; i < dim; i++) {
            lane[i % REF_LANES] = fmaf(x[i], x[i], lane[i % REF_LANES]);
        }
        const float inv = 1.0f / sqrtf(ref_tree(lane) / (float)dim + eps);
        for (int i = 0; i < dim; i++) {
            y[i] = x[i] * inv * weight[i];
        }
    }
}

void norm_layer_ref(float *y, const float *x, const float *weight, const float *bias, int rows,
                    int dim, float eps)
{
    for (int r = 0; r < rows; r++, x += dim, y += dim) {
        float sum[REF_LANES] = { 0 }, square[REF_LANES] = { 0 };
        for (int i = 0; i < dim; i++) {
            sum[i % REF_LANES] += x[i];
        }
        const float mean = ref_tree(sum) / (float)dim;
        for (int i = 0; i < dim; i++) {
            const float d = x[i] - mean;
            square[i % REF_LANES] = fmaf(d, d, square[i % REF_LANES]);
        }
        const float inv = 1.0f / sqrtf(ref_tree(square) / (float)dim + eps);
        for (int i = 0; i < dim; i++) {
            y[i] = fmaf((x[i] - mean) * inv, weight[i], bias[i]);
        }
    }
}
