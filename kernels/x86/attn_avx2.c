/* attn_avx2.c - see attn_body.h and turn_body.h. */
#include "kernels/x86/v16_avx2.h"

#include "kernels/x86/attn_body.h"
#include "kernels/x86/turn_body.h"

void attn_soft_avx2(const struct attn_soft *a)
{
    attn_soft_body(a);
}

void attn_turn_avx2(float *dst, const float *src, size_t ld, int n, int head_dim)
{
    turn_body(dst, src, ld, n, head_dim);
}
