/* qunpack_body.h - packed units to panels, sixty-four bytes at a time.  Included after b64_*.h.
 *
 * A vector is one word of sixteen columns; h = 0, 1 are the two halves of a group, WORD(p, i) the
 * i-th word of the field at p and CODE(g) the panel's bytes of k = 4 g .. 4 g + 3.  Shifting whole
 * lanes is fine: what comes from the neighbouring byte is masked away. */
#include "kernels/qgemm.h"
#include "src/base/compiler.h"

#define WORD_BYTES   (4 * QGEMM_NR)
#define WORD(p, i)   b64_load((p) + (i)*WORD_BYTES + 64 * h)
#define CODE(g)      (panel->bytes + (g)*WORD_BYTES + 64 * h)
#define HALF_BYTES   (2 * QGEMM_NR)
#define LOW          b64_set1(0x0f0f0f0fu)
#define HALVES       for (int h = 0; h < 2; h++)
#define HALVES_AT(p) ((p) + 32 * h)
#define FLOATS_AT(p) ((p) + 16 * h)

static const uint8_t iq4_biased[16] = { 1,   24,  45,  63,  79,  93,  106, 118,
                                        129, 141, 153, 166, 181, 197, 217, 241 };
static const uint8_t mxfp4_biased[16] = { 128, 129, 130, 131, 132, 134, 136, 140,
                                          128, 127, 126, 125, 124, 122, 120, 116 };

/* Weights asked for while a unit is unpacked: those `near` bytes on, into L1, and lines from far
 * on, into L2: `share` of them for every four lines that are read. */
struct ahead {
    size_t near;
    const uint8_t *far;
    int share;
};

/* The line p is read, the i-th (0..3) of four. */
static GALLEY_INLINE void look_on(struct ahead *a, const uint8_t *p, int i)
{
    GALLEY_PREFETCH(p + a->near);
    if (i < a->share) {
        GALLEY_PREFETCH_FAR(a->far);
        a->far += 64;
    }
}

/* n blocks of 32: the word w of a block has the groups w and w + 4.  fifth NULL: four-bit codes;
 * table NULL: codes are values. */
static GALLEY_INLINE void nibbles_block(struct qgemm_panel *panel, const uint8_t *p, int n,
                                        const uint8_t *fifth, const uint8_t *table,
                                        struct ahead *ahead)
{
    const struct b64 low = LOW, bit = b64_set1(0x10101010u), t = table ? b64_table(table) : low;
    for (int b = 0; b < n; b++, p += 4 * WORD_BYTES) {
        HALVES
        {
            const struct b64 five = fifth ? WORD(fifth, b) : low;
            GALLEY_UNROLL
            for (int w = 0; w < 4; w++) {
                look_on(ahead, p + w * WORD_BYTES + 64 * h, w);
                const struct b64 v = WORD(p, w);
                struct b64 a = b64_and(v, low), c = b64_and(b64_right(v, 4), low);
                if (table) {
                    a = b64_lookup(t, a);
                    c = b64_lookup(t, c);
                }
                if (fifth) {
                    a = b64_or_and(a, b64_right(five, w - 4), bit);
                    c = b64_or_and(c, b64_right(five, w), bit);
                }
                b64_store(CODE(8 * b + w), a);
                b64_store(CODE(8 * b + w + 4), c);
            }
        }
    }
}

/* Q4_K, Q5_K: the word 8 c + w has the groups 16 c + w and 16 c + 8 + w. */
static GALLEY_INLINE void nibbles_k(struct qgemm_panel *panel, const uint8_t *p,
                                    const uint8_t *fifth, struct ahead *ahead)
{
    const struct b64 low = LOW, bit = b64_set1(0x10101010u);
    for (int w = 0; w < 8; w++) {
        HALVES
        {
            const struct b64 five = fifth ? WORD(fifth, w) : low;
            GALLEY_UNROLL
            for (int c = 0; c < 4; c++) {
                look_on(ahead, p + (8 * c + w) * WORD_BYTES + 64 * h, c);
                const struct b64 v = WORD(p, 8 * c + w);
                struct b64 a = b64_and(v, low), d = b64_and(b64_right(v, 4), low);
                if (fifth) {
                    a = b64_or_and(a, b64_right(five, 2 * c - 4), bit);
                    d = b64_or_and(d, b64_right(five, 2 * c - 3), bit);
                }
                b64_store(CODE(16 * c + w), a);
                b64_store(CODE(16 * c + 8 + w), d);
            }
        }
    }
}

