/* history.c - document-wide statistics. */
#include "layout/history.h"

#include <math.h>
#include <string.h>

#include "src/base/cp.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"

#define LEXICON_CAP (1u << 17)
#define WORD_MAX    48

bool history_init(struct history *h)
{
    memset(h, 0, sizeof(*h));
    h->cap_lexicon = LEXICON_CAP;
    h->lexicon = mem_many(uint64_t, h->cap_lexicon);
    h->chrome = mem_many(struct chrome_key, HISTORY_CHROME);
    if (!h->lexicon || !h->chrome) {
        history_deinit(h);
        return false;
    }
    return true;
}

void history_deinit(struct history *h)
{
    mem_free(h->lexicon);
    mem_free(h->chrome);
    memset(h, 0, sizeof(*h));
}

static uint32_t cp_fold(uint32_t cp)
{
    if ((cp >= 'A' && cp <= 'Z') || (cp >= 0xc0 && cp <= 0xde && cp != 0xd7)) {
        return cp + 32;
    }
    return cp >= 0x391 && cp <= 0x3a9 ? cp + 32 : cp >= 0x410 && cp <= 0x42f ? cp + 32 : cp;
}

static uint64_t hash_step(uint64_t h, uint32_t cp)
{
    return (h ^ cp) * 0x100000001b3u;
}

uint64_t text_hash(const uint32_t *cps, size_t n, bool fold)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) {
        h = hash_step(h, fold ? cp_fold(cps[i]) : cps[i]);
    }
    return h ? h : 1;
}

bool lexicon_has(const struct history *h, uint64_t hash)
{
    for (size_t i = hash & (h->cap_lexicon - 1);; i = (i + 1) & (h->cap_lexicon - 1)) {
        if (h->lexicon[i] == hash) {
            return true;
        }
        if (h->lexicon[i] == 0) {
            return false;
        }
    }
}

static void lexicon_add(struct history *h, uint64_t hash)
{
    if (h->n_lexicon >= h->cap_lexicon / 2) {
        return; /* a huge document: the words so far will do */
    }
    size_t i = hash & (h->cap_lexicon - 1);
    while (h->lexicon[i] != 0) {
        if (h->lexicon[i] == hash) {
            return;
        }
        i = (i + 1) & (h->cap_lexicon - 1);
    }
    h->lexicon[i] = hash;
    h->n_lexicon++;
}

/* Words inside a line are whole; its first may be a tail and its last a head of a broken one. */
static void lexicon_see_line(struct history *h, const struct flow *f, const struct line *l)
{
    uint32_t cps[WORD_MAX];
    size_t n = 0;
    bool first = true;
    for (int32_t i = 0; i <= l->n_words; i++) {
        const struct word *w = i < l->n_words ? &f->words[l->word0 + i] : NULL;
        if (!w || w->space) {
            while (n > 0 && !cp_is_letter(cps[n - 1])) {
                n--;
            }
            if (!first && w && n > 1 && n < WORD_MAX) {
                lexicon_add(h, text_hash(cps, n, true));
            }
            first = false;
            n = 0;
        }
        for (int32_t k = 0; w && k < w->n_chars && n < WORD_MAX; k++) {
            const uint32_t cp = f->chars[w->char0 + k].cp;
            if (n > 0 || cp_is_letter(cp)) {
                cps[n++] = cp;
            }
        }
    }
}

static struct style *style_of(struct history *h, float size, bool bold)
{
    const int32_t size2 = (int32_t)(fminf(size, 500) * 2 + 0.5f);
    for (int i = 0; i < h->n_styles; i++) {
        if (h->styles[i].size2 == size2 && h->styles[i].bold == bold) {
            return &h->styles[i];
        }
    }
    if (h->n_styles == HISTORY_STYLES) {
        return NULL;
    }
    h->styles[h->n_styles] = (struct style){ .size2 = size2, .bold = bold };
    return &h->styles[h->n_styles++];
}

