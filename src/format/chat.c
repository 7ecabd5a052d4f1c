/* chat.c - chat templates recognised by what they contain, and their frames written out. */
#include "src/format/chat.h"

#include <assert.h>
#include <string.h>

#include "src/base/utf8.h"

#define KNOWN "ChatML, Qwen3, Llama 2, Llama 3, Gemma"

static const char *const names[] = {
    [CHAT_NONE] = "none",      [CHAT_CHATML] = "ChatML",  [CHAT_QWEN3] = "Qwen3",
    [CHAT_LLAMA2] = "Llama 2", [CHAT_LLAMA3] = "Llama 3", [CHAT_GEMMA] = "Gemma",
};

const char *chat_name(enum chat_kind kind)
{
    assert(kind < CHAT_KIND_COUNT);
    return names[kind];
}

/* ---- templates ---- */

struct text {
    const char *s;
    size_t n;
};

/* Where `part` begins at or behind `from`; NULL: nowhere. */
static const char *find(const struct text *t, const char *from, const char *part)
{
    const size_t n = strlen(part);
    const char *const end = t->s + t->n;
    while (from && (size_t)(end - from) >= n) {
        if (memcmp(from, part, n) == 0) {
            return from;
        }
        from = memchr(from + 1, part[0], (size_t)(end - from) - 1);
    }
    return NULL;
}

static bool has(const struct text *t, const char *part)
{
    return find(t, t->s, part) != NULL;
}

static bool starts(const struct text *t, const char *at, const char *part)
{
    const size_t n = strlen(part);
    return (size_t)(t->s + t->n - at) >= n && memcmp(at, part, n) == 0;
}

enum written { WRITTEN_NOT, WRITTEN_OUT, WRITTEN_UNREADABLE };

/* Reads a system message written out in the template: from p, in a string literal that `quote`
 * ends (0: in the template's plain text), up to <|im_end|>. */
static enum written read_system(const struct text *t, const char *p, char quote, char *out)
{
    size_t n = 0;
    for (; p < t->s + t->n && n + 1 < CHAT_SYSTEM_MAX; p++) {
        if (starts(t, p, "<|im_end|>")) {
            out[n] = '\0';
            return n > 0 ? WRITTEN_OUT : WRITTEN_NOT;
        }
        if ((quote && *p == quote) || starts(t, p, "{{") || starts(t, p, "{%")) {
            return WRITTEN_NOT; /* it is put together from variables */
        }
        char c = *p;
        if (quote && c == '\\' && p + 1 < t->s + t->n) {
            c = *++p;
            if (c != 'n' && c != '\\' && c != '\'' && c != '"') {
                return WRITTEN_UNREADABLE;
            }
            c = c == 'n' ? '\n' : c;
        }
        if (c == '\0') {
            return WRITTEN_UNREADABLE;
        }
        out[n++] = c;
    }
    return WRITTEN_UNREADABLE;
}

/* The default system message of a ChatML template, wherever it is spelled out; "": none.  False
 * when it is beyond us. */
static bool find_system(const struct text *t, char *out)
{
    static const char opening[] = "<|im_start|>system";
    enum written written = WRITTEN_NOT;
    for (const char *p = find(t, t->s, opening); p && written == WRITTEN_NOT;
         p = find(t, p + 1, opening)) {
        const char before = p > t->s ? p[-1] : '\0';
        const char quote = before == '\'' || before == '"' ? before : '\0';
        const char *text = p + strlen(opening);
        if (starts(t, text, "\n")) {
            written = read_system(t, text + 1, quote, out);
        } else if (quote && starts(t, text, "\\n")) {
            written = read_system(t, text + 2, quote, out);
        }
    }
    if (written != WRITTEN_OUT) {
        out[0] = '\0';
    }
    return written != WRITTEN_UNREADABLE;
}

static void recognise_chatml(struct chat *out, const struct text *t)
{
    const bool thinks = has(t, "think>");
    if (thinks) { /* with a switch, and thoughts only where the assistant begins them */
        const bool ours = has(t, "enable_thinking is defined and enable_thinking is false") &&
                          has(t, "<think>\\n\\n</think>\\n\\n'") && !has(t, "'<think>\\n' }}");
        out->kind = ours ? CHAT_QWEN3 : CHAT_NONE;
        return;
    }
    out->kind = find_system(t, out->default_system) ? CHAT_CHATML : CHAT_NONE;
    out->trim = has(t, "trim") || has(t, ".strip()");
}

