/* mrope.c - position ids of a prompt with images, as Hugging Face's get_rope_index. */
#include <assert.h>

#include "vision/vision.h"

/* Positions of one image's cells from `start`; the next text position. */
static int32_t image_positions(int32_t *const pos[3], int at, int32_t start, int rows, int cols)
{
    for (int y = 0; y < rows; y++) {
        for (int x = 0; x < cols; x++, at++) {
            pos[0][at] = start;
            pos[1][at] = start + y;
            pos[2][at] = start + x;
        }
    }
    return start + (rows > cols ? rows : cols);
}

static int run_length(const int32_t *ids, int n, int i, int32_t id)
{
    int end = i;
    while (end < n && ids[end] == id) {
        end++;
    }
    return end - i;
}

enum galley_status mrope_positions(int32_t *const pos[3], int32_t *next, const int32_t *ids, int n,
                                   const struct vision_grid *grids, int n_grids,
                                   const struct hf_config *cfg, struct galley_err *err)
{
    int32_t at = 0;
    int i_grid = 0;
    for (int i = 0; i < n;) {
        if (!cfg->has_vision || ids[i] != cfg->image_pad) {
            pos[0][i] = pos[1][i] = pos[2][i] = at;
            at++;
            i++;
            continue;
        }
        const int run = run_length(ids, n, i, cfg->image_pad);
        if (i == 0 || ids[i - 1] != cfg->vision_start) {
            return galley_err_set(err, GALLEY_EINPUT,
                                  "token %d of the prompt is an image token without a start", i);
        }
        if (i_grid == n_grids) {
            return galley_err_set(err, GALLEY_EINPUT,
                                  "the prompt has more image places than the %d images given",
                                  n_grids);
        }
        const struct vision_grid *g = &grids[i_grid++];
        assert(g->t == 1); /* pictures; frames of video have a clock of their own */
        if (run != vision_n_tokens(g, &cfg->vision)) {
            return galley_err_set(err, GALLEY_EINPUT,
                                  "image %d has %d tokens, but the prompt has %d places for it",
                                  i_grid, vision_n_tokens(g, &cfg->vision), run);
        }
        at = image_positions(pos, i, at, g->h / cfg->vision.merge, g->w / cfg->vision.merge);
        i += run;
    }
    if (!cfg->has_vision && n_grids > 0) {
        return galley_err_set(err, GALLEY_EINPUT, "%d images were given to a model of text alone",
                              n_grids);
    }
    if (i_grid != n_grids) {
        return galley_err_set(err, GALLEY_EINPUT,
                              "%d images were given, but the prompt has places for %d", n_grids,
                              i_grid);
    }
    *next = at;
    return GALLEY_OK;
}
