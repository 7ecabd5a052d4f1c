/* script.c - scripts by code point ranges (Unicode blocks, letters only). */
#include "src/document/script.h"

#include <stddef.h>
#include <string.h>

#include "src/base/compiler.h"
#include "src/base/utf8.h"
#include "src/format/card.h"

static const struct {
    uint32_t from, to;
    uint32_t script;
} ranges[] = {
    { 'A', 'Z', CARD_LATIN },        { 'a', 'z', CARD_LATIN },
    { 0xc0, 0x24f, CARD_LATIN },     { 0x370, 0x3ff, CARD_GREEK },
    { 0x400, 0x52f, CARD_CYRILLIC }, { 0x531, 0x587, CARD_OTHER },
    { 0x590, 0x5ff, CARD_HEBREW },   { 0x600, 0x77f, CARD_ARABIC },
    { 0x780, 0x109f, CARD_OTHER },   { 0x10a0, 0x10ff, CARD_OTHER },
    { 0x1100, 0x11ff, CARD_HANGUL }, { 0x1200, 0x1cff, CARD_OTHER },
    { 0x1e00, 0x1eff, CARD_LATIN },  { 0x1f00, 0x1fff, CARD_GREEK },
    { 0x3040, 0x30ff, CARD_KANA },   { 0x3130, 0x318f, CARD_HANGUL },
    { 0x31f0, 0x31ff, CARD_KANA },   { 0x3400, 0x4dbf, CARD_HAN },
    { 0x4e00, 0x9fff, CARD_HAN },    { 0xa000, 0xabff, CARD_OTHER },
    { 0xac00, 0xd7af, CARD_HANGUL }, { 0xf900, 0xfaff, CARD_HAN },
    { 0xfb50, 0xfdff, CARD_ARABIC }, { 0xfe70, 0xfeff, CARD_ARABIC },
    { 0xff66, 0xff9d, CARD_KANA },   { 0x10000, 0x1bfff, CARD_OTHER },
    { 0x20000, 0x3ffff, CARD_HAN },
};

static uint32_t script_of(uint32_t cp)
{
    for (size_t i = 0; i < COUNT(ranges); i++) {
        if (cp >= ranges[i].from && cp <= ranges[i].to) {
            return ranges[i].script;
        }
    }
    return 0;
}

uint32_t script_bits(const char *text)
{
    enum { N_BITS = 9 };
    size_t count[N_BITS] = { 0 };
    size_t n_letters = 0;
    const size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        i += (size_t)utf8_decode(text + i, n - i, &cp);
        const uint32_t script = script_of(cp);
        for (int b = 0; b < N_BITS; b++) {
            if (script == 1u << b) {
                count[b]++;
                n_letters++;
            }
        }
    }
    uint32_t bits = 0;
    for (int b = 0; b < N_BITS; b++) {
        if (count[b] * 50 > n_letters) {
            bits |= 1u << b;
        }
    }
    return bits;
}
