/* test_quantize.c - checkpoints written anew: the built-in model and a small Llama from their
 * directories, towers and matrices from GGUF files made here. */
#include "src/format/quantize.h"

#include <math.h>

#include "kernels/quant.h"
#include "src/base/mem.h"
#include "src/format/checkpoint.h"
#include "src/format/gguf_config.h"
#include "src/format/gguf_write.h"
#include "tests/format/folder.h"

#define TINY  "models/galley-tiny"
#define HF    "tests/golden/hf/"
#define LLAMA HF "llama3"

struct outcome {
    int n_rows, n_padded, n_fallen;
    double worst;
};

static void count_row(void *arg, const struct quantize_row *r)
{
    struct outcome *o = arg;
    o->n_rows++;
    o->n_padded += r->padded > 0;
    o->n_fallen += r->fell_back;
    o->worst = r->error > o->worst ? r->error : o->worst;
}

static char in_path[160], out_path[160], mmproj_path[160];

static void set_paths(const struct folder *f)
{
    snprintf(in_path, sizeof(in_path), "%s/in.gguf", f->path);
    snprintf(out_path, sizeof(out_path), "%s/out.gguf", f->path);
    snprintf(mmproj_path, sizeof(mmproj_path), "%s/mmproj-out.gguf", f->path);
}

static void run(const struct quantize_job *job, struct outcome *o)
{
    struct quantize_job j = *job;
    struct quantize_total total;
    struct galley_err err = { 0 };
    *o = (struct outcome){ 0 };
    j.on_tensor = count_row;
    j.arg = o;
    if (quantize_run(&j, &total, &err)) {
        T_FAIL("%s", err.msg);
    }
    T_EQ(total.n_tensors, o->n_rows);
    mem_free(total.mmproj);
}

static struct gguf *open_file(const char *path)
{
    struct gguf *g;
    struct galley_err err = { 0 };
    if (gguf_open(&g, path, &err)) {
        T_FAIL("%s", err.msg);
    }
    return g;
}

static enum dtype type_of(const struct gguf *g, const char *name)
{
    const struct gguf_tensor *t = gguf_tensor_lookup(g, name);
    if (!t) {
        T_FAIL("no tensor %s", name);
    }
    return t->view.dtype;
}

/* names.txt is gguf-py's table (make_fixtures.py). */
static void test_names(void)
{
    static const struct {
        const char *name;
        enum hf_family family;
    } families[] = { { "qwen2", HF_QWEN2 },
                     { "qwen2vl", HF_QWEN2_5_VL },
                     { "qwen3", HF_QWEN3 },
                     { "llama", HF_LLAMA },
                     { "gemma3", HF_GEMMA3 },
                     { "qwen2.5vl_merger", HF_QWEN2_5_VL },
                     { "qwen2vl_merger", HF_QWEN2_VL } };
    char *text, arch[32], gguf[64], hf[64], in[80], want[80], got[128];
    size_t n;
    struct galley_err err = { 0 };
    T_EQ(file_read("tests/format/fixtures/gguf/names.txt", 1 << 20, &text, &n, &err), GALLEY_OK);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        T_EQ(sscanf(line, "%31s %63s %63s", arch, gguf, hf), 3);
        size_t i = 0;
        while (i < COUNT(families) && strcmp(families[i].name, arch) != 0) {
            i++;
        }
        T_OK(i < COUNT(families));
        snprintf(in, sizeof(in), "%s.weight", hf);
        snprintf(want, sizeof(want), "%s.weight", gguf);
        if (!gguf_tensor_from_hf(got, sizeof(got), in, families[i].family)) {
            T_FAIL("%s %s has no name", arch, in);
        }
        T_STR(got, want);
    }
    mem_free(text);
    static const char *const none[] = { "",
                                        "weight",
                                        "model.layers.weight",
                                        "model.layers.1.weight",
                                        "model.layers.x.mlp.up_proj.weight",
                                        "model.layers.1.mlp.up_proj.scale",
                                        "visual.blocks.0.mlp.weight" };
    for (size_t i = 0; i < COUNT(none); i++) {
        T_OK(!gguf_tensor_from_hf(got, sizeof(got), none[i], HF_QWEN2_5_VL));
    }
    T_OK(!gguf_tensor_from_hf(got, 10, "model.norm.weight", HF_QWEN2));
}

