/* qk_body.h - rows times a unit of the K kind, in integers.  Included by qgemm_avx512.c after
 * qunpack_body.h.
 *
 * vpdpwssd multiplies the low half of each dot by its scale and adds it up: one operation where a
 * conversion and an fma are two.  It takes dots that fit an int16.  With codes of 0..15 those of 32
 * do, when neither the codes of the row above 0 nor those below sum to more than 32767 / 15: rows
 * with anything like a bell curve.  Where rows reach further (qact_meta), vpmulld does it.  Of the
 * two ports for vectors a row of Q4_K takes 8 + 10 cycles in a unit beside 64 for the codes.
 *
 * Of Q4_K the first tile of rows takes codes straight from the packed bytes and leaves them in the
 * panel, if there are more tiles: 128 stores by themselves take as long as one and a half rows. */
/* Sixteen chains; the sums of scaled dots are partly spilled, which does not show. */
#define K_ROWS 8

enum k_from { K_PANEL, K_PACKED, K_PACKED_KEPT }; /* the last two: nibbles of Q4_K */

struct k_span {
    const uint8_t *unit;
    struct qgemm_panel *p;
    const int8_t *x;          /* [rows][QGEMM_K] */
    const union qact_meta *m; /* [rows] */
    float *acc;               /* [rows][QGEMM_NR] */
    struct lines lines;
    uint32_t i_sub; /* sub-blocks before, over all tiles */
};

static GALLEY_INLINE bool k_of16(const enum qgemm_form form)
{
    return form == QGEMM_K16 || form == QGEMM_K16_MIN;
}

/* The rows of the next tile, whose places no hardware guesses; in eight portions. */
static GALLEY_INLINE void k_next_rows(const struct k_span *s, int i, const int R,
                                      const enum qgemm_form form)
{
    GALLEY_UNROLL
    for (int l = 0; l < R / 2; l++) {
        GALLEY_PREFETCH(s->x + R * QGEMM_K + (i * (R / 2) + l) * 64);
    }
    if (i < R) {
        GALLEY_PREFETCH(&s->m[R + i]);
        if (form == QGEMM_K16) {
            GALLEY_PREFETCH(s->m[R + i].k.minus16);
        }
        GALLEY_PREFETCH(s->acc + (R + i) * QGEMM_NR);
        GALLEY_PREFETCH(s->acc + (R + i) * QGEMM_NR + 16);
    }
}

/* What takes the offset of the codes of Q6_K, or of Q3_K (three), away again. */
static GALLEY_INLINE __m512i k_start(const union qact_meta *m, int j, const bool three)
{
    const __m512i v = _mm512_set1_epi32(m->k.minus16[j]);
    return three ? _mm512_srai_epi32(v, 3) : v;
}

/* sum += factor * dot. */
static GALLEY_INLINE __m512i k_scaled(__m512i sum, __m512i dot, const void *factor, const bool wide)
{
    const __m512i f = _mm512_loadu_si512(factor);
    if (!wide) {
        return _mm512_dpwssd_epi32(sum, dot, f);
    }
    const __m512i alone = _mm512_srai_epi32(_mm512_slli_epi32(f, 16), 16);
    return _mm512_add_epi32(sum, _mm512_mullo_epi32(dot, alone));
}

/* sum += scale * dot of sub-block j; R, form, from, wide (dots), high (nibbles) and three (bits)
 * are constants. */
