/* document.c - the calling thread of a conversion: start, assemble pages in order, clean up. */
#include "src/document/document.h"

#include <assert.h>
#include <string.h>
#include <sys/resource.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/document/assemble.h"
#include "src/document/job.h"
#include "src/document/pages.h"

#define POLL_SECONDS 0.1 /* should_stop and progress, ten times a second */

const char *page_status_text(enum galley_page_status s)
{
    static const char *const text[] = {
#define X(name, word) [GALLEY_PAGE_##name] = (word),
        GALLEY_PAGE_MAP(X)
#undef X
    };
    assert((size_t)s < COUNT(text));
    return text[s];
}

static enum galley_status open_layout(struct job *j, struct galley_err *err)
{
    const struct ocr_options ocr = { .languages = j->opt->ocr_languages,
                                     .page_seconds = j->opt->ocr_seconds };
    enum galley_status rc = GALLEY_OK;
    if (j->opt->draft != GALLEY_DRAFT_TEXT || !j->source.pdf) {
        rc = ocr_open(&j->ocr, &ocr, err);
    }
    const struct layout_options opt = {
        .source = j->opt->draft == GALLEY_DRAFT_TEXT  ? LAYOUT_TEXT
                  : j->opt->draft == GALLEY_DRAFT_OCR ? LAYOUT_OCR
                                                      : LAYOUT_AUTO,
        .figure_prefix = j->opt->figure_prefix,
    };
    return rc ? rc : layout_open(&j->layout, j->ocr, &opt, err);
}

static void stop_job(struct job *j)
{
    pthread_mutex_lock(&j->lock);
    j->stop = true;
    for (struct page_job *p = j->head; p && j->engine; p = p->next) {
        for (int i = 0; i < p->n_ids; i++) {
            engine_cancel(j->engine, p->ids[i]);
        }
    }
    pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->lock);
    if (j->source.pdf) {
        pdf_cancel(j->source.pdf);
    }
    if (j->ocr) {
        ocr_cancel(j->ocr);
    }
}

static void report(struct job *j, const struct galley_convert_events *ev)
{
    if (!ev->on_progress) {
        return;
    }
    pthread_mutex_lock(&j->lock);
    const struct galley_stats *s = &j->stats;
    const struct galley_progress p = {
        .n_pages = j->n_wanted,
        .n_pages_done = s->n_pages,
        .n_regions = j->n_regions,
        .n_regions_done = j->n_regions_done,
        .n_output = s->n_output,
        .seconds = clock_seconds() - j->start,
        .accept_length = s->n_steps ? (double)s->n_output / (double)s->n_steps : 0,
    };
    pthread_mutex_unlock(&j->lock);
    ev->on_progress(ev->user, &p);
}

/* Takes the first page when it is complete; NULL after POLL_SECONDS or at the end. */
static struct page_job *take_page(struct job *j, bool *end)
{
    const double until = clock_seconds() + POLL_SECONDS;
    struct page_job *p = NULL;
    pthread_mutex_lock(&j->lock);
    for (;;) {
        *end = j->producer_done && !j->head;
        if (*end) {
            break;
        }
        if (j->head && j->head->planned && j->head->n_open == 0) {
            p = j->head;
            j->head = p->next;
            if (!j->head) {
                j->tail = &j->head;
            }
            j->n_pages_queued--;
            pthread_cond_broadcast(&j->changed);
            break;
        }
        const double left = until - clock_seconds();
        if (left <= 0) {
            break;
        }
        clock_wait(&j->changed, &j->lock, left);
    }
    pthread_mutex_unlock(&j->lock);
    return p;
}

static void count_page(struct job *j, const struct galley_page *page)
{
    pthread_mutex_lock(&j->lock);
    struct galley_stats *s = &j->stats;
    if (s->n_pages == 0) {
        s->first_page_seconds = clock_seconds() - j->start;
    }
    s->n_pages++;
    s->n_regions += page->n_regions;
    for (int i = 0; i < page->n_regions; i++) {
        s->n_verified += page->regions[i].n_steps > 0;
    }
    pthread_mutex_unlock(&j->lock);
}

