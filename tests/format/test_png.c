/* test_png.c - pixels against the arrays the files were made of, damage, bombs, writing. */
#include "src/base/buf.h"
#include "src/format/png.h"
#include "tests/format/pixels.h"

#define LIMIT 1000000

static void check_golden(const char *name, struct bytes f, int width, int height, const char *hex)
{
    struct galley_err err = { 0 };
    struct image *im;
    if (png_decode(&im, f.p, f.n, LIMIT, &err)) {
        T_FAIL("%s: %s", name, err.msg);
    }
    T_EQ(im->width, width);
    T_EQ(im->height, height);
    if (pixels_differ(im, hex) != 0) {
        T_FAIL("%s: differs by %d", name, pixels_differ(im, hex));
    }
    image_unref(im);
}

static void golden(void)
{
    T_EQ(golden_each("png", check_golden), 54);
}

/* Either a picture or a refusal with a sentence; nothing else. */
static enum galley_status must_settle(const uint8_t *p, size_t n)
{
    struct galley_err err = { 0 };
    struct image *im;
    const enum galley_status rc = png_decode(&im, p, n, LIMIT, &err);
    T_OK((rc == GALLEY_OK) == (im != NULL));
    T_OK(rc == GALLEY_OK || (err.msg[0] && err.status == rc));
    image_unref(im);
    return rc;
}

static void truncated(void)
{
    static const char *const names[] = { "rgba8_adam7.png", "palette4_trns.png", "filters.png" };
    for (size_t i = 0; i < COUNT(names); i++) {
        struct bytes f = file_of("png", names[i]);
        for (size_t n = 0; n < f.n; n++) {
            /* A copy of just these bytes, so that a sanitizer sees any read past them. */
            uint8_t *cut = mem_alloc(n);
            memcpy(cut, f.p, n);
            const enum galley_status rc = must_settle(cut, n);
            mem_free(cut);
            /* IEND and the last checksum are not needed for the pixels. */
            T_OK(rc == GALLEY_EINPUT || n >= f.n - 16);
        }
        mem_free(f.p);
    }
}

static void flipped(void)
{
    static const char *const names[] = { "gray16_trns.png", "palette2_trns_adam7.png" };
    for (size_t i = 0; i < COUNT(names); i++) {
        struct bytes f = file_of("png", names[i]);
        int n_bad = 0;
        for (size_t bit = 0; bit < f.n * 8; bit++) {
            f.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
            n_bad += must_settle(f.p, f.n) != GALLEY_OK;
            f.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        T_OK(n_bad > 100); /* checksums see most of them */
        mem_free(f.p);
    }
}

static void trailing_garbage_is_fine(void)
{
    struct bytes f = file_of("png", "rgb8.png");
    uint8_t *more = mem_alloc(f.n + 1000);
    memcpy(more, f.p, f.n);
    memset(more + f.n, 0xaa, 1000);
    T_EQ(must_settle(more, f.n + 1000), GALLEY_OK);
    mem_free(more);
    mem_free(f.p);
}

static void set_be32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(v >> (24 - 8 * i));
    }
}

/* The size is refused before anything is allocated: not one call reaches the heap. */
static void bomb(void)
{
    struct bytes f = file_of("png", "rgb8.png");
    struct galley_err err = { 0 };
    struct image *im;
    set_be32(f.p + 16, 60000);
    set_be32(f.p + 20, 60000);
    mem_fail_at(0);
    T_EQ(png_decode(&im, f.p, f.n, 100000000, &err), GALLEY_ELIMIT);
    T_EQ(mem_count(), 0);
    T_OK(strstr(err.msg, "60000 x 60000") && strstr(err.msg, "100000000"));
    set_be32(f.p + 16, 0xffffffffu);
    set_be32(f.p + 20, 0xffffffffu);
    T_EQ(png_decode(&im, f.p, f.n, UINT64_MAX, &err), GALLEY_ELIMIT);
    set_be32(f.p + 16, 0);
    T_EQ(png_decode(&im, f.p, f.n, LIMIT, &err), GALLEY_EINPUT);
    mem_free(f.p);
}

