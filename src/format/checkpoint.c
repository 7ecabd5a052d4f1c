/* checkpoint.c - which files make a model, opened together and compared with one another. */
#include "src/format/checkpoint.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/json.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/base/path.h"
#include "src/format/gguf.h"
#include "src/format/gguf_config.h"
#include "src/format/hf_json.h"

#define TEMPLATE_MAX ((size_t)4 << 20)
#define CONFIG_MAX   ((size_t)64 << 20)
#define PATH_TEXT    4096 /* the system takes no longer ones */
#define ENTRY_TEXT   96

static enum galley_status no_memory(struct galley_err *err, const char *path)
{
    return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory to open the model", path);
}

static bool has_file(const char *dir, const char *name)
{
    char path[PATH_TEXT];
    const int n = snprintf(path, sizeof(path), "%s/%s", dir, name);
    return n > 0 && (size_t)n < sizeof(path) && hf_exists(path);
}

/* ---- finding GGUF files ---- */

/* What a directory holds: how many of each kind, and one name of each. */
struct found {
    int n_models, n_mmproj;
    char model[256], mmproj[256];
};

static enum galley_status find_files(struct found *out, const char *dir, struct galley_err *err)
{
    *out = (struct found){ 0 };
    DIR *d = opendir(dir);
    if (!d) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: cannot list it: %s", dir, strerror(errno));
    }
    const struct dirent *e;
    while ((e = readdir(d)) != NULL) {
        const size_t n = strlen(e->d_name);
        if (n < 6 || n >= sizeof(out->model) || strcmp(e->d_name + n - 5, ".gguf") != 0 ||
            e->d_name[0] == '.' || gguf_part_no(e->d_name) > 1) { /* later parts: of the first */
            continue;
        }
        const bool mmproj = strstr(e->d_name, "mmproj") != NULL;
        int *count = mmproj ? &out->n_mmproj : &out->n_models;
        char *name = mmproj ? out->mmproj : out->model;
        /* whatever order the directory is read in, the same one is named */
        if ((*count)++ == 0 || strcmp(e->d_name, name) < 0) {
            memcpy(name, e->d_name, n + 1);
        }
    }
    closedir(d);
    return GALLEY_OK;
}

/* mmproj-NAME beside NAME, as galley quantize names it, is that model's also among others. */
static bool own_mmproj(char out[PATH_TEXT], const char *dir, const char *model)
{
    const int n = snprintf(out, PATH_TEXT, "mmproj-%s", model);
    return n > 0 && n < PATH_TEXT && has_file(dir, out);
}

/* ---- chat templates ---- */

static void recognise(struct checkpoint *c, const char *text, size_t n)
{
    c->has_template = text != NULL;
    chat_recognise(&c->chat, text, n, c->cfg.family);
}

/* "chat_template": the text, or a list of named ones of which "default" counts. */
static const char *template_of(const cJSON *root)
{
    const cJSON *t = cJSON_GetObjectItemCaseSensitive(root, "chat_template"), *item;
    if (cJSON_IsString(t)) {
        return t->valuestring;
    }
    if (!cJSON_IsArray(t)) {
        return NULL;
    }
    cJSON_ArrayForEach(item, t)
    {
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(item, "name");
        const cJSON *text = cJSON_GetObjectItemCaseSensitive(item, "template");
        if (cJSON_IsString(name) && cJSON_IsString(text) &&
            strcmp(name->valuestring, "default") == 0) {
            return text->valuestring;
        }
    }
    return NULL;
}

static enum galley_status read_json_template(struct checkpoint *c, const char *path, bool *found,
                                             struct galley_err *err)
{
    cJSON *root;
    const enum galley_status rc = json_read(&root, path, CONFIG_MAX, err);
    if (rc) {
        return hf_status(rc, err);
    }
    const char *text = template_of(root);
    if (text) {
        recognise(c, text, strlen(text));
        *found = true;
    }
    cJSON_Delete(root);
    return GALLEY_OK;
}

static enum galley_status read_jinja(struct checkpoint *c, const char *path, bool *found,
                                     struct galley_err *err)
{
    char *text;
    size_t n;
    const enum galley_status rc = file_read(path, TEMPLATE_MAX, &text, &n, err);
    if (rc) {
        return hf_status(rc, err);
    }
    recognise(c, text, n);
    *found = true;
    mem_free(text);
    return GALLEY_OK;
}

