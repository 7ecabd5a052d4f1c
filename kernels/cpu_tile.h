/* cpu_tile.h - query vectors that meet the same blocks of keys: the steps of attn.h, in scratch.
 * Internal to cpu_attn.c and cpu_paged.c. */
#ifndef GALLEY_KERNELS_CPU_TILE_H
#define GALLEY_KERNELS_CPU_TILE_H

#include "kernels/cpu.h"

/* The vectors lie in s->q; which keys of a block each sees is in s->first and s->n. */
struct tile {
    const struct cpu_kernels *k;
    struct cpu_scratch *s;
    int n, head_dim;
    size_t o_ld; /* head_dim rounded up to whole vectors */
    float by;    /* what a query is multiplied by */
    float cap;
    struct attn_part at;         /* the state that grows: max [n], sum [n][16], o [n][o_ld] */
    const char *next_k, *next_v; /* the block to come as it lies in memory, next_bytes each */
    size_t next_bytes;
    int from, to; /* vectors that see any key of the block being met */
};

static inline size_t tile_o_ld(int head_dim)
{
    return ((size_t)head_dim + 15) & ~(size_t)15;
}

int tile_rows_max(int head_dim);
struct tile tile_new(const struct cpu_kernels *k, struct cpu_scratch *s, int n, int head_dim,
                     float scale, float softcap);
/* Goes on with an empty state in `at`. */
void tile_begin(struct tile *t, struct attn_part at);
struct attn_part tile_part(struct cpu_scratch *s, int i); /* one of the two in scratch */
/* Vectors i..i+7, i a multiple of ATTN_GROUP; NULL where there is none. */
void tile_pack(const struct tile *t, int i, const float *const q[ATTN_GROUP]);
/* All meet a block: kt [head_dim][KV_BLOCK], v [KV_BLOCK][v_ld] with o_ld columns. */
void tile_meet(struct tile *t, const float *kt, const float *v, size_t v_ld);
/* The same in two steps: kt is done with when the values are wanted. */
void tile_meet_keys(struct tile *t, const float *kt);
void tile_meet_values(const struct tile *t, const float *v, size_t v_ld);
/* The parts of it.  Scores of vectors from..to-1 against all keys; from is a multiple of
 * ATTN_GROUP: */
void tile_scores(const struct tile *t, float *s, int from, int to, const float *kt);
/* For scores that lie in s->s: they become p. */
void tile_soft(const struct tile *t, int from, int to);
/* o += p v over n keys for vectors from..to-1. */
void tile_sums(const struct tile *t, int from, int to, const float *p, int n, const float *v,
               size_t v_ld);
bool tile_tame(const struct tile *t, const float *v, size_t v_ld, int n); /* all finite */
/* Merges a later span into at. */
void tile_merge(const struct tile *t, const struct attn_part *span);
void tile_result(const struct tile *t, int i, float *out);

/* Asks for n rows of some bytes each. */
void rows_prefetch(const void *p, size_t stride, size_t bytes, int n);

#endif
