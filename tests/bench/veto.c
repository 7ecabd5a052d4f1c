/* veto.c - how often does the model refuse a draft that is wrong, and one that is right?
 *
 *     bench_veto PDF galley-pdf MODEL > veto.csv
 *
 * Takes every part of every readable region of a born-digital document, damages its draft in one
 * known way, and lets the engine verify it under several thresholds.  A part counts as vetoed when
 * the text that comes out is not the draft that went in. */
#include <pthread.h>

#include "layout/layout.h"
#include "layout/pdf.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/document/plan.h"
#include "tests/t.h"

enum damage { NONE, LETTER, DIGIT, WORD, OTHER, N_DAMAGES };
static const char *const damage_names[N_DAMAGES] = { "none", "one letter wrong", "one digit wrong",
                                                     "one word from elsewhere",
                                                     "another region's text" };
static const double taus[] = { 1e-10, 1e-6, 1e-4, 1e-2, 1 };

enum { PARTS_MAX = 400 };

struct part {
    struct image *crop;
    char *draft;
    int width, height;
};

struct trial {
    struct bench *bench;
    const char *draft;
    int *n_vetoed, *n_doubted;
};

struct bench {
    struct part part[PARTS_MAX];
    int n_parts;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n_open;
    double doubt;
};

static void collect_page(struct bench *b, const struct page_layout *l, const struct card *card)
{
    const struct galley_convert_options opt = { 0 };
    for (int i = 0; i < l->n_regions; i++) {
        struct region_plan p;
        T_EQ(plan_region(&p, l, &l->regions[i], card, &opt, 28, NULL), GALLEY_OK);
        for (int k = 0; k < p.n_pieces && b->n_parts < PARTS_MAX; k++) {
            struct part *x = &b->part[b->n_parts++];
            x->crop = plan_crop(l, &l->regions[i], &p.pieces[k]);
            x->draft = mem_strdup(p.pieces[k].draft);
            x->width = p.pieces[k].width;
            x->height = p.pieces[k].height;
            T_OK(x->crop && x->draft);
        }
        region_plan_deinit(&p);
    }
}

static void collect(struct bench *b, const char *path, const char *helper, const struct card *card)
{
    char *bytes;
    size_t n;
    struct pdf *pdf;
    struct layout *layout;
    const struct pdf_options opt = { .helper = helper };
    const struct layout_options lopt = { .source = LAYOUT_TEXT };
    T_EQ(file_read(path, 1 << 28, &bytes, &n, NULL), GALLEY_OK);
    T_EQ(pdf_open(&pdf, bytes, n, &opt, NULL), GALLEY_OK);
    T_EQ(layout_open(&layout, NULL, &lopt, NULL), GALLEY_OK);
    for (int i = 0; i < pdf_n_pages(pdf); i++) {
        struct page *page;
        struct page_layout *l;
        T_EQ(pdf_page(pdf, i, 200, &page, NULL), GALLEY_OK);
        layout_see(layout, page, pdf_n_pages(pdf));
        T_EQ(layout_page(layout, page, &l, NULL), GALLEY_OK);
        collect_page(b, l, card);
        page_layout_free(l);
        page_free(page);
    }
    layout_close(layout);
    pdf_close(pdf);
    mem_free(bytes);
}

static int count_letters(const char *s, const char *set)
{
    int n = 0;
    for (; *s; s++) {
        n += strchr(set, *s) != NULL;
    }
    return n;
}

/* Replaces the middle character that is in `set` by the next one in it. */
static bool replace_one(char *s, const char *set)
{
    int skip = count_letters(s, set) / 2;
    for (; *s; s++) {
        const char *at = strchr(set, *s);
        if (at && skip-- == 0) {
            *s = at[1] ? at[1] : set[0];
            return true;
        }
    }
    return false;
}