/* The places transformers looks into, the newest first. */
static enum galley_status read_template(struct checkpoint *c, const char *dir,
                                        struct galley_err *err)
{
    static const char *const names[] = { "chat_template.jinja", "chat_template.json",
                                         "tokenizer_config.json" };
    bool found = false;
    enum galley_status rc = GALLEY_OK;
    for (size_t i = 0; !rc && !found && i < COUNT(names); i++) {
        if (!has_file(dir, names[i])) {
            continue;
        }
        char *path = NULL;
        rc = hf_path(&path, dir, names[i], err);
        rc = rc       ? rc
             : i == 0 ? read_jinja(c, path, &found, err)
                      : read_json_template(c, path, &found, err);
        mem_free(path);
    }
    if (!rc && !found) {
        recognise(c, NULL, 0);
    }
    return rc;
}

/* ---- a Hugging Face directory ---- */

static enum galley_status check_vocab(const struct checkpoint *c, const char *path,
                                      struct galley_err *err)
{
    const int n = tokenizer_n_vocab(c->tok);
    if (n > c->cfg.text.n_vocab) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: the tokenizer has %d tokens, the model only %d", path, n,
                              c->cfg.text.n_vocab);
    }
    return GALLEY_OK;
}

static enum galley_status open_tokenizer(struct checkpoint *c, const char *dir,
                                         struct galley_err *err)
{
    char *path = NULL;
    enum galley_status rc = hf_tokenizer_path(&path, dir, err);
    rc = rc ? rc : tokenizer_open(&c->tok, path, err);
    rc = rc ? rc : check_vocab(c, path, err);
    mem_free(path);
    return rc ? rc : read_template(c, dir, err);
}

static enum galley_status open_directory(struct checkpoint *c, const char *dir,
                                         struct galley_err *err)
{
    enum galley_status rc = hf_config_read(&c->cfg, dir, err);
    rc = rc ? rc : card_read(&c->card, dir, &c->has_card, err);
    rc = rc ? rc : weights_open(&c->weights, dir, err);
    c->vision = !rc && c->cfg.has_vision ? c->weights : NULL;
    return rc;
}

/* ---- GGUF ---- */

/* A key may say so, or a token's name. */
static enum galley_status check_ends(const struct checkpoint *c, const char *path,
                                     struct galley_err *err)
{
    int n;
    tokenizer_eos(c->tok, &n);
    return n + c->cfg.n_eos > 0
               ? GALLEY_OK
               : galley_err_set(err, GALLEY_EMODEL,
                                "%s: no token ends a text: tokenizer.ggml.eos_token_id is missing",
                                path);
}

static enum galley_status open_gguf_tokenizer(struct checkpoint *c, const struct gguf *g,
                                              struct galley_err *err)
{
    struct gguf_string text = { NULL, 0 };
    enum galley_status rc = tokenizer_open_gguf(&c->tok, g, err);
    rc = rc ? rc : check_vocab(c, gguf_path(g), err);
    rc = rc ? rc : check_ends(c, gguf_path(g), err);
    rc = rc ? rc : gguf_read_string(g, "tokenizer.chat_template", false, &text, err);
    if (!rc) {
        recognise(c, text.text, text.n);
    }
    return rc;
}

static enum galley_status open_language(struct checkpoint *c, const char *path,
                                        struct galley_err *err)
{
    struct gguf *g;
    enum galley_status rc = gguf_open(&g, path, err);
    if (rc) {
        return rc;
    }
    rc = gguf_config_text(&c->cfg, g, err);
    if (rc) {
        gguf_close(g);
        return rc;
    }
    return weights_open_gguf(&c->weights, g, c->cfg.family, err);
}

static enum galley_status open_projector(struct checkpoint *c, const char *path,
                                         struct galley_err *err)
{
    struct gguf *g;
    enum galley_status rc = gguf_open(&g, path, err);
    if (rc) {
        return rc;
    }
    rc = gguf_config_vision(&c->cfg, g, err);
    if (rc) {
        gguf_close(g);
        return rc;
    }
    return weights_open_gguf(&c->vision, g, c->cfg.family, err);
}

