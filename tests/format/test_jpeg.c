/* test_jpeg.c - pixels against Pillow, EXIF, damage, bombs. */
#include "src/format/exif.h"
#include "src/format/jpeg.h"
#include "tests/format/pixels.h"

#define LIMIT 1000000

static void check_golden(const char *name, struct bytes f, int width, int height, const char *hex)
{
    struct galley_err err = { 0 };
    struct image *im;
    bool damaged;
    if (jpeg_decode(&im, &damaged, f.p, f.n, LIMIT, &err)) {
        T_FAIL("%s: %s", name, err.msg);
    }
    T_EQ(im->width, width);
    T_EQ(im->height, height);
    T_OK(!damaged);
    /* Rounding of CMYK and YCCK is ours; decoders agree exactly on the rest. */
    if (pixels_differ(im, hex) > (name[0] == 'c' || name[1] == 'c' ? 2 : 0)) {
        T_FAIL("%s: differs by %d", name, pixels_differ(im, hex));
    }
    image_unref(im);
}

static void golden(void)
{
    T_EQ(golden_each("jpeg", check_golden), 32);
}

static enum galley_status must_settle(const uint8_t *p, size_t n, bool *damaged)
{
    struct galley_err err = { 0 };
    struct image *im;
    const enum galley_status rc = jpeg_decode(&im, damaged, p, n, LIMIT, &err);
    T_OK((rc == GALLEY_OK) == (im != NULL));
    T_OK(rc == GALLEY_OK || (err.msg[0] && err.status == rc));
    image_unref(im);
    return rc;
}

static void truncated(void)
{
    static const char *const names[] = { "ycc420.jpg", "ycc444_progressive.jpg", "exif6.jpg",
                                         "cmyk_adobe.jpg" };
    for (size_t i = 0; i < COUNT(names); i++) {
        struct bytes f = file_of("jpeg", names[i]);
        int n_refused = 0, n_damaged = 0;
        for (size_t n = 0; n < f.n; n++) {
            uint8_t *cut = mem_alloc(n); /* exact, for the sanitizers */
            memcpy(cut, f.p, n);
            bool damaged;
            const enum galley_status rc = must_settle(cut, n, &damaged);
            mem_free(cut);
            T_OK(rc == GALLEY_OK || rc == GALLEY_EINPUT);
            n_refused += rc != GALLEY_OK;
            n_damaged += damaged;
            /* The end marker itself may be missing; anything else shows. */
            T_OK(rc != GALLEY_OK || damaged || n >= f.n - 3);
        }
        T_OK(n_refused > 300 && n_damaged > 30);
        mem_free(f.p);
    }
}

/* Offset of the first segment with this marker's second byte; the data behind it. */
static size_t find_marker(struct bytes f, unsigned marker)
{
    size_t at = 2;
    while (at + 4 < f.n && f.p[at + 1] != marker) {
        T_EQ(f.p[at], 0xff);
        at += 2 + ((size_t)f.p[at + 2] << 8 | f.p[at + 3]);
    }
    T_OK(at + 4 < f.n);
    return at;
}

/* Whole rows before the cut are right, what follows is gray. */
static void cut_keeps_rows(void)
{
    struct bytes f = file_of("jpeg", "ycc444.jpg"); /* 37 x 29: 4 rows of blocks */
    struct galley_err err = { 0 };
    struct image *whole, *cut;
    bool damaged;
    T_EQ(jpeg_decode(&whole, &damaged, f.p, f.n, LIMIT, &err), GALLEY_OK);
    T_EQ(jpeg_decode(&cut, &damaged, f.p, (find_marker(f, 0xda) + f.n) / 2, LIMIT, &err),
         GALLEY_OK);
    T_OK(damaged);
    T_OK(memcmp(whole->rgb, cut->rgb, 8 * whole->stride) == 0);
    const uint8_t *last = cut->rgb + 28 * cut->stride;
    for (size_t x = 0; x < 37 * 3; x++) {
        T_EQ(last[x], 128);
    }
    image_unref(whole);
    image_unref(cut);
    mem_free(f.p);
}

/* With a header but no picture data there is nothing worth keeping. */
static void cut_before_the_first_row(void)
{
    static const char *const names[] = { "ycc444.jpg", "gray_progressive.jpg" };
    for (size_t i = 0; i < COUNT(names); i++) {
        struct bytes f = file_of("jpeg", names[i]);
        struct galley_err err = { 0 };
        struct image *im;
        bool damaged;
        const size_t scan = find_marker(f, 0xda);
        const size_t n = scan + 2 + ((size_t)f.p[scan + 2] << 8 | f.p[scan + 3]) + 3;
        T_EQ(jpeg_decode(&im, &damaged, f.p, n, LIMIT, &err), GALLEY_EINPUT);
        T_STR(err.msg, "JPEG: the data ends before the first row is whole");
        mem_free(f.p);
    }
}

