/* vit_impl.h - what vit.c and vit_job.c share. */
#ifndef GALLEY_VISION_VIT_IMPL_H
#define GALLEY_VISION_VIT_IMPL_H

#include "kernels/scratch.h"
#include "src/base/hash.h"
#include "vision/merger.h"
#include "vision/vision.h"

#define VIT_SLICE_ROWS 1024 /* rows of the matrix products in flight */

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
    unsigned char hash[HASH_BYTES];
    /* the thread that encodes */
    struct scratch scratch; /* workspace of vit_encode, kept between calls */
};

#endif
