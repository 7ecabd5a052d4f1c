/* job.h - the inside of one conversion, shared by produce.c (parsing, planning, submitting) and
 * document.c (assembling, delivering). */
#ifndef GALLEY_DOCUMENT_JOB_H
#define GALLEY_DOCUMENT_JOB_H

#include <pthread.h>

#include "layout/layout.h"
#include "src/document/document.h"
#include "src/document/plan.h"
#include "src/document/source.h"

#define PAGES_AHEAD  3  /* pages planned or running besides the one being assembled */
#define PIECES_AHEAD 48 /* crops waiting or running: bounds their memory */

/* A page between producer and assembler. */
struct page_job {
    struct page_job *next;
    struct job *job;
    int number;                     /* 1-based */
    enum galley_page_status failed; /* a status other than OK: layout is NULL */
    struct galley_err err;
    struct page_layout *layout;
    struct region_plan *plans; /* [layout->n_regions] */
    request_id *ids;           /* [n_ids] of its requests, for cancelling */
    int n_ids, ids_cap;
    int n_open;   /* requests without a final event */
    bool planned; /* everything is submitted */
};

struct job {
    /* fixed after start: any thread */
    struct engine *engine;
    const struct galley_convert_options *opt;
    const struct log *log;
    double start;
    int *wanted; /* [n_wanted] page indexes */
    int n_wanted;
    /* producer thread only, until it is joined; the caller may pdf_cancel and ocr_cancel */
    struct source source;
    struct ocr *ocr;
    struct layout *layout;
    double parse_seconds, render_seconds, layout_seconds, ocr_seconds;
    /* any thread, under lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct page_job *head, **tail; /* in page order */
    int n_pages_queued;
    int n_pieces_open;
    int n_regions, n_regions_done; /* that the model is asked about */
    bool producer_done, stop;
    struct galley_err fatal; /* the producer could not go on */
    struct galley_stats stats;
};

/* Parses, lays out, plans and submits every wanted page.  Runs as the producer thread. */
void *job_produce(void *job);

void page_job_free(struct page_job *p);

#endif
