/* test_prep.c - sizes, resampling, patches and positions against Pillow and Hugging Face. */
#include <time.h>

#include "tests/toy_checkpoint.h"

/* Limits and patch shape of the official models. */
static struct hf_config config_official(void)
{
    struct hf_config c = { .has_vision = true };
    c.vision.patch = 14;
    c.vision.merge = 2;
    c.vision.temporal_patch = 2;
    c.vision.in_channels = 3;
    c.pre.min_pixels = 3136;
    c.pre.max_pixels = 12845056;
    c.image_pad = 7;
    c.vision_start = 8;
    c.vision_end = 9;
    return c;
}

static void test_smart_resize(void)
{
    const struct hf_config cfg = config_official();
    FILE *f = fopen(GOLDEN_HF "smart_resize.txt", "r");
    T_OK(f);
    char line[256];
    int n = 0;
    while (fgets(line, sizeof(line), f)) {
        int w, h, w2, h2;
        long long lo, hi;
        if (sscanf(line, "%d %d %lld %lld %d %d", &w, &h, &lo, &hi, &w2, &h2) != 6) {
            continue;
        }
        struct vision_grid g;
        struct galley_err err = { 0 };
        const struct vision_limits limits = { lo, hi };
        if (vision_plan(&g, w, h, &cfg, &limits, &err) || g.w * 14 != w2 || g.h * 14 != h2) {
            T_FAIL("%d x %d in %lld..%lld: got %d x %d, want %d x %d %s", w, h, lo, hi, g.w * 14,
                   g.h * 14, w2, h2, err.msg);
        }
        T_EQ(vision_n_tokens(&g, &cfg.vision), w2 / 28 * (h2 / 28));
        n++;
    }
    fclose(f);
    T_OK(n >= 250);
}

static void plan_expect(int w, int h, int gw, int gh)
{
    const struct hf_config cfg = config_official();
    struct vision_grid g;
    struct galley_err err = { 0 };
    if (vision_plan(&g, w, h, &cfg, NULL, &err)) {
        T_FAIL("%s", err.msg);
    }
    T_EQ(g.w, gw);
    T_EQ(g.h, gh);
}

static void plan_refuse(int w, int h, const struct vision_limits *l, enum galley_status want,
                        const char *words)
{
    const struct hf_config cfg = config_official();
    struct vision_grid g;
    struct galley_err err = { 0 };
    T_EQ(vision_plan(&g, w, h, &cfg, l, &err), want);
    if (!strstr(err.msg, words)) {
        T_FAIL("\"%s\" lacks \"%s\"", err.msg, words);
    }
}

static void test_small_sides(void)
{
    plan_expect(1, 1, 4, 4);     /* 28 x 28, then up to the least pixels */
    plan_expect(10, 100, 2, 20); /* 28 x 280: the ratio is kept */
    plan_expect(14, 2000, 2, 286);
    plan_expect(1, 200, 2, 400);
}

static void test_plan_refusals(void)
{
    plan_refuse(1, 201, NULL, GALLEY_EINPUT, "aspect ratio of 201.0, over 200");
    plan_refuse(30000, 100, NULL, GALLEY_EINPUT, "30000 x 100");
    plan_refuse(2, 300, &(struct vision_limits){ 0, 100000 }, GALLEY_EINPUT,
                "image_too_small: 2 x 300 pixels");
    plan_refuse(50, 50, &(struct vision_limits){ 9999, 5000 }, GALLEY_EUSAGE, "9999");
    plan_refuse(50, 50, &(struct vision_limits){ INT64_MAX, INT64_MAX }, GALLEY_ELIMIT, "50 x 50");
}

static void test_resize_pillow(void)
{
    static const char *const names[] = { "97x61-to-56x28",  "40x30-to-112x84",    "200x13-to-84x28",
                                         "31x120-to-31x56", "90x33-to-28x33",     "1x1-to-28x28",
                                         "5x90-to-28x448",  "150x150-to-149x151", "180x20-to-3x2",
                                         "90x40-to-96x36" };
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[256];
        snprintf(path, sizeof(path), GOLDEN_HF "resize/%s.in.png", names[i]);
        struct image *in = picture_open(path);
        snprintf(path, sizeof(path), GOLDEN_HF "resize/%s.out.png", names[i]);
        struct image *want = picture_open(path);
        struct image *got = vision_resize(in, want->width, want->height);
        T_OK(got && got->width == want->width && got->height == want->height);
        for (int y = 0; y < want->height; y++) {
            for (int x = 0; x < 3 * want->width; x++) {
                const int g = got->rgb[(size_t)y * got->stride + (size_t)x];
                const int w = want->rgb[(size_t)y * want->stride + (size_t)x];
                if (g != w) {
                    T_FAIL("%s: byte %d of row %d is %d, Pillow has %d", names[i], x, y, g, w);
                }
            }
        }
        image_unref(in);
        image_unref(want);
        image_unref(got);
    }
}

