/* json.c - bounded parsing and checked getters. */
#include "src/base/json.h"

#include <math.h>
#include <string.h>

#include "src/base/map.h"
#include "src/base/mem.h"

#define DEPTH_MAX 64

/* cJSON recurses once per level: refuse deep nesting before it starts. */
static bool too_deep(const char *s, size_t n)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        if (in_string) {
            if (s[i] == '\\') {
                i++;
            } else if (s[i] == '"') {
                in_string = false;
            }
        } else if (s[i] == '"') {
            in_string = true;
        } else if (s[i] == '{' || s[i] == '[') {
            depth++;
            if (depth > DEPTH_MAX) {
                return true;
            }
        } else if (s[i] == '}' || s[i] == ']') {
            depth--;
        }
    }
    return false;
}

enum galley_status json_parse(cJSON **out, const char *where, const char *text, size_t n,
                              struct galley_err *err)
{
    *out = NULL;
    if (too_deep(text, n)) {
        return galley_err_set(err, GALLEY_EINPUT, "%s: JSON nested deeper than %d", where,
                              DEPTH_MAX);
    }
    const char *end = NULL;
    cJSON *tree = cJSON_ParseWithLengthOpts(text, n, &end, false);
    if (!tree) {
        return galley_err_set(err, GALLEY_EINPUT, "%s: not valid JSON near byte %zu", where,
                              end ? (size_t)(end - text) : 0);
    }
    while (end < text + n && strchr(" \t\r\n", *end) && *end) {
        end++;
    }
    if (end < text + n) {
        cJSON_Delete(tree);
        return galley_err_set(err, GALLEY_EINPUT, "%s: JSON is followed by something at byte %zu",
                              where, (size_t)(end - text));
    }
    *out = tree;
    return GALLEY_OK;
}

enum galley_status json_read(cJSON **out, const char *path, size_t max, struct galley_err *err)
{
    *out = NULL;
    char *text;
    size_t n;
    enum galley_status rc = file_read(path, max, &text, &n, err);
    if (rc) {
        return rc;
    }
    rc = json_parse(out, path, text, n, err);
    mem_free(text);
    return rc;
}

/* Finds key; *item stays NULL when it is absent and may be (JSON null counts as absent). */
static enum galley_status find(const cJSON *obj, const char *where, const char *key, bool required,
                               const cJSON **item, struct galley_err *err)
{
    *item = cJSON_GetObjectItemCaseSensitive(obj, key);
    if (*item && cJSON_IsNull(*item)) {
        *item = NULL;
    }
    if (!*item && required) {
        return galley_err_set(err, GALLEY_EINPUT, "%s: \"%s\" is missing", where, key);
    }
    return GALLEY_OK;
}

enum galley_status json_get_number(const cJSON *obj, const char *where, const char *key,
                                   bool required, double lo, double hi, double *out,
                                   struct galley_err *err)
{
    const cJSON *item;
    const enum galley_status rc = find(obj, where, key, required, &item, err);
    if (rc || !item) {
        return rc;
    }
    if (!cJSON_IsNumber(item)) {
        return galley_err_set(err, GALLEY_EINPUT, "%s: \"%s\" is not a number", where, key);
    }
    const double v = item->valuedouble;
    if (!(v >= lo && v <= hi)) {
        return galley_err_set(err, GALLEY_EINPUT, "%s: \"%s\" is %g, allowed %g to %g", where, key,
                              v, lo, hi);
    }
    *out = v;
    return GALLEY_OK;
}

enum galley_status json_get_int(const cJSON *obj, const char *where, const char *key, bool required,
                                int64_t lo, int64_t hi, int64_t *out, struct galley_err *err)
{
    double v = NAN;
    const enum galley_status rc =
        json_get_number(obj, where, key, required, (double)lo, (double)hi, &v, err);
    if (rc || isnan(v)) {
        return rc;
    }
    if (!(v >= -0x1p63 && v < 0x1p63)) { /* as doubles the limits of int64_t are rounded up */
        return galley_err_set(err, GALLEY_EINPUT, "%s: \"%s\" is %g, over 64 bits", where, key, v);
    }
    if (v != floor(v)) {
        return galley_err_set(err, GALLEY_EINPUT, "%s: \"%s\" is %g, not a whole number", where,
                              key, v);
    }
    *out = (int64_t)v;
    return GALLEY_OK;
}

enum galley_status json_get_bool(const cJSON *obj, const char *where, const char *key,
                                 bool required, bool *out, struct galley_err *err)
{
    const cJSON *item;
    const enum galley_status rc = find(obj, where, key, required, &item, err);
    if (rc || !item) {
        return rc;
    }
    if (!cJSON_IsBool(item)) {
        return galley_err_set(err, GALLEY_EINPUT, "%s: \"%s\" is not true or false", where, key);
    }
    *out = cJSON_IsTrue(item);
    return GALLEY_OK;
}

enum galley_status json_get_string(const cJSON *obj, const char *where, const char *key,
                                   bool required, const char **out, struct galley_err *err)
{
    const cJSON *item;
    const enum galley_status rc = find(obj, where, key, required, &item, err);
    if (rc || !item) {
        return rc;
    }
    if (!cJSON_IsString(item)) {
        return galley_err_set(err, GALLEY_EINPUT, "%s: \"%s\" is not a string", where, key);
    }
    *out = item->valuestring;
    return GALLEY_OK;
}
