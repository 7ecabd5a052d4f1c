/* top1.h - greedy choice and log-sum-exp over one row of logits.
 *
 * id: the lowest index of the largest logit.  log_sum = logit + log(tree(l)), where lane i of
 * 16 sums exp(x - logit) over i, i + 16 ... ascending (tree and missing lanes as in norm.h),
 * log in double, rounded once.  Tolerance of log_sum: 1e-5 * max(1, |log_sum|). */
#ifndef GALLEY_KERNELS_TOP1_H
#define GALLEY_KERNELS_TOP1_H

#include "kernels/device.h"

/* n >= 1 */
typedef void top1_fn(struct logit_top *top, const float *x, int n);
top1_fn top1_ref, top1_avx2, top1_avx512;

#endif
