/* half.h - small floats: IEEE binary16, bfloat16 and the E4M3 of OCP, scalar conversions.
 *
 * Round to nearest even; NaN stays NaN.  E4M3 has no infinity: what rounds above 448, infinity
 * included, becomes 448.  Kernels have their own vector forms,
 * tested against these. */
#ifndef GALLEY_BASE_HALF_H
#define GALLEY_BASE_HALF_H

#include <stdint.h>

float f16_to_f32(uint16_t h);
uint16_t f16_from_f32(float f);
float bf16_to_f32(uint16_t h);
uint16_t bf16_from_f32(float f);
float f8_to_f32(uint8_t h);
uint8_t f8_from_f32(float f);

#endif
