/* produce.c - the producer thread: pages in, requests out. */
#include <assert.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/document/job.h"

#define FULL_QUEUE_SECONDS 0.02
#define SEE_AHEAD          2 /* pages that layout hears of before the one it analyses */

static void drop_layout(struct page_job *p)
{
    for (int i = 0; p->plans && i < p->layout->n_regions; i++) {
        region_plan_deinit(&p->plans[i]);
    }
    mem_free(p->plans);
    page_layout_free(p->layout);
    p->plans = NULL;
    p->layout = NULL;
}

void page_job_free(struct page_job *p)
{
    drop_layout(p);
    mem_free(p->ids);
    mem_free(p);
}

/* Engine thread: the result of one piece. */
struct piece_ref {
    struct page_job *page;
    struct piece *piece;
    bool last; /* the last piece of its region: counts the region as done */
};

static void on_piece_end(void *user, const struct engine_result *r)
{
    struct piece_ref *ref = user;
    struct job *j = ref->page->job;
    struct piece *p = ref->piece;
    char *text = mem_strndup(r->text, r->n_text);
    char *error = r->error[0] ? mem_strdup(r->error) : NULL;
    pthread_mutex_lock(&j->lock);
    p->finish = text ? r->finish : FINISH_FAILED;
    p->status = text ? r->status : GALLEY_ENOMEM;
    p->text = text;
    p->error = error;
    p->n_output = r->n_output;
    p->n_steps = r->n_steps;
    p->n_drafted = r->n_drafted;
    p->n_accepted = r->n_accepted;
    p->mean_logprob = r->mean_logprob;
    struct galley_stats *s = &j->stats;
    s->n_visual += r->n_visual;
    s->n_prompt += r->n_prompt;
    s->n_output += r->n_output;
    s->n_steps += r->n_steps;
    s->n_drafted += r->n_drafted;
    s->n_accepted += r->n_accepted;
    s->encode_seconds += r->encode_seconds;
    s->prefill_seconds += r->prefill_seconds;
    s->decode_seconds += r->decode_seconds;
    j->n_regions_done += ref->last;
    j->n_pieces_open--;
    ref->page->n_open--;
    pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->lock);
    mem_free(ref);
}

static bool stopped(struct job *j)
{
    pthread_mutex_lock(&j->lock);
    const bool stop = j->stop;
    pthread_mutex_unlock(&j->lock);
    return stop;
}

/* Waits until fewer than PIECES_AHEAD pieces are open; false when the job stops. */
static bool wait_for_room(struct job *j)
{
    pthread_mutex_lock(&j->lock);
    while (j->n_pieces_open >= PIECES_AHEAD && !j->stop) {
        pthread_cond_wait(&j->changed, &j->lock);
    }
    const bool stop = j->stop;
    pthread_mutex_unlock(&j->lock);
    return !stop;
}

/* The queue was full: waits for an event of ours, or a moment for others' requests to end. */
static void wait_for_event(struct job *j)
{
    pthread_mutex_lock(&j->lock);
    clock_wait(&j->changed, &j->lock, FULL_QUEUE_SECONDS);
    pthread_mutex_unlock(&j->lock);
}

/* Counts a piece as open before it is submitted: its end may come at once. */
static void count_open(struct page_job *pj, int change)
{
    struct job *j = pj->job;
    pthread_mutex_lock(&j->lock);
    j->n_pieces_open += change;
    pj->n_open += change;
    pthread_mutex_unlock(&j->lock);
}

static const char *prompt_for(const struct card *card, enum region_kind kind)
{
    return kind == REGION_TABLE && card->prompt_table[0] ? card->prompt_table : card->prompt_region;
}

static void remember_id(struct page_job *pj, request_id id)
{
    struct job *j = pj->job;
    pthread_mutex_lock(&j->lock);
    assert(pj->n_ids < pj->ids_cap);
    pj->ids[pj->n_ids++] = id;
    const bool stop = j->stop;
    pthread_mutex_unlock(&j->lock);
    if (stop) {
        engine_cancel(j->engine, id); /* the stop came before the id was known */
    }
}