/* --- the built-in model -------------------------------------------------------------------- */

static void test_mix(void)
{
    struct folder f;
    struct outcome o;
    folder_open(&f);
    set_paths(&f);
    run(&(struct quantize_job){ .in = TINY, .out = out_path, .type = "Q4_K_M" }, &o);
    T_OK(o.worst > 0.01 && o.worst < 0.1);
    T_OK(o.n_fallen > 0);
    struct gguf *g = open_file(out_path), *v = open_file(mmproj_path);
    T_EQ(type_of(g, "token_embd.weight"), DTYPE_Q6_K); /* it is the output matrix as well */
    T_EQ(type_of(g, "output_norm.weight"), DTYPE_F32);
    T_EQ(type_of(g, "blk.0.attn_q.bias"), DTYPE_F32);
    for (int i = 0; i < 6; i++) {
        char name[64];
        const enum dtype more = i == 2 || i == 5 ? DTYPE_Q6_K : DTYPE_Q4_K;
        snprintf(name, sizeof(name), "blk.%d.attn_v.weight", i);
        T_EQ(type_of(g, name), more);
        snprintf(name, sizeof(name), "blk.%d.ffn_down.weight", i);
        T_EQ(type_of(g, name), more);
        snprintf(name, sizeof(name), "blk.%d.ffn_up.weight", i);
        T_EQ(type_of(g, name), DTYPE_Q4_K);
    }
    T_EQ(type_of(v, "v.blk.0.attn_q.weight"), DTYPE_Q5_0); /* rows of 192 */
    T_EQ(type_of(v, "v.blk.0.ffn_down.weight"), DTYPE_Q4_K);
    T_EQ(type_of(v, "v.patch_embd.weight.1"), DTYPE_F32);
    gguf_close(g);
    gguf_close(v);
    unlink(out_path);
    unlink(mmproj_path);
    folder_close(&f);
}

/* Element i of a tensor in f32. */
static float *widened(const struct tensor *t, size_t *n)
{
    *n = 1;
    for (int i = 0; i < t->n_dim; i++) {
        *n *= (size_t)t->shape[i];
    }
    float *y = mem_array(*n, sizeof(*y));
    T_OK(y);
    quant_decode(y, t->data, t->dtype, *n);
    return y;
}

/* b's values are those of a from element `first` on. */
static void same_values(const struct tensor *a, size_t first, const struct tensor *b,
                        const char *name)
{
    size_t n_a, n_b;
    float *x = widened(a, &n_a), *y = widened(b, &n_b);
    if (first + n_b > n_a || memcmp(x + first, y, n_b * sizeof(*y)) != 0) {
        T_FAIL("%s differs", name);
    }
    mem_free(x);
    mem_free(y);
}

static const struct tensor *find(const struct weights *w, const char *name)
{
    for (int i = 0; w && i < weights_count(w); i++) {
        if (strcmp(weights_name_at(w, i), name) == 0) {
            return weights_tensor_at(w, i);
        }
    }
    return NULL;
}

/* Every tensor of the directory is in the checkpoint, q, k and v of the tower apart. */
static void same_tensors(const struct weights *dir, const struct checkpoint *c)
{
    for (int i = 0; i < weights_count(dir); i++) {
        const char *name = weights_name_at(dir, i), *qkv = strstr(name, "attn.qkv.");
        const struct tensor *from = weights_tensor_at(dir, i);
        for (int k = 0; k < (qkv ? 3 : 1); k++) {
            char part[128];
            snprintf(part, sizeof(part), "%s", name);
            if (qkv) {
                snprintf(part, sizeof(part), "%.*sattn.%c.%s", (int)(qkv - name), name, "qkv"[k],
                         strrchr(name, '.') + 1);
            }
            const struct tensor *t = find(c->weights, part);
            t = t ? t : find(c->vision, part);
            if (!t) {
                T_FAIL("%s is missing", part);
            }
            const size_t cols = from->n_dim == 2 ? (size_t)from->shape[1] : 1;
            same_values(from, (size_t)k * (size_t)from->shape[0] / 3 * cols, t, part);
        }
    }
}

