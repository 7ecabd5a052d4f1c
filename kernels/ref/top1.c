/* top1.c - see top1.h. */
#include "kernels/top1.h"

#include <math.h>

#include "kernels/ref/ref_math.h"

void top1_ref(struct logit_top *top, const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++) {
        best = x[i] > x[best] ? i : best;
    }
    float lane[REF_LANES] = { 0 };
    for (int i = 0; i < n; i++) {
        lane[i % REF_LANES] += ref_exp(x[i] - x[best]);
    }
    top->id = best;
    top->logit = x[best];
    top->log_sum = (float)((double)x[best] + log((double)ref_tree(lane)));
}