static void recognise_llama3(struct chat *out, const struct text *t)
{
    out->dated = has(t, "Cutting Knowledge Date");
    const bool known = !out->dated || (has(t, "Cutting Knowledge Date: December 2023") &&
                                       has(t, "26 Jul 2024") && !has(t, "Reasoning"));
    out->kind = known && has(t, "<|end_header_id|>") && has(t, "<|eot_id|>") && has(t, "trim")
                    ? CHAT_LLAMA3
                    : CHAT_NONE;
}

static void recognise_gemma(struct chat *out, const struct text *t)
{
    out->no_system = has(t, "System role not supported");
    out->kind = has(t, "<end_of_turn>") && has(t, "trim") ? CHAT_GEMMA : CHAT_NONE;
}

void chat_recognise(struct chat *out, const char *template, size_t n, enum hf_family family)
{
    *out = (struct chat){ 0 };
    if (!template) {
        const bool qwen2 = family == HF_QWEN2_VL || family == HF_QWEN2_5_VL || family == HF_QWEN2;
        out->kind = qwen2 ? CHAT_CHATML : family == HF_QWEN3 ? CHAT_QWEN3 : CHAT_NONE;
        return;
    }
    const struct text t = { template, n };
    if (has(&t, "<|im_start|>") && has(&t, "<|im_end|>")) {
        recognise_chatml(out, &t);
    } else if (has(&t, "<|start_header_id|>")) {
        recognise_llama3(out, &t);
    } else if (has(&t, "<start_of_turn>")) {
        recognise_gemma(out, &t);
    } else if (has(&t, "[INST]") && has(&t, "<<SYS>>") && has(&t, "strip()")) {
        out->kind = CHAT_LLAMA2;
    }
}

/* ---- frames ---- */

struct framing {
    const struct chat *c;
    const enum chat_role *roles;
    int n_messages;
    bool thinking;
    struct chat_segment *out;
    int n_out;
};

static void add_text(struct framing *f, const char *text)
{
    assert(f->n_out < 4 * f->n_messages + 4);
    f->out[f->n_out++] = (struct chat_segment){ .i_message = -1, .text = text };
}

static struct chat_segment *add_content(struct framing *f, int i)
{
    assert(f->n_out < 4 * f->n_messages + 4);
    f->out[f->n_out] = (struct chat_segment){ .i_message = i };
    return &f->out[f->n_out++];
}

static bool has_system(const struct framing *f)
{
    return f->roles[0] == CHAT_SYSTEM;
}

static void frame_chatml(struct framing *f)
{
    static const char *const opening[] = { [CHAT_SYSTEM] = "<|im_start|>system\n",
                                           [CHAT_USER] = "<|im_start|>user\n",
                                           [CHAT_ASSISTANT] = "<|im_start|>assistant\n" };
    if (f->c->default_system[0] && !has_system(f)) {
        add_text(f, opening[CHAT_SYSTEM]);
        add_text(f, f->c->default_system);
        add_text(f, "<|im_end|>\n");
    }
    for (int i = 0; i < f->n_messages; i++) {
        add_text(f, opening[f->roles[i]]);
        struct chat_segment *s = add_content(f, i);
        s->trim = f->c->trim;
        s->answer = f->c->kind == CHAT_QWEN3 && f->roles[i] == CHAT_ASSISTANT;
        add_text(f, "<|im_end|>\n");
    }
    add_text(f, opening[CHAT_ASSISTANT]);
    if (f->c->kind == CHAT_QWEN3 && !f->thinking) {
        add_text(f, "<think>\n\n</think>\n\n");
    }
}