static void flipped(void)
{
    static const char *const names[] = { "gray_progressive.jpg", "one.jpg", "exif5_little.jpg" };
    for (size_t i = 0; i < COUNT(names); i++) {
        struct bytes f = file_of("jpeg", names[i]);
        int n_refused = 0;
        for (size_t bit = 0; bit < f.n * 8; bit++) {
            bool damaged;
            f.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
            n_refused += must_settle(f.p, f.n, &damaged) != GALLEY_OK;
            f.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        T_OK(n_refused > 50);
        mem_free(f.p);
    }
}

static void patch_size(struct bytes f, size_t frame, unsigned width, unsigned height)
{
    f.p[frame + 5] = (uint8_t)(height >> 8);
    f.p[frame + 6] = (uint8_t)height;
    f.p[frame + 7] = (uint8_t)(width >> 8);
    f.p[frame + 8] = (uint8_t)width;
}

static void bomb(void)
{
    struct bytes f = file_of("jpeg", "ycc444_progressive.jpg");
    struct galley_err err = { 0 };
    struct image *im;
    bool damaged;
    const size_t frame = find_marker(f, 0xc2);
    patch_size(f, frame, 60000, 60000);
    mem_fail_at(0);
    T_EQ(jpeg_decode(&im, &damaged, f.p, f.n, 100000000, &err), GALLEY_ELIMIT);
    T_EQ(mem_count(), 1); /* the decoder's own state */
    T_OK(strstr(err.msg, "60000 x 60000") && strstr(err.msg, "100000000"));
    patch_size(f, frame, 65535, 65535);
    T_EQ(jpeg_decode(&im, &damaged, f.p, f.n, UINT64_MAX, &err), GALLEY_ELIMIT);
    patch_size(f, frame, 0, 10);
    T_EQ(jpeg_decode(&im, &damaged, f.p, f.n, LIMIT, &err), GALLEY_EINPUT);
    mem_free(f.p);
}

/* A progressive file that repeats its first scan for ever. */
static void scan_bomb(void)
{
    struct bytes f = file_of("jpeg", "gray_progressive.jpg");
    const size_t from = find_marker(f, 0xda);
    size_t to = from + 4;
    while (!(f.p[to] == 0xff && f.p[to + 1] >= 0xc0)) {
        to++;
    }
    const size_t n_scan = to - from, n = f.n + 600 * n_scan;
    uint8_t *p = mem_alloc(n);
    memcpy(p, f.p, to);
    for (size_t i = 0; i < 600; i++) {
        memcpy(p + to + i * n_scan, f.p + from, n_scan);
    }
    memcpy(p + to + 600 * n_scan, f.p + to, f.n - to);
    bool damaged;
    T_EQ(must_settle(p, n, &damaged), GALLEY_ELIMIT);
    T_EQ(must_settle(p, to + 100 * n_scan, &damaged), GALLEY_OK);
    mem_free(p);
    mem_free(f.p);
}

static void unsupported_kinds(void)
{
    struct bytes f = file_of("jpeg", "gray.jpg");
    const size_t frame = find_marker(f, 0xc0);
    bool damaged;
    f.p[frame + 1] = 0xc1; /* extended, 12 bits */
    f.p[frame + 4] = 12;
    T_EQ(must_settle(f.p, f.n, &damaged), GALLEY_EUNSUP);
    f.p[frame + 1] = 0xc3; /* lossless */
    f.p[frame + 4] = 8;
    T_EQ(must_settle(f.p, f.n, &damaged), GALLEY_EUNSUP);
    f.p[frame + 1] = 0xc5; /* hierarchical */
    T_EQ(must_settle(f.p, f.n, &damaged), GALLEY_EUNSUP);
    mem_free(f.p);
}

static void no_memory(void)
{
    struct bytes f = file_of("jpeg", "exif7.jpg");
    bool damaged;
    mem_fail_at(0);
    T_EQ(must_settle(f.p, f.n, &damaged), GALLEY_OK);
    const long n = mem_count();
    T_OK(n >= 4);
    for (long i = 1; i <= n; i++) {
        mem_fail_at(i);
        const enum galley_status rc = must_settle(f.p, f.n, &damaged);
        mem_fail_at(0);
        T_EQ(rc, GALLEY_ENOMEM);
    }
    mem_free(f.p);
}

static void exif_orientations(void)
{
    unsigned char e[] = "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0";
    const size_t n = sizeof(e) - 1;
    T_EQ(exif_orientation(e, n), 6);
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *p = mem_alloc(cut);
        memcpy(p, e, cut);
        const int o = exif_orientation(p, cut);
        mem_free(p);
        T_OK(o == 1 || (o == 6 && cut >= 28));
    }
    e[25] = 9; /* no such orientation */
    T_EQ(exif_orientation(e, n), 1);
    e[25] = 6;
    e[19] = 4; /* a LONG where a SHORT belongs */
    T_EQ(exif_orientation(e, n), 1);
    e[19] = 3;
    memset(e + 10, 0xff, 4); /* the directory lies far outside */
    T_EQ(exif_orientation(e, n), 1);
}

static const struct t_case cases[] = {
    { "golden", golden },
    { "truncated", truncated },
    { "cut_keeps_rows", cut_keeps_rows },
    { "cut_before_the_first_row", cut_before_the_first_row },
    { "flipped", flipped },
    { "bomb", bomb },
    { "scan_bomb", scan_bomb },
    { "unsupported_kinds", unsupported_kinds },
    { "no_memory", no_memory },
    { "exif_orientations", exif_orientations },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
