/* test_tree.c - drafts that are trees: every row's logits are the bytes of plain decoding along its
 * path, also in the last layer, where only wanted rows go on, and under windows. */
#include "tests/model/families.h"

#define N_PROMPT 37 /* the tree's keys cross a block */
#define N_NODES  9

/* parent[i]: the node before node i; -1: the prompt's last row. */
static const int parent[N_NODES] = { -1, 0, 0, -1, 1, 4, 5, 3, 6 };

static uint64_t path_bits(int i)
{
    return (parent[i] < 0 ? 0 : path_bits(parent[i])) | (uint64_t)1 << i;
}

static int depth_of(int i)
{
    return parent[i] < 0 ? 0 : depth_of(parent[i]) + 1;
}

/* Logits of the last row of prompt and path, one sequence of its own. */
static void path_run(const struct toy_checkpoint *c, const struct prompt *q, const int32_t *token,
                     int node, float *out)
{
    struct prompt p = { 0 };
    const size_t n_vocab = (size_t)model_n_vocab(c->model);
    int32_t path[N_NODES];
    int n = depth_of(node) + 1;
    for (int i = node, k = n; i >= 0; i = parent[i]) {
        path[--k] = token[i];
    }
    prompt_init(&p, c, q->ids, q->n, &(struct patches){ 0 });
    for (int k = 0; k < n; k++) {
        prompt_push(&p, path[k]);
    }
    struct kv_pool *kv = pool_for(c, 4);
    struct kv_seq seq = { 0 };
    float *logits = family_logits(c);
    pieces_run(c, kv, &(struct piece){ &p, &seq, 0, p.n, logits }, 1, true);
    memcpy(out, logits + (size_t)(p.n - 1) * n_vocab, n_vocab * sizeof(*out));
    mem_free(logits);
    kv_seq_clear(kv, &seq);
    kv_pool_close(kv);
}

/* All nodes in one batch behind the prompt; logits of the n_want wanted ones. */
static void tree_run(const struct toy_checkpoint *c, const struct prompt *q, const int32_t *token,
                     const int32_t *want, int n_want, float *logits)
{
    struct kv_pool *kv = pool_for(c, 4);
    struct kv_seq seq = { 0 };
    float *prefill = family_logits(c);
    pieces_run(c, kv, &(struct piece){ q, &seq, 0, q->n, prefill }, 1, true);
    mem_free(prefill);
    T_OK(kv_seq_resize(kv, &seq, q->n + N_NODES));
    int32_t pos[N_NODES], zero[N_NODES] = { 0 }, n_keys[N_NODES], slot[N_NODES], base[N_NODES];
    uint64_t tree[N_NODES];
    for (int i = 0; i < N_NODES; i++) {
        pos[i] = q->n + depth_of(i);
        n_keys[i] = q->n + i + 1;
        slot[i] = kv_seq_slot(&seq, q->n + i);
        base[i] = q->n;
        tree[i] = path_bits(i);
    }
    const int32_t *tables[] = { seq.blocks };
    const struct model_batch b = { .n_rows = N_NODES,
                                   .token = token,
                                   .pos = { pos, pos, pos },
                                   .seq = zero,
                                   .n_keys = n_keys,
                                   .slot = slot,
                                   .block_table = tables,
                                   .tree = tree,
                                   .tree_base = base,
                                   .want = want,
                                   .n_want = n_want,
                                   .logits = logits };
    struct galley_err err = { 0 };
    T_EQ(model_forward(c->model, kv, &b, &err), GALLEY_OK);
    kv_seq_clear(kv, &seq);
    kv_pool_close(kv);
}

static void tree_check(const char *name, struct device *dev)
{
    static const int32_t all[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 }, some[] = { 2, 6, 7, 8 };
    struct toy_checkpoint c = family_open(name, dev);
    const size_t n_vocab = (size_t)model_n_vocab(c.model);
    int32_t ids[N_PROMPT], token[N_NODES];
    struct prompt q;
    for (int i = 0; i < N_PROMPT; i++) {
        ids[i] = (i * 29 + 11) % 90;
    }
    for (int i = 0; i < N_NODES; i++) {
        token[i] = (i * 17 + 3) % 90;
    }
    prompt_init(&q, &c, ids, N_PROMPT, &(struct patches){ 0 });
    float *got = mem_many(float, N_NODES *n_vocab), *few = mem_many(float, N_NODES *n_vocab);
    float *want = mem_many(float, n_vocab);
    T_OK(got && few && want);
    tree_run(&c, &q, token, all, N_NODES, got);
    tree_run(&c, &q, token, some, COUNT(some), few);
    for (int i = 0; i < N_NODES; i++) {
        path_run(&c, &q, token, i, want);
        if (memcmp(got + (size_t)i * n_vocab, want, n_vocab * sizeof(*want)) != 0) {
            T_FAIL("%s on %s: node %d is not its path", name, dev->ops->name, i);
        }
    }
    for (size_t i = 0; i < COUNT(some); i++) {
        const float *there = got + (size_t)some[i] * n_vocab;
        if (memcmp(few + i * n_vocab, there, n_vocab * sizeof(*few)) != 0) {
            T_FAIL("%s on %s: node %d alone", name, dev->ops->name, some[i]);
        }
    }
    mem_free(got);
    mem_free(few);
    mem_free(want);
    prompt_deinit(&q);
    checkpoint_close(&c);
}

static void test_paths(void)
{
    static const char *const names[] = { "qwen3", "gemma3", "gemma3_vl" };
    for (size_t i = 0; i < COUNT(names) * COUNT(isa_names); i++) {
        struct device *dev = device_for(isa_names[i % COUNT(isa_names)], 1);
        if (dev) {
            tree_check(names[i / COUNT(isa_names)], dev);
        }
    }
}

static const struct t_case cases[] = {
    { "paths", test_paths },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
