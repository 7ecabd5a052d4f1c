/* sheet.h - one page rendered, observed, encoded into a memfd.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (galley-pdf is linked with Poppler) */
#ifndef GALLEY_PDF_SHEET_H
#define GALLEY_PDF_SHEET_H

#include <poppler.h>

#include "layout/pdf_proto.h"

/* Answers a PDF_REQUEST_PAGE: fills *reply and returns the memfd to send with it, or -1 when the
 * reply is an error. */
int sheet_make(PopplerDocument *doc, const struct pdf_request *request, struct pdf_reply *reply);

#endif
