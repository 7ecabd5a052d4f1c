/* widen.c - see widen.h. */
#include "kernels/widen.h"

#include <stdint.h>
#include <string.h>

#include "src/base/half.h"

void widen_ref(float *dst, const void *src, enum dtype type, size_t n)
{
    if (type == DTYPE_F32) {
        memcpy(dst, src, n * sizeof(float));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, (const char *)src + 2 * i, sizeof(h));
        dst[i] = type == DTYPE_F16 ? f16_to_f32(h) : bf16_to_f32(h);
    }
}

void narrow_strided(void *dst, size_t stride, enum dtype type, const float *src, size_t n)
{
    if (type == DTYPE_F32) {
        float *d = dst;
        for (size_t i = 0; i < n; i++) {
            d[i * stride] = src[i];
        }
        return;
    }
    uint16_t *d = dst;
    for (size_t i = 0; i < n; i++) {
        d[i * stride] = type == DTYPE_F16 ? f16_from_f32(src[i]) : bf16_from_f32(src[i]);
    }
}
