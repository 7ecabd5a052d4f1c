/* doctor.c - galley doctor: does this machine have what conversions need?
 *
 * Checks by doing: small documents made here go through the real pipeline, so that a missing font,
 * CMap or language shows as what it breaks. */
#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/image.h"
#include "src/base/mem.h"
#include "src/base/pool.h"
#include "src/cli/cli.h"
#include "src/cli/input.h"
#include "src/cli/options.h"
#include "src/format/png.h"
#include "src/format/versions.h"

#if defined(__x86_64__)
#define CPU_HAS(feature) (__builtin_cpu_supports(feature) ? "yes" : "no")
#else
#define CPU_HAS(feature) "no"
#endif

enum { REPORT_LINES = 24, TEXT_BYTES = GALLEY_ERR_MAX };

struct report {
    struct {
        char name[40], text[TEXT_BYTES];
        bool ok;
    } line[REPORT_LINES];
    int n;
};

static void note(struct report *r, bool ok, const char *name, const char *fmt, ...)
    GALLEY_PRINTF(4, 5);

static void note(struct report *r, bool ok, const char *name, const char *fmt, ...)
{
    if (r->n == REPORT_LINES) {
        return;
    }
    snprintf(r->line[r->n].name, sizeof(r->line[r->n].name), "%s", name);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->line[r->n].text, TEXT_BYTES, fmt, ap);
    va_end(ap);
    r->line[r->n++].ok = ok;
}

/* A one-page PDF that shows `show` (a PDF string) in a font that is not embedded. */
static void make_pdf(struct buf *b, const char *font, const char *show)
{
    size_t at[8] = { 0 };
    char content[256];
    snprintf(content, sizeof(content), "BT /F1 32 Tf 36 60 Td %s Tj ET", show);
    buf_add_str(b, "%PDF-1.4\n");
    const char *objects[] = {
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 420 140]/Contents 4 0 R"
        "/Resources<</Font<</F1 5 0 R>>>>>>",
        NULL, /* the content stream */
        font,
        "<</Type/Font/Subtype/CIDFontType0/BaseFont/HYSMyeongJo-Medium/CIDSystemInfo<<"
        "/Registry(Adobe)/Ordering(Korea1)/Supplement 1>>/FontDescriptor 7 0 R>>",
        "<</Type/FontDescriptor/FontName/HYSMyeongJo-Medium/Flags 6/FontBBox[0 -148 1001 880]"
        "/ItalicAngle 0/Ascent 880/Descent -148/CapHeight 800/StemV 60>>",
    };
    for (int i = 0; i < 7; i++) {
        at[i] = b->n;
        if (objects[i]) {
            buf_addf(b, "%d 0 obj\n%s\nendobj\n", i + 1, objects[i]);
        } else {
            buf_addf(b, "%d 0 obj\n<</Length %zu>>stream\n%s\nendstream\nendobj\n", i + 1,
                     strlen(content), content);
        }
    }
    const size_t xref = b->n;
    buf_add_str(b, "xref\n0 8\n0000000000 65535 f \n");
    for (int i = 0; i < 7; i++) {
        buf_addf(b, "%010zu 00000 n \n", at[i]);
    }
    buf_addf(b, "trailer\n<</Size 8/Root 1 0 R>>\nstartxref\n%zu\n%%%%EOF\n", xref);
}

/* What a conversion of one page gave. */
struct seen {
    char text[TEXT_BYTES];
    struct image *bitmap; /* owned copy */
};

static void see_page(void *user, const struct galley_page *p)
{
    struct seen *s = user;
    snprintf(s->text, sizeof(s->text), "%s", p->markdown);
    if (p->rgb) {
        s->bitmap = image_new(p->px_width, p->px_height);
        for (int y = 0; s->bitmap && y < p->px_height; y++) {
            memcpy(s->bitmap->rgb + (size_t)y * s->bitmap->stride, p->rgb + (size_t)y * p->stride,
                   (size_t)p->px_width * 3);
        }
    }
}

/* Converts bytes; false with the reason in s->text. */
static bool see(struct galley_engine *e, const struct buf *b, enum galley_draft draft,
                const char *languages, struct seen *s)
{
    const struct galley_source src = { "check", b->data, b->n };
    const struct galley_convert_options opt = { .draft = draft, .ocr_languages = languages };
    const struct galley_convert_events ev = { .user = s, .on_page = see_page };
    struct galley_stats stats;
    struct galley_err err = { 0 };
    *s = (struct seen){ 0 };
    const enum galley_status rc = galley_convert(e, &src, &opt, &ev, &stats, &err);
    if (rc) {
        snprintf(s->text, sizeof(s->text), "%s", err.msg);
    }
    return rc == GALLEY_OK;
}

static void check_cpu(struct report *r)
{
    note(r, true, "cpu", "%d usable CPUs; AVX2 %s, AVX-512 %s, VNNI %s", pool_n_cpus(),
         CPU_HAS("avx2"), CPU_HAS("avx512f"), CPU_HAS("avx512vnni"));
}

static void check_libraries(struct report *r)
{
    struct buf b;
    buf_init(&b, TEXT_BYTES);
    buf_addf(&b, "cJSON %s, ", cJSON_Version());
    versions_add(&b);
    note(r, buf_ok(&b), "libraries", "%s", b.data ? b.data : "");
    buf_deinit(&b);
}