static GALLEY_INLINE void k_dots(__m512i *sum, const struct k_span *s, int j, const int R,
                                 const enum qgemm_form form, const enum k_from from,
                                 const bool wide, const bool high, const bool three)
{
    const int n_groups = k_of16(form) ? 4 : 8;
    const __m512i low = _mm512_set1_epi8(15);
    uint8_t *const panel = s->p->bytes + j * n_groups * WORD_BYTES;
    const uint8_t *code = from == K_PANEL ? panel : s->unit + j / 2 * n_groups * WORD_BYTES;
    const int8_t *x = s->x + 4 * n_groups * j;
    __m512i a[2 * K_ROWS];
    GALLEY_UNROLL
    for (int r = 0; r < R; r++) {
        a[2 * r] = a[2 * r + 1] =
            form == QGEMM_K16 ? k_start(s->m + r, j, three) : _mm512_setzero_si512();
    }
    lines_ask(&s->lines, s->i_sub + (uint32_t)j);
    if (from == K_PANEL && (!k_of16(form) || j % 2 == 0)) {
        k_next_rows(s, k_of16(form) ? j / 2 : j, R, form);
    }
    GALLEY_UNROLL
    for (int g = 0; g < n_groups; g++) {
        __m512i w0 = _mm512_load_si512(code + g * WORD_BYTES);
        __m512i w1 = _mm512_load_si512(code + g * WORD_BYTES + 64);
        if (from != K_PANEL) {
            w0 = _mm512_and_si512(high ? _mm512_srli_epi16(w0, 4) : w0, low);
            w1 = _mm512_and_si512(high ? _mm512_srli_epi16(w1, 4) : w1, low);
        }
        if (from == K_PACKED_KEPT) {
            _mm512_store_si512(panel + g * WORD_BYTES, w0);
            _mm512_store_si512(panel + g * WORD_BYTES + 64, w1);
        }
        GALLEY_UNROLL
        for (int r = 0; r < R; r++) {
            const __m512i v = four_codes(x + r * QGEMM_K + 4 * g);
            a[2 * r] = _mm512_dpbusd_epi32(a[2 * r], w0, v);
            a[2 * r + 1] = _mm512_dpbusd_epi32(a[2 * r + 1], w1, v);
        }
    }
    GALLEY_UNROLL
    for (int i = 0; i < 2 * R; i++) {
        sum[i] = k_scaled(sum[i], a[i], s->p->factor[j] + 16 * (i % 2), wide);
    }
}

static GALLEY_INLINE void k_rows(const struct k_span *s, const int R, const enum qgemm_form form,
                                 const enum k_from from, const bool wide, const bool three)
{
    const int n_sub = k_of16(form) ? 16 : 8;
    __m512i sum[2 * K_ROWS];
    GALLEY_UNROLL
    for (int i = 0; i < 2 * R; i++) {
        sum[i] = _mm512_setzero_si512();
    }
    for (int j = 0; j < n_sub; j += 2) {
        k_dots(sum, s, j, R, form, from, wide, false, three);
        k_dots(sum, s, j + 1, R, form, from, wide, true, three);
    }
    GALLEY_UNROLL
    for (int i = 0; i < 2 * R; i++) {
        const int r = i % R, h = i / R;
        unit_add(s->acc + r * QGEMM_NR, _mm512_cvtepi32_ps(sum[2 * r + h]), s->p, s->m + r, h,
                 form == QGEMM_K32_MIN || form == QGEMM_K16_MIN, k_of16(form));
    }
}

#define K_TILE(name, form, from, wide, three)          \
    static void name(const struct k_span *s, int rows) \
    {                                                  \
        switch (rows) {                                \
        case 1:                                        \
            k_rows(s, 1, form, from, wide, three);     \
            break;                                     \
        case 2:                                        \
            k_rows(s, 2, form, from, wide, three);     \
            break;                                     \
        case 3:                                        \
            k_rows(s, 3, form, from, wide, three);     \
            break;                                     \
        case 4:                                        \
            k_rows(s, 4, form, from, wide, three);     \
            break;                                     \
        case 5:                                        \
            k_rows(s, 5, form, from, wide, three);     \
            break;                                     \
        case 6:                                        \
            k_rows(s, 6, form, from, wide, three);     \
            break;                                     \
        case 7:                                        \
            k_rows(s, 7, form, from, wide, three);     \
            break;                                     \
        default:                                       \
            k_rows(s, 8, form, from, wide, three);     \
            break;                                     \
        }                                              \
    }
K_TILE(k32_min_packed, QGEMM_K32_MIN, K_PACKED, false, false)
K_TILE(k32_min_packed_kept, QGEMM_K32_MIN, K_PACKED_KEPT, false, false)
K_TILE(k32_min, QGEMM_K32_MIN, K_PANEL, false, false)
K_TILE(k32_min_wide, QGEMM_K32_MIN, K_PANEL, true, false)
K_TILE(k16_min, QGEMM_K16_MIN, K_PANEL, false, false)
K_TILE(k16_three, QGEMM_K16, K_PANEL, false, true)
K_TILE(k16, QGEMM_K16, K_PANEL, false, false)
K_TILE(k16_wide, QGEMM_K16, K_PANEL, true, false)

