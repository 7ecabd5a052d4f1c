/* dump_layout.c - prints the regions of a document's pages: a look into the light parser.
 *
 * Use: dump_layout [--plain|--regions|--lines] FILE [PAGE]; Markdown by default.  Pictures are
 * read by OCR. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/flow.h"
#include "layout/layout.h"
#include "layout/pdf.h"
#include "src/base/clock.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/format/picture.h"

enum view { VIEW_MARKDOWN, VIEW_PLAIN, VIEW_REGIONS, VIEW_LINES };

static void print_regions(const struct page_layout *out, enum view view)
{
    for (int i = 0; i < out->n_regions; i++) {
        const struct region *r = &out->regions[i];
        if (view == VIEW_REGIONS) {
            printf("%3d %-11s %d  %.0f,%.0f %.0f,%.0f  size %.1f  score %.2f  lines %d%s%s\n", i,
                   region_kind_name(r->kind), r->level, r->box.x0, r->box.y0, r->box.x1, r->box.y1,
                   r->size, r->draft.score, r->n_lines, r->joins_next ? "  >" : "",
                   r->continues ? "  <" : "");
        }
        const bool chrome = r->kind >= REGION_PAGE_HEADER;
        if (view == VIEW_REGIONS || !chrome) {
            printf("%s\n\n", view == VIEW_PLAIN ? r->draft.plain : r->draft.markdown);
        }
    }
}

static void print_lines(const struct page *p, bool ocr)
{
    struct flow f;
    flow_init(&f, p, ocr);
    words_find(&f);
    tables_ruled(&f);
    strips_find(&f);
    lines_find(&f);
    for (int i = 0; i < f.n_strips; i++) {
        const struct strip *s = &f.strips[i];
        printf("strip x %.0f..%.0f y %.0f..%.0f rows %d/%d\n", s->x0, s->x1, s->y0, s->y1,
               s->n_left, s->n_right);
    }
    for (int i = 0; i < f.n_lines; i++) {
        const struct line *l = &f.lines[i];
        printf("%.1f,%.1f %.1f,%.1f size %.1f base %.1f %s%s%s| %s\n", l->box.x0, l->box.y0,
               l->box.x1, l->box.y1, l->size, l->baseline, l->bold ? "B" : "", l->italic ? "I" : "",
               l->mono ? "M" : "", l->text);
    }
    for (int i = 0; i < p->n_rules; i++) {
        const struct box *b = &p->rules[i].box;
        printf("rule %c %.1f,%.1f %.1f,%.1f\n", p->rules[i].vertical ? 'v' : 'h', b->x0, b->y0,
               b->x1, b->y1);
    }
    for (int i = 0; i < p->n_pictures; i++) {
        const struct box *b = &p->pictures[i].box;
        printf("picture %d %.1f,%.1f %.1f,%.1f\n", p->pictures[i].vector, b->x0, b->y0, b->x1,
               b->y1);
    }
    flow_deinit(&f);
}

static int dump(struct pdf *pdf, int only, enum view view, struct galley_err *err)
{
    struct layout *l = NULL;
    if (layout_open(&l, NULL, NULL, err)) {
        return 1;
    }
    struct page *p = NULL;
    const int n = pdf_n_pages(pdf);
    for (int i = 0; i < n && pdf_page(pdf, i, 0, &p, err) == GALLEY_OK; i++) {
        layout_see(l, p, n);
        page_free(p);
    }
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        if (only >= 0 && i != only) {
            continue;
        }
        struct page_layout *out = NULL;
        rc = pdf_page(pdf, i, 0, &p, err) != GALLEY_OK;
        if (rc == 0 && view == VIEW_LINES) {
            print_lines(p, false);
        } else if (rc == 0) {
            const double start = clock_seconds();
            rc = layout_page(l, p, &out, err) != GALLEY_OK;
            fprintf(stderr, "page %d: score %.2f, %.2f ms\n", i + 1,
                    out ? out->text_layer_score : 0, 1e3 * (clock_seconds() - start));
            if (out) {
                print_regions(out, view);
            }
            page_layout_free(out);
        }
        page_free(p);
        p = NULL;
    }
    layout_close(l);
    return rc;
}

/* A picture is a page of 96 dpi unless it is large: then it is a scan of an A4 page's width. */
static int dump_picture(const char *bytes, size_t n, enum view view, struct galley_err *err)
{
    struct image *im = NULL;
    bool damaged;
    struct ocr *ocr = NULL;
    struct layout *l = NULL;
    const struct ocr_options opt = { .languages = "eng" };
    if (picture_decode(&im, &damaged, bytes, n, PICTURE_MAX_PIXELS, err) ||
        ocr_open(&ocr, &opt, err) || layout_open(&l, ocr, NULL, err)) {
        return 1;
    }
    struct page p = { .bitmap = im, .scale = (float)im->width / 595 };
    p.width = 595;
    p.height = (float)im->height / p.scale;
    struct page_layout *out = NULL;
    struct page *q = NULL;
    int rc;
    if (view == VIEW_LINES) {
        rc = ocr_page(ocr, &p, &q, err) != GALLEY_OK;
        if (q) {
            print_lines(q, true);
        }
        page_free(q);
    } else {
        rc = layout_page(l, &p, &out, err) != GALLEY_OK;
        if (out) {
            print_regions(out, view);
        }
    }
    page_layout_free(out);
    layout_close(l);
    ocr_close(ocr);
    image_unref(im);
    return rc;
}

int main(int argc, char **argv)
{
    enum view view = VIEW_MARKDOWN;
    int i = 1;
    if (i < argc && argv[i][0] == '-') {
        view = strcmp(argv[i], "--plain") == 0     ? VIEW_PLAIN
               : strcmp(argv[i], "--regions") == 0 ? VIEW_REGIONS
                                                   : VIEW_LINES;
        i++;
    }
    if (i >= argc) {
        fprintf(stderr, "use: dump_layout [--plain|--regions|--lines] FILE [PAGE]\n");
        return 2;
    }
    struct galley_err err = { 0 };
    char *bytes = NULL;
    size_t n = 0;
    struct pdf *pdf = NULL;
    int rc = 1;
    const bool read = file_read(argv[i], 1u << 30, &bytes, &n, &err) == GALLEY_OK;
    if (read && file_kind_of(bytes, n) != FILE_PDF) {
        rc = dump_picture(bytes, n, view, &err);
    } else if (read && pdf_open(&pdf, bytes, n, NULL, &err) == GALLEY_OK) {
        rc = dump(pdf, i + 1 < argc ? atoi(argv[i + 1]) - 1 : -1, view, &err);
    }
    if (rc) {
        fprintf(stderr, "%s\n", err.msg);
    }
    pdf_close(pdf);
    mem_free(bytes);
    return rc;
}
