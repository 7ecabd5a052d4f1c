/* prep.c - which size an image gets, and its pixels as patch rows: Hugging Face's
 * Qwen2VLImageProcessor (slow, PIL) in C. */
#include <assert.h>
#include <math.h>

#include "src/base/mem.h"
#include "vision/resize.h"
#include "vision/vision.h"

#define ASPECT_MAX 200
/* One piece, about two milliseconds each: pixels times taps to resample, patches to cut. */
#define PIECE_WORK    (1 << 20)
#define PIECE_PATCHES 512

struct limits {
    double min, max; /* pixels; exact in double */
};

static enum galley_status limits_of(struct limits *out, const struct hf_config *cfg,
                                    const struct vision_limits *l, struct galley_err *err)
{
    out->min = (double)(l && l->min_pixels ? l->min_pixels : cfg->pre.min_pixels);
    out->max = (double)(l && l->max_pixels ? l->max_pixels : cfg->pre.max_pixels);
    if (out->min > out->max || out->min < 0) {
        return galley_err_set(err, GALLEY_EUSAGE,
                              "the least pixels, %.0f, are more than the most, %.0f", out->min,
                              out->max);
    }
    return GALLEY_OK;
}

/* Python's floor(x / factor) * factor and friends, all in double. */
static double floor_to(double x, double factor)
{
    const double v = floor(x / factor) * factor;
    return v < factor ? factor : v;
}

enum galley_status vision_plan(struct vision_grid *out, int width, int height,
                               const struct hf_config *cfg, const struct vision_limits *limits,
                               struct galley_err *err)
{
    *out = (struct vision_grid){ 0 };
    assert(width > 0 && height > 0);
    struct limits lim;
    const enum galley_status rc = limits_of(&lim, cfg, limits, err);
    if (rc) {
        return rc;
    }
    const double factor = (double)cfg->vision.patch * cfg->vision.merge;
    double w = width, h = height;
    const double least = w < h ? w : h, most = w < h ? h : w;
    if (most / least > ASPECT_MAX) {
        return galley_err_set(err, GALLEY_EINPUT,
                              "an image of %d x %d pixels has an aspect ratio of %.1f, over %d",
                              width, height, most / least, ASPECT_MAX);
    }
    /* A side that rounds to no cell at all: implementations differ, we enlarge the image. */
    if (rint(least / factor) == 0) {
        w = rint(w * factor / least);
        h = rint(h * factor / least);
        if (rint(w / factor) * rint(h / factor) * factor * factor > lim.max) {
            return galley_err_set(
                err, GALLEY_EINPUT,
                "image_too_small: %d x %d pixels enlarged to sides of at least %.0f would be "
                "%.0f x %.0f, over the limit of %.0f pixels",
                width, height, factor, w, h, lim.max);
        }
    }
    double w_bar = rint(w / factor) * factor, h_bar = rint(h / factor) * factor;
    if (w_bar * h_bar > lim.max) {
        const double beta = sqrt(w * h / lim.max);
        w_bar = floor_to(w / beta, factor);
        h_bar = floor_to(h / beta, factor);
    } else if (w_bar * h_bar < lim.min) {
        const double beta = sqrt(lim.min / (w * h));
        w_bar = ceil(w * beta / factor) * factor;
        h_bar = ceil(h * beta / factor) * factor;
    }
    if (w_bar > IMAGE_SIDE_MAX || h_bar > IMAGE_SIDE_MAX) {
        return galley_err_set(err, GALLEY_ELIMIT,
                              "an image of %d x %d pixels would be resized to %.0f x %.0f", width,
                              height, w_bar, h_bar);
    }
    *out =
        (struct vision_grid){ 1, (int)h_bar / cfg->vision.patch, (int)w_bar / cfg->vision.patch };
    return GALLEY_OK;
}

size_t vision_patch_floats(const struct hf_vision_config *v)
{
    return (size_t)v->in_channels * (size_t)v->temporal_patch * (size_t)v->patch * (size_t)v->patch;
}

int vision_n_tokens(const struct vision_grid *g, const struct hf_vision_config *v)
{
    return g->t * (g->h / v->merge) * (g->w / v->merge);
}

