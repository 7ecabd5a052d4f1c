/* pdf.h - PDFs through the separate program galley-pdf.
 *
 * One child per open document, started with a socket pair, rlimits, a time limit per page and a
 * seccomp filter (pdf_proto.h has the wire format).  A child that dies or hangs costs the page it
 * was working on: pdf_page returns GALLEY_EINPUT or GALLEY_ETIMEOUT for that page and the next
 * call starts a fresh child.  One thread at a time per struct pdf. */
#ifndef GALLEY_LAYOUT_PDF_H
#define GALLEY_LAYOUT_PDF_H

#include <stddef.h>
#include <stdint.h>

#include "layout/page.h"
#include "src/base/compiler.h"
#include "src/base/err.h"

struct pdf;

struct pdf_options {
    const char *helper;    /* path of galley-pdf; NULL finds it beside the running program, then in
                              ../libexec/galley, ../lib/galley, then on PATH */
    const char *password;  /* NULL: none */
    uint64_t memory_bytes; /* address-space limit of the child; 0: 2 GiB */
    /* The child's own processor time; by the wall clock three times as much. */
    double open_seconds;      /* 0: 20 */
    double page_seconds;      /* 0: 3 */
    int max_pages;            /* 0: 100,000 */
    uint64_t max_page_pixels; /* 0: 40,000,000: the render scale is lowered to fit */
};

/* bytes stay the caller's and must outlive the pdf (a restarted child gets them again).
 * GALLEY_EENCRYPTED when a password is needed or wrong, GALLEY_EINPUT when it is no readable PDF,
 * GALLEY_ETIMEOUT, GALLEY_ELIMIT, GALLEY_EIO when the helper cannot be started. */
GALLEY_MUST_USE enum galley_status pdf_open(struct pdf **out, const void *bytes, size_t n,
                                            const struct pdf_options *opt, struct galley_err *err);
void pdf_close(struct pdf *p); /* kills the child; NULL is fine */
int pdf_n_pages(const struct pdf *p);

/* Page i with everything, rendered at `dpi` (0: no bitmap).  *out is the caller's (page_free). */
GALLEY_MUST_USE enum galley_status pdf_page(struct pdf *p, int i, double dpi, struct page **out,
                                            struct galley_err *err);

/* Makes the pdf_page call in progress return GALLEY_ECANCELLED soon; between two calls, the next
 * one.  Any thread. */
void pdf_cancel(struct pdf *p);
/* The running child's pid, or 0: for tests. */
int pdf_child_pid(const struct pdf *p);
/* Has the child try what its sandbox must refuse (files, network, programs, processes); *refused
 * becomes a set of enum pdf_probe (pdf_proto.h), PDF_PROBE_ALL when it holds. */
GALLEY_MUST_USE enum galley_status pdf_probe_sandbox(struct pdf *p, uint32_t *refused,
                                                     struct galley_err *err);

#endif