static void test_whole(void)
{
    struct folder f;
    struct outcome o;
    struct checkpoint c;
    struct hf_config dir;
    struct weights *w;
    struct galley_err err = { 0 };
    folder_open(&f);
    set_paths(&f);
    run(&(struct quantize_job){ .in = TINY, .out = out_path, .type = "f32" }, &o);
    T_OK(o.worst == 0);
    if (checkpoint_open(&c, out_path, NULL, CHECKPOINT_ALL, &err) ||
        hf_config_read(&dir, TINY, &err) || weights_open(&w, TINY, &err)) {
        T_FAIL("%s", err.msg);
    }
    T_EQ(c.cfg.family, dir.family);
    T_EQ(c.cfg.text.n_layers, dir.text.n_layers);
    T_EQ(c.cfg.text.head_dim, dir.text.head_dim);
    T_EQ(c.cfg.text.mrope_section[1], dir.text.mrope_section[1]);
    T_OK(c.cfg.text.rope.theta == dir.text.rope.theta);
    T_EQ(c.cfg.image_pad, dir.image_pad);
    T_EQ(c.cfg.eos[0], dir.eos[0]);
    T_OK(c.cfg.has_vision);
    T_EQ(c.cfg.vision.n_fullatt, dir.vision.n_fullatt);
    T_EQ(c.cfg.vision.fullatt[1], dir.vision.fullatt[1]);
    T_EQ(c.cfg.pre.max_pixels, dir.pre.max_pixels);
    T_EQ(tokenizer_lookup(c.tok, "<|im_end|>"), dir.eos[0]);
    same_tensors(w, &c);
    weights_close(w);
    checkpoint_close(&c);
    unlink(out_path);
    unlink(mmproj_path);
    folder_close(&f);
}

static void read_file(const char *path, char **bytes, size_t *n)
{
    struct galley_err err = { 0 };
    if (file_read(path, (size_t)1 << 28, bytes, n, &err)) {
        T_FAIL("%s", err.msg);
    }
}

static void test_threads(void)
{
    struct folder f;
    struct outcome o, p;
    char *a, *b;
    size_t n_a, n_b;
    folder_open(&f);
    set_paths(&f);
    struct quantize_job job = { .in = TINY, .out = out_path, .type = "q5_0", .n_threads = 1 };
    run(&job, &o);
    read_file(out_path, &a, &n_a);
    job.n_threads = 3;
    run(&job, &p);
    read_file(out_path, &b, &n_b);
    T_OK(n_a == n_b && memcmp(a, b, n_a) == 0);
    T_OK(o.worst == p.worst);
    mem_free(a);
    mem_free(b);
    unlink(out_path);
    unlink(mmproj_path);
    folder_close(&f);
}

/* --- GGUF files made here ------------------------------------------------------------------ */

#define FFN   100
#define WIDTH 64

struct plan {
    const char *name;
    int n_dim;
    int64_t shape[2];
};

static const struct plan tower[] = {
    { "v.blk.0.ln1.weight", 1, { WIDTH } },    { "v.blk.0.ffn_gate.weight", 2, { FFN, WIDTH } },
    { "v.blk.0.ffn_gate.bias", 1, { FFN } },   { "v.blk.0.ffn_up.weight", 2, { FFN, WIDTH } },
    { "v.blk.0.ffn_up.bias", 1, { FFN } },     { "v.blk.0.ffn_down.weight", 2, { WIDTH, FFN } },
    { "v.blk.0.ffn_down.bias", 1, { WIDTH } },
};

static const struct plan language[] = {
    { "token_embd.weight", 2, { 7, 256 } },    { "output.weight", 2, { 7, 256 } },
    { "blk.0.attn_norm.weight", 1, { 256 } },  { "blk.0.attn_q.weight", 2, { 5, 256 } },
    { "blk.0.ffn_down.weight", 2, { 3, 96 } }, { "blk.0.odd.weight", 2, { 3, 20 } },
};