/* Families whose GGUF models may have a tower in a second file. */
static bool takes_images(const struct hf_config *cfg)
{
    return cfg->family == HF_QWEN2_VL || cfg->family == HF_QWEN2_5_VL;
}

/* The projector beside a model: its own by name, else the only one, if there is exactly one. */
static enum galley_status open_projector_beside(struct checkpoint *c, const char *dir,
                                                const char *model, struct galley_err *err)
{
    struct found f;
    char own[PATH_TEXT], *path = NULL;
    enum galley_status rc = find_files(&f, dir, err);
    const bool named = own_mmproj(own, dir, model);
    if (rc || (!named && f.n_mmproj != 1)) {
        return rc;
    }
    rc = hf_path(&path, dir, named ? own : f.mmproj, err);
    rc = rc ? rc : open_projector(c, path, err);
    mem_free(path);
    return rc;
}

static enum galley_status open_gguf(struct checkpoint *c, const char *path, const char *mmproj,
                                    struct galley_err *err)
{
    char *dir = mem_strdup(path);
    if (!dir) {
        return no_memory(err, path);
    }
    char *slash = strrchr(dir, '/');
    if (slash) {
        slash[slash == dir] = '\0'; /* "/x.gguf" lies in "/" */
    }
    const char *place = slash ? dir : ".";
    enum galley_status rc = open_language(c, path, err);
    if (!rc && mmproj && strcmp(mmproj, "none") != 0) {
        rc = open_projector(c, mmproj, err);
    } else if (!rc && !mmproj && takes_images(&c->cfg)) {
        rc = open_projector_beside(c, place, slash ? path + (slash - dir) + 1 : path, err);
    }
    rc = rc ? rc : card_read(&c->card, place, &c->has_card, err);
    mem_free(dir);
    return rc;
}

static enum galley_status open_gguf_directory(struct checkpoint *c, const char *dir,
                                              const char *mmproj, struct galley_err *err)
{
    struct found f;
    char *path = NULL;
    enum galley_status rc = find_files(&f, dir, err);
    if (rc) {
        return rc;
    }
    if (f.n_models == 0) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: neither config.json nor a .gguf model is there: give a Hugging "
                              "Face model directory or a GGUF file",
                              dir);
    }
    if (f.n_models > 1) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: holds %d GGUF models (%s ...): name one of them", dir,
                              f.n_models, f.model);
    }
    char own[PATH_TEXT];
    if (!mmproj && f.n_mmproj > 1 && !own_mmproj(own, dir, f.model)) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: holds %d mmproj files (%s ...): name one of them", dir,
                              f.n_mmproj, f.mmproj);
    }
    rc = hf_path(&path, dir, f.model, err);
    rc = rc ? rc : open_gguf(c, path, mmproj, err);
    mem_free(path);
    return rc;
}

/* ---- */

/* A directory of safetensors, or one of GGUF files that may have config.json beside them. */
static bool is_hugging_face(const char *dir)
{
    struct found f;
    if (!has_file(dir, "config.json")) {
        return false;
    }
    return has_file(dir, "model.safetensors") || has_file(dir, "model.safetensors.index.json") ||
           find_files(&f, dir, NULL) || f.n_models == 0;
}

/* A base model of a family with a chat frame has no template and need not have its tokens. */
static enum galley_status check_chat(struct checkpoint *c, struct galley_err *err)
{
    enum galley_status rc = chat_check(&c->chat, c->tok, &c->cfg, err);
    if (rc == GALLEY_EMODEL && !c->has_template && !c->cfg.has_vision) {
        c->chat = (struct chat){ .kind = CHAT_NONE };
        rc = GALLEY_OK;
    }
    return rc;
}

static enum galley_status status_of(enum galley_status rc, struct galley_err *err)
{
    return !rc || rc == GALLEY_ENOMEM || rc == GALLEY_ELIMIT || rc == GALLEY_EUSAGE
               ? rc
               : hf_status(rc, err);
}

