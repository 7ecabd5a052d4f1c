/* cpu_kv.c - writes rows into the paged cache. */
#include "kernels/cpu.h"
#include "kernels/kv_store.h"

struct write_job {
    const struct kv_write_args *a;
    int each;
};

static void write_row(const struct kv_write_args *a, int r)
{
    const size_t dim = (size_t)a->head_dim, n_kv = (size_t)a->n_kv_head;
    const size_t width = kv_width(a->kv_type), codes = n_kv * KV_BLOCK * dim * width;
    const size_t bytes = kv_array_block_bytes(a->kv_type, a->n_kv_head, a->head_dim);
    const size_t block = (size_t)a->slot[r] / KV_BLOCK, at = (size_t)a->slot[r] % KV_BLOCK;
    char *k = (char *)a->k_cache + block * bytes, *v = (char *)a->v_cache + block * bytes;
    for (size_t h = 0; h < n_kv; h++) {
        const size_t from = (size_t)r * a->ld + h * dim, to = h * KV_BLOCK * dim;
        const float k_scale =
            kv_narrow(k + (to + at) * width, KV_BLOCK, a->kv_type, a->k + from, a->head_dim);
        const float v_scale =
            kv_narrow(v + (to + at * dim) * width, 1, a->kv_type, a->v + from, a->head_dim);
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
            write_row(j->a, r);
        }
    }
}

void cpu_kv_write(struct device *d, const struct kv_write_args *a)
{
    /* Whole blocks' worth of rows per piece: two threads rarely meet in a cache line. */
    struct write_job j = { a, KV_BLOCK };
    cpu_run(cpu_of(d), write_piece, &j, (a->rows + KV_BLOCK - 1) / KV_BLOCK,
            4e-3 * a->rows * a->n_kv_head * a->head_dim);
}
