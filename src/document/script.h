/* script.h - which writing systems a text uses.  Pure. */
#ifndef GALLEY_DOCUMENT_SCRIPT_H
#define GALLEY_DOCUMENT_SCRIPT_H

#include <stdint.h>

/* enum card_script bits of the letters in the text; digits, punctuation and symbols belong to every
 * script.  Bits whose letters are under 2 % of all letters do not count (a name, a unit). */
uint32_t script_bits(const char *text);

#endif
