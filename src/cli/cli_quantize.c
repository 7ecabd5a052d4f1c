/* cli_quantize.c - galley quantize: a model anew as GGUF, in another type. */
#include <cjson/cJSON.h>
#include <getopt.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/base/pool.h"
#include "src/cli/cli.h"
#include "src/format/quantize.h"

struct options {
    struct quantize_job job;
    struct quantize_rule rules[QUANTIZE_RULES_MAX];
    char *patterns[QUANTIZE_RULES_MAX]; /* owned: what precedes the '=' */
    bool json, quiet;
};

/* What the callbacks print to. */
struct show {
    const struct options *opt;
    cJSON *tensors; /* with --json */
    bool line, drawn;
    int percent;
    bool no_memory;
};

static void clear_line(struct show *s)
{
    if (s->drawn) {
        fputs("\r\033[K", stderr);
        s->drawn = false;
    }
}

static void on_progress(void *arg, const char *tensor, double done)
{
    struct show *s = arg;
    const int percent = (int)(done * 100);
    if (!s->line || (s->drawn && percent == s->percent)) {
        return;
    }
    char name[64];
    snprintf(name, sizeof(name), "%s", tensor);
    make_printable(name);
    fprintf(stderr, "\r%3d %%  %s\033[K", percent, name);
    fflush(stderr);
    s->percent = percent;
    s->drawn = true;
}

static bool stopped(void *arg)
{
    (void)arg;
    return interrupted();
}

static void shape_text(char *out, size_t size, const struct quantize_row *r)
{
    size_t n = (size_t)snprintf(out, size, "[");
    for (int i = 0; i < r->n_dim && n < size; i++) {
        n += (size_t)snprintf(out + n, size - n, "%s%lld", i ? ", " : "", (long long)r->shape[i]);
    }
    if (n < size) {
        snprintf(out + n, size - n, "]");
    }
}

static void print_row(const struct quantize_row *r)
{
    char shape[128], name[160], note[96] = "";
    shape_text(shape, sizeof(shape), r);
    snprintf(name, sizeof(name), "%s", r->name);
    make_printable(name);
    if (r->fell_back) {
        snprintf(note, sizeof(note), "  (%s needs rows of a multiple of %d)", dtype_name(r->wanted),
                 dtype_info(r->wanted)->block);
    } else if (r->padded) {
        snprintf(note, sizeof(note), "  (padded with %lld zeros)", (long long)r->padded);
    }
    printf("%-36s %-20s %-6s -> %-6s  error %.5f  max %.4g%s\n", name, shape, r->from,
           dtype_name(r->to), r->error, r->error_max, note);
}

static bool add_row(cJSON *list, const struct quantize_row *r)
{
    cJSON *o = cJSON_CreateObject(), *shape = o ? cJSON_AddArrayToObject(o, "shape") : NULL;
    bool good = shape && cJSON_AddStringToObject(o, "name", r->name) &&
                cJSON_AddStringToObject(o, "file", r->vision ? "mmproj" : "model") &&
                cJSON_AddStringToObject(o, "from", r->from) &&
                cJSON_AddStringToObject(o, "to", dtype_name(r->to)) &&
                cJSON_AddStringToObject(o, "wanted", dtype_name(r->wanted)) &&
                cJSON_AddNumberToObject(o, "padded", (double)r->padded) &&
                cJSON_AddBoolToObject(o, "imatrix", r->has_importance) &&
                cJSON_AddNumberToObject(o, "error", r->error) &&
                cJSON_AddNumberToObject(o, "error_max", r->error_max);
    for (int i = 0; good && i < r->n_dim; i++) {
        cJSON *n = cJSON_CreateNumber((double)r->shape[i]);
        good = n && cJSON_AddItemToArray(shape, n);
    }
    if (!good || !cJSON_AddItemToArray(list, o)) {
        cJSON_Delete(o);
        return false;
    }
    return true;
}