/* The helper, the substitute fonts and, with the page's pixels, Tesseract. */
static void check_latin(struct report *r)
{
    struct buf pdf;
    buf_init(&pdf, 1 << 16);
    make_pdf(&pdf, "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>", "(Proof reading)");
    struct seen s;
    const bool ok = see(NULL, &pdf, GALLEY_DRAFT_TEXT, NULL, &s);
    const bool read = ok && strstr(s.text, "Proof reading") != NULL;
    note(r, read, "galley-pdf",
         read ? "starts, reads text and renders"
              : "cannot read a small PDF: %s. Is galley-pdf beside the program?",
         s.text);
    struct buf png;
    buf_init(&png, 1 << 24);
    struct galley_err err = { 0 };
    if (read && s.bitmap && png_encode(&png, s.bitmap, &err) == GALLEY_OK) {
        struct seen o;
        const bool looked = see(NULL, &png, GALLEY_DRAFT_OCR, "eng", &o);
        const bool good = looked && strstr(o.text, "Proof reading") != NULL;
        note(r, good, "fonts and tesseract eng",
             good ? "a page in Helvetica is drawn and recognised"
                  : "the drawn text was recognised as \"%s\": install fonts-liberation2 (or "
                    "fonts-dejavu) and tesseract-ocr-eng",
             o.text);
        image_unref(o.bitmap);
    }
    image_unref(s.bitmap);
    buf_deinit(&png);
    buf_deinit(&pdf);
}

/* Korean through a predefined CMap: poppler-data. */
static void check_cmaps(struct report *r)
{
    struct buf pdf;
    buf_init(&pdf, 1 << 16);
    make_pdf(&pdf,
             "<</Type/Font/Subtype/Type0/BaseFont/HYSMyeongJo-Medium-KSCms-UHC-H"
             "/Encoding/KSCms-UHC-H/DescendantFonts[6 0 R]>>",
             "<c7d1b1db>"); /* the word Hangul in UHC */
    struct seen s;
    const bool ok = see(NULL, &pdf, GALLEY_DRAFT_TEXT, NULL, &s);
    const bool read = ok && strstr(s.text, "\xed\x95\x9c\xea\xb8\x80") != NULL;
    note(r, read, "poppler-data",
         read ? "predefined CJK character maps are there"
              : "Korean text came out as \"%s\": install poppler-data",
         s.text);
    image_unref(s.bitmap);
    buf_deinit(&pdf);
}

static void check_language(struct report *r, const char *lang, bool needed)
{
    struct buf png;
    buf_init(&png, 1 << 20);
    struct galley_err err = { 0 };
    struct image *im = image_new(64, 64);
    if (!im) {
        return;
    }
    memset(im->rgb, 255, (size_t)im->height * im->stride);
    struct seen s = { 0 };
    const bool ok =
        png_encode(&png, im, &err) == GALLEY_OK && see(NULL, &png, GALLEY_DRAFT_OCR, lang, &s);
    char name[40];
    snprintf(name, sizeof(name), "tesseract %s", lang);
    note(r, ok || !needed, name, "%s%s", ok ? "installed" : needed ? "" : "optional: ", s.text);
    image_unref(s.bitmap);
    image_unref(im);
    buf_deinit(&png);
}

static int check_model(struct report *r, const char *model)
{
    struct galley_engine *e;
    const int code = engine_for_cli(&e, &(struct cli_options){ .model = model });
    if (code) {
        note(r, false, "model", "does not load (the reason is above)");
        return code;
    }
    struct buf pdf;
    buf_init(&pdf, 1 << 16);
    make_pdf(&pdf, "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>", "(Proof reading)");
    struct seen s;
    const bool ok = see(e, &pdf, GALLEY_DRAFT_NONE, NULL, &s);
    note(r, ok, "model", ok ? "loads on %s; reads \"Proof reading\" as \"%.100s\"" : "%s: %.100s",
         galley_engine_device(e), s.text);
    image_unref(s.bitmap);
    buf_deinit(&pdf);
    galley_engine_close(e);
    return ok ? EXIT_OK : EXIT_MODEL;
}

static void print_report(const struct report *r, bool json)
{
    if (!json) {
        for (int i = 0; i < r->n; i++) {
            printf("%s  %-24s %s\n", r->line[i].ok ? "ok  " : "FAIL", r->line[i].name,
                   r->line[i].text);
        }
        return;
    }
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < r->n; i++) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "check", r->line[i].name);
        cJSON_AddBoolToObject(o, "ok", r->line[i].ok);
        cJSON_AddStringToObject(o, "text", r->line[i].text);
        cJSON_AddItemToArray(list, o);
    }
    char *s = cJSON_Print(list);
    puts(s ? s : "[]");
    cJSON_free(s);
    cJSON_Delete(list);
}

int cli_doctor(int argc, char **argv)
{
    struct cli_options opt;
    int first;
    const int code = options_parse(&opt, "doctor", argc, argv, &first);
    if (code) {
        return code;
    }
    if (first != argc) {
        return usage_error("doctor", "unexpected \"%s\"", argv[first]);
    }
    struct report r = { .n = 0 };
    note(&r, true, "galley", "%s", galley_version());
    check_cpu(&r);
    check_libraries(&r);
    check_latin(&r);
    check_cmaps(&r);
    check_language(&r, "kor", false);
    const int model_code = check_model(&r, opt.model);
    print_report(&r, opt.json);
    for (int i = 0; i < r.n && !model_code; i++) {
        if (!r.line[i].ok) {
            return EXIT_INTERNAL;
        }
    }
    return model_code;
}
