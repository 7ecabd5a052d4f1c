/* fake_pdf.h - the lies fake_pdf.c knows. */
#ifndef GALLEY_TESTS_FAKE_PDF_H
#define GALLEY_TESTS_FAKE_PDF_H

enum fake_lie {
    FAKE_HONEST = 1,
    FAKE_DEAD_START,
    FAKE_GARBAGE_START,
    FAKE_GARBAGE,
    FAKE_NO_FILE,
    FAKE_SHORT_FILE,
    FAKE_PIPE,
    FAKE_MANY_FILES, /* the first of them is good */
    FAKE_TOO_MANY_FILES,
    FAKE_BIG_BITMAP,
    FAKE_OTHER_PAGE,
    FAKE_EMPTY_PACKET
};

#endif
