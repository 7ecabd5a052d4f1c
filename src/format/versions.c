/* versions.c - asks the libraries of src/format. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "src/format/versions.h"

#include <pcre2.h>
#include <png.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include <jpeglib.h> /* wants stdio.h before it */

#ifndef LIBJPEG_TURBO_VERSION_NUMBER
#define LIBJPEG_TURBO_VERSION_NUMBER 0 /* another libjpeg */
#endif

void versions_add(struct buf *out)
{
    const int jpeg = LIBJPEG_TURBO_VERSION_NUMBER;
    char pcre[64] = "?"; /* "10.42 2022-12-11" */
    pcre2_config(PCRE2_CONFIG_VERSION, pcre);
    buf_addf(out, "libjpeg-turbo %d.%d.%d, libpng %s, PCRE2 %.*s, utf8proc %s", jpeg / 1000000,
             jpeg / 1000 % 1000, jpeg % 1000, png_get_libpng_ver(NULL), (int)strcspn(pcre, " "),
             pcre, utf8proc_version());
}
