/* chat_golden.h - conversations of tools/reference/chat.py against chat.h. */
#ifndef GALLEY_TESTS_FORMAT_CHAT_GOLDEN_H
#define GALLEY_TESTS_FORMAT_CHAT_GOLDEN_H

#include "src/base/buf.h"
#include "src/base/json.h"
#include "src/format/chat.h"
#include "tests/t.h"

#define GOLDEN_MESSAGES_MAX 64

static inline const char *golden_text(const cJSON *obj, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(obj, key));
}

static inline int golden_roles(const cJSON *list, enum chat_role *roles)
{
    int n = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        const char c = item->valuestring[0];
        T_OK(n < GOLDEN_MESSAGES_MAX);
        roles[n++] = c == 's' ? CHAT_SYSTEM : c == 'u' ? CHAT_USER : CHAT_ASSISTANT;
    }
    return n;
}

static inline void golden_render(struct buf *out, const struct chat_segment *segments, int n,
                                 const cJSON *contents)
{
    for (int i = 0; i < n; i++) {
        const struct chat_segment *s = &segments[i];
        if (s->i_message < 0) {
            buf_add_str(out, s->text);
            continue;
        }
        const char *text = cJSON_GetArrayItem(contents, s->i_message)->valuestring;
        size_t used;
        text = chat_content(s, text, strlen(text), &used);
        buf_add(out, text, used);
    }
    buf_add_char(out, '\0');
}

/* Fails where the text differs, or one side refuses and the other does not. */
static inline void check_case(const struct chat *c, const cJSON *item)
{
    enum chat_role roles[GOLDEN_MESSAGES_MAX];
    struct chat_segment segments[4 * GOLDEN_MESSAGES_MAX + 4];
    const int n = golden_roles(cJSON_GetObjectItem(item, "roles"), roles);
    const bool thinking = cJSON_IsTrue(cJSON_GetObjectItem(item, "thinking"));
    const char *want = golden_text(item, "text");
    struct galley_err err = { 0 };
    int n_segments;
    const enum galley_status rc = chat_frame(segments, &n_segments, c, roles, n, thinking, &err);
    if (!want || rc) {
        if (want || rc != GALLEY_EUSAGE || !err.msg[0] || n_segments != 0) {
            T_FAIL("%s: status %d \"%s\", expected: %s", golden_text(item, "template"), rc, err.msg,
                   want ? want : "a refusal");
        }
        return;
    }
    T_OK(n_segments <= 4 * n + 4);
    struct buf got;
    buf_init(&got, 1 << 16);
    golden_render(&got, segments, n_segments, cJSON_GetObjectItem(item, "contents"));
    const bool same = strcmp(got.data, want) == 0;
    if (!same) {
        fprintf(stderr, "%s:\n%s\nexpected:\n%s\n", golden_text(item, "template"), got.data, want);
    }
    buf_deinit(&got);
    T_OK(same);
}

/* Returns the number of cases. */
static inline int check_chat_file(const char *path)
{
    cJSON *root;
    struct galley_err err = { 0 };
    if (json_read(&root, path, (size_t)16 << 20, &err)) {
        T_FAIL("%s", err.msg);
    }
    const cJSON *templates = cJSON_GetObjectItem(root, "templates"), *item;
    int n = 0;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(root, "cases"))
    {
        const cJSON *t = cJSON_GetObjectItemCaseSensitive(templates, golden_text(item, "template"));
        const char *text = golden_text(t, "text");
        struct chat c;
        chat_recognise(&c, text, strlen(text), HF_QWEN2);
        if (strcmp(chat_name(c.kind), golden_text(t, "kind")) != 0) {
            T_FAIL("template %s taken for %s", golden_text(item, "template"), chat_name(c.kind));
        }
        check_case(&c, item);
        n++;
    }
    cJSON_Delete(root);
    return n;
}

#endif
