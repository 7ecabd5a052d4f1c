/* pdf_write.c - see pdf_write.h. */
#include "tests/layout/pdf_write.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pdf_write_begin(struct pdf_writer *w)
{
    memset(w, 0, sizeof *w);
    buf_init(&w->out, 256u << 20);
    buf_add_str(&w->out, "%PDF-1.5\n");
}

static int object_begin(struct pdf_writer *w)
{
    assert(w->n < PDF_WRITE_MAX);
    w->offsets[w->n++] = w->out.n;
    buf_addf(&w->out, "%d 0 obj\n", w->n);
    return w->n;
}

int pdf_write_object(struct pdf_writer *w, const char *fmt, ...)
{
    char text[8192];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const int n = object_begin(w);
    buf_addf(&w->out, "%s\nendobj\n", text);
    return n;
}

int pdf_write_stream(struct pdf_writer *w, const char *entries, const void *bytes, size_t n)
{
    const int number = object_begin(w);
    buf_addf(&w->out, "<<%s/Length %zu>>stream\n", entries, n);
    buf_add(&w->out, bytes, n);
    buf_add_str(&w->out, "\nendstream\nendobj\n");
    return number;
}

void pdf_write_end(struct pdf_writer *w, int root)
{
    const size_t at = w->out.n;
    buf_addf(&w->out, "xref\n0 %d\n0000000000 65535 f \n", w->n + 1);
    for (int i = 0; i < w->n; i++) {
        buf_addf(&w->out, "%010zu 00000 n \n", w->offsets[i]);
    }
    buf_addf(&w->out, "trailer<</Size %d/Root %d 0 R>>\nstartxref\n%zu\n%%%%EOF\n", w->n + 1, root,
             at);
}

void pdf_write_free(struct pdf_writer *w)
{
    buf_deinit(&w->out);
}

static int write_japanese(struct pdf_writer *w)
{
    const int face = pdf_write_object(
        w, "<</Type/FontDescriptor/FontName/HeiseiMin/Flags 4/FontBBox[0 0 1000 1000]/Ascent 800"
           "/Descent -200/ItalicAngle 0/CapHeight 700/StemV 80>>");
    const int cid = pdf_write_object(
        w,
        "<</Type/Font/Subtype/CIDFontType0/BaseFont/HeiseiMin/CIDSystemInfo<</Registry(Adobe)"
        "/Ordering(Japan1)/Supplement 2>>/FontDescriptor %d 0 R>>",
        face);
    return pdf_write_object(w,
                            "<</Type/Font/Subtype/Type0/BaseFont/HeiseiMin/Encoding/UniJIS-UCS2-H"
                            "/DescendantFonts[%d 0 R]>>",
                            cid);
}

void pdf_write_pages(struct pdf_writer *w, int n, const char *page, const char *content)
{
    static const unsigned char red[12] = { 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0 };
    static const char *const faces[] = { "Helvetica", "Times-BoldItalic", "Courier" };
    struct buf kids;
    int fonts[3];
    pdf_write_begin(w);
    buf_init(&kids, 1u << 20);
    for (int i = 0; i < 3; i++) {
        fonts[i] = pdf_write_object(w, "<</Type/Font/Subtype/Type1/BaseFont/%s>>", faces[i]);
    }
    const int japanese = write_japanese(w);
    const int image = pdf_write_stream(w,
                                       "/Type/XObject/Subtype/Image/Width 2/Height 2"
                                       "/BitsPerComponent 8/ColorSpace/DeviceRGB",
                                       red, sizeof red);
    const int drawing = pdf_write_stream(w, "", content, strlen(content));
    const int resources = pdf_write_object(w,
                                           "<</Font<</F1 %d 0 R/F2 %d 0 R/F3 %d 0 R/F4 %d 0 R>>"
                                           "/XObject<</Im %d 0 R>>>>",
                                           fonts[0], fonts[1], fonts[2], japanese, image);
    const int parent = w->n + n + 1;
    for (int i = 0; i < n; i++) {
        const int kid =
            pdf_write_object(w, "<</Type/Page/Parent %d 0 R/Contents %d 0 R/Resources %d 0 R%s>>",
                             parent, drawing, resources, page);
        buf_addf(&kids, "%d 0 R ", kid);
    }
    object_begin(w);
    buf_addf(&w->out, "<</Type/Pages/Count %d/Kids[%s]>>\nendobj\n", n, kids.data);
    const int root = pdf_write_object(w, "<</Type/Catalog/Pages %d 0 R>>", parent);
    pdf_write_end(w, root);
    buf_deinit(&kids);
}
