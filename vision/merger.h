/* merger.h - the last stage of the tower: merge x merge patches become one embedding. */
#ifndef GALLEY_VISION_MERGER_H
#define GALLEY_VISION_MERGER_H

#include "src/format/bind.h"
#include "src/format/hf_config.h"

struct merger {
    float *norm, *norm_bias; /* bias: LayerNorm only, else NULL */
    struct linear *fc1, *fc2;
    int hidden, wide, n_out; /* wide = merge^2 * hidden */
    bool rms;
    float eps;
};

/* Binds under b's scope. */
void merger_bind(struct merger *m, struct binder *b, const struct hf_vision_config *v);
void merger_deinit(struct merger *m, struct device *dev);

/* x: [n_units * merge^2][hidden], normed in place; mid: [n_units][wide] scratch;
 * y: [n_units][n_out]. */
void merger_run(const struct merger *m, struct device *dev, float *y, float *x, float *mid,
                int n_units);

#endif
