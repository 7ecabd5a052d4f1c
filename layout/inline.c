/* inline.c - the pen: inline Markdown with the fewest escapes. */
#include "layout/inline.h"

#include <string.h>

#include "src/base/cp.h"
#include "src/base/utf8.h"

void pen_init(struct pen *p, const struct flow *f, const struct history *h)
{
    memset(p, 0, sizeof(*p));
    p->f = f;
    p->h = h;
    buf_init(&p->md, FLOW_MAX_TEXT);
    buf_init(&p->plain, FLOW_MAX_TEXT);
    p->link = -1;
    p->fresh = true;
}

void pen_deinit(struct pen *p)
{
    buf_deinit(&p->md);
    buf_deinit(&p->plain);
}

void pen_mark(struct pen *p, const char *s)
{
    buf_add_str(&p->md, s);
    buf_add_str(&p->plain, s);
}

static void style_close(struct pen *p)
{
    if (p->style & RUN_MONO) {
        buf_add_str(&p->md, p->html ? "</code>" : "`");
    }
    if (p->style & RUN_ITALIC) {
        buf_add_str(&p->md, p->html ? "</em>" : "*");
    }
    if (p->style & RUN_BOLD) {
        buf_add_str(&p->md, p->html ? "</strong>" : "**");
    }
    p->style = 0;
}

static void style_open(struct pen *p, uint8_t style)
{
    if (style & RUN_BOLD) {
        buf_add_str(&p->md, p->html ? "<strong>" : "**");
    }
    if (style & RUN_ITALIC) {
        buf_add_str(&p->md, p->html ? "<em>" : "*");
    }
    if (style & RUN_MONO) {
        buf_add_str(&p->md, p->html ? "<code>" : "`");
    }
    p->style = style;
}

static const char *link_uri(const struct pen *p, int32_t link)
{
    return link >= 0 ? p->f->page->links[link].uri : NULL;
}

static void link_close(struct pen *p)
{
    if (!p->open_link) {
        return;
    }
    p->open_link = false;
    buf_add_str(&p->md, "](");
    for (const char *s = link_uri(p, p->link); *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c <= ' ' || c == '(' || c == ')' || c == '<' || c == '>' || c == '\\') {
            buf_addf(&p->md, "%%%02X", c);
        } else {
            buf_add_char(&p->md, (char)c);
        }
    }
    buf_add_char(&p->md, ')');
    p->link = -1;
}

/* Places inside the document have no meaning in one Markdown file; bare addresses need no link. */
static bool link_shows(const struct pen *p, const struct word *w)
{
    const char *uri = link_uri(p, w->link);
    if (!uri || uri[0] == '#' || p->html) {
        return false;
    }
    const char *s = strncmp(uri, "mailto:", 7) == 0 ? uri + 7 : uri;
    int32_t k = 0;
    size_t i = 0;
    const size_t n = strlen(s);
    while (i < n && k < w->n_chars) {
        uint32_t cp;
        i += (size_t)utf8_decode(s + i, n - i, &cp);
        if (cp != p->f->chars[w->char0 + k].cp) {
            return true;
        }
        k++;
    }
    return !(i == n || (i + 1 == n && s[i] == '/'));
}

static uint8_t word_style(const struct pen *p, const struct word *w)
{
    uint8_t s = w->flags & (RUN_BOLD | RUN_ITALIC | RUN_MONO) & (uint8_t)~p->ignored;
    if (p->bare || w->math || (w->flags & RUN_OCR)) {
        s = 0;
    }
    return s & RUN_MONO ? RUN_MONO : s;
}

/* Would this sign act as Markdown at this place? */
static bool needs_escape(const struct pen *p, const struct word *w, int32_t k)
{
    const struct flow_char *c = &p->f->chars[w->char0];
    const uint32_t cp = c[k].cp, next = k + 1 < w->n_chars ? c[k + 1].cp : ' ';
    const uint32_t prev = k > 0 ? c[k - 1].cp : ' ';
    switch (cp) {
    case '\\':
        return next < 128 && next > ' ' && !cp_is_letter(next) && !cp_is_digit(next);
    case '`':
        return true;
    case '*':
        return !(prev == ' ' && next == ' ');
    case '_':
        return (prev == ' ') != (next == ' ');
    case '<':
        return cp_is_letter(next) || next == '/' || next == '!';
    case '|':
        return p->cell;
    case ']':
        return next == '(';
    default:
        return false;
    }
}

/* Signs that would start a heading, list or quote at the head of a line. */
static int32_t start_escape(const struct pen *p, const struct word *w, bool alone)
{
    const struct flow_char *c = &p->f->chars[w->char0];
    const uint32_t cp = c[0].cp;
    if (p->cell || p->html) {
        return -1;
    }
    if ((cp == '-' || cp == '+' || cp == '*') && w->n_chars == 1 && alone) {
        return 0;
    }
    if (cp == '>') {
        return 0;
    }
    if (cp == '#') {
        int32_t k = 0;
        while (k < w->n_chars && c[k].cp == '#') {
            k++;
        }
        return k == w->n_chars && k <= 6 && alone ? 0 : -1;
    }
    int32_t k = 0;
    while (k < w->n_chars && k < 10 && c[k].cp >= '0' && c[k].cp <= '9') {
        k++;
    }
    if (k > 0 && k < 10 && k + 1 == w->n_chars && (c[k].cp == '.' || c[k].cp == ')') && alone) {
        return k;
    }
    return -1;
}

