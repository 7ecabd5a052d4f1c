/* quantize.c - see quantize.h: reads rows, encodes them on all threads, writes them in order.
 *
 * A tensor goes through in chunks of rows; each row is widened, checked, encoded, decoded again and
 * compared by one thread.  Sums of errors are taken per row and added in row order, so that what is
 * printed does not depend on the number of threads; the file does not anyway. */
#include "src/format/quantize.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/quant.h"
#include "src/base/buf.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/base/pool.h"
#include "src/format/quantize_impl.h"

#define CHUNK_ELEMENTS ((int64_t)1 << 20)
#define ROW_MAX        ((int64_t)1 << 24)

/* One tensor at work.  Written by the threads: out, rows, bad (each row by one of them). */
struct work {
    const struct quantize_tensor *t;
    const float *importance; /* [cols], NULL: none */
    int64_t first;           /* row of the chunk */
    int64_t cols;
    size_t row_bytes; /* of the output */
    uint8_t *out;     /* the chunk encoded */
    struct row_sums {
        double error, square, max;
        int64_t i_bad; /* column + 1 of a value that is not finite; 0: none */
    } * rows;
    float **scratch; /* [n_threads], each [2][cols] */
};

struct run {
    const struct quantize_job *job;
    struct quantize_source source;
    struct imatrix *imatrix;
    struct pool *pool;
    const struct quantize_mix *mix;
    char *mmproj;
    struct quantize_total *total;
    uint64_t n_elements, n_done; /* for progress */
    struct galley_err *err;
};

static int64_t n_rows_of(const struct quantize_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->n_dim - 1; i++) {
        n *= t->shape[i];
    }
    return n;
}

/* --- rows ---------------------------------------------------------------------------------- */

/* Row r of the output in the source's rows; the caller knows that there is one. */
static int64_t source_row(const struct quantize_tensor *t, int64_t r)
{
    if (t->order != ORDER_HEADS) {
        return t->row_0 + r;
    }
    const int64_t head = r / t->n_order, at = r % t->n_order;
    return t->row_0 + head * t->n_order + at % 2 * (t->n_order / 2) + at / 2;
}

/* Where the bytes of row r begin. */
static const uint8_t *row_address(const struct quantize_tensor *t, int64_t r)
{
    const uint8_t *data = t->src->data;
    const struct tensor *s = t->src;
    if (t->order == ORDER_MOMENT) {
        /* rows are lines of a patch: [n ch][2][s] lines in the source */
        const int64_t side = s->shape[3], plane = r / side;
        const int64_t line = (plane * 2 + t->n_order) * side + r % side;
        return data + (size_t)(line * s->shape[4]) * dtype_bytes(s->dtype);
    }
    if (t->n_dim == 1) {
        /* part of a vector: row_0 counts elements */
        return data + dtype_row_bytes(s->dtype, (uint64_t)t->row_0);
    }
    return data +
           (uint64_t)source_row(t, r) * dtype_row_bytes(s->dtype, (uint64_t)s->shape[s->n_dim - 1]);
}

static void load_row(const struct quantize_tensor *t, int64_t r, float *x, int64_t cols)
{
    int64_t n = 0;
    if (t->order == ORDER_MADE) {
        n = t->src_cols;
        memcpy(x, t->made, (size_t)n * sizeof(*x));
    } else if (r < t->src_rows) {
        n = t->src_cols;
        quant_decode(x, row_address(t, r), t->src->dtype, (size_t)n);
        for (int64_t i = 0; t->plus != 0 && i < n; i++) {
            x[i] += t->plus;
        }
    }
    memset(x + n, 0, (size_t)(cols - n) * sizeof(*x));
}

/* Nothing to convert: bytes go over as they are. */
static bool is_copy(const struct quantize_tensor *t, int64_t cols)
{
    return t->order != ORDER_MADE && t->plus == 0 && t->src->dtype == t->to && t->src_cols == cols;
}

static void compare_row(struct row_sums *s, const float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)x[i] - (double)y[i];
        s->error += d * d;
        s->square += (double)x[i] * (double)x[i];
        s->max = fabs(d) > s->max ? fabs(d) : s->max;
    }
}