static void on_tensor(void *arg, const struct quantize_row *row)
{
    struct show *s = arg;
    clear_line(s);
    if (s->tensors) {
        s->no_memory = !add_row(s->tensors, row) || s->no_memory;
    } else {
        print_row(row);
    }
}

static double bits_per_weight(const struct quantize_total *t)
{
    return t->n_params ? (double)t->data_bits / (double)t->n_params : 0;
}

/* A card does not go into GGUF, and without it the new model is read by other rules than the old.
 */
static void print_card(const struct options *o)
{
    char card[PATH_MAX], beside[PATH_MAX];
    const char *slash = strrchr(o->job.out, '/');
    snprintf(card, sizeof(card), "%s/galley.json", o->job.in);
    snprintf(beside, sizeof(beside), "%.*sgalley.json", slash ? (int)(slash + 1 - o->job.out) : 0,
             o->job.out);
    if (access(card, R_OK) == 0 && access(beside, F_OK) != 0) {
        printf("%s, the model's card, is not in them: copy it to %s\n", card, beside);
    }
}

static void print_total(const struct options *o, const struct quantize_total *t)
{
    printf("\n%d tensors, %.2f M weights, %.3f bits per weight, %.1f MB: %s%s%s\n", t->n_tensors,
           (double)t->n_params / 1e6, bits_per_weight(t), (double)t->bytes / 1e6, o->job.out,
           t->mmproj ? ", " : "", t->mmproj ? t->mmproj : "");
    print_card(o);
}

/* One object; false without memory. */
static bool print_json(const struct options *o, const struct quantize_total *t, cJSON **tensors)
{
    cJSON *root = cJSON_CreateObject();
    bool good = root && cJSON_AddStringToObject(root, "model", o->job.out) &&
                (t->mmproj ? cJSON_AddStringToObject(root, "mmproj", t->mmproj)
                           : cJSON_AddNullToObject(root, "mmproj")) &&
                cJSON_AddStringToObject(root, "type", o->job.type) &&
                cJSON_AddNumberToObject(root, "weights", (double)t->n_params) &&
                cJSON_AddNumberToObject(root, "bytes", (double)t->bytes) &&
                cJSON_AddNumberToObject(root, "bits_per_weight", bits_per_weight(t)) &&
                cJSON_AddItemToObject(root, "tensors", *tensors);
    if (good) {
        *tensors = NULL;
    }
    char *text = good ? cJSON_Print(root) : NULL;
    good = text && puts(text) != EOF;
    cJSON_free(text);
    cJSON_Delete(root);
    return good;
}

/* --- options ------------------------------------------------------------------------------- */

enum option_id {
    OPT_TYPE = 256,
    OPT_TENSOR,
    OPT_IMATRIX,
    OPT_MMPROJ,
    OPT_THREADS,
    OPT_JSON,
    OPT_QUIET = 'q'
};

static const struct option long_options[] = {
    { "type", required_argument, NULL, OPT_TYPE },
    { "tensor", required_argument, NULL, OPT_TENSOR },
    { "imatrix", required_argument, NULL, OPT_IMATRIX },
    { "mmproj", required_argument, NULL, OPT_MMPROJ },
    { "threads", required_argument, NULL, OPT_THREADS },
    { "json", no_argument, NULL, OPT_JSON },
    { "quiet", no_argument, NULL, OPT_QUIET },
    { NULL, 0, NULL, 0 },
};

/* PATTERN=TYPE */
static int take_rule(struct options *o, const char *word)
{
    const char *equals = strrchr(word, '=');
    const enum dtype type = equals ? quantize_type_named(equals + 1) : DTYPE_COUNT;
    if (!equals || equals == word) {
        return usage_error("quantize", "--tensor \"%s\" is not PATTERN=TYPE", word);
    }
    if (type == DTYPE_COUNT) {
        return usage_error("quantize", "--tensor \"%s\": there is no type \"%s\"", word,
                           equals + 1);
    }
    if (o->job.n_rules == QUANTIZE_RULES_MAX) {
        return usage_error("quantize", "--tensor can be given %d times", QUANTIZE_RULES_MAX);
    }
    char *pattern = mem_strndup(word, (size_t)(equals - word));
    if (!pattern) {
        complain("out of memory");
        return EXIT_LIMIT;
    }
    o->patterns[o->job.n_rules] = pattern;
    o->rules[o->job.n_rules++] = (struct quantize_rule){ pattern, type };
    return 0;
}

