/* restyle.h - putting bold, italic, links and fences back around verified words.  Pure. */
#ifndef GALLEY_DOCUMENT_RESTYLE_H
#define GALLEY_DOCUMENT_RESTYLE_H

/* plain and markdown are two forms of one draft: markdown holds the same characters in the same
 * order with markup in between.  verified is plain as the model left it.  Returns verified with the
 * markup of markdown around the words that stayed (the caller's, mem_free); where words changed,
 * the markup of the words they replaced.  When the two forms do not align, a copy of verified. NULL
 * when memory is short. */
char *restyle(const char *plain, const char *markdown, const char *verified);

#endif
