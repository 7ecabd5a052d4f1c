/* heading.c - headings by weighed evidence: size, weight, spacing, numbering, neighbours. */
#include "layout/heading.h"

#include <math.h>
#include <string.h>

#include "src/base/cp.h"

#define MAX_LINES 4
#define MAX_WORDS 24
#define MAX_CHARS 150
#define ACCEPT    0.5f

/* Depth of a leading section number ("2.1 Text" is 2), 0 without one. */
static int numbering_depth(const char *text)
{
    static const char *const words[] = { "Chapter ", "Part ",     "Section ", "Appendix ",
                                         "Kapitel ", "Chapitre ", "CHAPTER ", "APPENDIX " };
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        const size_t n = strlen(words[i]);
        if (strncmp(text, words[i], n) == 0 && text[n] != '\0' &&
            strchr("0123456789IVXABCDE", text[n])) {
            return 1;
        }
    }
    int depth = 0, at = 0;
    if (text[0] >= 'A' && text[0] <= 'H' && text[1] == '.' && text[2] >= '0' && text[2] <= '9') {
        depth = 1;
        at = 2;
    }
    for (;;) {
        int n = 0;
        while (text[at + n] >= '0' && text[at + n] <= '9') {
            n++;
        }
        if (n == 0 || n > 3) {
            break;
        }
        depth++;
        at += n;
        if (text[at] != '.') {
            break;
        }
        at++;
    }
    return depth > 0 && text[at] == ' ' && depth <= 6 ? depth : 0;
}

static bool same_style(const struct line *a, const struct line *b)
{
    const float tol = a->ocr || b->ocr ? 0.15f : 0.04f;
    return fabsf(a->size - b->size) <= tol * a->size && a->bold == b->bold && a->mono == b->mono;
}

static bool line_all_caps(const struct flow *f, const struct line *l)
{
    int upper = 0, lower = 0;
    for (int32_t i = 0; i < l->n_words; i++) {
        const struct word *w = &f->words[l->word0 + i];
        for (int32_t k = 0; k < w->n_chars; k++) {
            const uint32_t cp = f->chars[w->char0 + k].cp;
            upper += cp_is_upper(cp);
            lower += cp_is_lower(cp);
        }
    }
    return upper >= 3 && lower == 0;
}

/* The lines of one style from item i on; more than MAX_LINES means running text. */
static int32_t style_run(const struct flow *f, int32_t i0, int32_t *n_words, int32_t *n_chars)
{
    const struct line *prev = item_line(f, i0);
    *n_words = prev->n_words;
    *n_chars = prev->n_chars;
    int32_t i = i0 + 1;
    for (; i < f->n_items && i - i0 <= MAX_LINES; i++) {
        const struct line *l = item_line(f, i);
        if (!l || f->items[i].group != f->items[i0].group || !same_style(prev, l)) {
            break;
        }
        const float dy = l->baseline - prev->baseline;
        if (dy > 1.6f * l->size || dy < 0.3f * l->size || l->marker.kind != MARKER_NONE ||
            numbering_depth(l->text) > 0) {
            break;
        }
        *n_words += l->n_words;
        *n_chars += l->n_chars;
        prev = l;
    }
    return i - i0;
}

static bool vetoed(const struct flow *f, const struct line *first, const struct line *last,
                   float ratio)
{
    const uint32_t end = line_last_cp(f, last), start = line_first_cp(f, first);
    if (first->n_letters < 2 || first->mono || first->math > 0.3f || end == ',' || end == ';') {
        return true;
    }
    if ((end == '.' || end == 0x3002) && ratio < 1.3f) {
        return true;
    }
    if (first->marker.kind == MARKER_BULLET) {
        return true;
    }
    return ratio < 1.15f && cp_is_lower(start);
}

static bool peer_on_row(const struct flow *f, int32_t i)
{
    const struct box *b = &f->items[i].box;
    for (int d = -1; d <= 1; d += 2) {
        const int32_t k = i + d;
        if (k >= 0 && k < f->n_items && f->items[k].group == f->items[i].group &&
            box_overlap_y(b, &f->items[k].box) > 0.5f * (b->y1 - b->y0)) {
            return true;
        }
    }
    return false;
}

static float evidence_around(const struct flow *f, const struct history *h, int32_t i, int32_t n)
{
    const struct line *first = item_line(f, i), *last = item_line(f, i + n - 1);
    const struct line *above = i > 0 ? item_line(f, i - 1) : NULL;
    const struct line *below = i + n < f->n_items ? item_line(f, i + n) : NULL;
    const int32_t g = f->items[i].group;
    const struct group *col = &f->groups[g];
    const float body = history_body_size(h);
    float score = 0;
    const bool top = !above || f->items[i - 1].group != g;
    const float gap_above = top ? 1e9f : first->baseline - above->baseline;
    const float gap_below = below ? below->baseline - last->baseline : 1e9f;
    if (gap_above > 1.4f * col->pitch * body && (top || gap_above >= 0.9f * gap_below)) {
        score += 0.15f;
    }
    const float wide = col->right - col->left;
    const bool left = fabsf(first->box.x0 - col->left) < 0.5f * body;
    const float off = (first->box.x0 + first->box.x1 - col->left - col->right) / 2;
    if ((left || fabsf(off) < 0.5f * body) && last->box.x1 - last->box.x0 < 0.75f * wide) {
        score += 0.1f;
    }
    if (below && !same_style(below, last) && fabsf(below->size - body) < 0.08f * body) {
        score += 0.1f;
    }
    return score;
}

