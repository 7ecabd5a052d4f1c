/* test_vit_job.c - encoding in pieces: same bits in any interleaving, memory known beforehand,
 * given up at any piece; and the tower's identity. */
#include <unistd.h>

#include "tests/tensor_place.h"
#include "tests/toy_checkpoint.h"

/* Counts what is allocated on the device. */
static const struct dev_ops *plain_ops;
static uint64_t alloc_bytes;

static void *counting_alloc(struct device *d, size_t bytes)
{
    alloc_bytes += bytes;
    return plain_ops->alloc(d, bytes);
}

enum { N_GRIDS = 3 };

struct fixture {
    struct toy_checkpoint c;
    struct vision_grid grid[N_GRIDS];
    float *in[N_GRIDS], *want[N_GRIDS]; /* patches, and what vit_encode makes of them */
    size_t n_out[N_GRIDS];              /* floats */
};

/* A strip, a square over one slice, and a single cell. */
static struct fixture fixture_open(const char *dir, const char *isa)
{
    struct fixture f = { .c = checkpoint_open(dir, device_for(isa, 2)),
                         .grid = { { 1, 4, 30 }, { 1, 34, 40 }, { 1, 2, 2 } } };
    const struct hf_vision_config *v = &f.c.cfg.vision;
    const size_t n_in = vision_patch_floats(v);
    struct galley_err err = { 0 };
    unsigned r = 7;
    for (int i = 0; i < N_GRIDS; i++) {
        const size_t rows = (size_t)(f.grid[i].h * f.grid[i].w);
        f.n_out[i] = (size_t)vision_n_tokens(&f.grid[i], v) * (size_t)v->out_hidden;
        f.in[i] = mem_many(float, rows *n_in);
        f.want[i] = mem_many(float, f.n_out[i]);
        T_OK(f.in[i] && f.want[i]);
        for (size_t k = 0; k < rows * n_in; k++) {
            r = r * 1664525u + 1013904223u;
            f.in[i][k] = (float)(r >> 16) / 32768.0f - 1.0f;
        }
        T_EQ(vit_encode(f.c.vit, f.want[i], f.in[i], &f.grid[i], 1, &err), GALLEY_OK);
    }
    return f;
}

static void fixture_close(struct fixture *f)
{
    for (int i = 0; i < N_GRIDS; i++) {
        mem_free(f->in[i]);
        mem_free(f->want[i]);
    }
    checkpoint_close(&f->c);
}

static const char *const dirs[] = { GOLDEN_HF "q25_gqa", GOLDEN_HF "q2_full" };

/* Three jobs at once, a step each in turn; out is written by the last step alone. */
static void interleaved(void)
{
    for (size_t d = 0; d < COUNT(dirs); d++) {
        struct fixture f = fixture_open(dirs[d], NULL);
        struct vit_job *job[N_GRIDS];
        float *out[N_GRIDS];
        int n_steps[N_GRIDS] = { 0 }, n_open = N_GRIDS;
        for (int i = 0; i < N_GRIDS; i++) {
            struct vision_grid g = f.grid[i];
            T_EQ(vit_job_new(&job[i], f.c.vit, f.in[i], &g, 1, NULL), GALLEY_OK);
            g = (struct vision_grid){ 0 }; /* it was copied */
            out[i] = mem_many(float, f.n_out[i]);
            T_OK(out[i] && vit_job_reads_patches(job[i]));
        }
        while (n_open > 0) {
            for (int i = 0; i < N_GRIDS; i++) {
                if (!job[i]) {
                    continue;
                }
                n_steps[i]++;
                if (!vit_job_step(job[i], out[i])) {
                    T_OK(out[i][0] == 0 && out[i][f.n_out[i] - 1] == 0);
                    if (!vit_job_reads_patches(job[i])) {
                        mem_free(f.in[i]);
                        f.in[i] = NULL;
                    }
                    continue;
                }
                T_OK(!vit_job_reads_patches(job[i]));
                T_OK(memcmp(out[i], f.want[i], f.n_out[i] * sizeof(float)) == 0);
                memset(out[i], 0, f.n_out[i] * sizeof(float));
                T_OK(vit_job_step(job[i], out[i]) && out[i][0] == 0);
                vit_job_free(job[i]);
                job[i] = NULL;
                n_open--;
            }
        }
        const int depth = f.c.cfg.vision.depth;
        T_EQ(n_steps[2], 2 + 3 * depth);
        T_OK(n_steps[1] >= 6 + 7 * depth); /* three slices; attention in ranges of rows */
        for (int i = 0; i < N_GRIDS; i++) {
            mem_free(out[i]);
        }
        fixture_close(&f);
    }
}

