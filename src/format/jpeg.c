/* jpeg.c - libjpeg-turbo behind one function: no output of its own, no exit, bounded work.
 *
 * libjpeg reports errors by longjmp, so everything that a jump must release lives in one struct
 * jpeg_job.  libjpeg's own memory is not counted by mem.h: it is bounded by max_pixels (at most
 * 8 bytes a pixel for the coefficients of a progressive file).  Any thread. */
#include "src/format/jpeg.h"

/* jpeglib.h needs FILE and size_t from its includer. */
#include <stdio.h>

#include <jerror.h>
#include <jpeglib.h>
#include <setjmp.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/format/exif.h"

/* Every scan of a progressive file touches the whole image: a small file may claim thousands. */
#define SCANS_MAX 500

struct jpeg_job {
    struct jpeg_decompress_struct info; /* first: libjpeg hands this pointer back to us */
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    enum galley_status status; /* of the jump */
    char text[JMSG_LENGTH_MAX];
    bool cut;       /* the data ended inside a scan */
    bool some_rows; /* ... but at least one row of blocks was whole */
    bool created;
    struct image *im;
    uint8_t *row;
};

static void job_fail(struct jpeg_job *job, enum galley_status status)
{
    job->status = status;
    longjmp(job->jump, 1);
}

static void on_error(j_common_ptr info)
{
    struct jpeg_job *job = (struct jpeg_job *)info;
    job->errors.format_message(info, job->text);
    switch (job->errors.msg_code) {
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
        job_fail(job, GALLEY_EUNSUP);
        break;
    case JERR_OUT_OF_MEMORY:
        job_fail(job, GALLEY_ENOMEM);
        break;
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW:
        job_fail(job, GALLEY_ELIMIT);
        break;
    default:
        job_fail(job, GALLEY_EINPUT);
    }
}

/* Warnings (level -1) are damage; the first one that means missing data says how far we got. */
static void on_message(j_common_ptr info, int level)
{
    struct jpeg_job *job = (struct jpeg_job *)info;
    if (level >= 0) {
        return;
    }
    job->errors.num_warnings++;
    const int code = job->errors.msg_code;
    if ((code == JWRN_HIT_MARKER || code == JWRN_JPEG_EOF) && !job->cut) {
        job->cut = true;
        job->some_rows = job->info.input_iMCU_row > 0 || job->info.input_scan_number > 1;
    }
}

static void on_print(j_common_ptr info)
{
    (void)info;
}

static void on_progress(j_common_ptr info)
{
    struct jpeg_job *job = (struct jpeg_job *)info;
    if (job->info.input_scan_number > SCANS_MAX) {
        snprintf(job->text, sizeof(job->text), "more than %d scans", SCANS_MAX);
        job_fail(job, GALLEY_ELIMIT);
    }
}

static void source_begin(j_decompress_ptr info)
{
    (void)info;
}

/* Only called when all bytes are used: feed an end marker, which libjpeg takes as "no more". */
static boolean source_fill(j_decompress_ptr info)
{
    static const JOCTET end[2] = { 0xff, JPEG_EOI };
    WARNMS(info, JWRN_JPEG_EOF);
    info->src->next_input_byte = end;
    info->src->bytes_in_buffer = sizeof(end);
    return TRUE;
}

static void source_skip(j_decompress_ptr info, long n)
{
    if (n <= 0) {
        return;
    }
    if ((size_t)n >= info->src->bytes_in_buffer) {
        source_fill(info);
        return;
    }
    info->src->next_input_byte += n;
    info->src->bytes_in_buffer -= (size_t)n;
}

static void job_begin(struct jpeg_job *job, const void *bytes, size_t n)
{
    job->info.err = jpeg_std_error(&job->errors);
    job->errors.error_exit = on_error;
    job->errors.emit_message = on_message;
    job->errors.output_message = on_print;
    jpeg_create_decompress(&job->info);
    job->created = true;
    job->source.next_input_byte = bytes;
    job->source.bytes_in_buffer = n;
    job->source.init_source = source_begin;
    job->source.fill_input_buffer = source_fill;
    job->source.skip_input_data = source_skip;
    job->source.resync_to_restart = jpeg_resync_to_restart;
    job->source.term_source = source_begin;
    job->info.src = &job->source;
    job->progress.progress_monitor = on_progress;
    job->info.progress = &job->progress;
    jpeg_save_markers(&job->info, JPEG_APP0 + 1, 0xffff);
}