static void style_see_line(struct history *h, const struct flow *f, const struct line *l)
{
    struct style *s = style_of(h, l->size, l->bold);
    if (!s) {
        return;
    }
    s->n_chars += l->n_chars;
    s->n_lines++;
    const uint32_t last = line_last_cp(f, l);
    s->n_heads +=
        l->n_letters >= 2 && l->n_chars <= 120 && last != '.' && last != ',' && last != ';';
}

uint64_t chrome_hash(const char *text, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    bool digit = false;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        i += (size_t)utf8_decode(text + i, n - i, &cp);
        if (cp_is_space(cp)) {
            continue;
        }
        const bool d = cp_is_digit(cp);
        if (!d || !digit) {
            h = hash_step(h, d ? '#' : cp_fold(cp));
        }
        digit = d;
    }
    return h ? h : 1;
}

const struct chrome_key *chrome_lookup(const struct history *h, uint64_t hash, float y, bool top)
{
    for (int32_t i = 0; i < h->n_chrome; i++) {
        const struct chrome_key *k = &h->chrome[i];
        if (k->hash == hash && k->top == top && fabsf(k->y - y) < 6) {
            return k;
        }
    }
    return NULL;
}

static void chrome_see_line(struct history *h, const struct page *p, const struct line *l)
{
    const float yc = (l->box.y0 + l->box.y1) / 2;
    const bool top = yc < p->height / 2;
    const float y = top ? yc : p->height - yc;
    if (y > 0.15f * p->height) {
        return;
    }
    const uint64_t hash = chrome_hash(l->text, (size_t)l->n_text);
    struct chrome_key *k = (struct chrome_key *)chrome_lookup(h, hash, y, top);
    if (!k) {
        if (h->n_chrome == HISTORY_CHROME) {
            return;
        }
        k = &h->chrome[h->n_chrome++];
        *k = (struct chrome_key){ .hash = hash, .y = y, .top = top, .last = -1 };
    }
    if (k->last != p->index) {
        k->count++;
        k->last = p->index;
    }
}

void history_see(struct history *h, const struct flow *f, int n_pages)
{
    const struct page *p = f->page;
    h->n_pages = n_pages > h->n_pages ? n_pages : h->n_pages;
    if (p->index < h->seen_to || f->failed) {
        return;
    }
    h->seen_to = p->index + 1;
    h->n_seen++;
    for (int32_t i = 0; i < f->n_lines; i++) {
        const struct line *l = &f->lines[i];
        style_see_line(h, f, l);
        chrome_see_line(h, p, l);
        lexicon_see_line(h, f, l);
    }
}

static const struct style *style_body(const struct history *h)
{
    const struct style *best = NULL;
    int64_t most = 0;
    for (int i = 0; i < h->n_styles; i++) {
        /* Neighbouring half points are one style: scans and scaled fonts jitter. */
        int64_t n = 0;
        for (int k = 0; k < h->n_styles; k++) {
            const int32_t d = h->styles[k].size2 - h->styles[i].size2;
            n += d >= -1 && d <= 1 ? h->styles[k].n_chars : 0;
        }
        n += h->styles[i].n_chars;
        if (n > most) {
            most = n;
            best = &h->styles[i];
        }
    }
    return best;
}

float history_body_size(const struct history *h)
{
    const struct style *s = style_body(h);
    return s ? (float)s->size2 / 2 : 10;
}

bool history_body_bold(const struct history *h)
{
    const struct style *s = style_body(h);
    return s && s->bold;
}

int history_level(const struct history *h, float size, bool ocr)
{
    const float body = history_body_size(h), step = ocr ? 1.15f : 1.04f;
    const float least = body * (ocr ? 1.18f : 1.08f);
    /* Count the clearly larger heading sizes, each cluster once, from large to small. */
    int level = 1;
    float above = 1e9f;
    for (int guard = 0; guard < HISTORY_STYLES; guard++) {
        float next = 0;
        for (int i = 0; i < h->n_styles; i++) {
            const float s = (float)h->styles[i].size2 / 2;
            if (h->styles[i].n_heads > 0 && s >= least && s * step <= above && s > next) {
                next = s;
            }
        }
        if (next == 0 || next <= size * (1 + (step - 1) / 2)) {
            break;
        }
        level++;
        above = next;
    }
    return level < 6 ? level : 6;
}
