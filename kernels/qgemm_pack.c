/* qgemm_pack.c - the permutation from a file's blocks to units (qgemm.h). */
#include <assert.h>
#include <string.h>

#include "kernels/qgemm.h"

/* What happens to a word on the way: nothing, the sign bit of each byte flipped (Q8_0), or the 32
 * fifth bits regrouped so that bit g of byte i belongs to element 4 g + i, as the words of codes
 * want it. */
enum word_op { WORD_AS_IS, WORD_FLIP, WORD_FIFTH };

struct field {
    int at, size, n; /* offset in the block, bytes of an item (0: no field), items */
    enum word_op op;
};

#define FIELDS_MAX 5

static const struct field *fields_of(enum dtype t)
{
    static const struct field fields[DTYPE_COUNT][FIELDS_MAX] = {
        [DTYPE_Q4_0] = { { 2, 4, 4, 0 }, { 0, 2, 1, 0 } },
        [DTYPE_Q4_1] = { { 4, 4, 4, 0 }, { 0, 2, 1, 0 }, { 2, 2, 1, 0 } },
        [DTYPE_Q5_0] = { { 6, 4, 4, 0 }, { 2, 4, 1, WORD_FIFTH }, { 0, 2, 1, 0 } },
        [DTYPE_Q5_1] = { { 8, 4, 4, 0 }, { 4, 4, 1, WORD_FIFTH }, { 0, 2, 1, 0 }, { 2, 2, 1, 0 } },
        [DTYPE_Q8_0] = { { 2, 4, 8, WORD_FLIP }, { 0, 2, 1, 0 } },
        [DTYPE_Q2_K] = { { 16, 4, 16, 0 }, { 0, 4, 4, 0 }, { 80, 2, 1, 0 }, { 82, 2, 1, 0 } },
        [DTYPE_Q3_K] = { { 32, 4, 16, 0 }, { 0, 4, 8, 0 }, { 96, 4, 3, 0 }, { 108, 2, 1, 0 } },
        [DTYPE_Q4_K] = { { 16, 4, 32, 0 }, { 4, 4, 3, 0 }, { 0, 2, 1, 0 }, { 2, 2, 1, 0 } },
        [DTYPE_Q5_K] = { { 48, 4, 32, 0 },
                         { 16, 4, 8, 0 },
                         { 4, 4, 3, 0 },
                         { 0, 2, 1, 0 },
                         { 2, 2, 1, 0 } },
        [DTYPE_Q6_K] = { { 0, 4, 32, 0 }, { 128, 4, 16, 0 }, { 192, 4, 4, 0 }, { 208, 2, 1, 0 } },
        [DTYPE_IQ4_NL] = { { 2, 4, 4, 0 }, { 0, 2, 1, 0 } },
        [DTYPE_IQ4_XS] = { { 8, 4, 32, 0 }, { 4, 4, 1, 0 }, { 2, 2, 1, 0 }, { 0, 2, 1, 0 } },
        [DTYPE_MXFP4] = { { 1, 4, 4, 0 }, { 0, 1, 1, 0 } },
    };
    assert(t >= DTYPE_N_DENSE && t < DTYPE_COUNT);
    return fields[t];
}

size_t qgemm_unit_bytes(enum dtype t, int n_blocks)
{
    /* The fields are all of a block. */
    const size_t bytes = (size_t)dtype_info(t)->n_bytes * (size_t)n_blocks * QGEMM_NR;
    return (bytes + QGEMM_ALIGN - 1) / QGEMM_ALIGN * QGEMM_ALIGN;
}

static int unit_blocks(enum dtype t) /* of a whole unit */
{
    return QGEMM_K / dtype_info(t)->block;
}

size_t qgemm_group_bytes(enum dtype t, int n_in)
{
    const int whole = n_in / QGEMM_K, rest = n_in % QGEMM_K / dtype_info(t)->block;
    return (size_t)whole * qgemm_unit_bytes(t, unit_blocks(t)) +
           (rest ? qgemm_unit_bytes(t, rest) : 0);
}

static uint32_t word_change(uint32_t w, enum word_op op)
{
    if (op == WORD_FLIP) {
        return w ^ 0x80808080u;
    }
    if (op == WORD_FIFTH) {
        uint32_t v = 0;
        for (int e = 0; e < 32; e++) {
            v |= (w >> e & 1u) << (8 * (e % 4) + e / 4);
        }
        return v;
    }
    return w;
}

/* Field f of one block into column j; to is the block's first item. */
static void pack_field(char *to, const char *block, const struct field *f, int j)
{
    to += (size_t)j * (size_t)f->size;
    block += f->at;
    if (f->size == 4) {
        for (int i = 0; i < f->n; i++) {
            uint32_t w;
            memcpy(&w, block + 4 * i, 4);
            if (f->op != WORD_AS_IS) {
                w = word_change(w, f->op);
            }
            memcpy(to + (size_t)i * 4 * QGEMM_NR, &w, 4);
        }
    } else {
        memcpy(to, block, (size_t)f->size);
    }
}

void qgemm_pack(void *dst, const void *src, enum dtype t, int n_out, int n_in, int group)
{
    const struct field *fields = fields_of(t);
    const size_t block_bytes = (size_t)dtype_info(t)->n_bytes;
    const size_t row_bytes = (size_t)dtype_row_bytes(t, (uint64_t)n_in);
    const int n_blocks = n_in / dtype_info(t)->block, each = unit_blocks(t);
    const int left = n_out - group * QGEMM_NR, columns = left < QGEMM_NR ? left : QGEMM_NR;
    const char *row0 = (const char *)src + (size_t)group * QGEMM_NR * row_bytes;
    char *unit = dst;
    if (columns < QGEMM_NR) {
        memset(dst, 0, qgemm_group_bytes(t, n_in));
    }
    for (int b0 = 0; b0 < n_blocks; b0 += each) {
        const int n = n_blocks - b0 < each ? n_blocks - b0 : each;
        for (int j = 0; j < columns; j++) {
            const char *block = row0 + (size_t)j * row_bytes + (size_t)b0 * block_bytes;
            char *to = unit;
            for (int f = 0; f < FIELDS_MAX && fields[f].size; f++) {
                const size_t bytes = (size_t)fields[f].size * (size_t)fields[f].n * QGEMM_NR;
                for (int b = 0; b < n; b++, to += bytes) {
                    pack_field(to, block + (size_t)b * block_bytes, &fields[f], j);
                }
            }
        }
        unit += qgemm_unit_bytes(t, n);
    }
}