/* The planner's figure is what is taken, and a job gives everything back, wherever it stops. */
static void memory(void)
{
    struct fixture f = fixture_open(dirs[0], "ref");
    struct device *dev = f.c.dev;
    const struct hf_vision_config *v = &f.c.cfg.vision;
    struct dev_ops ops = *dev->ops;
    plain_ops = dev->ops;
    ops.alloc = counting_alloc;
    dev->ops = &ops;
    float *out = mem_many(float, f.n_out[0]);
    T_OK(out);
    uint64_t fixed = 0; /* the job's own record */
    for (int i = 0; i < N_GRIDS; i++) {
        struct vit_job *j;
        alloc_bytes = 0;
        T_EQ(vit_job_new(&j, f.c.vit, f.in[i], &f.grid[i], 1, NULL), GALLEY_OK);
        const uint64_t plan = vit_job_bytes(v, &f.grid[i], 1);
        T_OK(plan > alloc_bytes && plan - alloc_bytes < 1000);
        T_OK(fixed == 0 || fixed == plan - alloc_bytes);
        fixed = plan - alloc_bytes;
        vit_job_free(j);
    }
    const uint64_t together = vit_job_bytes(v, f.grid, N_GRIDS);
    T_OK(together > vit_job_bytes(v, &f.grid[1], 1));
    for (int stop = 0, done = 0; !done; stop++) { /* leak checkers watch */
        struct vit_job *j;
        T_EQ(vit_job_new(&j, f.c.vit, f.in[0], &f.grid[0], 1, NULL), GALLEY_OK);
        mem_fail_at(0);
        for (int i = 0; i < stop; i++) {
            done = vit_job_step(j, out);
        }
        T_EQ(mem_count(), 0); /* steps never allocate */
        vit_job_free(j);
    }
    for (int n = 1; n <= 2; n++) {
        struct galley_err err = { 0 };
        struct vit_job *j;
        mem_fail_at(n);
        T_EQ(vit_job_new(&j, f.c.vit, f.in[0], &f.grid[0], 1, &err), GALLEY_ENOMEM);
        mem_fail_at(0);
        T_OK(!j && strstr(err.msg, "120 patches"));
    }
    vit_job_free(NULL);
    dev->ops = plain_ops;
    mem_free(out);
    fixture_close(&f);
}

/* The real tower's figures, before a byte of it exists. */
static void sizes_of_the_3b_tower(void)
{
    const struct hf_vision_config v = { .hidden = 1280,
                                        .depth = 32,
                                        .n_head = 16,
                                        .intermediate = 3420,
                                        .out_hidden = 2048,
                                        .patch = 14,
                                        .temporal_patch = 2,
                                        .merge = 2,
                                        .in_channels = 3,
                                        .window = 112,
                                        .gated_rms = true };
    const struct vision_grid page = { 1, 96, 68 },
                             photo = { 1, 292, 216 }; /* 1.3 and 12.4 Mpixel */
    const struct vision_grid absurd = { 1, 1 << 20, 1 << 20 };
    const uint64_t per_patch = 4 * (5 * 1280 + 80), slices = 512ull * 4 * (1280 + 3 * 3420);
    const uint64_t page_bytes = vit_job_bytes(&v, &page, 1);
    const uint64_t photo_bytes = vit_job_bytes(&v, &photo, 1);
    T_OK(page_bytes > 96 * 68 * per_patch + slices);
    T_OK(page_bytes < 96 * 68 * (per_patch + 10) + slices + 100000);
    T_OK(photo_bytes > 292 * 216 * per_patch &&
         photo_bytes < 292 * 216 * (per_patch + 10) + slices + 200000);
    T_OK(vit_job_bytes(&v, &absurd, 1) > (uint64_t)1 << 54);
    T_OK(vit_job_bytes(&v, NULL, 0) < 2000);
}

static void nothing_and_too_much(void)
{
    struct toy_checkpoint c = checkpoint_open(dirs[0], device_for("ref", 1));
    struct galley_err err = { 0 };
    struct vit_job *j;
    T_EQ(vit_job_new(&j, c.vit, NULL, NULL, 0, &err), GALLEY_OK);
    T_OK(vit_job_step(j, NULL));
    vit_job_free(j);
    T_EQ(vit_encode(c.vit, NULL, NULL, NULL, 0, &err), GALLEY_OK);
    const struct vision_grid huge = { 1, 60000, 60000 };
    T_EQ(vit_job_new(&j, c.vit, NULL, &huge, 1, &err), GALLEY_ELIMIT);
    T_OK(!j && strstr(err.msg, "3600000000 patches"));
    T_EQ(vit_encode(c.vit, NULL, NULL, &huge, 1, &err), GALLEY_ELIMIT);
    checkpoint_close(&c);
}

/* ---- identity ---- */