static void do_row(void *arg, int i, int i_thread)
{
    struct work *w = arg;
    const struct quantize_tensor *t = w->t;
    float *x = w->scratch[i_thread], *y = x + w->cols;
    uint8_t *out = w->out + (size_t)i * w->row_bytes;
    struct row_sums *s = &w->rows[i];
    *s = (struct row_sums){ 0 };
    if (is_copy(t, w->cols) && w->first + i < t->src_rows) {
        memcpy(out, row_address(t, w->first + i), w->row_bytes);
        if (!dtype_is_dense(t->to)) {
            return;
        }
    }
    load_row(t, w->first + i, x, w->cols);
    for (int64_t k = 0; k < w->cols; k++) {
        if (!isfinite(x[k])) {
            s->i_bad = k + 1;
            return;
        }
    }
    quant_encode(out, x, w->importance, t->to, (size_t)w->cols);
    quant_decode(y, out, t->to, (size_t)w->cols);
    compare_row(s, x, y, w->cols);
}

/* --- a tensor ------------------------------------------------------------------------------ */

static bool work_init(struct work *w, const struct run *r, const struct quantize_tensor *t,
                      int64_t n_chunk)
{
    const int n_threads = pool_n_threads(r->pool);
    *w = (struct work){ .t = t, .cols = t->shape[t->n_dim - 1] };
    w->row_bytes = (size_t)dtype_row_bytes(t->to, (uint64_t)w->cols);
    w->out = mem_array((size_t)n_chunk, w->row_bytes);
    w->rows = mem_array((size_t)n_chunk, sizeof(*w->rows));
    w->scratch = mem_many(float *, (size_t)n_threads);
    bool good = w->out && w->rows && w->scratch;
    for (int i = 0; good && i < n_threads; i++) {
        w->scratch[i] = mem_array((size_t)w->cols, 2 * sizeof(float));
        good = w->scratch[i] != NULL;
    }
    return good;
}

static void work_deinit(struct work *w, const struct run *r)
{
    for (int i = 0; w->scratch && i < pool_n_threads(r->pool); i++) {
        mem_free(w->scratch[i]);
    }
    mem_free(w->scratch);
    mem_free(w->rows);
    mem_free(w->out);
}

static enum galley_status add_rows(struct row_sums *sum, const struct work *w, int64_t n,
                                   const struct run *r)
{
    for (int64_t i = 0; i < n; i++) {
        const struct row_sums *s = &w->rows[i];
        if (s->i_bad) {
            return galley_err_set(r->err, GALLEY_EMODEL,
                                  "%s: tensor %s: the value in row %" PRId64 ", column %" PRId64
                                  " is not a finite number",
                                  r->job->in, w->t->name, w->first + i, s->i_bad - 1);
        }
        sum->error += s->error;
        sum->square += s->square;
        sum->max = s->max > sum->max ? s->max : sum->max;
    }
    return GALLEY_OK;
}

static void tell_progress(const struct run *r, const char *name)
{
    if (r->job->on_progress) {
        r->job->on_progress(r->job->arg, name,
                            r->n_elements ? (double)r->n_done / (double)r->n_elements : 1);
    }
}

static enum galley_status write_rows(struct row_sums *sum, struct work *w, struct run *r,
                                     struct gguf_writer *out, int64_t n_chunk)
{
    const int64_t n_rows = n_rows_of(w->t);
    for (w->first = 0; w->first < n_rows; w->first += n_chunk) {
        if (r->job->stopped && r->job->stopped(r->job->arg)) {
            return galley_err_set(r->err, GALLEY_ECANCELLED, "%s: stopped", r->job->in);
        }
        const int64_t n = n_rows - w->first < n_chunk ? n_rows - w->first : n_chunk;
        pool_run(r->pool, do_row, w, (int)n);
        const enum galley_status rc = add_rows(sum, w, n, r);
        if (rc) {
            return rc;
        }
        gguf_write_data(out, w->out, (size_t)n * w->row_bytes);
        if (gguf_write_failed(out)) {
            return GALLEY_EIO; /* closing says why */
        }
        r->n_done += (uint64_t)(n * w->cols);
        tell_progress(r, w->t->name);
    }
    return GALLEY_OK;
}

