/* test_chat.c - frames against Jinja's rendering, and whether a frame fits a model. */
#include "src/base/mem.h"
#include "tests/format/chat_golden.h"

#define MODEL "models/galley-tiny"

static void frames(void)
{
    T_OK(check_chat_file("tests/golden/chat/frames.json") > 400);
}

/* ---- without a template ---- */

static void families_own_frame(void)
{
    static const enum chat_kind kinds[HF_FAMILY_COUNT] = {
        [HF_QWEN2_VL] = CHAT_CHATML, [HF_QWEN2_5_VL] = CHAT_CHATML, [HF_QWEN2] = CHAT_CHATML,
        [HF_QWEN3] = CHAT_QWEN3,     [HF_LLAMA] = CHAT_NONE,        [HF_GEMMA3] = CHAT_NONE,
    };
    for (int f = 0; f < HF_FAMILY_COUNT; f++) {
        struct chat c;
        chat_recognise(&c, NULL, 0, (enum hf_family)f);
        T_EQ(c.kind, kinds[f]);
        T_STR(c.default_system, "");
    }
}

/* What document pages are asked with: as before there were templates. */
static void a_page_without_a_system_message(void)
{
    struct chat c;
    chat_recognise(&c, NULL, 0, HF_QWEN2_5_VL);
    const enum chat_role roles[] = { CHAT_USER };
    struct chat_segment s[8];
    int n;
    T_EQ(chat_frame(s, &n, &c, roles, 1, false, NULL), GALLEY_OK);
    T_EQ(n, 4);
    T_STR(s[0].text, "<|im_start|>user\n");
    T_OK(s[1].i_message == 0 && !s[1].trim && !s[1].trim_end && !s[1].answer);
    T_STR(s[2].text, "<|im_end|>\n");
    T_STR(s[3].text, "<|im_start|>assistant\n");
}

static void unknown_templates_are_refused_when_used(void)
{
    static const char text[] = "{{ messages }} [INST] <|user|>";
    struct chat c;
    chat_recognise(&c, text, strlen(text), HF_QWEN2);
    T_EQ(c.kind, CHAT_NONE);
    const enum chat_role roles[] = { CHAT_USER };
    struct chat_segment s[8];
    struct galley_err err = { 0 };
    int n = 7;
    T_EQ(chat_frame(s, &n, &c, roles, 1, false, &err), GALLEY_EUSAGE);
    T_OK(n == 0 && strstr(err.msg, "Llama 3"));
}

static void counts_have_limits(void)
{
    struct chat c;
    chat_recognise(&c, NULL, 0, HF_QWEN3);
    static enum chat_role roles[CHAT_MESSAGES_MAX + 1];
    static struct chat_segment s[4 * CHAT_MESSAGES_MAX + 4];
    struct galley_err err = { 0 };
    int n;
    for (int i = 0; i <= CHAT_MESSAGES_MAX; i++) {
        roles[i] = CHAT_USER;
    }
    T_EQ(chat_frame(s, &n, &c, roles, 0, false, &err), GALLEY_EUSAGE);
    T_EQ(chat_frame(s, &n, &c, roles, CHAT_MESSAGES_MAX + 1, false, &err), GALLEY_EUSAGE);
    T_OK(strstr(err.msg, "1025"));
    T_EQ(chat_frame(s, &n, &c, roles, CHAT_MESSAGES_MAX, false, &err), GALLEY_OK);
    T_EQ(n, 3 * CHAT_MESSAGES_MAX + 2);
}

/* Templates cut anywhere: recognised or not, nothing outside of them is read. */
static void cut_templates(void)
{
    static const char text[] = "{%- if enable_thinking %}'<|im_start|>system\\nYou are \\'x\\'"
                               "<|im_end|>\\n' <|start_header_id|> <start_of_turn> trim";
    for (size_t n = 0; n < sizeof(text); n++) {
        char *copy = mem_array(n, 1);
        memcpy(copy, text, n);
        struct chat c;
        chat_recognise(&c, copy, n, HF_LLAMA);
        T_OK(c.kind < CHAT_KIND_COUNT && strlen(c.default_system) < CHAT_SYSTEM_MAX);
        mem_free(copy);
    }
}

static void long_system_messages_are_left_out(void)
{
    struct buf b;
    buf_init(&b, 1 << 16);
    buf_add_str(&b, "'<|im_start|>system\\n");
    for (int i = 0; i < CHAT_SYSTEM_MAX; i++) {
        buf_add_char(&b, 'x');
    }
    buf_add_str(&b, "<|im_end|>' '<|im_start|>system\\nshort<|im_end|>'");
    struct chat c;
    chat_recognise(&c, b.data, b.n, HF_QWEN2);
    T_EQ(c.kind, CHAT_NONE);
    buf_deinit(&b);
}

/* ---- is it one model? ---- */

static struct tokenizer *tok;
static struct hf_config cfg;

static void expect(const struct chat *c, struct hf_config config, const char *part)
{
    struct galley_err err = { 0 };
    T_EQ(chat_check(c, tok, &config, &err), GALLEY_EMODEL);
    if (!strstr(err.msg, part)) {
        T_FAIL("\"%s\" does not say \"%s\"", err.msg, part);
    }
}

static void files_of_one_model(void)
{
    struct chat c;
    chat_recognise(&c, NULL, 0, HF_QWEN2_5_VL);
    cfg.has_vision = true;
    T_EQ(chat_check(&c, tok, &cfg, NULL), GALLEY_OK);
    struct hf_config other = cfg;
    other.image_pad = 5;
    expect(&c, other, "<|image_pad|> as 2046, the model's configuration says 5");
    other = cfg;
    other.vision_start = 2044;
    expect(&c, other, "<|vision_start|> as 2043");
    other.has_vision = false;
    T_EQ(chat_check(&c, tok, &other, NULL), GALLEY_OK);
    c.kind = CHAT_GEMMA;
    expect(&c, cfg, "no token <start_of_turn> of the Gemma");
    c.kind = CHAT_LLAMA3;
    expect(&c, cfg, "no token <|start_header_id|>");
    c.kind = CHAT_NONE;
    T_EQ(chat_check(&c, tok, &cfg, NULL), GALLEY_OK);
}

static const struct t_case cases[] = {
    { "frames", frames },
    { "families_own_frame", families_own_frame },
    { "a_page_without_a_system_message", a_page_without_a_system_message },
    { "unknown_templates_are_refused_when_used", unknown_templates_are_refused_when_used },
    { "counts_have_limits", counts_have_limits },
    { "cut_templates", cut_templates },
    { "long_system_messages_are_left_out", long_system_messages_are_left_out },
    { "files_of_one_model", files_of_one_model },
};

int main(int argc, char **argv)
{
    if (setjmp(t_jump)) {
        return 1;
    }
    T_EQ(hf_config_read(&cfg, MODEL, NULL), GALLEY_OK);
    T_EQ(tokenizer_open(&tok, MODEL "/tokenizer.json", NULL), GALLEY_OK);
    const int rc = t_main(argc, argv, cases, COUNT(cases));
    tokenizer_close(tok);
    return rc;
}
