/* qfour_body.h - a unit of Q4_K times rows whose dots fit 16 bits.  Included by qgemm_avx512.c
 * after qunpack_body.h.
 *
 * Codes are below 16, so the dot of a sub-block fits an int16 when neither the codes of the row
 * above 0 nor those below sum to more than 32767 / 15: rows with anything like a bell curve, and
 * then the chain of qgemm.h is exact, whose integers are summed here.  vpdpwssd multiplies the low
 * half of each dot by the scale and adds it up, one operation where a conversion and an fma are
 * two: of the two ports for vectors a row takes 8 + 10 cycles in a unit, beside 64 for the codes.
 *
 * The first tile of rows takes codes straight from the packed bytes and leaves them in the panel,
 * if there are more tiles: 128 stores by themselves take as long as one and a half rows. */
#define FOUR_ROWS \
    8 /* sixteen chains; the sums of scaled dots are partly spilled, it does not show */
#define FOUR_REACH  (32767 / 15)
#define FOUR_SCALES (32 * WORD_BYTES) /* where they are in a unit */

enum four_codes { FOUR_PACKED, FOUR_PACKED_KEPT, FOUR_PANEL };

/* Weights to be asked for: lines at once into L1 and L2, evenly over the sub-blocks of all tiles.
 */
struct four_ahead {
    const uint8_t *near;
    uintptr_t far;  /* a line's number */
    uint32_t lines; /* for a sub-block, times 2^16 */
    bool pages;     /* far ones in turn from two pages of 4 KiB */
};

struct four_span {
    const uint8_t *unit;
    struct qgemm_panel *p;
    const int8_t *x;          /* [rows][QGEMM_K] */
    const union qact_meta *m; /* [rows] */
    float *acc;               /* [rows][QGEMM_NR] */
    struct four_ahead ahead;
    uint32_t i_sub; /* sub-blocks before, over all tiles */
};

static GALLEY_INLINE void four_look_ahead(const struct four_span *s, int j)
{
    const uint32_t i = s->i_sub + (uint32_t)j;
    const uint32_t end = (i + 1) * s->ahead.lines >> 16;
    for (uint32_t l = i * s->ahead.lines >> 16; l < end; l++) {
        GALLEY_PREFETCH(s->ahead.near + 64 * l);
        uintptr_t far = s->ahead.far + l;
        if (s->ahead.pages) {
            far = (far & ~(uintptr_t)127) | (far & 1) << 6 | (far >> 1 & 63);
        }
        GALLEY_PREFETCH_FAR((const void *)(far * 64));
    }
}

/* The rows of the next tile, whose places no hardware guesses; in eight portions. */
static GALLEY_INLINE void four_next_rows(const struct four_span *s, int i, const int R)
{
    GALLEY_UNROLL
    for (int l = 0; l < R / 2; l++) {
        GALLEY_PREFETCH(s->x + R * QGEMM_K + (i * (R / 2) + l) * 64);
    }
    if (i < R) {
        GALLEY_PREFETCH(&s->m[R + i]);
        GALLEY_PREFETCH(s->acc + (R + i) * QGEMM_NR);
        GALLEY_PREFETCH(s->acc + (R + i) * QGEMM_NR + 16);
    }
}

/* sum += scale * dot of sub-block j; R, from and high (nibbles) are constants. */
static GALLEY_INLINE void four_dots(__m512i *sum, const struct four_span *s, int j, const int R,
                                    const enum four_codes from, const bool high)
{
    const __m512i low = _mm512_set1_epi8(15);
    const uint8_t *code =
        from == FOUR_PANEL ? s->p->bytes + j * 8 * WORD_BYTES : s->unit + j / 2 * 8 * WORD_BYTES;
    uint8_t *to = s->p->bytes + j * 8 * WORD_BYTES;
    const int8_t *x = s->x + 32 * j;
    __m512i a[2 * FOUR_ROWS];
    GALLEY_UNROLL
    for (int i = 0; i < 2 * R; i++) {
        a[i] = _mm512_setzero_si512();
    }
    four_look_ahead(s, j);
    if (from == FOUR_PANEL) {
        four_next_rows(s, j, R);
    }
    GALLEY_UNROLL
    for (int g = 0; g < 8; g++) {
        __m512i w0 = _mm512_load_si512(code + g * WORD_BYTES);
        __m512i w1 = _mm512_load_si512(code + g * WORD_BYTES + 64);
        if (from != FOUR_PANEL) {
            w0 = _mm512_and_si512(high ? _mm512_srli_epi16(w0, 4) : w0, low);
            w1 = _mm512_and_si512(high ? _mm512_srli_epi16(w1, 4) : w1, low);
        }
        if (from == FOUR_PACKED_KEPT) {
            _mm512_store_si512(to + g * WORD_BYTES, w0);
            _mm512_store_si512(to + g * WORD_BYTES + 64, w1);
        }
        GALLEY_UNROLL
        for (int r = 0; r < R; r++) {
            const __m512i v = four_codes(x + r * QGEMM_K + 4 * g);
            a[2 * r] = _mm512_dpbusd_epi32(a[2 * r], w0, v);
            a[2 * r + 1] = _mm512_dpbusd_epi32(a[2 * r + 1], w1, v);
        }
    }
    const __m512i f0 = _mm512_loadu_si512(s->p->factor[j]);
    const __m512i f1 = _mm512_loadu_si512(s->p->factor[j] + 16);
    GALLEY_UNROLL
    for (int r = 0; r < R; r++) {
        sum[2 * r] = _mm512_dpwssd_epi32(sum[2 * r], a[2 * r], f0);
        sum[2 * r + 1] = _mm512_dpwssd_epi32(sum[2 * r + 1], a[2 * r + 1], f1);
    }
}