static enum galley_status deliver_page(struct job *j, struct page_job *p,
                                       const struct galley_convert_events *ev,
                                       struct galley_err *err)
{
    struct page_result r = { 0 };
    if (p->layout) {
        const enum galley_status rc =
            assemble_page(&r, p->number, p->layout, p->plans, j->opt, j->engine != NULL, err);
        if (rc) {
            return rc;
        }
        if (j->source.damaged && r.page.status == GALLEY_PAGE_OK) {
            r.page.status = GALLEY_PAGE_CORRUPT;
            r.page.reason = "the picture is damaged; what could be decoded was read";
        }
    } else {
        r.page = (struct galley_page){
            .number = p->number, .status = p->failed, .reason = p->err.msg, .markdown = ""
        };
    }
    r.page.n_document_pages = j->source.n_pages;
    count_page(j, &r.page);
    if (ev->on_page) {
        ev->on_page(ev->user, &r.page);
    }
    if (p->layout) {
        page_result_deinit(&r);
    }
    return GALLEY_OK;
}

static enum galley_status assemble_all(struct job *j, const struct galley_convert_events *ev,
                                       struct galley_err *err)
{
    enum galley_status rc = GALLEY_OK;
    for (;;) {
        bool end;
        struct page_job *p = take_page(j, &end);
        if (end) {
            return rc;
        }
        if (p && !rc) {
            rc = deliver_page(j, p, ev, err);
        }
        if (p) {
            page_job_free(p);
        }
        report(j, ev);
        const bool ask = !rc && ev->should_stop && ev->should_stop(ev->user);
        if (ask) {
            rc = galley_err_set(err, GALLEY_ECANCELLED, "stopped after %d of %d pages",
                                j->stats.n_pages, j->n_wanted);
        }
        if (rc) {
            stop_job(j); /* again and again: the producer may be submitting */
        }
    }
}

static int64_t peak_rss(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (int64_t)u.ru_maxrss * 1024 : 0;
}

static void finish_stats(struct job *j, const struct engine_totals *before,
                         struct galley_stats *out)
{
    struct galley_stats *s = &j->stats;
    s->parse_seconds = j->parse_seconds;
    s->render_seconds = j->render_seconds;
    s->layout_seconds = j->layout_seconds;
    s->ocr_seconds = j->ocr_seconds;
    s->total_seconds = clock_seconds() - j->start;
    s->peak_rss_bytes = peak_rss();
    if (s->n_steps) {
        s->accept_length = (double)s->n_output / (double)s->n_steps;
    }
    if (j->engine) {
        s->n_passes = (int64_t)(engine_totals(j->engine).n_passes - before->n_passes);
    }
    *out = *s;
}

static enum galley_status run(struct job *j, const struct galley_source *src,
                              const struct galley_convert_events *ev, struct galley_err *err)
{
    enum galley_status rc = source_open(&j->source, src, j->opt, err);
    rc = rc ? rc : pages_select(&j->wanted, &j->n_wanted, j->opt->pages, j->source.n_pages, err);
    rc = rc ? rc : open_layout(j, err);
    if (rc) {
        return rc;
    }
    pthread_t producer;
    if (pthread_create(&producer, NULL, job_produce, j) != 0) {
        return galley_err_set(err, GALLEY_ENOMEM, "cannot start the parsing thread");
    }
    rc = assemble_all(j, ev, err);
    pthread_join(producer, NULL);
    if (!rc && j->fatal.status) {
        *err = j->fatal;
        rc = j->fatal.status;
    }
    return rc;
}

enum galley_status document_convert(struct engine *engine, const struct galley_source *src,
                                    const struct galley_convert_options *opt,
                                    const struct galley_convert_events *events,
                                    const struct log *log, struct galley_stats *stats,
                                    struct galley_err *err)
{
    struct galley_err local = { 0 };
    err = err ? err : &local;
    *stats = (struct galley_stats){ 0 };
    struct job *j = mem_new(struct job);
    if (!j) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a conversion");
    }
    j->engine = engine;
    j->opt = opt;
    j->log = log;
    j->start = clock_seconds();
    j->tail = &j->head;
    pthread_mutex_init(&j->lock, NULL);
    clock_cond_init(&j->changed);
    const struct engine_totals before =
        engine ? engine_totals(engine) : (struct engine_totals){ 0 };
    enum galley_status rc = run(j, src, events, err);
    finish_stats(j, &before, stats);
    if (rc && src->name) {
        rc = galley_err_prefix(err, rc, "%s", src->name);
    }
    assert(!j->head && j->n_pieces_open == 0);
    layout_close(j->layout);
    ocr_close(j->ocr);
    source_close(&j->source);
    mem_free(j->wanted);
    pthread_cond_destroy(&j->changed);
    pthread_mutex_destroy(&j->lock);
    mem_free(j);
    return rc;
}
