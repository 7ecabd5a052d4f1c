/* test_picture.c - kinds by content, refusals that say what to do, dispatch. */
#include "src/base/err.h"
#include "src/format/picture.h"
#include "tests/format/pixels.h"

struct sniff {
    enum file_kind kind;
    size_t n;
    const char *bytes;
};

#define S(kind, text)                \
    {                                \
        kind, sizeof(text) - 1, text \
    }

static const struct sniff sniffs[] = {
    { FILE_EMPTY, 0, "" },
    S(FILE_PDF, "%PDF-1.7\n"),
    S(FILE_PDF, "\r\n\0\0junk from a mail gateway %PDF-1.4"),
    S(FILE_PNG, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    S(FILE_UNKNOWN, "\x89PNG\r\n\x1a"),
    S(FILE_JPEG, "\xff\xd8\xff\xe0"),
    S(FILE_UNKNOWN, "\xff\xd8\xfe"),
    S(FILE_GIF, "GIF89a\1\0\1\0"),
    S(FILE_WEBP, "RIFF\x24\0\0\0WEBPVP8 "),
    S(FILE_UNKNOWN, "RIFF\x24\0\0\0WAVEfmt "),
    S(FILE_BMP, "BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\2\0\0\0"),
    S(FILE_TEXT, "BMW is a car maker, not a bitmap"),
    S(FILE_TIFF, "II*\0\x08\0\0\0"),
    S(FILE_TIFF, "MM\0*\0\0\0\x08"),
    S(FILE_HEIC, "\0\0\0\x18"
                 "ftypheic\0\0\0\0mif1heic"),
    S(FILE_HEIC, "\0\0\0\x18"
                 "ftypmif1\0\0\0\0mif1heic"),
    S(FILE_AVIF, "\0\0\0\x1c"
                 "ftypavif\0\0\0\0avifmif1miaf"),
    S(FILE_AVIF, "\0\0\0\x1c"
                 "ftypmif1\0\0\0\0mif1avifmiaf"),
    S(FILE_UNKNOWN, "\0\0\0\x18"
                    "ftypisom\0\0\2\0isommp42"),
    S(FILE_UNKNOWN, "\0\0\0\x18"
                    "ftypisomheicisommp42"), /* a minor version, not a brand */
    S(FILE_JP2, "\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14"),
    S(FILE_JP2, "\xff\x4f\xff\x51\0\x2f"),
    S(FILE_JXL, "\xff\x0a\x7f"),
    S(FILE_JXL, "\0\0\0\x0cJXL \r\n\x87\n"),
    S(FILE_SVG, "<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
    S(FILE_SVG, "\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- x -->\n<svg width=\"1\"/>"),
    S(FILE_ZIP, "PK\3\4\x14\0"),
    S(FILE_HTML, "  <!DOCTYPE html>\n<title>x</title>"),
    S(FILE_HTML, "<HTML><body>"),
    S(FILE_TEXT, "# A title\n\nWords.\n"),
    S(FILE_TEXT, "\xed\x95\x9c\xea\xb8\x80 text"),
    S(FILE_TEXT, "\xff\xfe"
                 "a\0b\0"),
    S(FILE_UNKNOWN, "\x7f"
                    "ELF\2\1\1\0"),
    S(FILE_UNKNOWN, "\xc3"),
};

static void kinds(void)
{
    for (size_t i = 0; i < COUNT(sniffs); i++) {
        /* An exact block: a sanitizer sees a magic compared past the end. */
        char *p = mem_alloc(sniffs[i].n);
        memcpy(p, sniffs[i].bytes, sniffs[i].n);
        const enum file_kind is = file_kind_of(p, sniffs[i].n);
        mem_free(p);
        if (is != sniffs[i].kind) {
            T_FAIL("row %zu is %s, not %s", i, file_kind_name(is), file_kind_name(sniffs[i].kind));
        }
    }
}

static void kinds_of_every_prefix(void)
{
    for (size_t i = 0; i < COUNT(sniffs); i++) {
        for (size_t n = 0; n <= sniffs[i].n; n++) {
            char *p = mem_alloc(n);
            memcpy(p, sniffs[i].bytes, n);
            T_OK((file_kind_of(p, n) == FILE_EMPTY) == (n == 0));
            mem_free(p);
        }
    }
}

/* A long text whose first kilobyte ends inside a character is still text. */
static void text_cut_inside_a_character(void)
{
    char s[2100];
    for (size_t i = 0; i + 3 <= sizeof(s); i += 3) {
        memcpy(s + i, "\xed\x95\x9c", 3);
    }
    T_EQ(file_kind_of(s, sizeof(s)), FILE_TEXT);
    T_EQ(file_kind_of(s + 1, sizeof(s) - 1), FILE_UNKNOWN);
}

static void refusals_say_what_to_do(void)
{
    for (size_t i = 0; i < COUNT(sniffs); i++) {
        const enum file_kind kind = sniffs[i].kind;
        struct galley_err err = { 0 };
        struct image *im;
        bool damaged;
        const enum galley_status rc =
            picture_decode(&im, &damaged, sniffs[i].bytes, sniffs[i].n, 0, &err);
        T_OK(!im && err.msg[0]);
        if (kind == FILE_PNG || kind == FILE_JPEG || kind == FILE_EMPTY) {
            T_EQ(rc, GALLEY_EINPUT);
            continue;
        }
        T_EQ(rc, GALLEY_EUNSUP);
        if (kind != FILE_UNKNOWN && kind != FILE_TEXT) {
            T_OK(strstr(err.msg, file_kind_name(kind)));
        }
        if (kind != FILE_PDF) {
            T_OK(strstr(err.msg, "PDF, PNG and JPEG"));
        }
    }
    struct galley_err err = { 0 };
    struct image *im;
    bool damaged;
    T_EQ(picture_decode(&im, &damaged,
                        "\0\0\0\x18"
                        "ftypheic\0\0\0\0mif1heic",
                        24, 0, &err),
         GALLEY_EUNSUP);
    galley_err_prefix(&err, err.status, "photo.heic");
    T_STR(err.msg, "photo.heic: this is HEIC; Galley reads PDF, PNG and JPEG: convert it, for "
                   "example with `heif-convert IN OUT.png`");
}

static void decodes_both(void)
{
    static const char *const names[][2] = { { "png", "rgb8.png" }, { "jpeg", "gray.jpg" } };
    for (size_t i = 0; i < COUNT(names); i++) {
        struct bytes f = file_of(names[i][0], names[i][1]);
        struct galley_err err = { 0 };
        struct image *im;
        bool damaged;
        T_EQ(picture_decode(&im, &damaged, f.p, f.n, 0, &err), GALLEY_OK);
        T_OK(im->width > 20 && !damaged);
        image_unref(im);
        T_EQ(picture_decode(&im, &damaged, f.p, f.n, 100, &err), GALLEY_ELIMIT);
        T_OK(!im);
        mem_free(f.p);
    }
}

static const struct t_case cases[] = {
    { "kinds", kinds },
    { "kinds_of_every_prefix", kinds_of_every_prefix },
    { "text_cut_inside_a_character", text_cut_inside_a_character },
    { "refusals_say_what_to_do", refusals_say_what_to_do },
    { "decodes_both", decodes_both },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
