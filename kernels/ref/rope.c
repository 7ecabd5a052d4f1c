/* rope.c - see rope.h, and the tables of device.h. */
#include "kernels/rope.h"

#include <math.h>
#include <stddef.h>

#include "kernels/device.h"

static void turn(float *x, float *y, float cos, float sin)
{
    const float a = *x, b = *y;
    *x = fmaf(a, cos, 0.0f - b * sin);
    *y = fmaf(b, cos, a * sin);
}

void rope_row_ref(float *x, const float *cos, const float *sin, int n_head, int head_dim,
                  int rot_dim)
{
    const int half = rot_dim / 2;
    for (int h = 0; h < n_head; h++, x += head_dim) {
        for (int i = 0; i < half; i++) {
            turn(&x[i], &x[half + i], cos[i], sin[i]);
        }
    }
}

void rope_pairs_ref(float *x, const float *cos, const float *sin, int n_head, int head_dim,
                    int rot_dim)
{
    for (int h = 0; h < n_head; h++, x += head_dim) {
        for (int i = 0; i < rot_dim / 2; i++) {
            turn(&x[2 * i], &x[2 * i + 1], cos[i], sin[i]);
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

void rope_angles(float *cos_out, float *sin_out, const int32_t *const pos[3], const uint8_t *axis,
                 const double *freq, int rows, int n_pairs, double gain)
{
    for (int r = 0; r < rows; r++, cos_out += n_pairs, sin_out += n_pairs) {
        for (int i = 0; i < n_pairs; i++) {
            const double angle = pos[axis[i]][r] * freq[i];
            cos_out[i] = (float)(cos(angle) * gain);
            sin_out[i] = (float)(sin(angle) * gain);
        }
    }
}