/* Q6_K: of half k, the low words w and 8 + w have the groups w, 16 + w and 8 + w, 24 + w; the
 * high word w has two bits of each. */
static GALLEY_INLINE void codes_six(struct qgemm_panel *panel, const uint8_t *p,
                                    struct ahead *ahead)
{
    const struct b64 low = LOW, two = b64_set1(0x30303030u);
    const uint8_t *high = p + 32 * WORD_BYTES;
    for (int i = 0; i < 16; i++) {
        const int k = i / 8, w = i % 8;
        HALVES
        {
            look_on(ahead, p + 2 * i * WORD_BYTES + 128 * h, 0);
            look_on(ahead, p + 2 * i * WORD_BYTES + 128 * h + 64, 1);
            look_on(ahead, high + i * WORD_BYTES + 64 * h, 2);
            const struct b64 q = WORD(high, i);
            const struct b64 a = WORD(p, 16 * k + w), b = WORD(p, 16 * k + 8 + w);
            const int g = 32 * k + w;
            b64_store(CODE(g), b64_or_and(b64_and(a, low), b64_right(q, -4), two));
            b64_store(CODE(g + 8), b64_or_and(b64_and(b, low), b64_right(q, -2), two));
            b64_store(CODE(g + 16), b64_or_and(b64_and(b64_right(a, 4), low), q, two));
            b64_store(CODE(g + 24),
                      b64_or_and(b64_and(b64_right(b, 4), low), b64_right(q, 2), two));
        }
    }
}

/* Q2_K, Q3_K: of half k, the word w has two bits of the groups w, 8 + w, 16 + w and 24 + w; third
 * (NULL: none) has the third bits of all eight. */
static GALLEY_INLINE void codes_two(struct qgemm_panel *panel, const uint8_t *p,
                                    const uint8_t *third, struct ahead *ahead)
{
    const struct b64 two = b64_set1(0x03030303u), bit = b64_set1(0x04040404u);
    for (int i = 0; i < 16; i++) {
        const int k = i / 8, w = i % 8;
        HALVES
        {
            look_on(ahead, p + i * WORD_BYTES + 64 * h, 2 * (i % 2) + h);
            const struct b64 q = WORD(p, i), t = third ? b64_right(WORD(third, w), 4 * k) : two;
            GALLEY_UNROLL
            for (int g = 0; g < 4; g++) {
                struct b64 a = b64_and(b64_right(q, 2 * g), two);
                if (third) {
                    a = b64_or_and(a, b64_right(t, g - 2), bit);
                }
                b64_store(CODE(32 * k + 8 * g + w), a);
            }
        }
    }
}

/* Byte i of each lane to sub-block i.  Here and below words are loaded before anything is stored: a
 * load whose address ends like that of a store on its way waits for it. */
static GALLEY_INLINE void scales_bytes(int16_t (*factor)[QGEMM_NR][2], struct b64 v, int minus,
                                       int h)
{
    const struct b64 byte = b64_set1(0xff), m = b64_set1((uint32_t)minus);
    for (int i = 0; i < 4; i++) {
        b64_store_factor(FLOATS_AT(factor[i]), b64_sub32(b64_and(b64_right(v, 8 * i), byte), m));
    }
}

/* The four bytes of each lane as two pairs of int16: bytes 0 and 2, bytes 1 and 3. */
static GALLEY_INLINE void min_pairs(int16_t (*pair)[QGEMM_NR][2], struct b64 v, int h)
{
    const struct b64 even = b64_set1(0x00ff00ffu);
    b64_store(FLOATS_AT(pair[0]), b64_and(v, even));
    b64_store(FLOATS_AT(pair[1]), b64_and(b64_right(v, 8), even));
}

