/* toy_checkpoint.h - a model directory opened whole, for the tests of vision and model. */
#ifndef GALLEY_TESTS_CHECKPOINT_H
#define GALLEY_TESTS_CHECKPOINT_H

#include "src/format/picture.h"
#include "src/model/model.h"
#include "tests/npy.h"
#include "vision/vision.h"

#define MODEL_TINY  "models/galley-tiny"
#define GOLDEN_TINY "tests/golden/galley-tiny"
#define GOLDEN_HF   "tests/golden/hf/"
#define IMAGES_MAX  4

static const char *const isa_names[] = { "ref", "avx2", "avx512" };

/* Cases of tools/reference/qwen2_5_vl.py. */
static const char *const hf_cases[] = { "q25_gqa", "q25_mha", "q25_official", "q25_text",
                                        "q2_full" };

struct toy_checkpoint {
    struct device *dev;
    struct hf_config cfg;
    struct weights *w;
    struct vit *vit;
    struct model *model;
};

/* The device, or NULL when this CPU lacks the instructions. */
static inline struct device *device_for(const char *isa, int n_threads)
{
    struct device *dev = NULL;
    struct galley_err err = { 0 };
    const enum galley_status rc = device_open_cpu(&dev, isa, n_threads, &err);
    if (rc == GALLEY_EUNSUP) {
        return NULL;
    }
    if (rc) {
        T_FAIL("%s", err.msg);
    }
    return dev;
}

static inline struct toy_checkpoint checkpoint_open(const char *dir, struct device *dev)
{
    struct toy_checkpoint c = { .dev = dev };
    struct galley_err err = { 0 };
    if (hf_config_read(&c.cfg, dir, &err) || weights_open(&c.w, dir, &err) ||
        vit_open(&c.vit, dev, &c.cfg, c.w, &err) || model_open(&c.model, dev, &c.cfg, c.w, &err) ||
        weights_check_all_used(c.w, NULL, &err)) {
        T_FAIL("%s: %s", dir, err.msg);
    }
    return c;
}

static inline void checkpoint_close(struct toy_checkpoint *c)
{
    model_close(c->model);
    vit_close(c->vit);
    weights_close(c->w);
    device_close(c->dev);
}

static inline struct image *picture_open(const char *path)
{
    char *bytes = NULL;
    size_t n = 0;
    bool damaged = false;
    struct image *im = NULL;
    struct galley_err err = { 0 };
    if (file_read(path, (size_t)1 << 26, &bytes, &n, &err) ||
        picture_decode(&im, &damaged, bytes, n, PICTURE_MAX_PIXELS, &err)) {
        T_FAIL("%s: %s", path, err.msg);
    }
    mem_free(bytes);
    return im;
}

/* Pictures as the tower wants them. */
struct patches {
    struct vision_grid grid[IMAGES_MAX];
    int n, n_tokens;
    int64_t n_values; /* of all images */
    float *values;
};

static inline void patches_add(struct patches *p, const char *path, const struct hf_config *cfg)
{
    const struct hf_vision_config *v = &cfg->vision;
    struct galley_err err = { 0 };
    struct image *im = picture_open(path);
    struct vision_grid *g = &p->grid[p->n++];
    T_OK(p->n <= IMAGES_MAX);
    if (vision_plan(g, im->width, im->height, cfg, NULL, &err)) {
        T_FAIL("%s: %s", path, err.msg);
    }
    const int64_t more =
        (int64_t)g->h * g->w * v->in_channels * v->temporal_patch * v->patch * v->patch;
    p->values = mem_resize_array(p->values, (size_t)(p->n_values + more), sizeof(float));
    T_OK(p->values);
    if (vision_patches(p->values + p->n_values, im, g, cfg, &err)) {
        T_FAIL("%s: %s", path, err.msg);
    }
    p->n_values += more;
    p->n_tokens += vision_n_tokens(g, v);
    image_unref(im);
}

/* image0.png ... of a golden case, n of them. */
static inline struct patches patches_of_case(const char *dir, int n, const struct hf_config *cfg)
{
    struct patches p = { 0 };
    for (int i = 0; i < n; i++) {
        char path[512];
        snprintf(path, sizeof(path), "%s/image%d.png", dir, i);
        patches_add(&p, path, cfg);
    }
    return p;
}

static inline float *patches_encode(const struct toy_checkpoint *c, const struct patches *p)
{
    struct galley_err err = { 0 };
    float *out = mem_many(float, (size_t)p->n_tokens *(size_t)c->cfg.vision.out_hidden);
    T_OK(out);
    if (vit_encode(c->vit, out, p->values, p->grid, p->n, &err)) {
        T_FAIL("%s", err.msg);
    }
    return out;
}

/* Pictures of a case: its text-only one has none. */
static inline int case_n_images(const char *name)
{
    if (strcmp(name, "q25_text") == 0) {
        return 0;
    }
    char dir[256];
    snprintf(dir, sizeof(dir), GOLDEN_HF "%s", name);
    struct npy grids = npy_open(dir, "grids");
    const int n = (int)grids.dim[0];
    npy_close(&grids);
    return n;
}

#endif
