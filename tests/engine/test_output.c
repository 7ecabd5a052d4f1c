/* test_output.c - texts as they leave the engine: stop strings, chunks, log-probabilities, loops,
 * and the transcript by itself. */
#include <math.h>

#include "src/base/utf8.h"
#include "src/engine/transcript.h"
#include "src/format/checkpoint.h"
#include "src/model/model.h"
#include "tests/engine/engine_t.h"

/* Every stop string that the text holds, wherever tokens begin and end: the text ends before its
 * first occurrence, and nothing of it is ever shown. */
static void stop_strings_end_a_text(void)
{
    enum { N = 40 };
    struct engine *e = open_with((struct engine_config){ .max_seqs = 16 });
    struct inbox b;
    inbox_init(&b);
    const char *text = golden[0].text;
    const size_t n_text = strlen(text);
    char stop[N][24];
    for (int i = 0; i < N; i++) {
        const size_t n = 1 + (size_t)i % 13, from = (size_t)(i * 29 + 3) % (n_text - n);
        memcpy(stop[i], text + from, n);
        stop[i][n] = '\0';
        const char *const stops[] = { "never written", stop[i] };
        struct ask a;
        ask_init(&a, golden[0].image, "Convert to Markdown.", &b.slot[i]);
        a.r.stop = stops;
        a.r.n_stop = 2;
        a.r.draft = i % 3 == 0 ? text : i % 3 == 1 ? "something else" : NULL;
        submit_request(e, &a.r);
    }
    wait_for(&b, N);
    for (int i = 0; i < N; i++) {
        const struct slot *s = &b.slot[i];
        const size_t n = (size_t)(strstr(text, stop[i]) - text);
        if (s->r.finish != FINISH_STOP_STRING || s->r.n_text != n ||
            memcmp(s->text, text, n) != 0 || s->shown.n != n ||
            (n && memcmp(s->shown.data, text, n) != 0)) {
            T_FAIL("stop \"%s\": finish %d, \"%s\", shown \"%.*s\"", stop[i], s->r.finish, s->text,
                   (int)s->shown.n, s->shown.n ? s->shown.data : "");
        }
    }
    engine_close(e);
    inbox_deinit(&b);
}

/* A stop string that never comes changes nothing, and what was held back is shown at the end. */
static void what_only_looks_like_a_stop_is_shown(void)
{
    struct engine *e = open_with((struct engine_config){ 0 });
    struct inbox b;
    inbox_init(&b);
    const char *text = golden[1].text;
    char almost[64]; /* the end of the text and one letter more */
    snprintf(almost, sizeof(almost), "%s~", text + strlen(text) - 9);
    const char *const stops[] = { almost };
    struct ask a;
    ask_init(&a, golden[1].image, "Convert to Markdown.", &b.slot[0]);
    a.r.stop = stops;
    a.r.n_stop = 1;
    submit_request(e, &a.r);
    wait_for(&b, 1);
    T_EQ(b.slot[0].r.finish, FINISH_STOP);
    T_STR(b.slot[0].text, text);
    T_STR(b.slot[0].shown.data, text);
    engine_close(e);
    inbox_deinit(&b);
}

/* ---- log-probabilities ---- */

enum { N_PROMPT = 70, N_NEW = 24, N_TOP = 5 };

struct logprobs {
    int n;
    float logprob[N_NEW], top[N_NEW][N_TOP];
    int32_t top_id[N_NEW][N_TOP];
};

static void keep_logprobs(struct slot *s, const struct engine_chunk *c)
{
    struct logprobs *l = s->watch_arg;
    for (int i = 0; i < c->n_tokens && l->n < N_NEW; i++, l->n++) {
        l->logprob[l->n] = c->logprobs[i].logprob;
        for (int k = 0; k < N_TOP; k++) {
            l->top[l->n][k] = c->logprobs[i].top[k].logprob;
            l->top_id[l->n][k] = c->logprobs[i].top[k].id;
        }
    }
}