static GALLEY_INLINE void scales_six_min(struct qgemm_panel *panel, const uint8_t *p)
{
    const struct b64 six = b64_set1(0x3f3f3f3fu), low = LOW, two = b64_set1(0x30303030u);
    HALVES
    {
        const struct b64 s = WORD(p, 0), m = WORD(p, 1), rest = WORD(p, 2);
        scales_bytes(panel->factor, b64_and(s, six), 0, h);
        scales_bytes(panel->factor + 4, b64_or_and(b64_and(rest, low), b64_right(s, 2), two), 0, h);
        min_pairs(panel->pair, b64_and(m, six), h);
        min_pairs(panel->pair + 2,
                  b64_or_and(b64_and(b64_right(rest, 4), low), b64_right(m, 2), two), h);
    }
}

static GALLEY_INLINE void scales_four_min(struct qgemm_panel *panel, const uint8_t *p)
{
    const struct b64 low = LOW;
    for (int i = 0; i < 4; i++) {
        HALVES
        {
            const struct b64 v = WORD(p, i);
            scales_bytes(panel->factor + 4 * i, b64_and(v, low), 0, h);
            min_pairs(panel->pair + 2 * i, b64_and(b64_right(v, 4), low), h);
        }
    }
}

static GALLEY_INLINE void scales_q3(struct qgemm_panel *panel, const uint8_t *p)
{
    const struct b64 low = LOW, two = b64_set1(0x30303030u);
    HALVES
    {
        const struct b64 a = WORD(p, 0), b = WORD(p, 1), top = WORD(p, 2);
        scales_bytes(panel->factor, b64_or_and(b64_and(a, low), b64_right(top, -4), two), 32, h);
        scales_bytes(panel->factor + 4, b64_or_and(b64_and(b, low), b64_right(top, -2), two), 32,
                     h);
        scales_bytes(panel->factor + 8, b64_or_and(b64_and(b64_right(a, 4), low), top, two), 32, h);
        scales_bytes(panel->factor + 12,
                     b64_or_and(b64_and(b64_right(b, 4), low), b64_right(top, 2), two), 32, h);
    }
}

static GALLEY_INLINE void scales_signed(struct qgemm_panel *panel, const uint8_t *p)
{
    HALVES
    {
        const struct b64 word[4] = { WORD(p, 0), WORD(p, 1), WORD(p, 2), WORD(p, 3) };
        for (int i = 0; i < 16; i++) {
            const struct b64 v = b64_right(word[i / 4], 8 * (i % 4) - 24);
            b64_store_factor(FLOATS_AT(panel->factor[i]), b64_right_signed(v, 24));
        }
    }
}

static GALLEY_INLINE void scales_xs(struct qgemm_panel *panel, const uint8_t *p)
{
    const struct b64 low = b64_set1(15), two = b64_set1(0x30), bias = b64_set1(32);
    for (int i = 0; i < 8; i++) {
        HALVES
        {
            const struct b64 v = b64_and(b64_right(WORD(p, 0), 4 * i), low);
            const struct b64 top = b64_right(b64_from_u16(p + WORD_BYTES + 32 * h), 2 * i - 4);
            b64_store_float(FLOATS_AT(panel->scale[i]), b64_sub32(b64_or_and(v, top, two), bias));
        }
    }
}

static GALLEY_INLINE void halves(float (*to)[QGEMM_NR], const uint8_t *p, int n)
{
    for (int b = 0; b < n; b++, p += HALF_BYTES) {
        HALVES
        {
            b64_halves(FLOATS_AT(to[b]), HALVES_AT(p));
        }
    }
}

