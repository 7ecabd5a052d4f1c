/* raster_pix.c - bitmaps as Leptonica Pix; a smooth model of the paper. */
#include "layout/raster_pix.h"

#include <leptonica/allheaders.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#define TILES      16       /* paper is sampled in TILES x TILES tiles */
#define MAX_SIDE   20000    /* pixels: analysis pictures are brought below this */
#define MAX_AREA   40000000 /* pixels */
#define PAPER_RANK 0.85     /* of a tile's pixels: paper even where text is dense */
#define REJECT     14       /* gray levels: a tile that far off is no paper, or a white margin */

static void quiet_once(void)
{
    setMsgSeverity(L_SEVERITY_NONE);
}

void raster_quiet(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, quiet_once);
}

float raster_scale(float scale)
{
    return scale >= 0.05f && scale <= 100.0f ? scale : 150.0f / 72.0f;
}

static struct Pix *gray_full(const struct image *im)
{
    struct Pix *pix = pixCreateNoInit(im->width, im->height, 8);
    if (!pix) {
        return NULL;
    }
    const int wpl = pixGetWpl(pix);
    l_uint32 *line = pixGetData(pix);
    for (int y = 0; y < im->height; y++, line += wpl) {
        const uint8_t *p = im->rgb + (size_t)y * im->stride;
        line[wpl - 1] = 0; /* padding is defined, so that whole words may be compared */
        for (int x = 0; x < im->width; x++, p += 3) {
            SET_DATA_BYTE(line, x, (77 * p[0] + 150 * p[1] + 29 * p[2] + 128) >> 8);
        }
    }
    return pix;
}

/* Averages k x k pixels while converting: a huge bitmap never exists twice. */
static struct Pix *gray_reduced(const struct image *im, int k)
{
    const int w = im->width / k > 0 ? im->width / k : 1;
    const int h = im->height / k > 0 ? im->height / k : 1;
    struct Pix *pix = pixCreate(w, h, 8);
    if (!pix) {
        return NULL;
    }
    l_uint32 *line = pixGetData(pix);
    for (int y = 0; y < h; y++, line += pixGetWpl(pix)) {
        const int y1 = y * k + k < im->height ? y * k + k : im->height;
        for (int x = 0; x < w; x++) {
            const int x1 = x * k + k < im->width ? x * k + k : im->width;
            uint64_t sum = 0;
            for (int yy = y * k; yy < y1; yy++) {
                const uint8_t *p = im->rgb + (size_t)yy * im->stride + (size_t)x * k * 3;
                for (int xx = x * k; xx < x1; xx++, p += 3) {
                    sum += (uint64_t)(77 * p[0] + 150 * p[1] + 29 * p[2]);
                }
            }
            const uint64_t n = (uint64_t)(y1 - y * k) * (uint64_t)(x1 - x * k) * 256;
            SET_DATA_BYTE(line, x, (int)((sum + n / 2) / n));
        }
    }
    return pix;
}

struct Pix *raster_gray(const struct image *im, float *scale, float max_scale)
{
    raster_quiet();
    *scale = raster_scale(*scale);
    int k = 1;
    while (im->width / k > MAX_SIDE || im->height / k > MAX_SIDE ||
           (int64_t)(im->width / k) * (im->height / k) > MAX_AREA ||
           (max_scale > 0 && *scale / (float)(k + 1) >= max_scale)) {
        k++;
    }
    if (k == 1) {
        return gray_full(im);
    }
    *scale /= (float)k;
    return gray_reduced(im, k);
}

/* The brightness that `rank` of the tile's pixels do not exceed. */
static int tile_rank(struct Pix *gray, int x0, int y0, int x1, int y1, double rank)
{
    unsigned count[256] = { 0 };
    unsigned n = 0;
    for (int y = y0; y < y1; y++) {
        const l_uint32 *line = pixGetData(gray) + (size_t)y * (size_t)pixGetWpl(gray);
        for (int x = x0; x < x1; x++) {
            count[GET_DATA_BYTE(line, x)]++;
            n++;
        }
    }
    unsigned seen = 0;
    for (int v = 0; v < 256; v++) {
        seen += count[v];
        if (seen > rank * n) {
            return v;
        }
    }
    return 255;
}

struct sample {
    double u, v, value;
    bool used;
};

static void basis(double u, double v, double b[6])
{
    b[0] = 1, b[1] = u, b[2] = v, b[3] = u * u, b[4] = u * v, b[5] = v * v;
}

static double surface_at(const double c[6], double u, double v)
{
    return c[0] + u * (c[1] + c[3] * u + c[4] * v) + v * (c[2] + c[5] * v);
}

/* Least squares over the used samples by elimination with a small ridge (few samples, or all in
 * one row, must not blow up). */
static void surface_fit(const struct sample *s, int n, double c[6])
{
    double a[6][7] = { { 0 } };
    for (int i = 0; i < n; i++) {
        if (!s[i].used) {
            continue;
        }
        double b[6];
        basis(s[i].u, s[i].v, b);
        for (int r = 0; r < 6; r++) {
            for (int k = 0; k < 6; k++) {
                a[r][k] += b[r] * b[k];
            }
            a[r][6] += b[r] * s[i].value;
        }
    }
    for (int r = 1; r < 6; r++) {
        a[r][r] += 0.02;
    }
    a[0][0] += 1e-9;
    for (int p = 0; p < 6; p++) { /* positive definite: no pivoting needed */
        for (int r = p + 1; r < 6; r++) {
            const double f = a[r][p] / a[p][p];
            for (int k = p; k < 7; k++) {
                a[r][k] -= f * a[p][k];
            }
        }
    }
    for (int p = 5; p >= 0; p--) {
        c[p] = a[p][6];
        for (int k = p + 1; k < 6; k++) {
            c[p] -= a[p][k] * c[k];
        }
        c[p] /= a[p][p];
    }
}

