/* check_product.h - one product on every device: guard words, equal bytes, rows alone, the oracle.
 *
 * Included after the test's own struct problem (rows, n_out, n_in, x), problem_init, problem_free,
 * linear_of and check_oracle. */
#ifndef GALLEY_TESTS_KERNELS_CHECK_PRODUCT_H
#define GALLEY_TESTS_KERNELS_CHECK_PRODUCT_H

/* Rows r.. computed alone have the bits they have among the others. */
static void check_alone(struct device *d, const struct problem *p, const struct linear *l,
                        const float *y, size_t ld, int r, int rows)
{
    float *one = mem_array((size_t)rows * (size_t)p->n_out, sizeof(float));
    T_OK(one);
    d->ops->matmul(d, one, (size_t)p->n_out, l, p->x + (size_t)r * (size_t)p->n_in, (size_t)p->n_in,
                   rows);
    for (int i = 0; i < rows; i++) {
        bytes_same(one + (size_t)i * (size_t)p->n_out, y + (size_t)(r + i) * ld, (size_t)p->n_out,
                   d->ops->name);
    }
    mem_free(one);
}

static void check_problem(struct devices *ds, struct problem p)
{
    problem_init(&p);
    const size_t ld = (size_t)p.n_out + 3;
    struct guarded first = guard_new((size_t)p.rows * ld), y = guard_new((size_t)p.rows * ld);
    for (int i = 0; i < ds->n; i++) {
        struct device *d = ds->d[i];
        struct linear *l = linear_of(d, &p);
        struct guarded *g = i == 0 ? &first : &y;
        guard_reset(g);
        d->ops->matmul(d, g->p, ld, l, p.x, (size_t)p.n_in, p.rows);
        guard_check(g, ld, (size_t)p.n_out, d->ops->name);
        bytes_same(g->p, first.p, (size_t)p.rows * ld, d->ops->name);
        if (i % 2 == 0) {
            check_alone(d, &p, l, g->p, ld, 0, 1);
            check_alone(d, &p, l, g->p, ld, p.rows - 1, 1);
            check_alone(d, &p, l, g->p, ld, p.rows / 3, p.rows - p.rows / 3);
        }
        d->ops->linear_free(d, l);
    }
    check_oracle(&p, first.p, ld);
    guard_free(&first);
    guard_free(&y);
    problem_free(&p);
}

#endif
