/* vit_impl.h - what vit.c and vit_job.c share. */
#ifndef GALLEY_VISION_VIT_IMPL_H
#define GALLEY_VISION_VIT_IMPL_H

#include "kernels/scratch.h"
#include "src/base/hash.h"
#include "vision/merger.h"
#include "vision/vision.h"

/* Rows of the matrix products in flight.  Xeon with AVX-512 and 2 MiB of L2, tower of
 * Qwen2.5-VL-3B, one thread: 256 rows 131.6 GFLOP/s over all, 512 132.4, 1024 129.2 (29 Nov 2026).
 */
#define VIT_SLICE_ROWS 512

struct vit_block {
    float *norm1, *norm1_bias, *norm2, *norm2_bias; /* biases: LayerNorm only */
    struct linear *qkv, *proj;
    struct linear *up, *down; /* up: gate over up when gated, else fc1; down: or fc2 */
    bool full;                /* attends across windows */
};

struct vit {
    /* fixed after open */
    struct device *dev;
    struct hf_vision_config cfg;
    struct linear *patch_embed;
    struct vit_block *blocks; /* [depth] */
    struct merger merger;
    uint64_t weight_bytes;
    /* the thread that encodes */
    struct scratch scratch; /* workspace of vit_encode, kept between calls */
};

/* What stands before "visual." in the names of the tower's tensors in the file. */
const char *vit_prefix(const struct weights *w);

#endif
