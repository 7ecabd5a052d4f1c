/* cp.h - classes of code points, as reading order and joining of text need them: by block, not by
 * the full Unicode tables. */
#ifndef GALLEY_BASE_CP_H
#define GALLEY_BASE_CP_H

#include <stdbool.h>
#include <stdint.h>

bool cp_is_space(uint32_t cp);
bool cp_is_letter(uint32_t cp);
bool cp_is_upper(uint32_t cp);
bool cp_is_lower(uint32_t cp);
bool cp_is_digit(uint32_t cp);
bool cp_is_hangul(uint32_t cp);
bool cp_is_wide(uint32_t cp); /* Han, Kana, full-width: no spaces between them */
bool cp_is_rtl(uint32_t cp);
bool cp_is_unspaced(uint32_t cp); /* Thai, Lao, Khmer, Myanmar */
bool cp_is_hyphen(uint32_t cp);
bool cp_is_math(uint32_t cp);
bool cp_ends_sentence(uint32_t cp);

#endif
