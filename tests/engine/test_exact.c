/* test_exact.c - a quantised file with exact linears has the logits of its f32 copy, bit for bit.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/device.h"
#include "src/base/compiler.h"
#include "src/base/mem.h"
#include "src/format/checkpoint.h"
#include "src/format/quantize.h"
#include "src/model/model.h"
#include "tests/t.h"

#define TINY   "models/galley-tiny"
#define N_ROWS 20

static void write_as(const char *in, const char *out, const char *mmproj, const char *type)
{
    const struct quantize_job job = {
        .in = in, .out = out, .mmproj = mmproj, .type = type, .n_threads = 1
    };
    struct quantize_total total = { 0 };
    struct galley_err err = { 0 };
    if (quantize_run(&job, &total, &err) != GALLEY_OK) {
        T_FAIL("%s", err.msg);
    }
    mem_free(total.mmproj);
}

/* Logits after each of N_ROWS tokens; the caller's. */
static float *logits_of(const char *path, bool exact, int *n_vocab)
{
    struct checkpoint c;
    struct device *d;
    struct model *m;
    struct kv_pool *kv;
    struct kv_seq s = { 0 };
    struct galley_err err = { 0 };
    T_EQ(device_open_cpu(&d, NULL, 2, &err), GALLEY_OK);
    d->ops->set_exact(d, exact);
    T_EQ(checkpoint_open(&c, path, "none", CHECKPOINT_CONFIG, &err), GALLEY_OK);
    T_EQ(model_open(&m, d, &c.cfg, c.weights, &err), GALLEY_OK);
    const struct kv_shape shape = model_kv_shape(m, KV_F32);
    T_EQ(kv_pool_open(&kv, d, &shape, 4, &err), GALLEY_OK);
    T_OK(kv_seq_resize(kv, &s, N_ROWS));
    int32_t token[N_ROWS], pos[N_ROWS], seq[N_ROWS] = { 0 }, keys[N_ROWS], slot[N_ROWS];
    for (int i = 0; i < N_ROWS; i++) {
        token[i] = 7 + 31 * i % 200;
        pos[i] = i;
        keys[i] = i + 1;
        slot[i] = kv_seq_slot(&s, i);
    }
    *n_vocab = model_n_vocab(m);
    float *logits = mem_array((size_t)N_ROWS * (size_t)*n_vocab, sizeof(*logits));
    T_OK(logits);
    const int32_t *const table[] = { s.blocks };
    const struct model_batch b = { .n_rows = N_ROWS,
                                   .token = token,
                                   .pos = { pos, pos, pos },
                                   .seq = seq,
                                   .n_keys = keys,
                                   .slot = slot,
                                   .block_table = table,
                                   .want = pos,
                                   .n_want = N_ROWS,
                                   .logits = logits };
    T_EQ(model_forward(m, kv, &b, &err), GALLEY_OK);
    kv_seq_clear(kv, &s);
    kv_pool_close(kv);
    model_close(m);
    checkpoint_close(&c);
    device_close(d);
    return logits;
}

static void test_logits(void)
{
    static const char *const types[] = { "q8_0", "q4_0", "q4_k" };
    for (size_t i = 0; i < COUNT(types); i++) {
        char dir[] = "/tmp/galley-exact-XXXXXX", small[64], wide[64], mmproj[64];
        T_OK(mkdtemp(dir));
        snprintf(small, sizeof(small), "%s/small.gguf", dir);
        snprintf(wide, sizeof(wide), "%s/wide.gguf", dir);
        snprintf(mmproj, sizeof(mmproj), "%s/mmproj.gguf", dir);
        write_as(TINY, small, mmproj, types[i]);
        write_as(small, wide, NULL, "f32");
        int n_vocab;
        float *codes = logits_of(small, false, &n_vocab), *exact = logits_of(small, true, &n_vocab);
        float *real = logits_of(wide, false, &n_vocab);
        (void)unlink(small);
        (void)unlink(wide);
        (void)unlink(mmproj);
        T_EQ(rmdir(dir), 0);
        const size_t bytes = (size_t)N_ROWS * (size_t)n_vocab * sizeof(*real);
        T_EQ(memcmp(exact, real, bytes), 0);
        T_OK(memcmp(codes, real, bytes) != 0); /* or nothing was quantised */
        mem_free(codes);
        mem_free(exact);
        mem_free(real);
    }
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "logits", test_logits },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