static void limit_is_exact(void)
{
    struct bytes f = file_of("png", "rgb8.png"); /* 21 x 13 */
    struct galley_err err = { 0 };
    struct image *im;
    T_EQ(png_decode(&im, f.p, f.n, 21 * 13, &err), GALLEY_OK);
    image_unref(im);
    T_EQ(png_decode(&im, f.p, f.n, 21 * 13 - 1, &err), GALLEY_ELIMIT);
    mem_free(f.p);
}

static void no_memory(void)
{
    struct bytes f = file_of("png", "rgba16_adam7.png");
    T_EQ(must_settle(f.p, f.n), GALLEY_OK);
    mem_fail_at(0);
    T_EQ(must_settle(f.p, f.n), GALLEY_OK);
    const long n = mem_count();
    T_OK(n > 5);
    for (long i = 1; i <= n; i++) {
        mem_fail_at(i);
        const enum galley_status rc = must_settle(f.p, f.n);
        mem_fail_at(0);
        /* zlib's own allocations come back as a libpng error without a memory sentence. */
        T_OK(rc == GALLEY_ENOMEM || rc == GALLEY_EINPUT);
    }
    mem_free(f.p);
}

static struct image *noise(int width, int height)
{
    struct image *im = image_new(width, height);
    T_OK(im);
    unsigned seed = 7;
    for (size_t i = 0; i < im->stride * (size_t)height; i++) {
        seed = seed * 1103515245u + 12345u;
        im->rgb[i] = (uint8_t)(seed >> 16);
    }
    return im;
}

/* Our own decoder is checked against golden values above, so it may judge the writer. */
static void writes_what_it_reads(void)
{
    static const int sizes[][2] = { { 1, 1 }, { 17, 3 }, { 200, 100 } };
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct image *im = noise(sizes[i][0], sizes[i][1]), *back;
        struct buf out;
        struct galley_err err = { 0 };
        buf_init(&out, 1 << 20);
        T_EQ(png_encode(&out, im, &err), GALLEY_OK);
        T_EQ(png_decode(&back, out.data, out.n, LIMIT, &err), GALLEY_OK);
        T_EQ(back->width, im->width);
        T_EQ(back->height, im->height);
        T_OK(memcmp(back->rgb, im->rgb, im->stride * (size_t)im->height) == 0);
        image_unref(back);
        image_unref(im);
        buf_deinit(&out);
    }
}

static void writing_fails_cleanly(void)
{
    struct image *im = noise(60, 40);
    struct buf out;
    struct galley_err err = { 0 };
    buf_init(&out, 1000); /* too small for noise */
    T_EQ(png_encode(&out, im, &err), GALLEY_ENOMEM);
    buf_deinit(&out);
    buf_init(&out, 1 << 20);
    mem_fail_at(0);
    T_EQ(png_encode(&out, im, &err), GALLEY_OK);
    const long n = mem_count();
    buf_deinit(&out);
    for (long i = 1; i <= n; i++) {
        buf_init(&out, 1 << 20);
        mem_fail_at(i);
        const enum galley_status rc = png_encode(&out, im, &err);
        mem_fail_at(0);
        T_OK(rc != GALLEY_OK && err.msg[0]);
        buf_deinit(&out);
    }
    image_unref(im);
}

static const struct t_case cases[] = {
    { "golden", golden },
    { "truncated", truncated },
    { "flipped", flipped },
    { "trailing_garbage_is_fine", trailing_garbage_is_fine },
    { "bomb", bomb },
    { "limit_is_exact", limit_is_exact },
    { "no_memory", no_memory },
    { "writes_what_it_reads", writes_what_it_reads },
    { "writing_fails_cleanly", writing_fails_cleanly },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