/* All rows of ids in one forward pass; the logits of those that decide output tokens. */
static void forward_directly(float *logits, const int32_t *ids, int n, int first)
{
    struct checkpoint c;
    struct device *dev;
    struct model *m;
    struct kv_pool *kv;
    struct kv_seq seq = { 0 };
    static int32_t pos[256], seq_of[256], n_keys[256], slot[256], want[256];
    T_EQ(checkpoint_open(&c, MODEL, NULL, CHECKPOINT_ALL, NULL), GALLEY_OK);
    T_EQ(device_open_cpu(&dev, NULL, 1, NULL), GALLEY_OK);
    T_EQ(model_open(&m, dev, &c.cfg, c.weights, NULL), GALLEY_OK);
    const struct kv_shape shape = model_kv_shape(m, KV_F32);
    T_EQ(kv_pool_open(&kv, dev, &shape, 8, NULL), GALLEY_OK);
    T_OK(n <= 256 && kv_seq_resize(kv, &seq, n));
    int n_want = 0;
    for (int i = 0; i < n; i++) {
        pos[i] = i;
        n_keys[i] = i + 1;
        slot[i] = kv_seq_slot(&seq, i);
        if (i >= first) {
            want[n_want++] = i;
        }
    }
    const int32_t *table[] = { seq.blocks };
    const struct model_batch batch = { .n_rows = n,
                                       .token = ids,
                                       .pos = { pos, pos, pos },
                                       .seq = seq_of,
                                       .n_keys = n_keys,
                                       .slot = slot,
                                       .block_table = table,
                                       .want = want,
                                       .n_want = n_want,
                                       .logits = logits };
    T_EQ(model_forward(m, kv, &batch, NULL), GALLEY_OK);
    kv_seq_clear(kv, &seq);
    kv_pool_close(kv);
    model_close(m);
    checkpoint_close(&c);
    device_close(dev);
}

static void logprobs_are_the_models(void)
{
    static int32_t ids[N_PROMPT + N_NEW];
    for (int i = 0; i < N_PROMPT; i++) {
        ids[i] = 300 + i * 37 % 1500;
    }
    struct engine *e = open_with((struct engine_config){ .max_rows = 16 });
    struct inbox b;
    inbox_init(&b);
    struct logprobs got = { 0 };
    struct ask a;
    ask_init(&a, NULL, NULL, &b.slot[0]);
    b.slot[0].watch = keep_logprobs;
    b.slot[0].watch_arg = &got;
    a.parts[0].tokens = ids;
    a.parts[0].n_tokens = N_PROMPT;
    a.message.n_parts = 1;
    a.r.raw = true;
    a.r.sampling = (struct sample_params){ .temperature = 0.8, .seed = 5 };
    a.r.max_new_tokens = N_NEW;
    a.r.ignore_eos = true;
    a.r.n_top_logprobs = N_TOP;
    submit_request(e, &a.r);
    wait_for(&b, 1);
    T_EQ(b.slot[0].r.n_prompt, N_PROMPT);
    T_EQ(b.slot[0].n_tokens, N_NEW);
    T_EQ(got.n, N_NEW);
    memcpy(ids + N_PROMPT, b.slot[0].tokens, N_NEW * sizeof(*ids));
    const int n_vocab = engine_hf_config(e)->text.n_vocab;
    engine_close(e);
    float *logits = mem_array((size_t)N_NEW * (size_t)n_vocab, sizeof(float));
    T_OK(logits);
    forward_directly(logits, ids, N_PROMPT + N_NEW - 1, N_PROMPT - 1);
    double mean = 0;
    for (int i = 0; i < N_NEW; i++) {
        const float *row = logits + (size_t)i * (size_t)n_vocab;
        double sum = 0;
        for (int k = 0; k < n_vocab; k++) {
            sum += exp((double)row[k]);
        }
        T_NEAR(got.logprob[i], row[ids[N_PROMPT + i]] - log(sum), 1e-4);
        mean += row[ids[N_PROMPT + i]] - log(sum);
        for (int k = 0; k < N_TOP; k++) {
            const int32_t id = got.top_id[i][k];
            T_NEAR(got.top[i][k], row[id] - log(sum), 1e-4);
            int n_larger = 0;
            for (int j = 0; j < n_vocab; j++) {
                n_larger += row[j] > row[id] || (row[j] == row[id] && j < id);
            }
            T_EQ(n_larger, k);
        }
    }
    T_NEAR(b.slot[0].r.mean_logprob, mean / N_NEW, 1e-4);
    mem_free(logits);
    inbox_deinit(&b);
}

