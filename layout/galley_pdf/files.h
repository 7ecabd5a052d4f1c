/* files.h - the files galley-pdf may still read once its sandbox is on.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (galley-pdf is linked with Poppler)
 *
 * Poppler opens substitute fonts and the CMaps of poppler-data while it works.  All of them are
 * opened before the system-call filter forbids opening; afterwards the process's own open and fopen
 * hand out duplicates of those descriptors by name. */
#ifndef GALLEY_PDF_FILES_H
#define GALLEY_PDF_FILES_H

/* Opens every font that fontconfig lists and every file below poppler_data.  Returns how many. */
int files_preopen(const char *poppler_data);
/* From here on open and fopen serve only what files_preopen has opened. */
void files_seal(void);

#endif
