/* cpu_kv.c - writes rows into the paged cache. */
#include <assert.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/kv_store.h"

struct write_job {
    struct cpu_device *c;
    const struct kv_write_args *a;
    int each;
};

/* dst[i * KV_BLOCK] = src[i], elements of some bytes each. */
static void scatter(char *dst, const char *src, size_t width, size_t n)
{
    for (size_t i = 0; i < n && width == 1; i++) {
        dst[i * KV_BLOCK] = src[i];
    }
    for (size_t i = 0; i < n && width == 2; i++) {
        memcpy(dst + i * KV_BLOCK * 2, src + i * 2, 2);
    }
    for (size_t i = 0; i < n && width == 4; i++) {
        memcpy(dst + i * KV_BLOCK * 4, src + i * 4, 4);
    }
}

static void write_row(const struct write_job *j, int r)
{
    const struct kv_write_args *a = j->a;
    kv_narrow_fn *const narrow = j->c->k.kv_narrow;
    const size_t dim = (size_t)a->head_dim, n_kv = (size_t)a->n_kv_head;
    const size_t width = kv_width(a->kv_type), codes = n_kv * KV_BLOCK * dim * width;
    const size_t bytes = kv_array_block_bytes(a->kv_type, a->n_kv_head, a->head_dim);
    const size_t block = (size_t)a->slot[r] / KV_BLOCK, at = (size_t)a->slot[r] % KV_BLOCK;
    char *k = (char *)a->k_cache + block * bytes, *v = (char *)a->v_cache + block * bytes;
    _Alignas(64) char column[ATTN_HEAD_DIM_MAX * 4];
    for (size_t h = 0; h < n_kv; h++) {
        const size_t from = (size_t)r * a->ld + h * dim, to = h * KV_BLOCK * dim;
        const float k_scale = narrow(column, a->kv_type, a->k + from, a->head_dim);
        const float v_scale =
            narrow(v + (to + at * dim) * width, a->kv_type, a->v + from, a->head_dim);
        scatter(k + (to + at) * width, column, width, dim);
        if (a->kv_type == KV_Q8) {
            ((float *)(void *)(k + codes))[h * KV_BLOCK + at] = k_scale;
            ((float *)(void *)(v + codes))[h * KV_BLOCK + at] = v_scale;
        }
    }
}

static void write_piece(void *arg, int i, int i_thread)
{
    (void)i_thread;
    const struct write_job *j = arg;
    for (int r = i * j->each; r < j->a->rows && r < (i + 1) * j->each; r++) {
        if (j->a->slot[r] >= 0) {
            write_row(j, r);
        }
    }
}

void cpu_kv_write(struct device *d, const struct kv_write_args *a)
{
    /* Whole blocks' worth of rows per piece: two threads rarely meet in a cache line. */
    assert(a->head_dim > 0 && a->head_dim <= ATTN_HEAD_DIM_MAX);
    struct write_job j = { cpu_of(d), a, KV_BLOCK };
    cpu_run(j.c, write_piece, &j, (a->rows + KV_BLOCK - 1) / KV_BLOCK,
            2e-3 * a->rows * a->n_kv_head * a->head_dim);
}