/* All of a unit of Q4_K but its codes. */
static GALLEY_INLINE void scales_four_k(struct qgemm_panel *panel, const uint8_t *u)
{
    const uint8_t *d = u + 35 * WORD_BYTES;
    scales_six_min(panel, u + 32 * WORD_BYTES);
    halves(&panel->d, d, 1);
    halves(&panel->dmin, d + HALF_BYTES, 1);
}

static GALLEY_INLINE void unpack_k(struct qgemm_panel *panel, const uint8_t *u, enum dtype t,
                                   struct ahead *ahead)
{
    const uint8_t *d;
    bool min = false;
    switch (t) {
    case DTYPE_Q2_K:
        codes_two(panel, u, NULL, ahead);
        scales_four_min(panel, u + 16 * WORD_BYTES);
        d = u + 20 * WORD_BYTES;
        min = true;
        break;
    case DTYPE_Q3_K:
        codes_two(panel, u, u + 16 * WORD_BYTES, ahead);
        scales_q3(panel, u + 24 * WORD_BYTES);
        d = u + 27 * WORD_BYTES;
        break;
    case DTYPE_Q4_K:
        nibbles_k(panel, u, NULL, ahead);
        scales_six_min(panel, u + 32 * WORD_BYTES);
        d = u + 35 * WORD_BYTES;
        min = true;
        break;
    case DTYPE_Q5_K:
        nibbles_k(panel, u, u + 32 * WORD_BYTES, ahead);
        scales_six_min(panel, u + 40 * WORD_BYTES);
        d = u + 43 * WORD_BYTES;
        min = true;
        break;
    case DTYPE_Q6_K:
        codes_six(panel, u, ahead);
        scales_signed(panel, u + 48 * WORD_BYTES);
        d = u + 52 * WORD_BYTES;
        break;
    default:
        nibbles_block(panel, u, 8, NULL, iq4_biased, ahead);
        scales_xs(panel, u + 32 * WORD_BYTES);
        d = u + 33 * WORD_BYTES + HALF_BYTES;
        break;
    }
    halves(&panel->d, d, 1);
    if (min) {
        halves(&panel->dmin, d + HALF_BYTES, 1);
    }
}

static GALLEY_INLINE void unpack_block(struct qgemm_panel *panel, const uint8_t *u, enum dtype t,
                                       int n, struct ahead *ahead)
{
    const uint8_t *d = u + 4 * n * WORD_BYTES;
    switch (t) {
    case DTYPE_Q4_0:
    case DTYPE_Q4_1:
        nibbles_block(panel, u, n, NULL, NULL, ahead);
        break;
    case DTYPE_Q5_0:
    case DTYPE_Q5_1:
        nibbles_block(panel, u, n, d, NULL, ahead);
        d += n * WORD_BYTES;
        break;
    case DTYPE_Q8_0:
        for (int i = 0; i < n * 16; i++) {
            look_on(ahead, u + 64 * i, i % 4);
        }
        panel->code = u;
        d += 4 * n * WORD_BYTES;
        break;
    case DTYPE_IQ4_NL:
        nibbles_block(panel, u, n, NULL, iq4_biased, ahead);
        break;
    default:
        nibbles_block(panel, u, n, NULL, mxfp4_biased, ahead);
        for (int b = 0; b < n; b++) {
            HALVES
            {
                b64_exponents(FLOATS_AT(panel->scale[b]), d + b * QGEMM_NR + 16 * h);
            }
        }
        return;
    }
    halves(panel->scale, d, n);
    if (t == DTYPE_Q4_1 || t == DTYPE_Q5_1) {
        halves(panel->min, d + n * HALF_BYTES, n);
    }
}

/* n: blocks in the unit.  Returns the first line that was not asked for. */
static const uint8_t *unpack(struct qgemm_panel *panel, const uint8_t *u, enum dtype t, int n,
                             struct ahead ahead)
{
    panel->code = panel->bytes;
    if (dtype_info(t)->block == QGEMM_K) {
        unpack_k(panel, u, t, &ahead);
    } else {
        unpack_block(panel, u, t, n, &ahead);
    }
    return ahead.far;
}
