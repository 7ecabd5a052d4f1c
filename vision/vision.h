/* vision.h - image in, embeddings and positions out.
 *
 * prep equals Hugging Face's Qwen2VLImageProcessor (slow, PIL), vit runs the Qwen2-VL and
 * Qwen2.5-VL towers with their mergers over dev_ops, mrope makes the position ids of
 * get_rope_index.  Knows nothing of text models, PDFs or sequences. */
#ifndef GALLEY_VISION_VISION_H
#define GALLEY_VISION_VISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/device.h"
#include "src/base/hash.h"
#include "src/base/image.h"
#include "src/format/hf_config.h"
#include "src/format/weights.h"

/* Patch grid of one image: t temporal (1 for pictures), h and w in patches, both multiples of
 * merge. */
struct vision_grid {
    int t, h, w;
};

struct vision_limits {
    int64_t min_pixels, max_pixels; /* 0: the preprocessor's */
};

/* smart_resize: what the image will be.  Equal to Hugging Face's for every image whose shorter side
 * rounds to a cell of patch * merge pixels at least; a smaller one is enlarged, keeping its ratio,
 * until it has one.  GALLEY_EINPUT: "image_too_small: ..." when that is over max_pixels; aspect
 * over 200 refused with both numbers.  GALLEY_EUSAGE: min over max.  Pure. */
GALLEY_MUST_USE enum galley_status vision_plan(struct vision_grid *out, int width, int height,
                                               const struct hf_config *cfg,
                                               const struct vision_limits *limits,
                                               struct galley_err *err);
/* Visual tokens after the merger. */
int vision_n_tokens(const struct vision_grid *g, const struct hf_vision_config *v);

/* Floats of one patch: [in_channels][temporal_patch][patch][patch]. */
size_t vision_patch_floats(const struct hf_vision_config *v);

/* PIL bicubic (antialias, 8-bit fixed point, two passes) to exactly width x height. */
struct image *vision_resize(const struct image *im, int width, int height);

/* Resize, rescale, normalise, cut: patches [t*h*w][in_channels * temporal_patch * patch^2] in
 * merge-block order, as pixel_values. */
GALLEY_MUST_USE enum galley_status vision_patches(float *patches, const struct image *im,
                                                  const struct vision_grid *g,
                                                  const struct hf_config *cfg,
                                                  struct galley_err *err);
/* The same in pieces of a few milliseconds, however large the image; the first ones write nothing.
 * im and cfg are lent until vision_prep_free. */
struct vision_prep;
GALLEY_MUST_USE enum galley_status vision_prep_new(struct vision_prep **out, const struct image *im,
                                                   const struct vision_grid *g,
                                                   const struct hf_config *cfg,
                                                   struct galley_err *err);
bool vision_prep_step(struct vision_prep *p, float *patches); /* true: all are there */
void vision_prep_free(struct vision_prep *p);                 /* at any time; NULL is fine */

struct vit;
GALLEY_MUST_USE enum galley_status vit_open(struct vit **out, struct device *dev,
                                            const struct hf_config *cfg, struct weights *w,
                                            struct galley_err *err);
void vit_close(struct vit *v);
uint64_t vit_weight_bytes(const struct vit *v);

/* SHA-256 over the tower's configuration, the preprocessing's numbers and of every tensor a sample
 * (tensor_hash.h): tells the models of one process apart. */
GALLEY_MUST_USE enum galley_status vit_hash(unsigned char out[HASH_BYTES],
                                            const struct hf_config *cfg, const struct weights *w,
                                            struct galley_err *err);
/* The same over every byte of the tower's tensors, for keys that outlive the process and meet other
 * models' fine-tunings.  Reads all of the tower: 1.3 GB/s and thread where SHA has instructions
 * (Xeon, 29 Nov 2026).  n_threads as pool_open. */
GALLEY_MUST_USE enum galley_status vit_hash_whole(unsigned char out[HASH_BYTES],
                                                  const struct hf_config *cfg,
                                                  const struct weights *w, int n_threads,
                                                  struct galley_err *err);

/* Encoding in small pieces, so that other requests' tokens need not wait for a whole image and a
 * cancel takes effect at once.  A job owns its workspace; one call of vit_job_step runs at most 512
 * patches through the patch embedding, half a transformer block or the merger, or does about as
 * much of a block's attention.  Several jobs may be open, their steps interleaved, on the device's
 * one thread.  The bits are those of vit_encode. */
struct vit_job;
/* patches: lent as long as vit_job_reads_patches; grids: may go at once. */
GALLEY_MUST_USE enum galley_status vit_job_new(struct vit_job **out, struct vit *v,
                                               const float *patches,
                                               const struct vision_grid *grids, int n,
                                               struct galley_err *err);
/* True when the last piece is done and out [sum of vision_n_tokens][out_hidden] is filled; out is
 * not touched before, and not by further calls. */
bool vit_job_step(struct vit_job *j, float *out);
/* Whether the patches are still needed: they are large, and only the first pieces read them. */
bool vit_job_reads_patches(const struct vit_job *j);
void vit_job_free(struct vit_job *j); /* at any time; NULL is fine */
/* Bytes a job of these grids holds while it runs, exactly, before anything is allocated: planners
 * add it up.  The patches come on top. */
uint64_t vit_job_bytes(const struct hf_vision_config *v, const struct vision_grid *grids, int n);

/* Encodes n images at once (rows of all images share the matmuls; attention never crosses
 * images).  patches: their pixel_values, concatenated.  out: [sum of vision_n_tokens][out_hidden].
 */
GALLEY_MUST_USE enum galley_status vit_encode(struct vit *v, float *out, const float *patches,
                                              const struct vision_grid *grids, int n,
                                              struct galley_err *err);

/* Position ids of get_rope_index for a prompt of n tokens in which each run between
 * vision_start and vision_end of image_pad tokens is one image of `grids` (in order).
 * pos[a]: [n].  *next: the position of the first generated token (all three axes).
 * Without vision positions just count, whatever the ids.
 * GALLEY_EINPUT when runs and grids do not fit. */
GALLEY_MUST_USE enum galley_status mrope_positions(int32_t *const pos[3], int32_t *next,
                                                   const int32_t *ids, int n,
                                                   const struct vision_grid *grids, int n_grids,
                                                   const struct hf_config *cfg,
                                                   struct galley_err *err);

#endif
