/* quant_ref.h - the parts of quant.c: one decoder and one encoder per block type.
 *
 * Decoders read n / block blocks from unaligned src.  Encoders write them; w: [n], how much each
 * square error matters, never NULL, finite and not negative. */
#ifndef GALLEY_KERNELS_QUANT_REF_H
#define GALLEY_KERNELS_QUANT_REF_H

#include <stddef.h>
#include <stdint.h>

#define QUANT_K 256 /* elements of a super-block */

extern const int8_t quant_iq4[16];   /* values of IQ4_NL and IQ4_XS codes, ascending */
extern const int8_t quant_mxfp4[16]; /* doubled E2M1 */

/* Half the power of two an E8M0 byte stands for: the table of values is doubled. */
float quant_e8m0_half(uint8_t e);

void quant_decode_q4_0(float *y, const uint8_t *src, size_t n);
void quant_decode_q4_1(float *y, const uint8_t *src, size_t n);
void quant_decode_q5_0(float *y, const uint8_t *src, size_t n);
void quant_decode_q5_1(float *y, const uint8_t *src, size_t n);
void quant_decode_q8_0(float *y, const uint8_t *src, size_t n);
void quant_decode_iq4_nl(float *y, const uint8_t *src, size_t n);
void quant_decode_mxfp4(float *y, const uint8_t *src, size_t n);
void quant_decode_q2_k(float *y, const uint8_t *src, size_t n);
void quant_decode_q3_k(float *y, const uint8_t *src, size_t n);
void quant_decode_q4_k(float *y, const uint8_t *src, size_t n);
void quant_decode_q5_k(float *y, const uint8_t *src, size_t n);
void quant_decode_q6_k(float *y, const uint8_t *src, size_t n);
void quant_decode_iq4_xs(float *y, const uint8_t *src, size_t n);

#endif
