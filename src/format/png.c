/* png.c - libpng behind two functions: no output of its own, no exit, bounded memory.
 *
 * libpng reports errors by longjmp, so everything that a jump must release lives in a struct on
 * the heap.  Gamma and colour profiles are left alone: documents want the stored numbers.  Any
 * thread. */
#include "src/format/png.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"

#define CHUNK_CACHE_MAX 64
#define CHUNK_BYTES_MAX (8u << 20)

struct png_job {
    png_structp png;
    png_infop info;
    jmp_buf jump;
    enum galley_status status; /* of the jump */
    char text[160];
    const uint8_t *at; /* reading */
    size_t left;
    struct buf *out; /* writing */
    struct image *im;
    uint8_t *rows; /* one row, or the whole image when it is interlaced */
};

static void job_fail(struct png_job *job, enum galley_status status, const char *text)
{
    job->status = status;
    snprintf(job->text, sizeof(job->text), "%s", text);
    longjmp(job->jump, 1);
}

static void on_error(png_structp png, png_const_charp text)
{
    struct png_job *job = png_get_error_ptr(png);
    job_fail(job, strstr(text, "emory") ? GALLEY_ENOMEM : GALLEY_EINPUT, text);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static png_voidp on_alloc(png_structp png, png_alloc_size_t n)
{
    (void)png;
    return mem_alloc(n);
}

static void on_free(png_structp png, png_voidp p)
{
    (void)png;
    mem_free(p);
}

static void on_read(png_structp png, png_bytep to, size_t n)
{
    struct png_job *job = png_get_io_ptr(png);
    if (n > job->left) {
        job_fail(job, GALLEY_EINPUT, "the file ends too early");
    }
    memcpy(to, job->at, n);
    job->at += n;
    job->left -= n;
}

static void on_write(png_structp png, png_bytep from, size_t n)
{
    struct png_job *job = png_get_io_ptr(png);
    buf_add(job->out, from, n);
    if (!buf_ok(job->out)) {
        job_fail(job, GALLEY_ENOMEM, "no memory for the file");
    }
}

static void on_flush(png_structp png)
{
    (void)png;
}

static uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The size stands at a fixed place: refuse by it before libpng sees the file. */
static enum galley_status check_header(const uint8_t *p, size_t n, uint64_t max_pixels,
                                       struct galley_err *err)
{
    if (n < 24 || png_sig_cmp(p, 0, 8) != 0 || memcmp(p + 12, "IHDR", 4) != 0) {
        return galley_err_set(err, GALLEY_EINPUT, "PNG: no PNG header in %zu bytes", n);
    }
    const uint32_t width = load_be32(p + 16), height = load_be32(p + 20);
    if (width == 0 || height == 0) {
        return galley_err_set(err, GALLEY_EINPUT, "PNG: %u x %u pixels", width, height);
    }
    if ((uint64_t)width * height > max_pixels || width > IMAGE_SIDE_MAX ||
        height > IMAGE_SIDE_MAX) {
        return galley_err_set(err, GALLEY_ELIMIT,
                              "PNG: %u x %u pixels, limit %llu and %d for a side", width, height,
                              (unsigned long long)max_pixels, IMAGE_SIDE_MAX);
    }
    return GALLEY_OK;
}

/* Chunks that can be large and that we never look at. */
static void skip_chunks(png_structp png)
{
    static const png_byte names[] = "iCCP\0sPLT\0tEXt\0zTXt\0iTXt\0eXIf\0hIST\0pCAL\0sCAL";
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, names, sizeof(names) / 5);
}

static void read_begin(struct png_job *job)
{
    job->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, job, on_error, on_warning, NULL,
                                        on_alloc, on_free);
    if (!job->png) {
        job_fail(job, GALLEY_ENOMEM, "no memory for the decoder");
    }
    job->info = png_create_info_struct(job->png);
    if (!job->info) {
        job_fail(job, GALLEY_ENOMEM, "no memory for the decoder");
    }
    png_set_read_fn(job->png, job, on_read);
    png_set_user_limits(job->png, IMAGE_SIDE_MAX, IMAGE_SIDE_MAX);
    png_set_chunk_cache_max(job->png, CHUNK_CACHE_MAX);
    png_set_chunk_malloc_max(job->png, CHUNK_BYTES_MAX);
    skip_chunks(job->png);
    png_read_info(job->png, job->info);
    png_set_expand(job->png);   /* palettes, 1-4 bits, tRNS to alpha */
    png_set_scale_16(job->png); /* rounded, not cut */
    png_set_gray_to_rgb(job->png);
}

