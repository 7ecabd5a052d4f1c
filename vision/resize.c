/* resize.c - bicubic resampling, pixel for pixel what Pillow's Image.resize(BICUBIC) gives.
 *
 * Keys' kernel with a = -0.5, stretched by the reduction factor (antialias), normalised in
 * double, then 22-bit fixed point; horizontal pass first, rounded to 8 bits, then vertical.
 * Any deviation from that order or precision moves pixels, which the vision tower would see.
 * (Pillow 13 swaps the passes when the height shrinks much more than the width; every model so
 * far was trained on the older order, which is the one here.) */
#include "vision/resize.h"

#include <assert.h>
#include <math.h>

#include "src/base/mem.h"
#include "vision/vision.h"

#define WEIGHT_BITS 22 /* 8 bits of pixel, 2 of overshoot, 32 in all */

/* For every output sample: the input samples it reads and their weights. */
struct kernel {
    int n_out, n_taps;
    int *first, *count; /* [n_out] */
    int32_t *weights;   /* [n_out][n_taps]; count[i] of them used */
};

static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0) {
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    }
    return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
}

static void kernel_deinit(struct kernel *k)
{
    mem_free(k->first);
    mem_free(k->count);
    mem_free(k->weights);
}

/* Weights of output sample i into w[0..count). */
static void kernel_fill(struct kernel *k, int i, int n_in, double *w)
{
    const double scale = (double)n_in / k->n_out;
    const double stretch = scale < 1.0 ? 1.0 : scale;
    const double support = 2.0 * stretch, center = (i + 0.5) * scale;
    int first = (int)(center - support + 0.5); /* truncates: below 0 becomes 0 */
    int end = (int)(center + support + 0.5);
    first = first < 0 ? 0 : first;
    end = end > n_in ? n_in : end;
    double sum = 0;
    for (int x = first; x < end; x++) {
        w[x - first] = cubic((x - center + 0.5) * (1.0 / stretch));
        sum += w[x - first];
    }
    int32_t *fixed = k->weights + (size_t)i * (size_t)k->n_taps;
    for (int x = 0; x < end - first; x++) {
        const double v = (sum != 0.0 ? w[x] / sum : w[x]) * (1 << WEIGHT_BITS);
        fixed[x] = (int32_t)(v < 0 ? v - 0.5 : v + 0.5);
    }
    k->first[i] = first;
    k->count[i] = end - first;
}

static bool kernel_init(struct kernel *k, int n_in, int n_out)
{
    const double scale = (double)n_in / n_out;
    *k = (struct kernel){ .n_out = n_out };
    k->n_taps = (int)ceil(2.0 * (scale < 1.0 ? 1.0 : scale)) * 2 + 1;
    k->first = mem_array((size_t)n_out, sizeof(*k->first));
    k->count = mem_array((size_t)n_out, sizeof(*k->count));
    k->weights = mem_array((size_t)n_out, (size_t)k->n_taps * sizeof(*k->weights));
    double *w = mem_array((size_t)k->n_taps, sizeof(*w));
    const bool ok = k->first && k->count && k->weights && w;
    for (int i = 0; ok && i < n_out; i++) {
        kernel_fill(k, i, n_in, w);
    }
    mem_free(w);
    return ok;
}

static inline uint8_t to_level(int32_t sum)
{
    const int32_t v = sum >> WEIGHT_BITS; /* arithmetic: rounds down, as Pillow's table does */
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void row_across(uint8_t *to, const uint8_t *from, const struct kernel *k)
{
    for (int x = 0; x < k->n_out; x++, to += 3) {
        const int32_t *w = k->weights + (size_t)x * (size_t)k->n_taps;
        const uint8_t *p = from + 3 * (size_t)k->first[x];
        int32_t r = 1 << (WEIGHT_BITS - 1), g = r, b = r;
        for (int i = 0; i < k->count[x]; i++, p += 3) {
            r += p[0] * w[i];
            g += p[1] * w[i];
            b += p[2] * w[i];
        }
        to[0] = to_level(r);
        to[1] = to_level(g);
        to[2] = to_level(b);
    }
}

/* One output row from count rows of n bytes; sums is scratch of n. */
static void row_down(uint8_t *to, const uint8_t *from, size_t stride, const int32_t *w, int count,
                     int32_t *sums, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sums[i] = 1 << (WEIGHT_BITS - 1);
    }
    for (int j = 0; j < count; j++, from += stride) {
        const int32_t wj = w[j];
        for (size_t i = 0; i < n; i++) {
            sums[i] += from[i] * wj;
        }
    }
    for (size_t i = 0; i < n; i++) {
        to[i] = to_level(sums[i]);
    }
}

struct resizer {
    const struct image *im;
    struct kernel across, down; /* without outputs: that side stays */
    struct image *wide, *out;   /* after one pass, after both; NULL where there is none */
    int32_t *sums;
    int y_wide, y_out; /* rows done */
};

struct resizer *resizer_new(const struct image *im, int width, int height)
{
    assert(width > 0 && height > 0);
    struct resizer *r = mem_new(struct resizer);
    if (!r) {
        return NULL;
    }
    r->im = im;
    bool ok = true;
    if (im->width != width) {
        r->wide = image_new(width, im->height);
        ok = r->wide && kernel_init(&r->across, im->width, width);
    }
    if (ok && im->height != height) {
        r->out = image_new(width, height);
        r->sums = mem_array(3 * (size_t)width, sizeof(*r->sums));
        ok = r->out && r->sums && kernel_init(&r->down, im->height, height);
    }
    if (!ok) {
        resizer_free(r);
        return NULL;
    }
    return r;
}

void resizer_free(struct resizer *r)
{
    if (r) {
        kernel_deinit(&r->across);
        kernel_deinit(&r->down);
        image_unref(r->wide);
        image_unref(r->out);
        mem_free(r->sums);
        mem_free(r);
    }
}

bool resizer_step(struct resizer *r, int64_t work)
{
    const struct image *im = r->im;
    struct image *wide = r->wide, *out = r->out;
    for (; wide && r->y_wide < wide->height && work > 0; r->y_wide++) {
        row_across(wide->rgb + (size_t)r->y_wide * wide->stride,
                   im->rgb + (size_t)r->y_wide * im->stride, &r->across);
        work -= (int64_t)r->across.n_taps * wide->width;
    }
    const struct image *from = wide ? wide : im;
    const struct kernel *k = &r->down;
    for (; out && r->y_out < out->height && work > 0; r->y_out++) {
        const int y = r->y_out;
        row_down(out->rgb + (size_t)y * out->stride, from->rgb + (size_t)k->first[y] * from->stride,
                 from->stride, k->weights + (size_t)y * (size_t)k->n_taps, k->count[y], r->sums,
                 3 * (size_t)out->width);
        work -= (int64_t)k->count[y] * out->width;
    }
    return (!wide || r->y_wide == wide->height) && (!out || r->y_out == out->height);
}

const struct image *resizer_picture(const struct resizer *r)
{
    return r->out ? r->out : r->wide ? r->wide : r->im;
}

struct image *vision_resize(const struct image *im, int width, int height)
{
    struct resizer *r = resizer_new(im, width, height);
    if (!r) {
        return NULL;
    }
    while (!resizer_step(r, INT64_MAX)) {
    }
    struct image *made = r->out ? r->out : r->wide;
    struct image *out = made ? image_ref(made) : image_crop(im, 0, 0, width, height);
    resizer_free(r);
    return out;
}
