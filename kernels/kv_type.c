/* kv_type.c - sizes and names of cache types. */
#include <assert.h>

#include "kernels/device.h"

size_t kv_array_block_bytes(enum kv_type t, int n_kv_head, int head_dim)
{
    static const size_t width[KV_TYPE_COUNT] = { 4, 2, 2, 1, 1 };
    assert(t >= 0 && t < KV_TYPE_COUNT && n_kv_head > 0 && head_dim > 0);
    const size_t keys = (size_t)n_kv_head * KV_BLOCK;
    return keys * (size_t)head_dim * width[t] + (t == KV_Q8 ? keys * sizeof(float) : 0);
}

const char *kv_type_name(enum kv_type t)
{
    static const char *const names[KV_TYPE_COUNT] = { "f32", "f16", "bf16", "q8", "fp8" };
    assert(t >= 0 && t < KV_TYPE_COUNT);
    return names[t];
}