static enum galley_status submit(struct page_job *pj, const struct region *r,
                                 const struct region_plan *plan, struct piece *p, bool last,
                                 struct galley_err *err)
{
    struct job *j = pj->job;
    const struct card *card = engine_card(j->engine);
    struct image *crop = plan_crop(pj->layout, r, p);
    struct piece_ref *ref = mem_new(struct piece_ref);
    if (!crop || !ref) {
        image_unref(crop);
        mem_free(ref);
        return galley_err_set(err, GALLEY_ENOMEM, "page %d: no memory for a crop", pj->number);
    }
    *ref = (struct piece_ref){ pj, p, last };
    const struct engine_part parts[] = {
        { .image = crop,
          .min_pixels = j->opt->min_pixels ? j->opt->min_pixels : card->min_pixels,
          .max_pixels = j->opt->max_pixels ? j->opt->max_pixels : card->max_pixels,
          .width = p->width,
          .height = p->height },
        { .text = prompt_for(card, r->kind) },
    };
    const struct engine_part system = { .text = card->system };
    const struct engine_message messages[] = {
        { .role = CHAT_SYSTEM, .parts = &system, .n_parts = 1 },
        { .role = CHAT_USER, .parts = parts, .n_parts = COUNT(parts) },
    };
    const int first = card->system[0] ? 0 : 1; /* without a system message none is sent */
    const struct engine_request req = {
        .messages = messages + first,
        .n_messages = (int)COUNT(messages) - first,
        .draft = p->draft,
        .tau = plan->tau,
        .max_new_tokens = j->opt->max_new_tokens,
        .on_end = on_piece_end,
        .user = ref,
    };
    count_open(pj, 1);
    request_id id;
    enum galley_status rc = engine_submit(j->engine, &req, &id, err);
    while (rc == GALLEY_ELIMIT && !stopped(j)) {
        wait_for_event(j);
        rc = engine_submit(j->engine, &req, &id, err);
    }
    image_unref(crop);
    if (rc) {
        count_open(pj, -1);
        mem_free(ref);
        return rc;
    }
    remember_id(pj, id);
    return GALLEY_OK;
}

/* A piece that never reached the engine ends here. */
static void fail_piece(struct page_job *pj, struct piece *p, bool last, enum galley_status rc,
                       const char *why)
{
    struct job *j = pj->job;
    pthread_mutex_lock(&j->lock);
    p->finish = rc == GALLEY_OK ? FINISH_CANCELLED : FINISH_FAILED;
    p->status = rc;
    p->error = mem_strdup(why);
    j->n_regions_done += last;
    pthread_mutex_unlock(&j->lock);
}

static enum galley_status plan_page(struct page_job *pj, struct galley_err *err)
{
    struct job *j = pj->job;
    const struct page_layout *l = pj->layout;
    pj->plans = mem_many(struct region_plan, (size_t)l->n_regions);
    if (!pj->plans) {
        return galley_err_set(err, GALLEY_ENOMEM, "page %d: no memory for %d regions", pj->number,
                              l->n_regions);
    }
    if (!j->engine) {
        return GALLEY_OK;
    }
    const struct hf_vision_config *v = &engine_hf_config(j->engine)->vision;
    int n = 0;
    for (int i = 0; i < l->n_regions; i++) {
        const enum galley_status rc =
            plan_region(&pj->plans[i], l, &l->regions[i], engine_card(j->engine), j->opt,
                        v->patch * v->merge, err);
        if (rc) {
            return rc;
        }
        n += pj->plans[i].n_pieces;
    }
    pj->ids = mem_array((size_t)n, sizeof(*pj->ids));
    pj->ids_cap = n;
    return pj->ids ? GALLEY_OK
                   : galley_err_set(err, GALLEY_ENOMEM, "page %d: no memory for %d requests",
                                    pj->number, n);
}

static void submit_page(struct page_job *pj)
{
    struct job *j = pj->job;
    for (int i = 0; i < pj->layout->n_regions; i++) {
        struct region_plan *plan = &pj->plans[i];
        for (int k = 0; k < plan->n_pieces; k++) {
            struct galley_err err = { 0 };
            const bool last = k == plan->n_pieces - 1;
            if (!wait_for_room(j)) {
                fail_piece(pj, &plan->pieces[k], last, GALLEY_OK, "cancelled");
                continue;
            }
            const enum galley_status rc =
                submit(pj, &pj->layout->regions[i], plan, &plan->pieces[k], last, &err);
            if (rc) {
                fail_piece(pj, &plan->pieces[k], last, rc, err.msg);
            }
        }
    }
}

/* Hands the page over in order; waits while too many are in flight. */
static bool enqueue(struct job *j, struct page_job *pj)
{
    pthread_mutex_lock(&j->lock);
    while (j->n_pages_queued > PAGES_AHEAD && !j->stop) {
        pthread_cond_wait(&j->changed, &j->lock);
    }
    const bool stop = j->stop;
    if (!stop) {
        *j->tail = pj;
        j->tail = &pj->next;
        j->n_pages_queued++;
        for (int i = 0; pj->layout && i < pj->layout->n_regions; i++) {
            j->n_regions += pj->plans[i].n_pieces > 0;
        }
    }
    pthread_mutex_unlock(&j->lock);
    return !stop;
}

static void mark_planned(struct page_job *pj)
{
    pthread_mutex_lock(&pj->job->lock);
    pj->planned = true;
    pthread_cond_broadcast(&pj->job->changed);
    pthread_mutex_unlock(&pj->job->lock);
}