static int sample_tiles(struct Pix *gray, struct sample *s)
{
    const int w = pixGetWidth(gray), h = pixGetHeight(gray);
    const int nx = w < TILES ? w : TILES, ny = h < TILES ? h : TILES;
    int n = 0;
    for (int j = 0; j < ny; j++) {
        for (int i = 0; i < nx; i++) {
            const int x0 = (int)((int64_t)w * i / nx), x1 = (int)((int64_t)w * (i + 1) / nx);
            const int y0 = (int)((int64_t)h * j / ny), y1 = (int)((int64_t)h * (j + 1) / ny);
            s[n++] = (struct sample){ .u = (x0 + x1) * 0.5 / w,
                                      .v = (y0 + y1) * 0.5 / h,
                                      .value = tile_rank(gray, x0, y0, x1, y1, PAPER_RANK),
                                      .used = true };
        }
    }
    return n;
}

/* Dark paper: most pixels dark, and what is not dark is the minority (text, not a photograph of
 * everything in between). */
static bool page_dark(struct Pix *gray)
{
    const int w = pixGetWidth(gray), h = pixGetHeight(gray);
    return tile_rank(gray, 0, 0, w, h, 0.6) < 90;
}

struct paper raster_paper(struct Pix *gray)
{
    struct paper p = { .dark = page_dark(gray) };
    if (p.dark) {
        pixInvert(gray, gray);
    }
    struct sample s[TILES * TILES];
    const int n = sample_tiles(gray, s);
    /* Start from the brighter half: pictures and dark beds around the sheet drop out. */
    int count[256] = { 0 };
    for (int i = 0; i < n; i++) {
        count[(int)s[i].value]++;
    }
    int median = 0, seen = count[0];
    while (median < 255 && seen * 2 <= n) {
        seen += count[++median];
    }
    for (int i = 0; i < n; i++) {
        s[i].used = s[i].value >= median - 40;
    }
    for (int round = 0; round < 4; round++) {
        surface_fit(s, n, p.c);
        for (int i = 0; i < n; i++) {
            s[i].used = fabs(s[i].value - surface_at(p.c, s[i].u, s[i].v)) <= REJECT;
        }
    }
    double lo = 255, hi = 0;
    for (int j = 0; j <= 4; j++) {
        for (int i = 0; i <= 4; i++) {
            const double v = surface_at(p.c, i / 4.0, j / 4.0);
            lo = fmin(lo, v);
            hi = fmax(hi, v);
        }
    }
    p.spread = (float)(hi - lo);
    return p;
}

float raster_paper_at(const struct paper *paper, float u, float v)
{
    return (float)fmin(fmax(surface_at(paper->c, u, v), 0.0), 255.0);
}

struct Pix *raster_ink_pix(struct Pix *gray, const struct paper *paper, float drop)
{
    const int w = pixGetWidth(gray), h = pixGetHeight(gray);
    struct Pix *ink = pixCreate(w, h, 1);
    if (!ink) {
        return NULL;
    }
    const int gpl = pixGetWpl(gray), ipl = pixGetWpl(ink);
    for (int y = 0; y < h; y++) {
        const l_uint32 *g = pixGetData(gray) + (size_t)y * (size_t)gpl;
        l_uint32 *o = pixGetData(ink) + (size_t)y * (size_t)ipl;
        /* The surface changes slowly: one threshold for 32 pixels, one word of output. */
        for (int x = 0; x < w; x += 32) {
            const double at = surface_at(paper->c, (x + 16.0) / w, (y + 0.5) / h);
            const double limit = fmin(fmax(at, 0.0), 255.0) * (1.0 - drop);
            const int t = (int)ceil(limit), end = x + 32 < w ? x + 32 : w;
            l_uint32 bits = 0;
            for (int i = x; i < end; i++) {
                bits |= (l_uint32)((int)GET_DATA_BYTE(g, i) < t) << (31 - (i - x));
            }
            o[x / 32] = bits;
        }
    }
    return ink;
}

void raster_clear(struct Pix *ink, const struct box *b, float scale, float margin)
{
    const float w = (float)pixGetWidth(ink), h = (float)pixGetHeight(ink);
    const float x0 = fminf(fmaxf((b->x0 - margin) * scale, 0), w);
    const float y0 = fminf(fmaxf((b->y0 - margin) * scale, 0), h);
    const float x1 = fminf(fmaxf((b->x1 + margin) * scale, 0), w);
    const float y1 = fminf(fmaxf((b->y1 + margin) * scale, 0), h);
    const int ix = (int)x0, iy = (int)y0, iw = (int)ceilf(x1) - ix, ih = (int)ceilf(y1) - iy;
    if (iw > 0 && ih > 0) { /* false for NaN too */
        pixRasterop(ink, ix, iy, iw, ih, PIX_CLR, NULL, 0, 0);
    }
}
