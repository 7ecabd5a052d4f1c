/* inspect_gguf.c - see inspect_gguf.h.  Long lists (a vocabulary) are counted, not shown. */
#include "src/cli/inspect_gguf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/cli.h"

#define SHOWN_LIST 16
#define SHOWN_TEXT 100 /* bytes of a string, in words; JSON has all of it up to JSON_TEXT */
#define JSON_TEXT  65536

static const char *type_name(enum gguf_type t)
{
    static const char *const names[GGUF_TYPE_COUNT] = { "u8",  "i8",  "u16",  "i16",    "u32",
                                                        "i32", "f32", "bool", "string", "array",
                                                        "u64", "i64", "f64" };
    return names[t];
}

static bool is_float(enum gguf_type t)
{
    return t == GGUF_F32 || t == GGUF_F64;
}

/* ---- words */

static void print_text(const struct gguf_string *s)
{
    char text[SHOWN_TEXT + 1];
    const size_t n = s->n < SHOWN_TEXT ? s->n : SHOWN_TEXT;
    for (size_t i = 0; i < n; i++) {
        text[i] = s->text[i] ? s->text[i] : ' ';
    }
    text[n] = '\0';
    make_printable(text);
    printf("%s%s", text, s->n > n ? " ..." : "");
}

static void print_element(const struct gguf_value *v, uint64_t i)
{
    if (v->type == GGUF_STRING) {
        print_text(&v->strings[i]);
    } else if (v->type == GGUF_BOOL) {
        printf("%s", gguf_int(v, i) ? "true" : "false");
    } else if (is_float(v->type)) {
        printf("%g", gguf_number(v, i));
    } else {
        printf("%" PRId64, gguf_int(v, i));
    }
}

static void print_value(const struct gguf_value *v)
{
    if (v->is_array && v->n > SHOWN_LIST) {
        printf("%" PRIu64 " of %s", v->n, type_name(v->type));
        return;
    }
    printf("%s", v->is_array ? "[" : "");
    for (uint64_t i = 0; i < v->n; i++) {
        printf("%s", i ? ", " : "");
        print_element(v, i);
    }
    printf("%s", v->is_array ? "]" : "");
}

void gguf_print_metadata(const struct gguf *g)
{
    printf("GGUF      version %d, %d keys, %d tensors", gguf_version(g), gguf_n_keys(g),
           gguf_n_tensors(g));
    if (gguf_n_parts(g) > 1) {
        printf(" in %d parts", gguf_n_parts(g));
    }
    printf("\n\n");
    for (int i = 0; i < gguf_n_keys(g); i++) {
        const struct gguf_value *v;
        const char *key = gguf_key_at(g, i, &v);
        const struct gguf_string name = { key, strlen(key) };
        print_text(&name);
        printf("%*s ", name.n < 44 ? (int)(44 - name.n) : 0, "");
        print_value(v);
        printf("\n");
    }
}

void gguf_print_tensors(const struct gguf *g)
{
    for (int i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const struct gguf_string name = { t->name, strlen(t->name) };
        print_text(&name);
        printf("%*s %-7s %10.1f KB  [", name.n < 44 ? (int)(44 - name.n) : 0, "", t->type,
               (double)t->bytes / 1e3);
        for (int d = 0; d < t->view.n_dim; d++) {
            printf("%s%" PRId64, d ? ", " : "", t->view.shape[d]);
        }
        printf("]\n");
    }
}

/* ---- JSON */

static cJSON *json_element(const struct gguf_value *v, uint64_t i)
{
    static char text[JSON_TEXT + 1];
    if (v->type == GGUF_BOOL) {
        return cJSON_CreateBool(gguf_int(v, i) != 0);
    }
    if (v->type != GGUF_STRING) {
        const double x = gguf_number(v, i);
        return isfinite(x) ? cJSON_CreateNumber(x) : cJSON_CreateNull();
    }
    const struct gguf_string *s = &v->strings[i];
    size_t n = 0;
    for (size_t k = 0; k < s->n && n < JSON_TEXT; k++) {
        text[n++] = s->text[k] ? s->text[k] : ' ';
    }
    text[n] = '\0';
    return cJSON_CreateString(text);
}

/* A list too long to show says what it is: {"type", "count"}. */
static cJSON *json_value(const struct gguf_value *v)
{
    if (!v->is_array) {
        return json_element(v, 0);
    }
    if (v->n > SHOWN_LIST) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "type", type_name(v->type));
        cJSON_AddNumberToObject(o, "count", (double)v->n);
        return o;
    }
    cJSON *list = cJSON_CreateArray();
    for (uint64_t i = 0; i < v->n; i++) {
        cJSON_AddItemToArray(list, json_element(v, i));
    }
    return list;
}

cJSON *gguf_json_metadata(const struct gguf *g)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "version", gguf_version(g));
    cJSON_AddNumberToObject(o, "parts", gguf_n_parts(g));
    cJSON *keys = cJSON_AddObjectToObject(o, "keys");
    for (int i = 0; i < gguf_n_keys(g); i++) {
        const struct gguf_value *v;
        const char *key = gguf_key_at(g, i, &v);
        cJSON_AddItemToObject(keys, key, json_value(v));
    }
    return o;
}

cJSON *gguf_json_tensors(const struct gguf *g)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        cJSON *e = cJSON_CreateObject();
        cJSON_AddStringToObject(e, "name", t->name);
        cJSON_AddStringToObject(e, "dtype", t->type);
        cJSON_AddNumberToObject(e, "bytes", (double)t->bytes);
        cJSON *shape = cJSON_AddArrayToObject(e, "shape");
        for (int d = 0; d < t->view.n_dim; d++) {
            cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)t->view.shape[d]));
        }
        cJSON_AddItemToArray(list, e);
    }
    return list;
}
