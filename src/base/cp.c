/* cp.c - character classes by code point ranges. */
#include "src/base/cp.h"

bool cp_is_space(uint32_t cp)
{
    return cp == ' ' || (cp >= 9 && cp <= 13) || cp == 0x85 || cp == 0xa0 || cp == 0x1680 ||
           (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 || cp == 0x202f ||
           cp == 0x205f || cp == 0x3000;
}

bool cp_is_digit(uint32_t cp)
{
    return (cp >= '0' && cp <= '9') || (cp >= 0x660 && cp <= 0x669) || (cp >= 0x6f0 && cp <= 0x6f9);
}

bool cp_is_hangul(uint32_t cp)
{
    return (cp >= 0xac00 && cp <= 0xd7a3) || (cp >= 0x1100 && cp <= 0x11ff) ||
           (cp >= 0x3130 && cp <= 0x318f);
}

bool cp_is_wide(uint32_t cp)
{
    return (cp >= 0x2e80 && cp <= 0x312f) || (cp >= 0x3190 && cp <= 0x9fff) ||
           (cp >= 0xf900 && cp <= 0xfaff) || (cp >= 0xff01 && cp <= 0xff9f) ||
           (cp >= 0x20000 && cp <= 0x3fffd);
}

bool cp_is_rtl(uint32_t cp)
{
    return (cp >= 0x590 && cp <= 0x8ff) || (cp >= 0xfb1d && cp <= 0xfdff) ||
           (cp >= 0xfe70 && cp <= 0xfefc);
}

bool cp_is_unspaced(uint32_t cp)
{
    return (cp >= 0xe00 && cp <= 0xeff) || (cp >= 0x1000 && cp <= 0x109f) ||
           (cp >= 0x1780 && cp <= 0x17ff);
}

bool cp_is_hyphen(uint32_t cp)
{
    return cp == '-' || cp == 0x2010 || cp == 0xad || cp == 0x2011;
}

bool cp_is_upper(uint32_t cp)
{
    return (cp >= 'A' && cp <= 'Z') || (cp >= 0xc0 && cp <= 0xde && cp != 0xd7) ||
           (cp >= 0x391 && cp <= 0x3a9) || (cp >= 0x400 && cp <= 0x42f) ||
           (cp >= 0x100 && cp <= 0x17f && !(cp & 1));
}

bool cp_is_lower(uint32_t cp)
{
    return (cp >= 'a' && cp <= 'z') || (cp >= 0xdf && cp <= 0xff && cp != 0xf7) ||
           (cp >= 0x3ac && cp <= 0x3ce) || (cp >= 0x430 && cp <= 0x45f) ||
           (cp >= 0x100 && cp <= 0x17f && (cp & 1));
}

bool cp_is_letter(uint32_t cp)
{
    return cp_is_upper(cp) || cp_is_lower(cp) || cp_is_hangul(cp) || cp_is_rtl(cp) ||
           cp_is_unspaced(cp) || (cp >= 0x180 && cp <= 0x2af) || (cp >= 0x370 && cp <= 0x58f) ||
           (cp >= 0x900 && cp <= 0xdff) || (cp >= 0x3041 && cp <= 0x30ff && cp != 0x30fb) ||
           (cp >= 0x3400 && cp <= 0x9fff) || (cp >= 0xf900 && cp <= 0xfaff) ||
           (cp >= 0x1e00 && cp <= 0x1fff) || (cp >= 0xff21 && cp <= 0xff5a) ||
           (cp >= 0x20000 && cp <= 0x3fffd) || cp == 0x3005;
}

bool cp_is_math(uint32_t cp)
{
    return (cp >= 0x2200 && cp <= 0x22ff) || (cp >= 0x2a00 && cp <= 0x2aff) ||
           (cp >= 0x1d400 && cp <= 0x1d7ff) || (cp >= 0x27c0 && cp <= 0x27ef);
}

bool cp_ends_sentence(uint32_t cp)
{
    return cp == '.' || cp == '!' || cp == '?' || cp == ':' || cp == ';' || cp == 0x3002 ||
           cp == 0xff01 || cp == 0xff1f || cp == 0xff1a || cp == 0xff1b || cp == 0x2026 ||
           cp == 0xff0e || cp == ')' || cp == '"' || cp == 0x201d;
}
