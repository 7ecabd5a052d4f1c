/* rope_avx2.c - see rope_body.h. */
#include "kernels/x86/v16_avx2.h"

#include "kernels/x86/rope_body.h"

void rope_row_avx2(float *x, const float *cos, const float *sin, int n_head, int head_dim,
                   int rot_dim)
{
    rope_row_body(x, cos, sin, n_head, head_dim, rot_dim);
}

void rope_pairs_avx2(float *x, const float *cos, const float *sin, int n_head, int head_dim,
                     int rot_dim)
{
    rope_pairs_body(x, cos, sin, n_head, head_dim, rot_dim);
}