static void write_in(const struct plan *rows, size_t n, int i_nan)
{
    struct gguf_writer *w;
    struct galley_err err = { 0 };
    T_EQ(gguf_write_open(&w, in_path, &err), GALLEY_OK);
    gguf_write_string(w, "general.architecture", rows == tower ? "clip" : "qwen2");
    gguf_write_u32(w, "clip.vision.feed_forward_length", FFN);
    gguf_write_u32(w, "general.file_type", 99);
    gguf_write_u32(w, "kept", 5);
    for (size_t i = 0; i < n; i++) {
        gguf_write_tensor(w, rows[i].name, DTYPE_F32, rows[i].n_dim, rows[i].shape);
    }
    T_EQ(gguf_write_begin(w, &err), GALLEY_OK);
    int at = 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t count = rows[i].shape[0] * (rows[i].n_dim == 2 ? rows[i].shape[1] : 1);
        for (int64_t k = 0; k < count; k++, at++) {
            const float x = at == i_nan ? NAN : (float)(at * 7919 % 1000 - 500) / 1000;
            gguf_write_data(w, &x, sizeof(x));
        }
    }
    T_EQ(gguf_write_close(w, &err), GALLEY_OK);
}

/* The first rows and columns of b are a's, about; the others are zero exactly. */
static void padded_like(const struct gguf *a, const struct gguf *b, const char *name)
{
    size_t n;
    const struct tensor *x = &gguf_tensor_lookup(a, name)->view;
    const struct tensor *y = &gguf_tensor_lookup(b, name)->view;
    float *p = widened(x, &n), *q = widened(y, &n);
    const int64_t x_cols = x->shape[x->n_dim - 1], y_cols = y->shape[y->n_dim - 1];
    for (int64_t i = 0; i < (int64_t)n; i++) {
        const int64_t row = i / y_cols, col = i % y_cols;
        const bool inside = col < x_cols && (x->n_dim == 1 || row < x->shape[0]);
        const float want = inside ? p[row * x_cols + col] : 0;
        if (fabsf(q[i] - want) > (inside ? 0.003f : 0)) {
            T_FAIL("%s [%d][%d] is %g, not %g", name, (int)row, (int)col, (double)q[i],
                   (double)want);
        }
    }
    mem_free(p);
    mem_free(q);
}

static void test_padding(void)
{
    struct folder f;
    struct outcome o;
    folder_open(&f);
    set_paths(&f);
    write_in(tower, COUNT(tower), -1);
    run(&(struct quantize_job){ .in = in_path, .out = out_path, .type = "q8_0" }, &o);
    T_EQ(o.n_padded, 5);
    T_EQ(o.n_fallen, 0);
    struct gguf *a = open_file(in_path), *b = open_file(out_path);
    T_EQ(gguf_int(gguf_lookup(b, "clip.vision.feed_forward_length"), 0), 128);
    T_EQ(gguf_int(gguf_lookup(b, "general.file_type"), 0), 7);
    T_EQ(gguf_int(gguf_lookup(b, "kept"), 0), 5);
    T_EQ(gguf_tensor_lookup(b, "v.blk.0.ffn_down.weight")->view.shape[1], 128);
    T_EQ(gguf_tensor_lookup(b, "v.blk.0.ffn_up.weight")->view.shape[0], 128);
    T_EQ(gguf_tensor_lookup(b, "v.blk.0.ffn_gate.bias")->view.shape[0], 128);
    for (size_t i = 0; i < COUNT(tower); i++) {
        padded_like(a, b, tower[i].name);
    }
    gguf_close(b);
    /* Nothing to pad where there are no blocks. */
    run(&(struct quantize_job){ .in = in_path, .out = out_path, .type = "f16" }, &o);
    T_EQ(o.n_padded, 0);
    b = open_file(out_path);
    T_EQ(gguf_int(gguf_lookup(b, "clip.vision.feed_forward_length"), 0), FFN);
    gguf_close(a);
    gguf_close(b);
    unlink(in_path);
    unlink(out_path);
    folder_close(&f);
}