/* The matrix's own, with zeros for padding; *out NULL when the imatrix does not have it. */
static enum galley_status find_importance(float **out, const struct run *r,
                                          const struct quantize_tensor *t)
{
    size_t n = 0;
    const int64_t cols = t->shape[t->n_dim - 1];
    const float *v = r->imatrix && t->n_dim == 2 && !dtype_is_dense(t->to)
                         ? imatrix_lookup(r->imatrix, t->name, &n)
                         : NULL;
    *out = NULL;
    if (!v) {
        return GALLEY_OK;
    }
    if (n != (size_t)t->src_cols) {
        return galley_err_set(r->err, GALLEY_EINPUT,
                              "%s: tensor %s has %zu columns there, %" PRId64 " in %s",
                              r->job->imatrix, t->name, n, t->src_cols, r->job->in);
    }
    *out = mem_many(float, (size_t)cols);
    if (!*out) {
        return galley_err_set(r->err, GALLEY_ENOMEM, "%s: no memory for importances", t->name);
    }
    memcpy(*out, v, n * sizeof(float));
    return GALLEY_OK;
}

static void tell_tensor(const struct run *r, const struct quantize_tensor *t, bool vision,
                        const struct row_sums *sum, bool has_importance)
{
    const int64_t cols = t->shape[t->n_dim - 1], rows = n_rows_of(t);
    struct quantize_row row = { .name = t->name,
                                .vision = vision,
                                .n_dim = t->n_dim,
                                .from = t->from,
                                .to = t->to,
                                .wanted = t->wanted,
                                .fell_back = t->fell_back,
                                .error = sum->square > 0 ? sqrt(sum->error / sum->square) : 0,
                                .error_max = sum->max,
                                .has_importance = has_importance };
    memcpy(row.shape, t->shape, sizeof(row.shape));
    if (t->order != ORDER_MADE) {
        row.padded = cols != t->src_cols ? cols - t->src_cols : rows - t->src_rows;
    }
    if (r->job->on_tensor) {
        r->job->on_tensor(r->job->arg, &row);
    }
}

/* The source's pages are not needed again. */
static void drop_source(const struct quantize_tensor *t)
{
    if (t->order == ORDER_MADE || t->order == ORDER_MOMENT || t->n_dim == 1) {
        return;
    }
    const uint64_t row = dtype_row_bytes(t->src->dtype, (uint64_t)t->src_cols);
    map_drop((const uint8_t *)t->src->data + (uint64_t)t->row_0 * row,
             (size_t)((uint64_t)t->src_rows * row));
}

static enum galley_status do_tensor(struct run *r, const struct quantize_tensor *t, bool vision,
                                    struct gguf_writer *out)
{
    const int64_t rows = n_rows_of(t), cols = t->shape[t->n_dim - 1];
    int64_t n_chunk = cols > 0 ? CHUNK_ELEMENTS / cols : 1;
    n_chunk = n_chunk < pool_n_threads(r->pool) ? pool_n_threads(r->pool) : n_chunk;
    n_chunk = n_chunk > rows ? rows : n_chunk;
    float *importance;
    enum galley_status rc = find_importance(&importance, r, t);
    if (rc || rows * cols == 0) {
        mem_free(importance);
        return rc;
    }
    struct work w;
    struct row_sums sum = { 0 };
    if (work_init(&w, r, t, n_chunk)) {
        w.importance = importance;
        rc = write_rows(&sum, &w, r, out, n_chunk);
    } else {
        rc = galley_err_set(r->err, GALLEY_ENOMEM, "%s: no memory for rows of %" PRId64, t->name,
                            cols);
    }
    work_deinit(&w, r);
    if (!rc) {
        tell_tensor(r, t, vision, &sum, importance != NULL);
        drop_source(t);
        r->total->n_tensors++;
        r->total->n_params += (uint64_t)(rows * cols);
        r->total->data_bits += 8 * (uint64_t)rows * w.row_bytes;
        r->total->n_without += r->imatrix && !importance && !dtype_is_dense(t->to);
    }
    mem_free(importance);
    return rc;
}