static void html_cp(struct buf *b, uint32_t cp)
{
    if (cp == '<') {
        buf_add_str(b, "&lt;");
    } else if (cp == '>') {
        buf_add_str(b, "&gt;");
    } else if (cp == '&') {
        buf_add_str(b, "&amp;");
    } else {
        buf_add_cp(b, cp);
    }
}

static void word_text(struct pen *p, const struct word *w, int32_t n_chars, bool alone)
{
    const int32_t start = p->fresh ? start_escape(p, w, alone) : -1;
    for (int32_t k = 0; k < n_chars; k++) {
        const uint32_t cp = p->f->chars[w->char0 + k].cp;
        if (cp == 0xad) {
            continue; /* a soft hyphen in mid-line is invisible */
        }
        if (p->html) {
            html_cp(&p->md, cp);
            html_cp(&p->plain, cp);
            continue;
        }
        const bool mono = (p->style & RUN_MONO) != 0;
        if (k == start || (!mono && needs_escape(p, w, k)) || (cp == '|' && p->cell)) {
            buf_add_char(&p->md, '\\');
        }
        if (cp == '|' && p->cell) {
            buf_add_char(&p->plain, '\\'); /* a bare bar would end the cell there as well */
        }
        buf_add_cp(&p->md, mono && cp == '`' ? '\'' : cp);
        buf_add_cp(&p->plain, cp);
    }
    p->fresh = false;
}

/* A raised number that has a footnote on this page. */
static int32_t note_of(const struct pen *p, const struct word *w)
{
    int32_t v = 0;
    if (w->script != 1 || w->n_chars > 3) {
        return -1;
    }
    for (int32_t k = 0; k < w->n_chars; k++) {
        const uint32_t cp = p->f->chars[w->char0 + k].cp;
        if (cp < '0' || cp > '9') {
            return -1;
        }
        v = v * 10 + (int32_t)(cp - '0');
    }
    for (int32_t i = 0; i < p->n_notes; i++) {
        if (p->notes[i] == v) {
            return v;
        }
    }
    return -1;
}

static void pen_word(struct pen *p, const struct word *w, int32_t n_chars, bool space, bool alone)
{
    const int32_t note = note_of(p, w);
    const uint8_t style = note >= 0 ? 0 : word_style(p, w);
    const bool shows = link_shows(p, w);
    const char *old = p->open_link ? link_uri(p, p->link) : NULL;
    const bool same_link = old && shows && strcmp(old, link_uri(p, w->link)) == 0;
    if (style != p->style || (old && !same_link)) {
        style_close(p);
    }
    if (old && !same_link) {
        link_close(p);
    }
    if (space) {
        pen_mark(p, " ");
    }
    if (shows && !same_link) {
        if (p->style) {
            style_close(p);
        }
        buf_add_char(&p->md, '[');
        p->open_link = true;
        p->link = w->link;
    }
    if (style != p->style) {
        style_open(p, style);
    }
    if (note >= 0) {
        buf_addf(&p->md, "[^%d]", (int)note);
        buf_addf(&p->plain, "%d", (int)note);
        p->fresh = false;
        return;
    }
    word_text(p, w, n_chars, alone);
}

/* Words from i on that are only dots: the leader of a contents line. */
static int32_t leader_extent(const struct pen *p, const struct line *l, int32_t i)
{
    int32_t n = 0, dots = 0;
    for (; i + n < l->n_words; n++) {
        const struct word *w = &p->f->words[l->word0 + i + n];
        for (int32_t k = 0; k < w->n_chars; k++) {
            const uint32_t cp = p->f->chars[w->char0 + k].cp;
            if (cp != '.' && cp != 0x2026 && cp != 0xb7) {
                return dots >= 5 ? n : 0;
            }
            dots += cp == 0x2026 ? 3 : 1;
        }
    }
    return dots >= 5 ? n : 0;
}

void pen_line(struct pen *p, const struct line *l, int32_t from, enum join after, bool last)
{
    for (int32_t i = from; i < l->n_words; i++) {
        const int32_t leader = i > from ? leader_extent(p, l, i) : 0;
        if (leader > 0 && i + leader < l->n_words) {
            style_close(p);
            pen_mark(p, " ...");
            i += leader - 1;
            p->after_leader = true;
            continue;
        }
        const struct word *w = &p->f->words[l->word0 + i];
        const bool space = i == from ? p->pending_space : w->space || p->after_leader;
        p->after_leader = false;
        const bool ends = i + 1 == l->n_words;
        const bool alone = ends ? after == JOIN_SPACE && !last : w[1].space;
        int32_t n = w->n_chars;
        if (ends && !last && after == JOIN_DROP) {
            n--;
        }
        p->pending_space = false;
        if (n > 0 || space) {
            pen_word(p, w, n, space, alone);
        }
    }
    p->pending_space = !last && after == JOIN_SPACE;
    if (!last && after == JOIN_LINE) {
        style_close(p);
        link_close(p);
        pen_mark(p, "\n");
        p->fresh = true;
    }
}

void pen_end(struct pen *p)
{
    style_close(p);
    link_close(p);
    p->fresh = true;
    p->pending_space = false;
}