/* The draft with the damage; NULL when it cannot be done to this text.  The caller frees. */
static char *damaged(const struct bench *b, int i, enum damage kind)
{
    const char *draft = b->part[i].draft;
    const char *other = b->part[(i + b->n_parts / 2) % b->n_parts].draft;
    char *s = mem_alloc(strlen(draft) + strlen(other) + 64);
    T_OK(s);
    memcpy(s, draft, strlen(draft) + 1);
    bool done = true;
    if (kind == LETTER) {
        done = replace_one(s, "abcdefghijklmnopqrstuvwxyz");
    } else if (kind == DIGIT) {
        done = replace_one(s, "0123456789");
    } else if (kind == WORD) {
        const char *space = strchr(draft + strlen(draft) / 2, ' ');
        const char *end = space ? strchr(space + 1, ' ') : NULL;
        done = end != NULL;
        if (done) {
            snprintf(s, strlen(draft) + 64, "%.*s proviso%s", (int)(space - draft), draft, end);
        }
    } else if (kind == OTHER) {
        memcpy(s, other, strlen(other) + 1);
        done = strcmp(other, draft) != 0;
    }
    if (!done) {
        mem_free(s);
        return NULL;
    }
    return s;
}

static void on_end(void *user, const struct engine_result *r)
{
    struct trial *t = user;
    pthread_mutex_lock(&t->bench->lock);
    const bool vetoed = strcmp(r->text, t->draft) != 0;
    *t->n_vetoed += vetoed;
    *t->n_doubted += !vetoed && r->n_output >= 4 && r->mean_logprob < t->bench->doubt;
    t->bench->n_open--;
    pthread_cond_broadcast(&t->bench->changed);
    pthread_mutex_unlock(&t->bench->lock);
}

/* All parts with one damage under one threshold. */
static void run(struct bench *b, struct engine *e, enum damage kind, double tau)
{
    static struct trial trial[PARTS_MAX];
    char *draft[PARTS_MAX] = { NULL };
    int n = 0, n_vetoed = 0, n_doubted = 0;
    for (int i = 0; i < b->n_parts; i++) {
        draft[i] = damaged(b, i, kind);
        if (!draft[i]) {
            continue;
        }
        trial[i] = (struct trial){ b, draft[i], &n_vetoed, &n_doubted };
        const struct part *x = &b->part[i];
        const struct engine_part parts[] = {
            { .image = x->crop, .width = x->width, .height = x->height },
            { .text = "Convert to Markdown." },
        };
        const struct engine_message message = { CHAT_USER, parts, COUNT(parts) };
        const struct engine_request r = { .messages = &message,
                                          .n_messages = 1,
                                          .draft = draft[i],
                                          .tau = tau,
                                          .on_end = on_end,
                                          .user = &trial[i] };
        request_id id;
        pthread_mutex_lock(&b->lock);
        b->n_open++;
        pthread_mutex_unlock(&b->lock);
        T_EQ(engine_submit(e, &r, &id, NULL), GALLEY_OK);
        n++;
    }
    pthread_mutex_lock(&b->lock);
    while (b->n_open > 0) {
        pthread_cond_wait(&b->changed, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
    printf("%s,%g,%d,%.1f,%.1f\n", damage_names[kind], tau, n, n ? 100.0 * n_vetoed / n : 0,
           n ? 100.0 * n_doubted / n : 0);
    fflush(stdout);
    for (int i = 0; i < b->n_parts; i++) {
        mem_free(draft[i]);
    }
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct engine *e;
    if (argc != 4) {
        fprintf(stderr, "usage: %s PDF GALLEY-PDF MODEL\n", argv[0]);
        return 2;
    }
    if (setjmp(t_jump)) {
        return 1;
    }
    pthread_mutex_init(&b.lock, NULL);
    pthread_cond_init(&b.changed, NULL);
    const struct engine_config cfg = { .model_path = argv[3], .max_inbox = PARTS_MAX };
    T_EQ(engine_open(&e, &cfg, NULL), GALLEY_OK);
    collect(&b, argv[1], argv[2], engine_card(e));
    b.doubt = engine_card(e)->doubt_logprob;
    printf("damage,tau,parts,vetoed_percent,doubted_percent\n");
    for (int kind = 0; kind < N_DAMAGES; kind++) {
        for (size_t t = 0; t < COUNT(taus); t++) {
            run(&b, e, (enum damage)kind, taus[t]);
        }
    }
    engine_close(e);
    for (int i = 0; i < b.n_parts; i++) {
        image_unref(b.part[i].crop);
        mem_free(b.part[i].draft);
    }
    return 0;
}