static GALLEY_INLINE void four_rows(const struct four_span *s, const int R,
                                    const enum four_codes from)
{
    __m512i sum[2 * FOUR_ROWS];
    GALLEY_UNROLL
    for (int i = 0; i < 2 * R; i++) {
        sum[i] = _mm512_setzero_si512();
    }
    for (int j = 0; j < 8; j += 2) {
        four_dots(sum, s, j, R, from, false);
        four_dots(sum, s, j + 1, R, from, true);
    }
    GALLEY_UNROLL
    for (int h = 0; h < 2; h++) {
        GALLEY_UNROLL
        for (int r = 0; r < R; r++) {
            unit_add(s->acc + r * QGEMM_NR, _mm512_cvtepi32_ps(sum[2 * r + h]), s->p, s->m + r, h,
                     true, false);
        }
    }
}

#define FOUR_TILE(name, from)                             \
    static void name(const struct four_span *s, int rows) \
    {                                                     \
        switch (rows) {                                   \
        case 1:                                           \
            four_rows(s, 1, from);                        \
            break;                                        \
        case 2:                                           \
            four_rows(s, 2, from);                        \
            break;                                        \
        case 3:                                           \
            four_rows(s, 3, from);                        \
            break;                                        \
        case 4:                                           \
            four_rows(s, 4, from);                        \
            break;                                        \
        case 5:                                           \
            four_rows(s, 5, from);                        \
            break;                                        \
        case 6:                                           \
            four_rows(s, 6, from);                        \
            break;                                        \
        case 7:                                           \
            four_rows(s, 7, from);                        \
            break;                                        \
        default:                                          \
            four_rows(s, 8, from);                        \
            break;                                        \
        }                                                 \
    }
FOUR_TILE(four_packed, FOUR_PACKED)
FOUR_TILE(four_packed_kept, FOUR_PACKED_KEPT)
FOUR_TILE(four_panel, FOUR_PANEL)

static GALLEY_INLINE void four_scales(struct qgemm_panel *panel, const uint8_t *p)
{
    const struct b64 byte = b64_set1(0xff);
    HALVES
    {
        struct b64 v[2];
        scales_six(v, p, h);
        for (int i = 0; i < 8; i++) {
            b64_store(FLOATS_AT(panel->factor[i]), b64_and(b64_right(v[i / 4], i % 4 * 8), byte));
        }
        minima_six(panel, p, h);
    }
    halves(&panel->d, p + 3 * WORD_BYTES, 1);
    halves(&panel->dmin, p + 3 * WORD_BYTES + HALF_BYTES, 1);
}

static GALLEY_INLINE bool four_fits(const union qact_meta *m, int rows)
{
    int most = 0;
    for (int r = 0; r < rows; r++) {
        most = m[r].k.reach32 > most ? m[r].k.reach32 : most;
    }
    return most <= FOUR_REACH;
}

/* Memory gives one core most when the hardware reads ahead in more than one page: its prefetcher
 * stays twenty lines ahead at most, which is not in time for rows few enough to wait for memory
 * but too many to ask in a hurry.  Asked for in turn from two pages, 8 rows took 0.88 of the time
 * they took with one (6 rows 0.93, one row 1.00), 16 rows 1.03 of it. */
#define FOUR_FAR_PAGES (4 * 4096)
#define FOUR_FAR_UNITS 2

static void four_unit(const struct qgemm_tile *t, const uint8_t *unit, const int8_t *x,
                      const union qact_meta *m)
{
    const int n_tiles = (t->rows + FOUR_ROWS - 1) / FOUR_ROWS;
    const size_t bytes = qgemm_unit_bytes(DTYPE_Q4_K, 1);
    const bool pages = n_tiles == 1;
    const uint8_t *far = unit + (pages ? FOUR_FAR_PAGES : FOUR_FAR_UNITS * bytes);
    struct four_span s = { .unit = unit, .p = t->panel, .x = x, .m = m, .acc = t->acc };
    s.ahead = (struct four_ahead){ unit + bytes, (uintptr_t)far / 64, 0, pages };
    s.ahead.lines = ((uint32_t)(bytes / 64) << 16) / (8 * (uint32_t)n_tiles) + 1;
    four_scales(t->panel, unit + FOUR_SCALES);
    for (int i = 0, row = 0; i < n_tiles; i++) {
        const int rows = (t->rows - row + n_tiles - i - 1) / (n_tiles - i);
        if (i > 0) {
            four_panel(&s, rows);
        } else if (n_tiles > 1) {
            four_packed_kept(&s, rows);
        } else {
            four_packed(&s, rows);
        }
        s.i_sub += 8;
        s.x += rows * QGEMM_K;
        s.m += rows;
        s.acc += rows * QGEMM_NR;
        row += rows;
    }
}
