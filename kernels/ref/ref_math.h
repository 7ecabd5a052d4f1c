/* ref_math.h - the scalar form of exp.h and of the 16-lane sums. */
#ifndef GALLEY_KERNELS_REF_MATH_H
#define GALLEY_KERNELS_REF_MATH_H

#define REF_LANES 16

float ref_exp(float x);
float ref_erf(float x);
/* tree of norm.h; lane is used up */
float ref_tree(float lane[REF_LANES]);

#endif
