/* sandbox.h - what is taken from this process before it sees a byte of the document.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (galley-pdf is linked with Poppler) */
#ifndef GALLEY_PDF_SANDBOX_H
#define GALLEY_PDF_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/* Resource limits that do not hinder the warm-up. */
bool sandbox_limit(uint64_t memory_bytes);
/* The system-call filter; no way back.  False: it is not on, refuse to work. */
bool sandbox_enter(void);
/* Tries what must be refused: a set of enum pdf_probe (pdf_proto.h). */
uint32_t sandbox_probe(void);

#endif
