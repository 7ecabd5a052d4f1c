/* turn.c - turning pages: landscape tables on portrait pages and the like. */
#include "layout/turn.h"

#include <string.h>

#include "layout/flow.h"
#include "src/base/cp.h"
#include "src/base/mem.h"

int page_text_angle(const struct page *p)
{
    int count[4] = { 0 };
    for (int i = 0; i < p->n_glyphs; i++) {
        const struct glyph *g = &p->glyphs[i];
        if (g->run >= 0 && g->run < p->n_runs && !cp_is_space(g->cp)) {
            const int a = p->runs[g->run].angle;
            count[a == 90 ? 1 : a == 180 ? 2 : a == 270 ? 3 : 0]++;
        }
    }
    int best = 0;
    for (int i = 1; i < 4; i++) {
        best = count[i] > count[best] ? i : best;
    }
    return best * 90;
}

static struct box box_turn(struct box b, const struct page *p, int angle)
{
    const float w = p->width, h = p->height;
    switch (angle) {
    case 90:
        return (struct box){ b.y0, w - b.x1, b.y1, w - b.x0 };
    case 180:
        return (struct box){ w - b.x1, h - b.y1, w - b.x0, h - b.y0 };
    default:
        return (struct box){ h - b.y1, b.x0, h - b.y0, b.x1 };
    }
}

static struct image *image_turn(const struct image *im, int angle)
{
    const int w = im->width, h = im->height;
    struct image *out = angle == 180 ? image_new(w, h) : image_new(h, w);
    for (int y = 0; out && y < out->height; y++) {
        uint8_t *to = out->rgb + out->stride * (size_t)y;
        for (int x = 0; x < out->width; x++, to += 3) {
            const int sx = angle == 90 ? w - 1 - y : angle == 180 ? w - 1 - x : y;
            const int sy = angle == 90 ? x : angle == 180 ? h - 1 - y : h - 1 - x;
            memcpy(to, im->rgb + im->stride * (size_t)sy + 3 * (size_t)sx, 3);
        }
    }
    return out;
}

static void *list_copy(const void *list, int n, size_t size, bool *ok)
{
    void *out = mem_array((size_t)n, size);
    if (!out) {
        *ok = false;
    } else if (n > 0) {
        memcpy(out, list, (size_t)n * size);
    }
    return out;
}

static bool lists_copy(struct page *q, const struct page *p)
{
    bool ok = true;
    q->glyphs = list_copy(p->glyphs, p->n_glyphs, sizeof(*p->glyphs), &ok);
    q->runs = list_copy(p->runs, p->n_runs, sizeof(*p->runs), &ok);
    q->rules = list_copy(p->rules, p->n_rules, sizeof(*p->rules), &ok);
    q->pictures = list_copy(p->pictures, p->n_pictures, sizeof(*p->pictures), &ok);
    q->links = mem_many(struct page_link, (size_t)p->n_links);
    ok = ok && q->links;
    for (int i = 0; ok && i < p->n_links; i++) {
        q->links[i].box = p->links[i].box;
        q->links[i].uri = p->links[i].uri ? mem_strdup(p->links[i].uri) : NULL;
        ok = !p->links[i].uri || q->links[i].uri;
    }
    return ok;
}

struct page *page_turn_upright(const struct page *p, int angle)
{
    struct page *q = mem_new(struct page);
    if (!q) {
        return NULL;
    }
    *q = *p;
    q->bitmap = p->bitmap ? image_turn(p->bitmap, angle) : NULL;
    if (!lists_copy(q, p) || (p->bitmap && !q->bitmap)) {
        page_free(q);
        return NULL;
    }
    if (angle != 180) {
        q->width = p->height;
        q->height = p->width;
    }
    q->turned = (p->turned + 360 - angle) % 360;
    for (int i = 0; i < q->n_glyphs; i++) {
        q->glyphs[i].box = box_turn(q->glyphs[i].box, p, angle);
    }
    for (int i = 0; i < q->n_runs; i++) {
        q->runs[i].angle = (int16_t)(((q->runs[i].angle - angle) % 360 + 360) % 360);
    }
    for (int i = 0; i < q->n_rules; i++) {
        q->rules[i].box = box_turn(q->rules[i].box, p, angle);
        q->rules[i].vertical = q->rules[i].vertical != (angle != 180);
    }
    for (int i = 0; i < q->n_pictures; i++) {
        q->pictures[i].box = box_turn(q->pictures[i].box, p, angle);
    }
    for (int i = 0; i < q->n_links; i++) {
        q->links[i].box = box_turn(q->links[i].box, p, angle);
    }
    return q;
}