static void test_resize_no_memory(void)
{
    struct image *im = image_new(50, 40);
    T_OK(im);
    memset(im->rgb, 128, im->stride * 40);
    for (int n = 1;; n++) {
        mem_fail_at(n);
        struct image *out = vision_resize(im, 30, 70);
        mem_fail_at(0);
        if (out) {
            T_OK(n > 8);
            image_unref(out);
            break;
        }
        T_OK(n < 50);
    }
    image_unref(im);
}

/* A level is 1 / (255 std), about 0.0146; a 255th of it is 5.7e-5. */
static void patches_compare(const struct patches *p, const struct npy *want)
{
    T_EQ(p->n_values, want->n);
    for (int64_t i = 0; i < want->n; i++) {
        T_NEAR(p->values[i], want->f[i], 2e-6);
    }
}

static void test_patches_hf(void)
{
    for (size_t i = 0; i < COUNT(hf_cases); i++) {
        const int n = case_n_images(hf_cases[i]);
        char dir[256];
        struct hf_config cfg;
        struct galley_err err = { 0 };
        snprintf(dir, sizeof(dir), GOLDEN_HF "%s", hf_cases[i]);
        if (hf_config_read(&cfg, dir, &err)) {
            T_FAIL("%s", err.msg);
        }
        if (n == 0) {
            continue;
        }
        struct patches p = patches_of_case(dir, n, &cfg);
        struct npy want = npy_open(dir, "pixel_values"), grids = npy_open(dir, "grids");
        for (int k = 0; k < n; k++) {
            T_EQ(p.grid[k].t, grids.i[3 * k]);
            T_EQ(p.grid[k].h, grids.i[3 * k + 1]);
            T_EQ(p.grid[k].w, grids.i[3 * k + 2]);
        }
        patches_compare(&p, &want);
        npy_close(&want);
        npy_close(&grids);
        mem_free(p.values);
    }
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A large picture in many pieces, none of them long; its patches are those of the picture resized
 * at once. */
static void test_patches_in_pieces(void)
{
    struct hf_config cfg = config_official();
    for (int c = 0; c < 3; c++) {
        cfg.pre.mean[c] = 0.5f;
        cfg.pre.std[c] = 0.25f;
    }
    cfg.pre.rescale = 1 / 255.0f;
    const struct vision_grid g = { 1, 30, 48 };
    const size_t n = (size_t)(g.h * g.w) * vision_patch_floats(&cfg.vision);
    struct image *im = image_new(5000, 3001);
    float *got = mem_array(n, sizeof(float)), *want = mem_array(n, sizeof(float));
    T_OK(im && got && want);
    for (size_t i = 0; i < im->stride * 3001; i++) {
        im->rgb[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    struct vision_prep *p;
    T_EQ(vision_prep_new(&p, im, &g, &cfg, NULL), GALLEY_OK);
    double all = 0, longest = 0;
    int n_pieces = 0;
    for (bool done = false; !done; n_pieces++) {
        const double start = cpu_seconds();
        done = vision_prep_step(p, got);
        const double seconds = cpu_seconds() - start;
        all += seconds;
        longest = seconds > longest ? seconds : longest;
    }
    vision_prep_free(p);
    T_OK(n_pieces > 60);
    T_OK(longest < all / 8);
    struct image *sized = vision_resize(im, g.w * 14, g.h * 14);
    T_OK(sized);
    T_EQ(vision_patches(want, sized, &g, &cfg, NULL), GALLEY_OK);
    T_OK(memcmp(got, want, n * sizeof(float)) == 0);
    T_EQ(vision_prep_new(&p, im, &g, &cfg, NULL), GALLEY_OK); /* given up half way */
    (void)vision_prep_step(p, got);
    vision_prep_free(p);
    vision_prep_free(NULL);
    image_unref(sized);
    image_unref(im);
    mem_free(got);
    mem_free(want);
}

static void test_patches_tiny(void)
{
    struct hf_config cfg;
    struct galley_err err = { 0 };
    if (hf_config_read(&cfg, MODEL_TINY, &err)) {
        T_FAIL("%s", err.msg);
    }
    struct patches p = { 0 };
    patches_add(&p, GOLDEN_TINY "/list.png", &cfg);
    struct npy want = npy_open(GOLDEN_TINY, "list.pixel_values");
    patches_compare(&p, &want);
    npy_close(&want);
    mem_free(p.values);
}

/* Tokens of one part of rope_index.txt: "t3" or "i2x5". */
static void part_add(const char *part, int32_t *ids, int *n, struct vision_grid *grids,
                     int *n_grids, const struct hf_config *cfg)
{
    int a, b;
    if (sscanf(part, "t%d", &a) == 1) {
        while (a-- > 0) {
            ids[(*n)++] = 1;
        }
        return;
    }
    T_EQ(sscanf(part, "i%dx%d", &a, &b), 2);
    grids[(*n_grids)++] = (struct vision_grid){ 1, 2 * a, 2 * b };
    ids[(*n)++] = cfg->vision_start;
    for (int i = 0; i < a * b; i++) {
        ids[(*n)++] = cfg->image_pad;
    }
    ids[(*n)++] = cfg->vision_end;
}

static long next_number(char **rest)
{
    const char *word = strtok_r(NULL, " ", rest);
    T_OK(word);
    return strtol(word, NULL, 10);
}

static void test_rope_index(void)
{
    const struct hf_config cfg = config_official();
    FILE *f = fopen(GOLDEN_HF "rope_index.txt", "r");
    T_OK(f);
    char line[8192];
    int n_lines = 0;
    while (fgets(line, sizeof(line), f)) {
        if (line[0] == '#') {
            continue;
        }
        int32_t ids[512], t[512], h[512], w[512], next;
        struct vision_grid grids[8];
        int n = 0, n_grids = 0;
        char *rest = NULL, *word = strtok_r(line, " ", &rest);
        for (; *word != '|'; word = strtok_r(NULL, " ", &rest)) {
            part_add(word, ids, &n, grids, &n_grids, &cfg);
        }
        struct galley_err err = { 0 };
        int32_t *const pos[3] = { t, h, w };
        if (mrope_positions(pos, &next, ids, n, grids, n_grids, &cfg, &err)) {
            T_FAIL("%s", err.msg);
        }
        for (int a = 0; a < 3; a++) {
            for (int i = 0; i < n; i++) {
                T_EQ(pos[a][i], next_number(&rest));
            }
            T_STR(strtok_r(NULL, " ", &rest), "|");
        }
        T_EQ(next, next_number(&rest));
        n_lines++;
    }
    fclose(f);
    T_EQ(n_lines, 24);
}

static void rope_refuse(const int32_t *ids, int n, const struct vision_grid *grids, int n_grids,
                        const char *words)
{
    const struct hf_config cfg = config_official();
    int32_t t[16], h[16], w[16], next;
    int32_t *const pos[3] = { t, h, w };
    struct galley_err err = { 0 };
    T_EQ(mrope_positions(pos, &next, ids, n, grids, n_grids, &cfg, &err), GALLEY_EINPUT);
    if (!strstr(err.msg, words)) {
        T_FAIL("\"%s\" lacks \"%s\"", err.msg, words);
    }
}

static void test_rope_refusals(void)
{
    const int32_t ids[] = { 1, 8, 7, 7, 9, 1 };
    const struct vision_grid fits = { 1, 2, 4 }, large = { 1, 4, 4 };
    const struct vision_grid two[] = { fits, fits };
    rope_refuse(ids, 6, &large, 1, "4 tokens, but the prompt has 2 places");
    rope_refuse(ids, 6, two, 2, "2 images were given");
    rope_refuse(ids, 6, NULL, 0, "more image places");
    rope_refuse(ids + 2, 4, &fits, 1, "without a start");
    rope_refuse(ids, 3, &fits, 1, "2 tokens, but the prompt has 1 places");
}

/* A text model has no image token: id 0 is a token like others. */
static void test_rope_text(void)
{
    const struct hf_config cfg = { .family = HF_LLAMA };
    const int32_t ids[] = { 0, 0, 5, 0 };
    const struct vision_grid grid = { 1, 2, 2 };
    int32_t t[4], h[4], w[4], next;
    int32_t *const pos[3] = { t, h, w };
    struct galley_err err = { 0 };
    T_EQ(mrope_positions(pos, &next, ids, 4, NULL, 0, &cfg, &err), GALLEY_OK);
    T_EQ(next, 4);
    for (int i = 0; i < 4; i++) {
        T_OK(t[i] == i && h[i] == i && w[i] == i);
    }
    T_EQ(mrope_positions(pos, &next, ids, 4, &grid, 1, &cfg, &err), GALLEY_EINPUT);
    T_OK(strstr(err.msg, "1 images were given to a model of text alone"));
}

static const struct t_case cases[] = {
    { "smart_resize", test_smart_resize },
    { "small_sides", test_small_sides },
    { "plan_refusals", test_plan_refusals },
    { "resize_pillow", test_resize_pillow },
    { "resize_no_memory", test_resize_no_memory },
    { "patches_hf", test_patches_hf },
    { "patches_in_pieces", test_patches_in_pieces },
    { "patches_tiny", test_patches_tiny },
    { "rope_index", test_rope_index },
    { "rope_refusals", test_rope_refusals },
    { "rope_text", test_rope_text },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
