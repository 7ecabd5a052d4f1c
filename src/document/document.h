/* document.h - a document becomes pages of Markdown: layout drafts, engine verifies.
 *
 * Joins layout to engine.  A producer thread parses pages and plans regions, the engine thread
 * reads them, the calling thread assembles finished pages in order; at most PAGES_AHEAD pages are
 * in flight, so memory does not grow with the document. */
#ifndef GALLEY_DOCUMENT_DOCUMENT_H
#define GALLEY_DOCUMENT_DOCUMENT_H

#include "src/base/compiler.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/engine/engine.h"
#include "src/galley_types.h"

/* Converts one document.  engine NULL: the light parser alone (regions and drafts, everything
 * "unverified").  Pages that fail are delivered with their status; the return value speaks of the
 * document as a whole: GALLEY_EENCRYPTED, GALLEY_EINPUT or GALLEY_EUNSUP when nothing could be
 * read, GALLEY_ECANCELLED after should_stop.  *stats is filled in any case. */
GALLEY_MUST_USE enum galley_status
document_convert(struct engine *engine, const struct galley_source *src,
                 const struct galley_convert_options *opt,
                 const struct galley_convert_events *events, const struct log *log,
                 struct galley_stats *stats, struct galley_err *err);

const char *page_status_text(enum galley_page_status s); /* "low_confidence" ... */

#endif