static void test_rules(void)
{
    struct folder f;
    struct outcome o;
    const struct quantize_rule rules[] = { { "*_q.weight", DTYPE_Q3_K },
                                           { "blk.*.attn_*.weight", DTYPE_Q5_1 },
                                           { "token_embd.*", DTYPE_BF16 } };
    folder_open(&f);
    set_paths(&f);
    write_in(language, COUNT(language), -1);
    struct quantize_job job = {
        .in = in_path, .out = out_path, .type = "q2_k", .rules = rules, .n_rules = COUNT(rules)
    };
    run(&job, &o);
    struct gguf *g = open_file(out_path);
    T_EQ(type_of(g, "token_embd.weight"), DTYPE_BF16);
    T_EQ(type_of(g, "output.weight"), DTYPE_Q6_K);
    T_EQ(type_of(g, "blk.0.attn_norm.weight"), DTYPE_F32);
    T_EQ(type_of(g, "blk.0.attn_q.weight"), DTYPE_Q5_1);
    T_EQ(type_of(g, "blk.0.ffn_down.weight"), DTYPE_IQ4_NL); /* rows of 96 */
    T_EQ(type_of(g, "blk.0.odd.weight"), DTYPE_F16);         /* rows of 20 */
    T_EQ(o.n_fallen, 2);
    gguf_close(g);
    /* What has the type already goes over byte for byte. */
    char again[200];
    snprintf(again, sizeof(again), "%s/again.gguf", f.path);
    job.in = out_path;
    job.out = again;
    run(&job, &o);
    T_OK(o.worst == 0);
    char *a, *b;
    size_t n_a, n_b;
    read_file(out_path, &a, &n_a);
    read_file(again, &b, &n_b);
    T_OK(n_a == n_b && memcmp(a, b, n_a) == 0);
    mem_free(a);
    mem_free(b);
    unlink(again);
    unlink(in_path);
    unlink(out_path);
    folder_close(&f);
}

static void refuses(const struct quantize_job *job, enum galley_status status, const char *says)
{
    struct quantize_total total;
    struct galley_err err = { 0 };
    T_EQ(quantize_run(job, &total, &err), status);
    if (!strstr(err.msg, says)) {
        T_FAIL("\"%s\" does not say %s", err.msg, says);
    }
    T_OK(job->out == in_path || access(job->out, F_OK) != 0);
}

static void test_refusals(void)
{
    struct folder f;
    folder_open(&f);
    set_paths(&f);
    struct quantize_job job = { .in = in_path, .out = out_path, .type = "q4_0" };
    refuses(&job, GALLEY_EMODEL, "in.gguf");
    write_in(language, COUNT(language), 2 * 7 * 256 + 256 + 256 + 3);
    refuses(&job, GALLEY_EMODEL, "blk.0.attn_q.weight: the value in row 1, column 3");
    write_in(language, COUNT(language), -1);
    job.type = "q4_9";
    refuses(&job, GALLEY_EUSAGE, "q4_k_m");
    job.type = "q4_0";
    job.out = in_path;
    refuses(&job, GALLEY_EUSAGE, "over itself");
    job.out = out_path;
    job.mmproj = mmproj_path;
    refuses(&job, GALLEY_EUSAGE, "vision tower");
    job.mmproj = NULL;
    const struct quantize_rule rule = { "blk.9.*", DTYPE_Q4_K };
    job.rules = &rule;
    job.n_rules = 1;
    refuses(&job, GALLEY_EUSAGE, "blk.9.*");
    job.n_rules = 0;
    job.imatrix = "tests/fuzz/corpus/fuzz_imatrix/nan";
    refuses(&job, GALLEY_EINPUT, "nan");
    job.imatrix = "tests/fuzz/corpus/fuzz_imatrix/good"; /* of no tensor here */
    refuses(&job, GALLEY_EINPUT, "another model");
    job.imatrix = NULL;
    job.in = f.path;
    refuses(&job, GALLEY_EMODEL, "config.json");
    job.in = LLAMA; /* without a tokenizer */
    refuses(&job, GALLEY_EMODEL, "tokenizer.json");
    unlink(in_path);
    folder_close(&f);
}

