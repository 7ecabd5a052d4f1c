/* half.h - 16-bit floats: IEEE binary16 and bfloat16, scalar conversions.
 *
 * Round to nearest even; NaN stays NaN.  Kernels have their own vector forms,
 * tested against these. */
#ifndef GALLEY_BASE_HALF_H
#define GALLEY_BASE_HALF_H

#include <stdint.h>

float f16_to_f32(uint16_t h);
uint16_t f16_from_f32(float f);
float bf16_to_f32(uint16_t h);
uint16_t bf16_from_f32(float f);

#endif