/* RGB or RGBA over white. */
static void row_compose(uint8_t *to, const uint8_t *from, size_t width, size_t n_channels)
{
    if (n_channels == 3) {
        memcpy(to, from, width * 3);
        return;
    }
    for (size_t x = 0; x < width; x++, from += 4, to += 3) {
        const unsigned a = from[3];
        for (int c = 0; c < 3; c++) {
            to[c] = (uint8_t)((from[c] * a + 255 * (255 - a) + 127) / 255);
        }
    }
}

static void job_read(struct png_job *job)
{
    read_begin(job);
    const int n_passes = png_set_interlace_handling(job->png);
    png_read_update_info(job->png, job->info);
    const size_t width = png_get_image_width(job->png, job->info);
    const size_t height = png_get_image_height(job->png, job->info);
    const size_t n_channels = png_get_channels(job->png, job->info);
    const size_t row_bytes = png_get_rowbytes(job->png, job->info);
    if (row_bytes != width * n_channels || n_channels < 3) {
        job_fail(job, GALLEY_EINTERNAL, "unexpected row layout");
    }
    job->im = image_new((int)width, (int)height);
    job->rows = mem_zero_array(n_passes > 1 ? height : 1, row_bytes);
    if (!job->im || !job->rows) {
        job_fail(job, GALLEY_ENOMEM, "no memory for the pixels");
    }
    for (int pass = 0; pass < n_passes; pass++) {
        for (size_t y = 0; y < height; y++) {
            uint8_t *row = job->rows + (n_passes > 1 ? y * row_bytes : 0);
            png_read_row(job->png, row, NULL);
            if (pass == n_passes - 1) {
                row_compose(job->im->rgb + y * job->im->stride, row, width, n_channels);
            }
        }
    }
}

enum galley_status png_decode(struct image **out, const void *bytes, size_t n, uint64_t max_pixels,
                              struct galley_err *err)
{
    *out = NULL;
    enum galley_status rc = check_header(bytes, n, max_pixels, err);
    if (rc) {
        return rc;
    }
    struct png_job *job = mem_new(struct png_job);
    if (!job) {
        return galley_err_set(err, GALLEY_ENOMEM, "PNG: no memory for the decoder");
    }
    job->at = bytes;
    job->left = n;
    if (setjmp(job->jump) == 0) {
        job_read(job);
        *out = job->im;
        rc = GALLEY_OK;
    } else {
        image_unref(job->im);
        rc = galley_err_set(err, job->status, "PNG: %s", job->text);
    }
    png_destroy_read_struct(&job->png, &job->info, NULL);
    mem_free(job->rows);
    mem_free(job);
    return rc;
}

static void job_write(struct png_job *job, const struct image *im)
{
    job->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, job, on_error, on_warning, NULL,
                                         on_alloc, on_free);
    job->info = job->png ? png_create_info_struct(job->png) : NULL;
    if (!job->info) {
        job_fail(job, GALLEY_ENOMEM, "no memory for the encoder");
    }
    png_set_write_fn(job->png, job, on_write, on_flush);
    png_set_IHDR(job->png, job->info, (png_uint_32)im->width, (png_uint_32)im->height, 8,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(job->png, job->info);
    for (int y = 0; y < im->height; y++) {
        png_write_row(job->png, im->rgb + (size_t)y * im->stride);
    }
    png_write_end(job->png, job->info);
}

enum galley_status png_encode(struct buf *out, const struct image *im, struct galley_err *err)
{
    struct png_job *job = mem_new(struct png_job);
    if (!job) {
        return galley_err_set(err, GALLEY_ENOMEM, "PNG: no memory for the encoder");
    }
    job->out = out;
    enum galley_status rc;
    if (setjmp(job->jump) == 0) {
        job_write(job, im);
        rc = GALLEY_OK;
    } else {
        rc = galley_err_set(err, job->status, "PNG: %s", job->text);
    }
    png_destroy_write_struct(&job->png, &job->info);
    mem_free(job);
    return rc;
}
