/* source.c - pages of PDFs and pictures. */
#include "src/document/source.h"

#include "src/base/mem.h"
#include "src/format/picture.h"

#define DPI_DEFAULT        200.0
#define PICTURE_SIDE_MIN   8 /* below, nothing printed can be meant */
#define PICTURE_ASPECT_MAX 200

static enum galley_status open_picture(struct source *s, const struct galley_source *src,
                                       const struct galley_convert_options *opt,
                                       struct galley_err *err)
{
    const uint64_t limit = opt->max_picture_pixels ? opt->max_picture_pixels : PICTURE_MAX_PIXELS;
    enum galley_status rc =
        picture_decode(&s->picture, &s->damaged, src->bytes, src->n_bytes, limit, err);
    if (rc) {
        return rc;
    }
    const int w = s->picture->width, h = s->picture->height;
    if (w < PICTURE_SIDE_MIN || h < PICTURE_SIDE_MIN) {
        return galley_err_set(err, GALLEY_EINPUT,
                              "image_too_small: %dx%d pixels, at least %d on each side are needed",
                              w, h, PICTURE_SIDE_MIN);
    }
    if (w / h >= PICTURE_ASPECT_MAX || h / w >= PICTURE_ASPECT_MAX) {
        return galley_err_set(err, GALLEY_EINPUT,
                              "image_too_narrow: %dx%d pixels, aspect ratio over %d", w, h,
                              PICTURE_ASPECT_MAX);
    }
    s->n_pages = 1;
    return GALLEY_OK;
}

enum galley_status source_open(struct source *out, const struct galley_source *src,
                               const struct galley_convert_options *opt, struct galley_err *err)
{
    *out = (struct source){ .dpi = opt->dpi > 0 ? opt->dpi : DPI_DEFAULT };
    enum galley_status rc;
    if (file_kind_of(src->bytes, src->n_bytes) == FILE_PDF) {
        const struct pdf_options pdf = {
            .helper = opt->pdf_helper,
            .password = opt->password,
            .memory_bytes = opt->pdf_memory_bytes,
            .page_seconds = opt->page_seconds,
        };
        rc = pdf_open(&out->pdf, src->bytes, src->n_bytes, &pdf, err);
        out->n_pages = rc ? 0 : pdf_n_pages(out->pdf);
    } else {
        rc = open_picture(out, src, opt, err);
    }
    if (rc) {
        source_close(out);
    }
    return rc;
}

enum galley_status source_picture(struct image **out, const void *bytes, size_t n,
                                  struct galley_err *err)
{
    bool damaged;
    return picture_decode(out, &damaged, bytes, n, PICTURE_MAX_PIXELS, err);
}

void source_close(struct source *s)
{
    pdf_close(s->pdf);
    image_unref(s->picture);
    s->pdf = NULL;
    s->picture = NULL;
}

enum galley_status source_page_text(struct source *s, int i, struct page **out,
                                    struct galley_err *err)
{
    *out = NULL;
    return s->pdf ? pdf_page(s->pdf, i, 0, out, err)
                  : galley_err_set(err, GALLEY_EUNSUP, "a picture has no text layer");
}

enum galley_status source_page(struct source *s, int i, struct page **out, struct galley_err *err)
{
    *out = NULL;
    if (s->pdf) {
        return pdf_page(s->pdf, i, s->dpi, out, err);
    }
    struct page *p = mem_new(struct page);
    if (!p) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a page");
    }
    p->bitmap = image_ref(s->picture);
    p->scale = (float)(s->dpi / 72);
    p->width = (float)s->picture->width / p->scale;
    p->height = (float)s->picture->height / p->scale;
    *out = p;
    return GALLEY_OK;
}