/* A loop ends a text unless loops are allowed. */
static void a_loop_ends_a_text_unless_allowed(void)
{
    struct engine *e = open_with((struct engine_config){ 0 });
    struct inbox b;
    inbox_init(&b);
    char row[1024];
    for (size_t i = 0; i + 9 < sizeof(row); i += 9) {
        memcpy(row + i, "| a | b |", 10);
    }
    for (int i = 0; i < 2; i++) { /* tau 0 in all but name: the draft is what is written */
        struct ask a;
        ask_init(&a, golden[0].image, "Convert to Markdown.", &b.slot[i]);
        a.r.draft = row;
        a.r.tau = 1e-30;
        a.r.allow_loops = i == 1;
        submit_request(e, &a.r);
    }
    wait_for(&b, 2);
    T_OK(b.slot[1].r.n_output > 40);
    T_OK(b.slot[0].r.n_output <= b.slot[1].r.n_output);
    engine_close(e);
    inbox_deinit(&b);
}

/* ---- the transcript by itself, over the built-in tokenizer ---- */

static void characters_are_shown_whole(void)
{
    /* Bytes of: a, e acute, a Hangul syllable, an emoji, a stray byte, z. */
    static const char text[] = "a\xc3\xa9\xed\x95\x9c\xf0\x9f\x99\x82\xff"
                               "z";
    struct checkpoint c;
    T_EQ(checkpoint_open(&c, MODEL, NULL, CHECKPOINT_ALL, NULL), GALLEY_OK);
    struct transcript t;
    transcript_init(&t, false);
    size_t n_before = 0;
    for (size_t i = 0; i + 1 < sizeof(text); i++) {
        buf_add(&t.raw, &text[i], 1);
        transcript_add(&t, c.tok, -1); /* no token: only what lies there is looked at */
        T_OK(t.utf8.n == 0 || utf8_valid(t.utf8.data, t.utf8.n));
        T_OK(t.utf8.n >= n_before);
        n_before = t.utf8.n;
    }
    transcript_finish(&t);
    T_STR(t.utf8.data, "a\xc3\xa9\xed\x95\x9c\xf0\x9f\x99\x82\xef\xbf\xbdz");
    buf_add(&t.raw, "\xf0\x9f", 2); /* never finished */
    transcript_add(&t, c.tok, -1);
    T_EQ(t.raw.n, 2);
    transcript_finish(&t);
    T_STR(t.utf8.data + t.utf8.n - 3, "\xef\xbf\xbd");
    T_OK(transcript_ok(&t));
    transcript_deinit(&t);
    checkpoint_close(&c);
}

static void beginnings_of_stops_are_held(void)
{
    char *const stop[] = { "STOP", "\n\n", "OPEN" };
    struct transcript t;
    transcript_init(&t, false);
    static const struct {
        const char *text;
        size_t show;
    } looks[] = {
        { "abc", 3 },   { "abcS", 3 }, { "abcSTO", 3 }, { "abcSTOx", 7 },
        { "abc\n", 3 }, { "", 0 },     { "O", 0 },      { "abcOPE", 3 },
    };
    for (size_t i = 0; i < COUNT(looks); i++) {
        buf_cut(&t.utf8, 0);
        buf_add_str(&t.utf8, looks[i].text);
        T_EQ(transcript_showable(&t, stop, 3, 4), looks[i].show);
    }
    buf_cut(&t.utf8, 0);
    buf_add_str(&t.utf8, "xxSTOPEN");
    T_EQ(transcript_find_stop(&t, 7, stop, 3, 4), 4);
    T_EQ(transcript_find_stop(&t, 0, stop, 3, 4), 2);
    T_EQ(transcript_find_stop(&t, 0, stop, 0, 0), 8);
    transcript_deinit(&t);
}

static const struct t_case cases[] = {
    { "stop_strings_end_a_text", stop_strings_end_a_text },
    { "what_only_looks_like_a_stop_is_shown", what_only_looks_like_a_stop_is_shown },
    { "logprobs_are_the_models", logprobs_are_the_models },
    { "a_loop_ends_a_text_unless_allowed", a_loop_ends_a_text_unless_allowed },
    { "characters_are_shown_whole", characters_are_shown_whole },
    { "beginnings_of_stops_are_held", beginnings_of_stops_are_held },
};

int main(int argc, char **argv)
{
    return engine_tests(argc, argv, cases, COUNT(cases));
}