static void test_no_memory(void)
{
    struct folder f;
    struct quantize_total total;
    struct galley_err err = { 0 };
    folder_open(&f);
    set_paths(&f);
    write_in(tower, COUNT(tower), -1);
    const struct quantize_job job = {
        .in = in_path, .out = out_path, .type = "q8_0", .n_threads = 1
    };
    mem_fail_at(0);
    T_EQ(quantize_run(&job, &total, &err), GALLEY_OK);
    const long n = mem_count();
    unlink(out_path);
    for (long i = 1; i <= n; i++) {
        mem_fail_at(i);
        const enum galley_status rc = quantize_run(&job, &total, &err);
        mem_fail_at(0);
        if (rc == GALLEY_OK || access(out_path, F_OK) == 0) {
            T_FAIL("allocation %ld failed, status %d", i, (int)rc);
        }
    }
    unlink(in_path);
    folder_close(&f);
}

/* Four tokens, merged as Llama 3's are. */
static const char tokenizer[] =
    "{\"added_tokens\": [{\"id\": 3, \"content\": \"<|end|>\", \"special\": true}],"
    "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\","
    "\"pattern\": {\"Regex\": \"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"
    "\\\\p{L}+|\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|"
    "\\\\s+(?!\\\\S)|\\\\s+\"}, \"behavior\": \"Isolated\"}, {\"type\": \"ByteLevel\","
    "\"use_regex\": false}]}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1,"
    "\"ab\": 2}, \"merges\": [[\"a\", \"b\"]]}}";

/* --- a Llama ------------------------------------------------------------------------------- */

static void copy_in(struct folder *f, const char *model, const char *name)
{
    char path[200], *bytes;
    size_t n;
    snprintf(path, sizeof(path), HF "%s/%s", model, name);
    read_file(path, &bytes, &n);
    folder_write(f, name, bytes, n);
    mem_free(bytes);
}

/* Row 2i + j of a head is row i + j * half of the directory's: llama.cpp rotates neighbours. */
static void same_heads(const struct tensor *hf, const struct tensor *g, int head_dim)
{
    size_t n;
    float *x = widened(hf, &n), *y = widened(g, &n);
    const int64_t cols = hf->shape[1];
    for (int64_t r = 0; r < hf->shape[0]; r++) {
        const int64_t head = r / head_dim * head_dim, i = r % head_dim;
        const int64_t to = head + (i < head_dim / 2 ? 2 * i : 2 * (i - head_dim / 2) + 1);
        T_OK(memcmp(x + r * cols, y + to * cols, (size_t)cols * sizeof(*x)) == 0);
    }
    mem_free(x);
    mem_free(y);
}

