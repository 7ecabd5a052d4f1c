/* quant.c - see quant.h: names, and which decoder and encoder belongs to which type. */
#include "kernels/quant.h"

#include <strings.h>

#include "kernels/ref/quant_ref.h"
#include "kernels/widen.h"

typedef void decode_fn(float *y, const uint8_t *src, size_t n);

void quant_decode(float *y, const void *src, enum dtype t, size_t n)
{
    static decode_fn *const decode[DTYPE_COUNT] = {
        [DTYPE_Q4_0] = quant_decode_q4_0,     [DTYPE_Q4_1] = quant_decode_q4_1,
        [DTYPE_Q5_0] = quant_decode_q5_0,     [DTYPE_Q5_1] = quant_decode_q5_1,
        [DTYPE_Q8_0] = quant_decode_q8_0,     [DTYPE_Q2_K] = quant_decode_q2_k,
        [DTYPE_Q3_K] = quant_decode_q3_k,     [DTYPE_Q4_K] = quant_decode_q4_k,
        [DTYPE_Q5_K] = quant_decode_q5_k,     [DTYPE_Q6_K] = quant_decode_q6_k,
        [DTYPE_IQ4_NL] = quant_decode_iq4_nl, [DTYPE_IQ4_XS] = quant_decode_iq4_xs,
        [DTYPE_MXFP4] = quant_decode_mxfp4,
    };
    assert(n % (size_t)dtype_info(t)->block == 0);
    if (dtype_is_dense(t)) {
        widen_ref(y, src, t, n);
        return;
    }
    decode[t](y, src, n);
}

enum dtype quant_dtype_named(const char *name)
{
    for (int t = 0; t < DTYPE_COUNT; t++) {
        if (strcasecmp(name, dtype_name((enum dtype)t)) == 0) {
            return (enum dtype)t;
        }
    }
    return DTYPE_COUNT;
}