enum galley_status checkpoint_open_words(struct checkpoint *c, const char *path,
                                         struct galley_err *err)
{
    const struct gguf *g = weights_gguf(c->weights);
    enum galley_status rc = g ? open_gguf_tokenizer(c, g, err) : open_tokenizer(c, path, err);
    rc = rc ? rc : check_chat(c, err);
    return status_of(rc, err);
}

enum galley_status checkpoint_open(struct checkpoint *out, const char *path, const char *mmproj,
                                   enum checkpoint_parts parts, struct galley_err *err)
{
    struct checkpoint c = { 0 };
    enum galley_status rc;
    *out = c;
    card_default(&c.card);
    if (path_is_dir(path) && is_hugging_face(path)) {
        rc = mmproj ? galley_err_set(err, GALLEY_EUSAGE,
                                     "%s is a Hugging Face directory: the projector is in it, %s "
                                     "belongs to GGUF models",
                                     path, mmproj)
                    : open_directory(&c, path, err);
    } else if (path_is_dir(path)) {
        rc = open_gguf_directory(&c, path, mmproj, err);
    } else {
        rc = open_gguf(&c, path, mmproj, err);
    }
    rc = status_of(rc, err);
    rc = rc || parts == CHECKPOINT_CONFIG ? rc : checkpoint_open_words(&c, path, err);
    if (rc) {
        checkpoint_close(&c);
        return rc;
    }
    *out = c;
    return GALLEY_OK;
}

void checkpoint_close_files(struct checkpoint *c)
{
    if (c->vision != c->weights) {
        weights_close(c->vision);
    }
    weights_close(c->weights);
    c->vision = c->weights = NULL;
}

void checkpoint_close(struct checkpoint *c)
{
    tokenizer_close(c->tok);
    checkpoint_close_files(c);
    *c = (struct checkpoint){ 0 };
}

/* ---- one vocabulary ---- */

/* Whether the two entries agree; their bytes are left in a and b. */
static bool same_entry(const struct checkpoint *x, const struct checkpoint *y, int32_t id,
                       struct buf *a, struct buf *b)
{
    buf_cut(a, 0);
    buf_cut(b, 0);
    tokenizer_decode(x->tok, id, true, a);
    tokenizer_decode(y->tok, id, true, b);
    return a->n == b->n && (a->n == 0 || memcmp(a->data, b->data, a->n) == 0) &&
           tokenizer_is_special(x->tok, id) == tokenizer_is_special(y->tok, id);
}

static void entry_text(char out[ENTRY_TEXT], const struct checkpoint *c, int32_t id,
                       const struct buf *b)
{
    if (id >= tokenizer_n_vocab(c->tok)) {
        snprintf(out, ENTRY_TEXT, "none");
    } else {
        snprintf(out, ENTRY_TEXT, "\"%.*s\"%s", (int)(b->n < 64 ? b->n : 64), b->n ? b->data : "",
                 tokenizer_is_special(c->tok, id) ? " (special)" : "");
    }
}

enum galley_status checkpoint_same_vocab(const struct checkpoint *target,
                                         const struct checkpoint *draft, struct galley_err *err)
{
    assert(target->tok && draft->tok);
    const int n_target = tokenizer_n_vocab(target->tok), n_draft = tokenizer_n_vocab(draft->tok);
    const int n = n_target > n_draft ? n_target : n_draft;
    struct buf a, b;
    buf_init(&a, TEMPLATE_MAX);
    buf_init(&b, TEMPLATE_MAX);
    enum galley_status rc = GALLEY_OK;
    for (int32_t id = 0; !rc && id < n; id++) {
        const bool same = same_entry(target, draft, id, &a, &b);
        if (!buf_ok(&a) || !buf_ok(&b)) {
            rc = galley_err_set(err, GALLEY_ENOMEM, "no memory to compare two vocabularies");
        } else if (!same) {
            char x[ENTRY_TEXT], y[ENTRY_TEXT];
            entry_text(x, target, id, &a);
            entry_text(y, draft, id, &b);
            rc = galley_err_set(err, GALLEY_EMODEL,
                                "the vocabularies differ first at id %d: %s in the model, %s in "
                                "the draft model",
                                (int)id, x, y);
        }
    }
    buf_deinit(&a);
    buf_deinit(&b);
    return rc;
}
