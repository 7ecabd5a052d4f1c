/* merger.c - see merger.h.  The activation is the erf GELU in both families. */
#include "vision/merger.h"

#include <assert.h>

void merger_bind(struct merger *m, struct binder *b, const struct hf_vision_config *v)
{
    *m = (struct merger){ .hidden = v->hidden,
                          .wide = v->merge * v->merge * v->hidden,
                          .n_out = v->out_hidden,
                          .rms = v->gated_rms,
                          .eps = (float)v->norm_eps };
    m->norm = bind_vector(b, "ln_q.weight", v->hidden);
    m->norm_bias = m->rms ? NULL : bind_vector(b, "ln_q.bias", v->hidden);
    m->fc1 = bind_linear(b, "mlp.0.weight", "mlp.0.bias", m->wide, m->wide);
    m->fc2 = bind_linear(b, "mlp.2.weight", "mlp.2.bias", m->n_out, m->wide);
}

void merger_deinit(struct merger *m, struct device *dev)
{
    dev->ops->free(dev, m->norm);
    dev->ops->free(dev, m->norm_bias);
    dev->ops->linear_free(dev, m->fc1);
    dev->ops->linear_free(dev, m->fc2);
}

void merger_run(const struct merger *m, struct device *dev, float *y, float *x, float *mid,
                int n_units)
{
    assert(n_units > 0 && m->wide % m->hidden == 0);
    const int rows = n_units * (m->wide / m->hidden);
    const size_t wide = (size_t)m->wide;
    if (m->rms) {
        dev->ops->rms_norm(dev, x, x, m->norm, rows, m->hidden, m->eps);
    } else {
        dev->ops->layer_norm(dev, x, x, m->norm, m->norm_bias, rows, m->hidden, m->eps);
    }
    /* merge^2 neighbouring rows read as one */
    dev->ops->matmul(dev, mid, wide, m->fc1, x, wide, n_units);
    dev->ops->act(dev, mid, (size_t)n_units * wide, ACT_GELU_ERF);
    dev->ops->matmul(dev, y, (size_t)m->n_out, m->fc2, mid, wide, n_units);
}