static void test_llama(void)
{
    struct folder f;
    struct outcome o;
    struct hf_config cfg;
    struct weights *w;
    struct galley_err err = { 0 };
    folder_open(&f);
    set_paths(&f);
    copy_in(&f, "llama3", "config.json");
    copy_in(&f, "llama3", "model.safetensors");
    folder_text(&f, "tokenizer.json", tokenizer);
    folder_text(&f, "tokenizer_config.json", "{\"eos_token\": {\"content\": \"<|end|>\"}}");
    run(&(struct quantize_job){ .in = f.path, .out = out_path, .type = "f32" }, &o);
    T_EQ(hf_config_read(&cfg, f.path, &err), GALLEY_OK);
    T_EQ(weights_open(&w, f.path, &err), GALLEY_OK);
    struct gguf *g = open_file(out_path);
    same_heads(find(w, "model.layers.1.self_attn.q_proj.weight"),
               &gguf_tensor_lookup(g, "blk.1.attn_q.weight")->view, cfg.text.head_dim);
    same_heads(find(w, "model.layers.0.self_attn.k_proj.weight"),
               &gguf_tensor_lookup(g, "blk.0.attn_k.weight")->view, cfg.text.head_dim);
    same_values(find(w, "model.layers.0.self_attn.v_proj.weight"), 0,
                &gguf_tensor_lookup(g, "blk.0.attn_v.weight")->view, "attn_v");
    /* The rotary scaling comes back as the numbers of config.json. */
    struct hf_config back;
    if (gguf_config_text(&back, g, &err)) {
        T_FAIL("%s", err.msg);
    }
    T_EQ(back.text.rope.kind, HF_ROPE_LLAMA3);
    T_NEAR(back.text.rope.factor, cfg.text.rope.factor, 1e-3);
    /* Context and limits come as proportions. */
    T_NEAR(back.text.rope.original_context / back.text.rope.low,
           cfg.text.rope.original_context / cfg.text.rope.low, 0.05);
    T_NEAR(back.text.rope.original_context / back.text.rope.high,
           cfg.text.rope.original_context / cfg.text.rope.high, 0.05);
    struct gguf_string s;
    T_EQ(gguf_read_string(g, "tokenizer.ggml.pre", true, &s, &err), GALLEY_OK);
    T_OK(gguf_string_is(&s, "llama-bpe"));
    const struct gguf_value *v = gguf_lookup(g, "tokenizer.ggml.tokens");
    T_EQ(v->n, cfg.text.n_vocab);
    T_OK(gguf_string_is(&v->strings[2], "ab") && gguf_string_is(&v->strings[4], "[PAD4]"));
    v = gguf_lookup(g, "tokenizer.ggml.token_type");
    T_EQ(gguf_int(v, 2), 1);
    T_EQ(gguf_int(v, 3), 3);
    T_EQ(gguf_int(v, 4), 5);
    v = gguf_lookup(g, "tokenizer.ggml.merges");
    T_OK(v && v->n == 1 && gguf_string_is(&v->strings[0], "a b"));
    T_EQ(gguf_int(gguf_lookup(g, "tokenizer.ggml.eos_token_id"), 0), 3);
    gguf_close(g);
    weights_close(w);
    unlink(out_path);
    folder_close(&f);
}

/* --- Gemma 3, and names of newer checkpoints ------------------------------------------------ */

/* config.json of `model` with `from` made `to`. */
static void config_in(struct folder *f, const char *model, const char *from, const char *to)
{
    char path[200], *bytes;
    size_t n;
    struct buf b;
    snprintf(path, sizeof(path), HF "%s/config.json", model);
    read_file(path, &bytes, &n);
    const char *at = strstr(bytes, from);
    T_OK(at);
    buf_init(&b, 1 << 16);
    buf_add(&b, bytes, (size_t)(at - bytes));
    buf_add_str(&b, to);
    buf_add_str(&b, at + strlen(from));
    folder_write(f, "config.json", b.data, b.n);
    buf_deinit(&b);
    mem_free(bytes);
}

static void plus_one(const struct weights *w, const char *name, const struct gguf *g,
                     const char *gguf)
{
    const struct gguf_tensor *t = gguf_tensor_lookup(g, gguf);
    size_t n, n_stored;
    T_OK(t);
    float *x = widened(&t->view, &n), *stored = widened(find(w, name), &n_stored);
    T_EQ(n, n_stored);
    for (size_t i = 0; i < n; i++) {
        T_NEAR(x[i], stored[i] + 1, 1e-7);
    }
    mem_free(x);
    mem_free(stored);
}

static void same_gemma(const struct hf_text_config *a, const struct hf_text_config *b)
{
    T_EQ(a->window, b->window);
    T_EQ(a->window_pattern, b->window_pattern);
    T_EQ(a->head_dim, b->head_dim);
    T_EQ(a->rope.kind, b->rope.kind);
    T_NEAR(a->rope.factor, b->rope.factor, 0);
    T_NEAR(a->rope.theta, b->rope.theta, 0);
    T_NEAR(a->rope_local.theta, b->rope_local.theta, 0);
    T_NEAR(a->query_scale, b->query_scale, 1e-7);
    T_NEAR(a->embed_scale, b->embed_scale, 1e-7);
    T_OK(a->gelu && a->qk_norm && a->tied && b->tied);
}