static unsigned char whole[HASH_BYTES]; /* hash_of's other answer */

static void hash_of(const char *dir, struct hf_config *cfg, unsigned char out[HASH_BYTES])
{
    struct galley_err err = { 0 };
    struct weights *w = NULL;
    if (weights_open(&w, dir, &err) || vit_hash(out, cfg, w, &err) ||
        vit_hash_whole(whole, cfg, w, 2, &err)) {
        T_FAIL("%s", err.msg);
    }
    weights_close(w);
}

/* The same checkpoint, its file changed by one byte of the tower's data or none. */
static void identity(void)
{
    static const char dir[] = GOLDEN_HF "q2_full";
    struct hf_config cfg;
    unsigned char plain[HASH_BYTES], other[HASH_BYTES];
    T_EQ(hf_config_read(&cfg, dir, NULL), GALLEY_OK);
    hash_of(dir, &cfg, plain);
    hash_of(dir, &cfg, other);
    T_OK(memcmp(plain, other, HASH_BYTES) == 0);
    cfg.pre.mean[1] += 0.001f;
    hash_of(dir, &cfg, other);
    T_OK(memcmp(plain, other, HASH_BYTES) != 0);
    cfg.pre.mean[1] -= 0.001f;
    cfg.vision.norm_eps *= 2;
    hash_of(dir, &cfg, other);
    T_OK(memcmp(plain, other, HASH_BYTES) != 0);
    T_EQ(hf_config_read(&cfg, dir, NULL), GALLEY_OK);
    cfg.pre.max_pixels /= 2; /* shows in the grid, not in the tower */
    hash_of(dir, &cfg, other);
    T_OK(memcmp(plain, other, HASH_BYTES) == 0);

    char copy[] = "/tmp/galley-vit-XXXXXX", path[64], *bytes = NULL;
    size_t n = 0;
    T_OK(mkdtemp(copy));
    snprintf(path, sizeof(path), "%s/model.safetensors", copy);
    T_EQ(file_read(GOLDEN_HF "q2_full/model.safetensors", 1 << 26, &bytes, &n, NULL), GALLEY_OK);
    size_t n_data;
    bytes[tensor_place(bytes, "visual.merger.ln_q.weight", &n_data)] ^= 1;
    T_EQ(file_write(path, bytes, n, NULL), GALLEY_OK);
    hash_of(copy, &cfg, other);
    T_OK(memcmp(plain, other, HASH_BYTES) != 0);
    mem_free(bytes);
    unlink(path);
    rmdir(copy);
}

/* A value between the samples: the whole hash sees it, whatever the threads. */
static void every_byte_counts(void)
{
    struct hf_config cfg;
    unsigned char sampled[HASH_BYTES], plain[HASH_BYTES], again[HASH_BYTES];
    char copy[] = "/tmp/galley-vit-XXXXXX", path[64], *bytes = NULL;
    size_t n = 0, n_data;
    T_EQ(hf_config_read(&cfg, MODEL_TINY, NULL), GALLEY_OK);
    hash_of(MODEL_TINY, &cfg, sampled);
    memcpy(plain, whole, HASH_BYTES);
    T_OK(memcmp(plain, sampled, HASH_BYTES) != 0);
    T_OK(mkdtemp(copy));
    snprintf(path, sizeof(path), "%s/model.safetensors", copy);
    T_EQ(file_read(MODEL_TINY "/model.safetensors", 1 << 28, &bytes, &n, NULL), GALLEY_OK);
    const size_t at = tensor_place(bytes, "visual.blocks.0.attn.qkv.weight", &n_data);
    T_OK(n_data > 16 * 4096);
    bytes[at + n_data / 4] ^= 1;
    T_EQ(file_write(path, bytes, n, NULL), GALLEY_OK);
    hash_of(copy, &cfg, again);
    T_OK(memcmp(again, sampled, HASH_BYTES) == 0); /* what sampling does not see */
    T_OK(memcmp(whole, plain, HASH_BYTES) != 0);
    struct weights *w;
    T_EQ(weights_open(&w, MODEL_TINY, NULL), GALLEY_OK);
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        T_EQ(vit_hash_whole(again, &cfg, w, n_threads, NULL), GALLEY_OK);
        T_OK(memcmp(again, plain, HASH_BYTES) == 0);
    }
    weights_close(w);
    mem_free(bytes);
    unlink(path);
    rmdir(copy);
}

static const struct t_case cases[] = {
    { "interleaved", interleaved },
    { "memory", memory },
    { "sizes_of_the_3b_tower", sizes_of_the_3b_tower },
    { "nothing_and_too_much", nothing_and_too_much },
    { "identity", identity },
    { "every_byte_counts", every_byte_counts },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
