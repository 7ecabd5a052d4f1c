/* rope.c - see rope.h, and the tables of device.h. */
#include "kernels/rope.h"

#include <math.h>
#include <stddef.h>

#include "kernels/device.h"

void rope_row_ref(float *x, const float *cos, const float *sin, int n_head, int head_dim)
{
    const int half = head_dim / 2;
    for (int h = 0; h < n_head; h++, x += head_dim) {
        for (int i = 0; i < half; i++) {
            const float a = x[i], b = x[half + i];
            x[i] = fmaf(a, cos[i], 0.0f - b * sin[i]);
            x[half + i] = fmaf(b, cos[i], a * sin[i]);
        }
    }
}

void rope_table(float *cos_out, float *sin_out, const int32_t *const pos[3], const int section[3],
                int rows, int head_dim, double theta)
{
    const int half = head_dim / 2;
    for (int i = 0; i < half; i++) {
        const double inv_freq = pow(theta, -2.0 * i / head_dim);
        const int axis = i < section[0] ? 0 : i < section[0] + section[1] ? 1 : 2;
        for (int r = 0; r < rows; r++) {
            const double angle = pos[axis][r] * inv_freq;
            const size_t at = (size_t)r * (size_t)half + (size_t)i;
            cos_out[at] = (float)cos(angle);
            sin_out[at] = (float)sin(angle);
        }
    }
}
