/* test_imatrix.c - importance matrices, honest and not. */
#include "src/format/imatrix.h"

#include <math.h>

#include "src/base/mem.h"
#include "src/format/gguf_write.h"
#include "tests/format/folder.h"
#include "tests/format/gguf_bytes.h"

static void put_entry(struct buf *b, const char *name, int32_t n_calls, const float *v, int32_t n)
{
    put_u32(b, (uint32_t)strlen(name));
    buf_add_str(b, name);
    put_u32(b, (uint32_t)n_calls);
    put_u32(b, (uint32_t)n);
    buf_add(b, v, (size_t)n * sizeof(*v));
}

static void old_form(struct buf *b)
{
    static const float v[] = { 4, 0, 0.5f, 1e30f };
    buf_init(b, 4096);
    put_u32(b, 2);
    put_entry(b, "blk.1.ffn_up.weight", 3, v, 4);
    put_entry(b, "blk.0.ffn_up.weight", 3, v + 1, 2);
    put_u32(b, 7); /* last chunk */
    put_str(b, "wiki.txt");
}

static enum galley_status parse(struct imatrix **out, const struct buf *b, size_t n,
                                struct galley_err *err)
{
    char *copy = mem_alloc(n ? n : 1); /* exact: a sanitizer sees the first byte beyond */
    if (n) {
        memcpy(copy, b->data, n);
    }
    const enum galley_status rc = imatrix_parse(out, "im.dat", copy, n, err);
    mem_free(copy);
    return rc;
}

static void test_old_form(void)
{
    struct buf b;
    struct imatrix *im;
    struct galley_err err = { 0 };
    size_t n;
    old_form(&b);
    T_EQ(parse(&im, &b, b.n, &err), GALLEY_OK);
    T_EQ(imatrix_count(im), 2);
    const float *v = imatrix_lookup(im, "blk.1.ffn_up.weight", &n);
    T_OK(v && n == 4);
    T_OK(v[0] == 4 && v[1] == 0 && v[2] == 0.5f);
    T_OK(imatrix_lookup(im, "blk.0.ffn_up.weight", &n) && n == 2);
    T_OK(!imatrix_lookup(im, "blk.2.ffn_up.weight", &n));
    imatrix_close(im);
    buf_deinit(&b);
}

/* Every prefix that ends inside the entries is refused with a sentence. */
static void test_cut(void)
{
    struct buf b;
    struct imatrix *im;
    old_form(&b);
    const size_t whole = b.n - 4 - 8 - 8;
    for (size_t n = 0; n < whole; n++) {
        struct galley_err err = { 0 };
        T_EQ(parse(&im, &b, n, &err), GALLEY_EINPUT);
        T_OK(im == NULL && err.msg[0]);
    }
    buf_deinit(&b);
}

static void refuses(const float *v, const char *name_1, const char *name_2, const char *says)
{
    struct buf b;
    struct imatrix *im;
    struct galley_err err = { 0 };
    buf_init(&b, 4096);
    put_u32(&b, 2);
    put_entry(&b, name_1, 1, v, 2);
    put_entry(&b, name_2, 1, v, 2);
    T_EQ(parse(&im, &b, b.n, &err), GALLEY_EINPUT);
    if (!strstr(err.msg, says)) {
        T_FAIL("\"%s\" does not say %s", err.msg, says);
    }
    buf_deinit(&b);
}

static void test_lies(void)
{
    static const float good[] = { 1, 2 }, negative[] = { 1, -1 }, no_number[] = { NAN, 1 },
                       endless[] = { 1, INFINITY };
    refuses(good, "same", "same", "same");
    refuses(negative, "a", "b", "value 1");
    refuses(no_number, "a", "b", "entry a");
    refuses(endless, "a", "b", "entry a");
    static const uint32_t counts[] = { 0, 0xffffffff, 0x7fffffff };
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct buf b;
        struct imatrix *im;
        struct galley_err err = { 0 };
        old_form(&b);
        memcpy(b.data, &counts[i], 4); /* entries */
        T_EQ(parse(&im, &b, b.n, &err), GALLEY_EINPUT);
        buf_deinit(&b);
        old_form(&b);
        memcpy(b.data + 4, &counts[i], 4); /* length of the first name */
        T_EQ(parse(&im, &b, b.n, &err), GALLEY_EINPUT);
        memcpy(b.data + 4, "\x13\0\0\0", 4);
        memcpy(b.data + 8 + 19 + 4, &counts[i], 4); /* values of the first */
        T_EQ(parse(&im, &b, b.n, &err), GALLEY_EINPUT);
        buf_deinit(&b);
    }
}

static void write_gguf(const char *path, int64_t n_counts, const char *tail)
{
    struct gguf_writer *w;
    struct galley_err err = { 0 };
    const int64_t sums[] = { 1, 3 }, counts[] = { n_counts, 1 };
    static const float values[] = { 8, 2, 0, 4, 4 };
    char name[64];
    T_EQ(gguf_write_open(&w, path, &err), GALLEY_OK);
    gguf_write_string(w, "general.type", "imatrix");
    snprintf(name, sizeof(name), "blk.0.attn_q.weight%s", tail);
    gguf_write_tensor(w, name, DTYPE_F32, 2, sums);
    gguf_write_tensor(w, "blk.0.attn_q.weight.counts", DTYPE_F32, 2, counts);
    T_EQ(gguf_write_begin(w, &err), GALLEY_OK);
    gguf_write_data(w, values, (size_t)(3 + n_counts) * sizeof(float));
    T_EQ(gguf_write_close(w, &err), GALLEY_OK);
}

static void test_gguf(void)
{
    struct folder f;
    struct imatrix *im;
    struct galley_err err = { 0 };
    char path[128];
    size_t n;
    folder_open(&f);
    snprintf(path, sizeof(path), "%s/im.gguf", f.path);
    write_gguf(path, 1, ".in_sum2");
    if (imatrix_open(&im, path, &err)) {
        T_FAIL("%s", err.msg);
    }
    const float *v = imatrix_lookup(im, "blk.0.attn_q.weight", &n);
    T_OK(v && n == 3);
    T_OK(v[0] == 2 && v[1] == 0.5f && v[2] == 0);
    imatrix_close(im);
    write_gguf(path, 2, ".in_sum2");
    T_EQ(imatrix_open(&im, path, &err), GALLEY_EINPUT);
    T_OK(strstr(err.msg, "counts"));
    write_gguf(path, 1, ".other");
    T_EQ(imatrix_open(&im, path, &err), GALLEY_EINPUT);
    T_OK(im == NULL);
    T_EQ(unlink(path), 0);
    T_OK(imatrix_open(&im, path, &err) != GALLEY_OK);
    T_OK(strstr(err.msg, "im.gguf"));
    folder_close(&f);
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "old_form", test_old_form },
        { "cut", test_cut },
        { "lies", test_lies },
        { "gguf", test_gguf },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