static bool stands_off(const struct flow *f, const struct history *h, int32_t i)
{
    const struct line *l = item_line(f, i), *above = item_line(f, i - 1);
    if (peer_on_row(f, i) || line_last_cp(f, l) == ':') {
        return false;
    }
    if (!above || f->items[i - 1].group != f->items[i].group) {
        return true;
    }
    const float pitch = f->groups[f->items[i].group].pitch * history_body_size(h);
    return l->baseline - above->baseline > 1.35f * pitch;
}

/* "2.1 Queries" in the body's own type: only the number and the space around it tell. */
static bool numbered_alone(const struct flow *f, const struct history *h, int32_t i)
{
    const struct line *l = item_line(f, i);
    const uint32_t end = line_last_cp(f, l);
    const struct line *below = item_line(f, i + 1), *above = item_line(f, i - 1);
    const struct group *g = &f->groups[f->items[i].group];
    if (numbering_depth(l->text) < 2 || l->n_words > 10 || cp_ends_sentence(end) || end == ',' ||
        l->n_letters < 3 || !below || peer_on_row(f, i) || l->size < 0.93f * history_body_size(h)) {
        return false;
    }
    const bool top = !above || f->items[i - 1].group != f->items[i].group;
    const float gap = top ? 1e9f : l->baseline - above->baseline;
    return gap > 1.25f * g->pitch * l->size && l->box.x1 - l->box.x0 < 0.75f * (g->right - g->left);
}

/* Numbering binds levels: all headings of one depth share the level of the first. */
static int level_bind(struct history *h, int depth, int level)
{
    if (depth <= 0 || depth >= HISTORY_DEPTHS) {
        return level;
    }
    const int parent = h->depth_level[depth - 1];
    if (depth > 1 && parent > 0 && level <= parent) {
        level = parent + 1;
    }
    if (h->depth_level[depth] == 0) {
        h->depth_level[depth] = level < 6 ? level : 6;
    }
    return h->depth_level[depth];
}

struct heading heading_at(const struct flow *f, struct history *h, int32_t i)
{
    struct heading out = { 0 };
    const struct line *l = item_line(f, i);
    const float body = history_body_size(h), ratio = l->size / body;
    const bool body_bold = history_body_bold(h);
    const float least = l->ocr ? 1.2f : 1.12f;
    const bool weight =
        l->bold && !body_bold && (!l->ocr || (l->n_chars > 5 && stands_off(f, h, i)));
    if (ratio < least && (!weight || ratio < 0.93f)) {
        if (numbered_alone(f, h, i)) {
            const int depth = numbering_depth(l->text);
            out = (struct heading){ 1, level_bind(h, depth, depth < 5 ? depth + 1 : 6), 0.55f };
        }
        return out;
    }
    int32_t n_words, n_chars;
    const int32_t n = style_run(f, i, &n_words, &n_chars);
    if (n > MAX_LINES || n_words > MAX_WORDS || n_chars > MAX_CHARS ||
        vetoed(f, l, item_line(f, i + n - 1), ratio)) {
        return out;
    }
    if (l->ocr && ratio < 1.5f && !stands_off(f, h, i)) {
        return out; /* recognised sizes jitter: space above must confirm them */
    }
    const int depth = numbering_depth(l->text);
    float score = ratio >= 1.4f ? 0.5f : ratio >= 1.15f ? 0.4f : ratio >= 1.08f ? 0.2f : 0;
    score += l->bold && !body_bold ? 0.3f : 0;
    score += depth > 0 ? 0.25f : 0;
    score += line_all_caps(f, l) ? 0.1f : 0;
    score += evidence_around(f, h, i, n);
    if (ratio < least) {
        /* Bold at body size: labels and table heads have peers beside them or nothing below. */
        const struct line *below = i + n < f->n_items ? item_line(f, i + n) : NULL;
        if (peer_on_row(f, i) || !below || below->bold || n > 2 || below->n_words < 5 ||
            line_last_cp(f, l) == ':') {
            return out;
        }
    }
    if (score < ACCEPT) {
        return out;
    }
    out.n_items = n;
    out.score = fminf(1, score);
    out.level = level_bind(h, depth, history_level(h, l->size, l->ocr));
    return out;
}