static void test_gemma(void)
{
    struct folder f;
    struct outcome o;
    struct hf_config cfg, back;
    struct weights *w;
    struct galley_err err = { 0 };
    folder_open(&f);
    set_paths(&f);
    config_in(&f, "gemma3", "\"query_pre_attn_scalar\": 20", "\"query_pre_attn_scalar\": 24");
    copy_in(&f, "gemma3", "model.safetensors");
    folder_text(&f, "tokenizer.json", tokenizer);
    run(&(struct quantize_job){ .in = f.path, .out = out_path, .type = "f32" }, &o);
    T_EQ(hf_config_read(&cfg, f.path, &err), GALLEY_OK);
    T_EQ(weights_open(&w, f.path, &err), GALLEY_OK);
    struct gguf *g = open_file(out_path);
    plus_one(w, "model.norm.weight", g, "output_norm.weight");
    plus_one(w, "model.layers.1.input_layernorm.weight", g, "blk.1.attn_norm.weight");
    plus_one(w, "model.layers.1.post_attention_layernorm.weight", g,
             "blk.1.post_attention_norm.weight");
    plus_one(w, "model.layers.1.pre_feedforward_layernorm.weight", g, "blk.1.ffn_norm.weight");
    plus_one(w, "model.layers.1.post_feedforward_layernorm.weight", g,
             "blk.1.post_ffw_norm.weight");
    plus_one(w, "model.layers.1.self_attn.q_norm.weight", g, "blk.1.attn_q_norm.weight");
    same_values(find(w, "model.layers.1.self_attn.q_proj.weight"), 0,
                &gguf_tensor_lookup(g, "blk.1.attn_q.weight")->view, "attn_q");
    T_EQ(gguf_config_text(&back, g, &err), GALLEY_OK);
    T_EQ(back.family, HF_GEMMA3);
    same_gemma(&back.text, &cfg.text);
    gguf_close(g);
    weights_close(w);
    unlink(out_path);
    folder_close(&f);
}

/* What GGUF has no key for is not left out in silence. */
static void test_unsayable(void)
{
    struct quantize_job job = { .out = "x.gguf", .type = "f32" };
    job.in = HF "gemma3";
    refuses(&job, GALLEY_EUNSUP, "query_pre_attn_scalar");
    job.in = HF "gemma3_vl";
    refuses(&job, GALLEY_EUNSUP, "attn_logit_softcapping");
    job.in = HF "qwen2_window";
    refuses(&job, GALLEY_EUNSUP, "a sliding window in qwen2");
}

/* model.language_model.layers.0 ... and model.visual.blocks.0 ... */
static void test_nested(void)
{
    struct folder f;
    struct outcome o;
    struct weights *w;
    struct galley_err err = { 0 };
    folder_open(&f);
    set_paths(&f);
    copy_in(&f, "q25_official", "config.json");
    copy_in(&f, "q25_official", "model.safetensors");
    folder_text(&f, "tokenizer.json", tokenizer);
    run(&(struct quantize_job){ .in = f.path, .out = out_path, .type = "f32" }, &o);
    T_EQ(weights_open(&w, f.path, &err), GALLEY_OK);
    struct gguf *g = open_file(out_path), *mm = open_file(mmproj_path);
    same_values(find(w, "model.language_model.layers.0.mlp.up_proj.weight"), 0,
                &gguf_tensor_lookup(g, "blk.0.ffn_up.weight")->view, "ffn_up");
    same_values(find(w, "model.visual.blocks.0.norm1.weight"), 0,
                &gguf_tensor_lookup(mm, "v.blk.0.ln1.weight")->view, "ln1");
    gguf_close(g);
    gguf_close(mm);
    weights_close(w);
    unlink(out_path);
    unlink(mmproj_path);
    folder_close(&f);
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "names", test_names },         { "mix", test_mix },
        { "whole", test_whole },         { "threads", test_threads },
        { "padding", test_padding },     { "rules", test_rules },
        { "refusals", test_refusals },   { "no_memory", test_no_memory },
        { "llama", test_llama },         { "gemma", test_gemma },
        { "unsayable", test_unsayable }, { "nested", test_nested },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