/* --- a file -------------------------------------------------------------------------------- */

/* A directory's tensors come sorted by name; the file has the order of the layers. */
static int compare_tensors(const void *a, const void *b)
{
    const struct quantize_tensor *x = a, *y = b;
    int i = -1, k = -1;
    (void)(sscanf(x->name, "blk.%d.", &i) == 1 || sscanf(x->name, "v.blk.%d.", &i));
    (void)(sscanf(y->name, "blk.%d.", &k) == 1 || sscanf(y->name, "v.blk.%d.", &k));
    return i != k ? (i > k) - (i < k) : strcmp(x->name, y->name);
}

static enum galley_status write_file(struct run *r, struct gguf_writer **writer, const char *path,
                                     struct quantize_list *l, bool vision)
{
    enum galley_status rc = gguf_write_open(writer, path, r->err);
    struct gguf_writer *w = *writer;
    rc = rc ? rc : quantize_keys(w, &r->source, vision, r->mix, r->err);
    if (rc) {
        return rc;
    }
    if (!r->source.gguf) {
        qsort(l->items, (size_t)l->n, sizeof(*l->items), compare_tensors);
    }
    for (int i = 0; i < l->n; i++) {
        gguf_write_tensor(w, l->items[i].name, l->items[i].to, l->items[i].n_dim,
                          l->items[i].shape);
    }
    rc = gguf_write_begin(w, r->err);
    for (int i = 0; !rc && i < l->n; i++) {
        rc = do_tensor(r, &l->items[i], vision, w);
    }
    r->total->bytes += gguf_write_size(w);
    if (gguf_write_failed(w)) {
        *writer = NULL;
        rc = gguf_write_close(w, r->err);
    }
    return rc;
}

static enum galley_status check_shapes(const struct run *r, const struct quantize_list *l)
{
    for (int i = 0; i < l->n; i++) {
        const struct quantize_tensor *t = &l->items[i];
        if (t->shape[t->n_dim - 1] > ROW_MAX) {
            return galley_err_set(r->err, GALLEY_ELIMIT,
                                  "%s: tensor %s has rows of %" PRId64 ", limit %" PRId64,
                                  r->job->in, t->name, t->shape[t->n_dim - 1], ROW_MAX);
        }
    }
    return GALLEY_OK;
}

/* "DIR/mmproj-NAME" for "DIR/NAME". */
static enum galley_status name_mmproj(struct run *r)
{
    const char *out = r->job->out, *slash = strrchr(out, '/');
    const int n = slash ? (int)(slash + 1 - out) : 0;
    struct buf b;
    buf_init(&b, 4096);
    if (r->job->mmproj) {
        buf_add_str(&b, r->job->mmproj);
    } else {
        buf_addf(&b, "%.*smmproj-%s", n, out, out + n);
    }
    r->mmproj = buf_take(&b);
    if (!r->mmproj) {
        return galley_err_set(r->err, GALLEY_EUSAGE, "%s: the name of the mmproj file is too long",
                              out);
    }
    return GALLEY_OK;
}

/* A mapped input must not be written over, whatever it is called. */
static enum galley_status check_paths(const struct run *r)
{
    const char *outs[] = { r->job->out, r->mmproj };
    struct stat in, st;
    if (r->mmproj && strcmp(outs[0], outs[1]) == 0) {
        return galley_err_set(r->err, GALLEY_EUSAGE, "%s cannot be both output files", outs[0]);
    }
    for (size_t i = 0; i < COUNT(outs); i++) {
        if (outs[i] && stat(r->job->in, &in) == 0 && stat(outs[i], &st) == 0 &&
            in.st_ino == st.st_ino && in.st_dev == st.st_dev) {
            return galley_err_set(r->err, GALLEY_EUSAGE, "%s would be written over itself",
                                  outs[i]);
        }
    }
    return GALLEY_OK;
}