/* of[c][i]: the value a pixel of level i becomes in channel c.  Rescaled in double and
 * rounded, then normalised in float, as numpy does it. */
struct levels {
    float of[3][256];
};

static void levels_fill(struct levels *l, const struct hf_preprocess *p)
{
    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < 256; i++) {
            l->of[c][i] = ((float)(i * (double)p->rescale) - p->mean[c]) / p->std[c];
        }
    }
}

/* One patch whose top left pixel is at rgb: [channel][frame][patch][patch], frames alike. */
static void patch_cut(float *to, const uint8_t *rgb, size_t stride,
                      const struct hf_vision_config *v, const struct levels *l)
{
    for (int c = 0; c < 3; c++) {
        for (int t = 0; t < v->temporal_patch; t++) {
            for (int y = 0; y < v->patch; y++) {
                const uint8_t *row = rgb + (size_t)y * stride + (size_t)c;
                for (int x = 0; x < v->patch; x++) {
                    *to++ = l->of[c][row[3 * x]];
                }
            }
        }
    }
}

struct vision_prep {
    const struct hf_vision_config *v;
    struct vision_grid g;
    struct resizer *resizer;
    bool sized;
    int n_cells; /* cut so far */
    struct levels levels;
};

enum galley_status vision_prep_new(struct vision_prep **out, const struct image *im,
                                   const struct vision_grid *g, const struct hf_config *cfg,
                                   struct galley_err *err)
{
    const struct hf_vision_config *v = &cfg->vision;
    *out = NULL;
    assert(g->t == 1 && g->h % v->merge == 0 && g->w % v->merge == 0);
    if (v->in_channels != 3) {
        return galley_err_set(err, GALLEY_EUNSUP,
                              "the model wants %d channels per pixel; only 3 are supported",
                              v->in_channels);
    }
    struct vision_prep *p = mem_new(struct vision_prep);
    if (p) {
        p->resizer = resizer_new(im, g->w * v->patch, g->h * v->patch);
    }
    if (!p || !p->resizer) {
        vision_prep_free(p);
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory: an image of %d x %d pixels",
                              g->w * v->patch, g->h * v->patch);
    }
    p->v = v;
    p->g = *g;
    levels_fill(&p->levels, &cfg->pre);
    *out = p;
    return GALLEY_OK;
}

void vision_prep_free(struct vision_prep *p)
{
    if (p) {
        resizer_free(p->resizer);
        mem_free(p);
    }
}

/* A merge cell's patches, row by row, to their place. */
static void cell_cut(const struct vision_prep *p, int cell, float *patches)
{
    const struct hf_vision_config *v = p->v;
    const struct image *sized = resizer_picture(p->resizer);
    const size_t n = vision_patch_floats(v);
    const int m = v->merge, across = p->g.w / m;
    for (int i = 0; i < m * m; i++) {
        const int y = cell / across * m + i / m, x = cell % across * m + i % m;
        patch_cut(patches + (size_t)(cell * m * m + i) * n,
                  sized->rgb + (size_t)(y * v->patch) * sized->stride + 3 * (size_t)(x * v->patch),
                  sized->stride, v, &p->levels);
    }
}

bool vision_prep_step(struct vision_prep *p, float *patches)
{
    if (!p->sized) {
        p->sized = resizer_step(p->resizer, PIECE_WORK);
        return false;
    }
    const int m = p->v->merge, n = p->g.h / m * (p->g.w / m);
    for (int i = 0; i < PIECE_PATCHES && p->n_cells < n; i += m * m) {
        cell_cut(p, p->n_cells++, patches);
    }
    return p->n_cells == n;
}

enum galley_status vision_patches(float *patches, const struct image *im,
                                  const struct vision_grid *g, const struct hf_config *cfg,
                                  struct galley_err *err)
{
    struct vision_prep *p;
    const enum galley_status rc = vision_prep_new(&p, im, g, cfg, err);
    if (rc) {
        return rc;
    }
    while (!vision_prep_step(p, patches)) {
    }
    vision_prep_free(p);
    return GALLEY_OK;
}