static int job_orientation(const struct jpeg_job *job)
{
    for (jpeg_saved_marker_ptr m = job->info.marker_list; m; m = m->next) {
        if (m->marker == JPEG_APP0 + 1 && exif_is(m->data, m->data_length)) {
            return exif_orientation(m->data, m->data_length);
        }
    }
    return 1;
}

/* Refuses by the header's numbers; nothing of the image's size exists yet. */
static void job_check_header(struct jpeg_job *job, uint64_t max_pixels)
{
    const struct jpeg_decompress_struct *in = &job->info;
    const uint64_t pixels = (uint64_t)in->image_width * in->image_height;
    if (pixels > max_pixels) {
        snprintf(job->text, sizeof(job->text), "%u x %u pixels, limit %llu", in->image_width,
                 in->image_height, (unsigned long long)max_pixels);
        job_fail(job, GALLEY_ELIMIT);
    }
    if (in->num_components != 1 && in->num_components != 3 && in->num_components != 4) {
        snprintf(job->text, sizeof(job->text), "%d colour components; 1, 3 and 4 are supported",
                 in->num_components);
        job_fail(job, GALLEY_EUNSUP);
    }
}

/* CMYK to RGB in place (the result is shorter).  Adobe writes ink inverted, others do not. */
static void row_from_cmyk(uint8_t *row, size_t width, bool adobe)
{
    const unsigned flip = adobe ? 0 : 255;
    for (size_t x = 0; x < width; x++) {
        const unsigned k = row[x * 4 + 3] ^ flip;
        for (size_t c = 0; c < 3; c++) {
            row[x * 3 + c] = (uint8_t)(((row[x * 4 + c] ^ flip) * k + 127) / 255);
        }
    }
}

/* Writes stored row y where EXIF orientation `o` shows it.  im has the shown size. */
static void row_place(struct image *im, int o, size_t y, const uint8_t *row, size_t width,
                      size_t height)
{
    const bool turned = o >= 5;
    const bool flip_x = o == 2 || o == 3 || o == 7 || o == 8; /* along the stored row */
    const bool flip_y = o == 3 || o == 4 || o == 6 || o == 7; /* along the stored column */
    const size_t line = flip_y ? height - 1 - y : y;
    uint8_t *at = im->rgb + line * (turned ? 3 : im->stride);
    const size_t step = turned ? im->stride : 3;
    for (size_t x = 0; x < width; x++) {
        memcpy(at + (flip_x ? width - 1 - x : x) * step, row + x * 3, 3);
    }
}

static void job_read(struct jpeg_job *job, uint64_t max_pixels)
{
    struct jpeg_decompress_struct *in = &job->info;
    jpeg_read_header(in, TRUE);
    job_check_header(job, max_pixels);
    const bool cmyk = in->num_components == 4;
    in->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    const int o = job_orientation(job);
    jpeg_start_decompress(in);
    const size_t width = in->output_width, height = in->output_height;
    job->row = mem_array(width, 4);
    job->im = o >= 5 ? image_new((int)height, (int)width) : image_new((int)width, (int)height);
    if (!job->row || !job->im) {
        snprintf(job->text, sizeof(job->text), "no memory for %zu x %zu pixels", width, height);
        job_fail(job, GALLEY_ENOMEM);
    }
    for (size_t y = 0; y < height; y++) {
        jpeg_read_scanlines(in, &job->row, 1);
        if (job->cut && !job->some_rows) {
            snprintf(job->text, sizeof(job->text), "the data ends before the first row is whole");
            job_fail(job, GALLEY_EINPUT);
        }
        if (cmyk) {
            row_from_cmyk(job->row, width, in->saw_Adobe_marker);
        }
        row_place(job->im, o, y, job->row, width, height);
    }
}

enum galley_status jpeg_decode(struct image **out, bool *damaged, const void *bytes, size_t n,
                               uint64_t max_pixels, struct galley_err *err)
{
    *out = NULL;
    *damaged = false;
    struct jpeg_job *job = mem_new(struct jpeg_job);
    if (!job) {
        return galley_err_set(err, GALLEY_ENOMEM, "JPEG: no memory for the decoder");
    }
    enum galley_status rc = GALLEY_OK;
    if (setjmp(job->jump) == 0) {
        job_begin(job, bytes, n);
        job_read(job, max_pixels);
        *out = job->im;
        *damaged = job->errors.num_warnings > 0;
    } else {
        image_unref(job->im);
        rc = galley_err_set(err, job->status, "JPEG: %s", job->text);
    }
    if (job->created) {
        jpeg_destroy_decompress(&job->info);
    }
    mem_free(job->row);
    mem_free(job);
    return rc;
}