/* Matrices in blocks; *n_found: those that the importance matrix knows. */
static int count_blocky(const struct run *r, const struct quantize_list *l, int *n_found)
{
    int n_blocky = 0;
    for (int i = 0; i < l->n; i++) {
        const struct quantize_tensor *t = &l->items[i];
        size_t n;
        if (t->n_dim == 2 && !dtype_is_dense(t->to)) {
            n_blocky++;
            *n_found += imatrix_lookup(r->imatrix, t->name, &n) != NULL;
        }
    }
    return n_blocky;
}

static enum galley_status open_imatrix(struct run *r)
{
    const enum galley_status rc = imatrix_open(&r->imatrix, r->job->imatrix, r->err);
    if (rc) {
        return rc;
    }
    int n_found = 0;
    const int n =
        count_blocky(r, &r->source.text, &n_found) + count_blocky(r, &r->source.vision, &n_found);
    if (n > 0 && n_found == 0) {
        return galley_err_set(r->err, GALLEY_EINPUT,
                              "%s: none of its %d entries is a tensor of %s that is to be "
                              "quantised: it is of another model",
                              r->job->imatrix, imatrix_count(r->imatrix), r->job->in);
    }
    return GALLEY_OK;
}

static enum galley_status prepare(struct run *r)
{
    const struct quantize_job *j = r->job;
    r->mix = quantize_mix_named(j->type);
    if (!r->mix) {
        return galley_err_set(r->err, GALLEY_EUSAGE, "there is no type \"%s\"; there are %s",
                              j->type, quantize_types());
    }
    enum galley_status rc = quantize_source_open(&r->source, j->in, r->err);
    if (!rc && j->mmproj && r->source.vision.n == 0) {
        rc = galley_err_set(r->err, GALLEY_EUSAGE, "%s has no vision tower for %s", j->in,
                            j->mmproj);
    }
    if (!rc && r->source.vision.n > 0) {
        rc = name_mmproj(r);
    }
    rc = rc ? rc : check_paths(r);
    rc = rc ? rc : quantize_choose(&r->source, r->mix, j->rules, j->n_rules, r->err);
    rc = rc ? rc : check_shapes(r, &r->source.text);
    rc = rc ? rc : check_shapes(r, &r->source.vision);
    if (!rc && j->imatrix) {
        rc = open_imatrix(r);
    }
    return rc ? rc : pool_open(&r->pool, j->n_threads, r->err);
}

static void count_elements(struct run *r, const struct quantize_list *l)
{
    for (int i = 0; i < l->n; i++) {
        r->n_elements +=
            (uint64_t)(n_rows_of(&l->items[i]) * l->items[i].shape[l->items[i].n_dim - 1]);
    }
}

/* Both files take their names only when both are whole. */
static enum galley_status write_all(struct run *r)
{
    struct gguf_writer *text = NULL, *vision = NULL;
    count_elements(r, &r->source.text);
    count_elements(r, &r->source.vision);
    enum galley_status rc = write_file(r, &text, r->job->out, &r->source.text, false);
    if (!rc && r->mmproj) {
        rc = write_file(r, &vision, r->mmproj, &r->source.vision, true);
    }
    if (!rc && vision) {
        rc = gguf_write_close(vision, r->err);
        vision = NULL;
    }
    if (!rc) {
        rc = gguf_write_close(text, r->err);
        text = NULL;
    }
    gguf_write_abandon(text);
    gguf_write_abandon(vision);
    return rc;
}

enum galley_status quantize_run(const struct quantize_job *job, struct quantize_total *total,
                                struct galley_err *err)
{
    struct run r = { .job = job, .total = total, .err = err };
    *total = (struct quantize_total){ 0 };
    enum galley_status rc = prepare(&r);
    rc = rc ? rc : write_all(&r);
    pool_close(r.pool);
    imatrix_close(r.imatrix);
    quantize_source_close(&r.source);
    if (rc) {
        mem_free(r.mmproj);
    } else {
        total->mmproj = r.mmproj;
    }
    return rc;
}