static enum galley_page_status page_status_of(enum galley_status rc)
{
    switch (rc) {
    case GALLEY_EENCRYPTED:
        return GALLEY_PAGE_ENCRYPTED;
    case GALLEY_ETIMEOUT:
        return GALLEY_PAGE_TIMEOUT;
    case GALLEY_ECANCELLED:
        return GALLEY_PAGE_CANCELLED;
    default:
        return GALLEY_PAGE_CORRUPT;
    }
}

/* Pages read ahead of the analysis, in order. */
struct ring {
    struct page *page[SEE_AHEAD + 1];
    enum galley_status rc[SEE_AHEAD + 1];
    struct galley_err err[SEE_AHEAD + 1];
    int n_read; /* pages read so far */
};

static void read_next(struct job *j, struct ring *ring)
{
    const int slot = ring->n_read % (SEE_AHEAD + 1);
    const double start = clock_seconds();
    ring->err[slot] = (struct galley_err){ 0 };
    ring->rc[slot] =
        source_page(&j->source, j->wanted[ring->n_read], &ring->page[slot], &ring->err[slot]);
    j->parse_seconds += clock_seconds() - start;
    if (!ring->rc[slot]) {
        /* galley-pdf draws and parses in one go; its drawing is told apart. */
        j->render_seconds += (double)ring->page[slot]->render_seconds;
        j->parse_seconds -= (double)ring->page[slot]->render_seconds;
        layout_see(j->layout, ring->page[slot], j->source.n_pages);
    }
    ring->n_read++;
}

static enum galley_status analyse(struct job *j, struct page_job *pj, const struct page *page)
{
    const double start = clock_seconds();
    enum galley_status rc = layout_page(j->layout, page, &pj->layout, &pj->err);
    if (!rc) {
        j->ocr_seconds += pj->layout->ocr_seconds;
        j->layout_seconds += clock_seconds() - start - pj->layout->ocr_seconds;
        rc = plan_page(pj, &pj->err);
    }
    return rc;
}

/* One page from the ring through layout into the queue.  False ends the producer. */
static bool produce_page(struct job *j, struct ring *ring, int k)
{
    const int slot = k % (SEE_AHEAD + 1);
    struct page_job *pj = mem_new(struct page_job);
    if (!pj) {
        galley_err_set(&j->fatal, GALLEY_ENOMEM, "no memory for page %d", j->wanted[k] + 1);
        return false;
    }
    pj->job = j;
    pj->number = j->wanted[k] + 1;
    enum galley_status rc = ring->rc[slot];
    pj->err = ring->err[slot];
    if (!rc) {
        rc = analyse(j, pj, ring->page[slot]);
    }
    page_free(ring->page[slot]);
    ring->page[slot] = NULL;
    if (rc) {
        drop_layout(pj);
        pj->failed = page_status_of(rc);
        log_line(j->log, LOG_WARN, "page", "page %d: %s", pj->number, pj->err.msg);
    }
    if (!enqueue(j, pj)) {
        page_job_free(pj);
        return false;
    }
    if (pj->layout && j->engine) {
        submit_page(pj);
    }
    mark_planned(pj);
    return true;
}

/* A selection of a few pages shows no repetition: layout hears of the pages around it too, or their
 * running headers would count as text. */
static void see_neighbours(struct job *j)
{
    if (j->n_wanted == 0 || j->n_wanted > SEE_AHEAD || j->source.n_pages < 2) {
        return;
    }
    int next = 0; /* ascending, each page once, and none far from a wanted one */
    for (int k = 0; k < j->n_wanted; k++) {
        const int from = j->wanted[k] - SEE_AHEAD, to = j->wanted[k] + SEE_AHEAD;
        next = next < from ? from : next;
        for (; next <= to && next < j->source.n_pages && !stopped(j); next++) {
            struct page *page;
            if (source_page_text(&j->source, next, &page, NULL) == GALLEY_OK) {
                layout_see(j->layout, page, j->source.n_pages);
                page_free(page);
            }
        }
    }
}

void *job_produce(void *arg)
{
    struct job *j = arg;
    struct ring ring = { 0 };
    see_neighbours(j);
    for (int k = 0; k < j->n_wanted && !stopped(j); k++) {
        while (ring.n_read < j->n_wanted && ring.n_read <= k + SEE_AHEAD && !stopped(j)) {
            read_next(j, &ring);
        }
        if (ring.n_read <= k || !produce_page(j, &ring, k)) {
            break;
        }
    }
    for (int i = 0; i <= SEE_AHEAD; i++) {
        page_free(ring.page[i]);
    }
    pthread_mutex_lock(&j->lock);
    j->producer_done = true;
    pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->lock);
    return NULL;
}