static void frame_llama3(struct framing *f)
{
    static const char *const opening[] = {
        [CHAT_SYSTEM] = "<|start_header_id|>system<|end_header_id|>\n\n",
        [CHAT_USER] = "<|start_header_id|>user<|end_header_id|>\n\n",
        [CHAT_ASSISTANT] = "<|start_header_id|>assistant<|end_header_id|>\n\n"
    };
    int i = 0;
    if (f->c->dated) {
        add_text(f, "<|start_header_id|>system<|end_header_id|>\n\n"
                    "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
        if (has_system(f)) {
            add_content(f, i++)->trim = true;
        }
        add_text(f, "<|eot_id|>");
    }
    for (; i < f->n_messages; i++) {
        add_text(f, opening[f->roles[i]]);
        add_content(f, i)->trim = true;
        add_text(f, "<|eot_id|>");
    }
    add_text(f, opening[CHAT_ASSISTANT]);
}

static void frame_gemma(struct framing *f)
{
    const int first = has_system(f);
    for (int i = first; i < f->n_messages; i++) {
        add_text(f, f->roles[i] == CHAT_USER ? "<start_of_turn>user\n" : "<start_of_turn>model\n");
        if (i == first && has_system(f)) {
            add_content(f, 0);
            add_text(f, "\n\n");
        }
        add_content(f, i)->trim = true;
        add_text(f, "<end_of_turn>\n");
    }
    add_text(f, "<start_of_turn>model\n");
}

/* The tokenizer puts the first <s>; every later question begins with its own. */
static void frame_llama2(struct framing *f)
{
    const int first = has_system(f);
    for (int i = first; i < f->n_messages; i++) {
        if (f->roles[i] == CHAT_ASSISTANT) {
            add_text(f, " ");
            add_content(f, i)->trim = true;
            add_text(f, " </s>");
            continue;
        }
        add_text(f, i == first ? "[INST] " : "<s>[INST] ");
        if (i == first && has_system(f)) {
            add_text(f, "<<SYS>>\n");
            add_content(f, 0);
            add_text(f, "\n<</SYS>>\n\n");
            add_content(f, i)->trim_end = true;
        } else {
            add_content(f, i)->trim = true;
        }
        add_text(f, " [/INST]");
    }
}

/* ---- what templates refuse ---- */

/* After a system message at most: user, assistant, user ... */
static enum galley_status must_alternate(const struct framing *f, struct galley_err *err)
{
    const int first = has_system(f);
    for (int i = first; i < f->n_messages; i++) {
        if (f->roles[i] != ((i - first) % 2 == 0 ? CHAT_USER : CHAT_ASSISTANT)) {
            return galley_err_set(err, GALLEY_EUSAGE,
                                  "message %d: with the %s template messages alternate between "
                                  "user and assistant, from the user on",
                                  i + 1, chat_name(f->c->kind));
        }
    }
    if (f->n_messages == first) {
        return galley_err_set(err, GALLEY_EUSAGE, "the conversation has only a system message");
    }
    return GALLEY_OK;
}

/* Only Qwen3: an answer behind the last question is shown with its thoughts. */
static enum galley_status must_end_with_user(const struct framing *f, struct galley_err *err)
{
    bool asked = false;
    int last = f->n_messages - 1;
    for (int i = 0; i < f->n_messages; i++) {
        asked = asked || f->roles[i] == CHAT_USER;
    }
    for (; asked && f->roles[last] != CHAT_USER; last--) {
        if (f->roles[last] == CHAT_ASSISTANT) {
            return galley_err_set(err, GALLEY_EUSAGE,
                                  "message %d: with the %s template no assistant's message may "
                                  "follow the last user's",
                                  last + 1, chat_name(f->c->kind));
        }
    }
    return GALLEY_OK;
}

static enum galley_status check_roles(const struct framing *f, struct galley_err *err)
{
    if (f->n_messages < 1 || f->n_messages > CHAT_MESSAGES_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE, "%d messages in a conversation, allowed 1 to %d",
                              f->n_messages, CHAT_MESSAGES_MAX);
    }
    for (int i = 0; i < f->n_messages; i++) {
        if ((unsigned)f->roles[i] > CHAT_ASSISTANT) {
            return galley_err_set(err, GALLEY_EUSAGE, "message %d: there is no role %d", i + 1,
                                  (int)f->roles[i]);
        }
    }
    switch (f->c->kind) {
    case CHAT_QWEN3:
        return must_end_with_user(f, err);
    case CHAT_LLAMA2:
        if (f->roles[f->n_messages - 1] == CHAT_ASSISTANT) {
            return galley_err_set(err, GALLEY_EUSAGE,
                                  "with the Llama 2 template the last message is the user's");
        }
        return must_alternate(f, err);
    case CHAT_GEMMA:
        if (has_system(f) && f->c->no_system) {
            return galley_err_set(err, GALLEY_EUSAGE,
                                  "this model's chat template knows no system message");
        }
        return must_alternate(f, err);
    default:
        return GALLEY_OK;
    }
}