typedef void k_fn(const struct k_span *s, int rows);

/* Whether all dots of these rows with a unit fit an int16. */
static bool k_fits(enum dtype t, const union qact_meta *m, int rows)
{
    int reach32 = 0, reach16 = 0;
    for (int r = 0; r < rows; r++) {
        reach32 = m[r].k.reach32 > reach32 ? m[r].k.reach32 : reach32;
        reach16 = m[r].k.reach16 > reach16 ? m[r].k.reach16 : reach16;
    }
    return t == DTYPE_Q4_K   ? 15 * reach32 <= INT16_MAX
           : t == DTYPE_Q5_K ? 31 * reach32 <= INT16_MAX
           : t == DTYPE_Q6_K ? 32 * reach16 <= INT16_MAX /* values from -32 on */
                             : true;
}

static k_fn *k_panel_fn(enum dtype t, bool wide)
{
    const enum qgemm_form form = qgemm_form_of(t);
    return form == QGEMM_K32_MIN   ? wide ? k32_min_wide : k32_min
           : form == QGEMM_K16_MIN ? k16_min
           : t == DTYPE_Q3_K       ? k16_three
           : wide                  ? k16_wide
                                   : k16;
}

/* Memory gives one core most when the hardware reads ahead in more than one page: its prefetcher
 * stays twenty lines ahead at most, which is not in time for rows few enough to wait for memory
 * but too many to ask in a hurry.  Asked for in turn from LINES_PAGES pages, 8 rows of Q4_K took
 * 0.85 of the time they took with one (two pages 0.88, eight 0.83; 6 rows 0.9, one row 1.00), 16
 * rows 1.03 of it on one thread; on two threads four pages were best. */
#define K_FAR_PAGES (2 * LINES_PAGES * 4096)
#define K_FAR_UNITS 2
#define K_SHARE     3 /* of four lines, while unpacking for one tile of rows */

/* One unit at a place of x. */
static void k_unit(const struct qgemm_tile *t, const uint8_t *unit, size_t at)
{
    const union qact_meta *m = t->x->meta + at;
    const int n_tiles = (t->rows + K_ROWS - 1) / K_ROWS;
    const uint32_t n_sub = k_of16(qgemm_form_of(t->type)) ? 16 : 8;
    const size_t bytes = qgemm_unit_bytes(t->type, 1);
    const bool packed = t->type == DTYPE_Q4_K && k_fits(t->type, m, t->rows);
    const bool pages = packed && n_tiles == 1;
    const struct ahead ahead = { bytes, unit + K_FAR_UNITS * bytes, n_tiles == 1 ? K_SHARE : 0 };
    struct lines lines = { .far = pages ? unit + K_FAR_PAGES : ahead.far, .pages = pages };
    struct k_span s = { unit, t->panel, t->x->code + at * QGEMM_K, m, t->acc, { 0 }, 0 };
    size_t left = bytes;
    if (packed) {
        scales_four_k(t->panel, unit);
        lines.near = unit + bytes;
    } else {
        lines.far = unpack(t->panel, unit, t->type, 1, ahead); /* which asks for near ones */
        left -= (size_t)(lines.far - ahead.far);
    }
    lines.each = lines_each(left, n_sub * (uint32_t)n_tiles);
    s.lines = lines;
    for (int i = 0, row = 0; i < n_tiles; i++) {
        const int rows = (t->rows - row + n_tiles - i - 1) / (n_tiles - i);
        if (!packed || i > 0) {
            k_panel_fn(t->type, !packed && !k_fits(t->type, s.m, rows))(&s, rows);
        } else if (n_tiles > 1) {
            k32_min_packed_kept(&s, rows);
        } else {
            k32_min_packed(&s, rows);
        }
        s.i_sub += n_sub;
        s.x += rows * QGEMM_K;
        s.m += rows;
        s.acc += rows * QGEMM_NR;
        row += rows;
    }
}
