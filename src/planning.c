/* planning.c - galley_plan_make: the engine's planner with the machine's roof. */
#include <string.h>

#include "src/base/err.h"
#include "src/engine/planner.h"
#include "src/engine/roofline.h"
#include "src/galley.h"
#include "src/handle.h"

enum galley_status handle_kv_type(enum kv_type *out, bool *is_auto, const char *name,
                                  struct galley_err *err)
{
    *is_auto = !name || strcmp(name, "auto") == 0;
    *out = KV_F16;
    for (int t = 0; !*is_auto; t++) {
        if (t == KV_TYPE_COUNT) {
            return galley_err_set(err, GALLEY_EUSAGE,
                                  "there is no KV type \"%s\": auto, f32, f16, bf16, q8, fp8",
                                  name);
        }
        if (strcmp(name, kv_type_name((enum kv_type)t)) == 0) {
            *out = (enum kv_type)t;
            break;
        }
    }
    return GALLEY_OK;
}

static void fill(struct galley_plan *out, const struct plan *p, enum kv_type kv, uint64_t memory)
{
    *out = (struct galley_plan){
        .kv_type = kv_type_name(kv),
        .language_bytes = p->language_bytes,
        .vision_bytes = p->vision_bytes,
        .kv_token_bytes = p->kv_token_bytes,
        .kv_bytes = p->kv_bytes,
        .step_bytes = p->step_bytes,
        .vision_job_bytes = p->vision_job_bytes,
        .total_bytes = p->total_bytes,
        .memory_bytes = memory,
        .context = p->context,
        .max_seqs = p->max_seqs,
        .max_rows = p->max_rows,
        .n_kv_blocks = p->n_blocks,
        .fit_context = p->fit_context,
        .model_context = p->model_context,
        .fit_seqs = p->fit_seqs,
        .max_pixels = p->max_pixels,
        .quantised = p->quantised,
        .flops_per_row = p->flops_per_row,
        .bytes_per_step = p->bytes_per_step,
    };
}

/* Without memory to measure in, the plan is as good without it. */
static enum galley_status measure(struct galley_plan *out, const struct galley_plan_request *r,
                                  struct galley_err *err)
{
    struct roofline roof;
    const enum galley_status rc = roofline_measure(&roof, r->cpu, r->threads, err);
    out->read_bytes_per_s = roof.read_bytes_per_s;
    out->read_buffer_bytes = roof.read_bytes;
    out->f32_per_s = roof.f32_per_s;
    out->int8_per_s = roof.int8_per_s;
    return rc == GALLEY_ENOMEM ? GALLEY_OK : rc;
}

enum galley_status galley_plan_make(struct galley_plan *out, const struct galley_plan_request *r,
                                    struct galley_err *err)
{
    *out = (struct galley_plan){ 0 };
    enum kv_type kv;
    bool is_auto;
    struct checkpoint c = { 0 };
    enum galley_status rc = handle_kv_type(&kv, &is_auto, r->kv_type, err);
    if (!rc && !r->model_path) {
        rc = galley_err_set(err, GALLEY_EUSAGE, "a plan needs a model path");
    }
    rc = rc ? rc : checkpoint_open(&c, r->model_path, r->mmproj_path, CHECKPOINT_CONFIG, err);
    if (rc) {
        return rc;
    }
    kv = is_auto ? plan_kv_auto(&c) : kv;
    const struct plan_request inner = {
        .context = r->context,
        .max_seqs = r->max_seqs,
        .max_rows = r->max_rows,
        .kv_type = kv,
        .memory_bytes = r->memory_bytes,
        .max_pixels = r->max_pixels,
        .n_threads = r->threads,
        .exact = r->exact_linear,
    };
    struct plan p;
    rc = plan_make(&p, &c, &inner, err);
    checkpoint_close(&c);
    if (rc) {
        return rc;
    }
    fill(out, &p, kv, r->memory_bytes ? r->memory_bytes : plan_machine_bytes());
    out->exact_linear = r->exact_linear;
    return r->measure ? measure(out, r, err) : rc;
}