enum galley_status chat_frame(struct chat_segment *out, int *n_out, const struct chat *c,
                              const enum chat_role *roles, int n_messages, bool thinking,
                              struct galley_err *err)
{
    static void (*const frames[])(struct framing *) = {
        [CHAT_CHATML] = frame_chatml, [CHAT_QWEN3] = frame_chatml, [CHAT_LLAMA2] = frame_llama2,
        [CHAT_LLAMA3] = frame_llama3, [CHAT_GEMMA] = frame_gemma,
    };
    *n_out = 0;
    if (c->kind == CHAT_NONE) {
        return galley_err_set(err, GALLEY_EUSAGE,
                              "the model has no chat template, or none of the known ones (" KNOWN
                              "): it takes raw prompts only");
    }
    struct framing f = {
        .c = c, .roles = roles, .n_messages = n_messages, .thinking = thinking, .out = out
    };
    const enum galley_status rc = check_roles(&f, err);
    if (!rc) {
        frames[c->kind](&f);
        *n_out = f.n_out;
    }
    return rc;
}

/* ---- contents ---- */

/* Python's str.isspace, which str.strip and Jinja's trim go by. */
static bool is_space(uint32_t cp)
{
    return (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x20) || cp == 0x85 || cp == 0xa0 ||
           cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

static void trim_begin(struct text *t)
{
    while (t->n > 0) {
        uint32_t cp;
        const size_t used = (size_t)utf8_decode(t->s, t->n, &cp);
        if (!is_space(cp)) {
            return;
        }
        t->s += used;
        t->n -= used;
    }
}

static void trim_end(struct text *t)
{
    while (t->n > 0) {
        size_t begin = t->n - 1;
        while (begin > 0 && t->n - begin < 4 && ((unsigned char)t->s[begin] & 0xc0) == 0x80) {
            begin--;
        }
        uint32_t cp;
        const size_t used = (size_t)utf8_decode(t->s + begin, t->n - begin, &cp);
        if (!is_space(cp) || begin + used != t->n) {
            return;
        }
        t->n = begin;
    }
}

const char *chat_content(const struct chat_segment *s, const char *text, size_t n, size_t *out_n)
{
    static const char thought[] = "</think>";
    struct text t = { text, n };
    const char *answer = s->answer ? find(&t, t.s, thought) : NULL;
    while (answer) {
        t.n -= (size_t)(answer - t.s) + strlen(thought);
        t.s = answer + strlen(thought);
        answer = find(&t, t.s, thought);
        while (!answer && t.n > 0 && *t.s == '\n') {
            t.s++;
            t.n--;
        }
    }
    if (s->trim) {
        trim_begin(&t);
    }
    if (s->trim || s->trim_end) {
        trim_end(&t);
    }
    *out_n = t.n;
    return t.s;
}

/* ---- is it one model? ---- */

enum galley_status chat_check(const struct chat *c, const struct tokenizer *tok,
                              const struct hf_config *cfg, struct galley_err *err)
{
    static const char *const frame[CHAT_KIND_COUNT][4] = {
        [CHAT_CHATML] = { "<|im_start|>", "<|im_end|>" },
        [CHAT_QWEN3] = { "<|im_start|>", "<|im_end|>" },
        [CHAT_LLAMA2] = { "<s>", "</s>" },
        [CHAT_LLAMA3] = { "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>" },
        [CHAT_GEMMA] = { "<start_of_turn>", "<end_of_turn>" },
    };
    for (size_t i = 0; i < COUNT(frame[0]) && frame[c->kind][i]; i++) {
        if (tokenizer_lookup(tok, frame[c->kind][i]) < 0) {
            return galley_err_set(err, GALLEY_EMODEL,
                                  "the tokenizer has no token %s of the %s chat template",
                                  frame[c->kind][i], chat_name(c->kind));
        }
    }
    if (!cfg->has_vision) {
        return GALLEY_OK;
    }
    const struct {
        const char *token;
        int32_t id;
    } images[] = { { "<|vision_start|>", cfg->vision_start },
                   { "<|vision_end|>", cfg->vision_end },
                   { "<|image_pad|>", cfg->image_pad } };
    for (size_t i = 0; i < COUNT(images); i++) {
        const int32_t id = tokenizer_lookup(tok, images[i].token);
        if (id != images[i].id) {
            return galley_err_set(err, GALLEY_EMODEL,
                                  "the tokenizer has %s as %d, the model's configuration says %d",
                                  images[i].token, (int)id, (int)images[i].id);
        }
    }
    return GALLEY_OK;
}