static int take_option(struct options *o, int id, const char *v)
{
    long long n = 0;
    switch (id) {
    case OPT_TYPE:
        o->job.type = v;
        return 0;
    case OPT_TENSOR:
        return take_rule(o, v);
    case OPT_IMATRIX:
        o->job.imatrix = v;
        return 0;
    case OPT_MMPROJ:
        o->job.mmproj = v;
        return 0;
    case OPT_THREADS:
        if (!parse_int(v, 1, POOL_THREADS_MAX, &n)) {
            return usage_error("quantize", "--threads cannot be \"%s\"", v);
        }
        o->job.n_threads = (int)n;
        return 0;
    case OPT_JSON:
        o->json = true;
        return 0;
    default:
        o->quiet = true;
        return 0;
    }
}

static int parse(struct options *o, int argc, char **argv)
{
    optind = 0; /* GNU: start anew */
    opterr = 0;
    for (;;) {
        const int id = getopt_long(argc, argv, ":q", long_options, NULL);
        if (id == -1) {
            break;
        }
        if (id == '?') {
            return usage_error("quantize", "quantize has no option %s",
                               argv[optind > 1 ? optind - 1 : 1]);
        }
        if (id == ':') {
            return usage_error("quantize", "%s needs a value", argv[optind - 1]);
        }
        const int code = take_option(o, id, optarg);
        if (code) {
            return code;
        }
    }
    if (argc - optind != 2) {
        return usage_error("quantize", "quantize takes IN and OUT, not %d words", argc - optind);
    }
    o->job.in = argv[optind];
    o->job.out = argv[optind + 1];
    if (!o->job.in[0] || !o->job.out[0] || (o->job.mmproj && !o->job.mmproj[0])) {
        return usage_error("quantize", "a path cannot be \"\"");
    }
    return o->job.type ? 0 : usage_error("quantize", "--type is missing: %s", quantize_types());
}

/* --- the command --------------------------------------------------------------------------- */

static int run(struct options *o)
{
    struct show show = { .opt = o, .line = !o->quiet && isatty(STDERR_FILENO), .percent = -1 };
    struct quantize_total total;
    struct galley_err err;
    o->job.rules = o->rules;
    o->job.arg = &show;
    o->job.on_tensor = on_tensor;
    o->job.on_progress = on_progress;
    o->job.stopped = stopped;
    show.tensors = o->json ? cJSON_CreateArray() : NULL;
    const enum galley_status rc = quantize_run(&o->job, &total, &err);
    /* Inputs that cannot be read are EMODEL or EINPUT: what remains is writing. */
    int code = rc == GALLEY_EIO ? EXIT_INTERNAL : exit_code_of(rc);
    clear_line(&show);
    if (rc == GALLEY_EUSAGE) {
        code = usage_error("quantize", "%s", err.msg);
    } else if (rc) {
        complain("%s", err.msg);
    } else if (!o->json) {
        print_total(o, &total);
    } else if (!show.tensors || show.no_memory || !print_json(o, &total, &show.tensors)) {
        complain("out of memory for the report; the files are written");
        code = EXIT_LIMIT;
    }
    if (!rc && total.n_without > 0 && !o->quiet) {
        complain("%s says nothing about %d of the quantised tensors", o->job.imatrix,
                 total.n_without);
    }
    cJSON_Delete(show.tensors);
    if (!rc) {
        mem_free(total.mmproj);
    }
    return code;
}

int cli_quantize(int argc, char **argv)
{
    struct options o = { 0 };
    catch_signals();
    int code = parse(&o, argc, argv);
    if (!code) {
        code = run(&o);
    }
    for (int i = 0; i < o.job.n_rules; i++) {
        mem_free(o.patterns[i]);
    }
    return code;
}
