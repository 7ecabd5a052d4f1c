/* attn_avx512.c - see attn_body.h and turn_body.h. */
#include "kernels/x86/v16_avx512.h"

#include "kernels/x86/attn_body.h"
#include "kernels/x86/turn_body.h"

void attn_soft_avx512(const struct attn_soft *a)
{
    attn_soft_body(a);
}

void attn_turn_avx512(float *dst, const float *src, size_t ld, int n, int head_dim)
{
    turn_body(dst, src, ld, n, head_dim);
}
