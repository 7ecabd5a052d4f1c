/* quant_fit.h - scales that make the weighted square error of a block small.
 *
 * All sizes are multiples of 8, x is at most 1e12 in magnitude, weights lie in (0, 100]: sums of
 * squares then fit a float with room to spare. */
#ifndef GALLEY_KERNELS_QUANT_FIT_H
#define GALLEY_KERNELS_QUANT_FIT_H

#include <stdbool.h>

#include "kernels/ref/quant_ref.h"

/* What a code can stand for before it is scaled: whole numbers lo..hi, or the table of IQ4. */
struct quant_code {
    float lo, hi;
    bool iq4;
};

/* The index in quant_iq4 nearest to v; the lower of two as near. */
int quant_iq4_index(float v);

/* s such that sum w (x - s v)^2 is small, v the nearest codes; may be negative; 0 for zeros. */
float quant_fit_scale(const struct quant_code *c, const float *x, const float *w, int n);
/* s >= 0 and m such that x is about s q - m with q in 0..max; m >= 0 unless any_min. */
void quant_fit_line(float *s, float *m, const float *x, const float *w, int n, int max,
                    bool any_min);

/* 256 elements as d * scale[i] * v: scales whole numbers scale_lo..scale_hi, one per n_sub
 * elements, d already rounded to f16. */
struct quant_super {
    float d, dmin;
    int scale[16], min[16];
    float v[QUANT_K];
};
void quant_fit_scales(struct quant_super *out, const struct quant_code *c, const float *x,
                      const float *w, int n_sub, int scale_lo, int scale_hi);
/* The same as d * scale[i] * q - dmin * min[i], q in 0..max, scales and minima 0..scale_max. */
void quant_fit_lines(struct quant_super *out, const float *x, const float *w, int n_sub, int max,
                     int scale_max);

/* The nearest f16, saturated: an infinite scale would decode to NaN. */
float quant_round_f16(float d);

#endif
