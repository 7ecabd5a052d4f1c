/* options.c - one table of options for all commands. */
#include "src/cli/options.h"

#include <getopt.h>
#include <string.h>

#include "src/base/pool.h"
#include "src/cli/cli.h"

/* What galley.1 promises, and what no machine has. */
#define DPI_MIN     18
#define DPI_MAX     1200
#define SECONDS_MIN 0.1
#define SECONDS_MAX 3600
#define PIXELS_MIN  784 /* of the largest crop: one visual token, 28 x 28 */
#define PIXELS_MAX  1000000000
#define TOKENS_MAX  1000000
#define CONTEXT_MAX (1 << 24)
#define ROWS_MAX    65536     /* of a pass; sequences, too */
#define MEMORY_MAX  (1 << 24) /* MiB */

enum option_id {
    OPT_OUTPUT = 'o',
    OPT_QUIET = 'q',
    OPT_VERBOSE = 'v',
    OPT_FORMAT = 256,
    OPT_PAGES,
    OPT_PASSWORD,
    OPT_MODEL,
    OPT_DRAFT,
    OPT_ACCEPT,
    OPT_OCR_LANG,
    OPT_DPI,
    OPT_MIN_PIXELS,
    OPT_MAX_PIXELS,
    OPT_MAX_NEW_TOKENS,
    OPT_PAGE_SECONDS,
    OPT_FURNITURE,
    OPT_PAGE_BREAK,
    OPT_FIGURES,
    OPT_THREADS,
    OPT_STATS,
    OPT_REGIONS,
    OPT_JSON,
    OPT_MMPROJ,
    OPT_KV,
    OPT_LINEAR,
    OPT_VISION_CACHE,
    OPT_CTX,
    OPT_SEQS,
    OPT_ROWS,
    OPT_MEMORY,
    OPT_PLAN
};

static const struct option long_options[] = {
    { "output", required_argument, NULL, OPT_OUTPUT },
    { "format", required_argument, NULL, OPT_FORMAT },
    { "pages", required_argument, NULL, OPT_PAGES },
    { "password", required_argument, NULL, OPT_PASSWORD },
    { "model", required_argument, NULL, OPT_MODEL },
    { "draft", required_argument, NULL, OPT_DRAFT },
    { "accept", required_argument, NULL, OPT_ACCEPT },
    { "ocr-lang", required_argument, NULL, OPT_OCR_LANG },
    { "dpi", required_argument, NULL, OPT_DPI },
    { "min-pixels", required_argument, NULL, OPT_MIN_PIXELS },
    { "max-pixels", required_argument, NULL, OPT_MAX_PIXELS },
    { "max-new-tokens", required_argument, NULL, OPT_MAX_NEW_TOKENS },
    { "page-seconds", required_argument, NULL, OPT_PAGE_SECONDS },
    { "furniture", required_argument, NULL, OPT_FURNITURE },
    { "page-break", no_argument, NULL, OPT_PAGE_BREAK },
    { "figures", required_argument, NULL, OPT_FIGURES },
    { "threads", required_argument, NULL, OPT_THREADS },
    { "stats", required_argument, NULL, OPT_STATS },
    { "regions", required_argument, NULL, OPT_REGIONS },
    { "json", no_argument, NULL, OPT_JSON },
    { "mmproj", required_argument, NULL, OPT_MMPROJ },
    { "kv", required_argument, NULL, OPT_KV },
    { "linear", required_argument, NULL, OPT_LINEAR },
    { "vision-cache", required_argument, NULL, OPT_VISION_CACHE },
    { "ctx", required_argument, NULL, OPT_CTX },
    { "seqs", required_argument, NULL, OPT_SEQS },
    { "rows", required_argument, NULL, OPT_ROWS },
    { "memory", required_argument, NULL, OPT_MEMORY },
    { "plan", no_argument, NULL, OPT_PLAN },
    { "quiet", no_argument, NULL, OPT_QUIET },
    { "verbose", no_argument, NULL, OPT_VERBOSE },
    { NULL, 0, NULL, 0 },
};

/* Which options a command takes. */
static bool has_option(const char *command, int id)
{
    static const int inspect[] = { OPT_PAGES,      OPT_PASSWORD, OPT_DRAFT,  OPT_OCR_LANG,
                                   OPT_DPI,        OPT_REGIONS,  OPT_JSON,   OPT_PAGE_SECONDS,
                                   OPT_PLAN,       OPT_MMPROJ,   OPT_KV,     OPT_CTX,
                                   OPT_SEQS,       OPT_ROWS,     OPT_MEMORY, OPT_THREADS,
                                   OPT_MAX_PIXELS, OPT_LINEAR };
    static const int doctor[] = { OPT_MODEL, OPT_JSON };
    const int *list = inspect;
    size_t n = COUNT(inspect);
    if (strcmp(command, "convert") == 0) {
        return id != OPT_REGIONS && id != OPT_JSON && id != OPT_PLAN && id != OPT_ROWS;
    }
    if (strcmp(command, "doctor") == 0) {
        list = doctor;
        n = COUNT(doctor);
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i] == id) {
            return true;
        }
    }
    return false;
}

/* Index of word in a NULL-terminated list, -1 when it is not there. */
static int word_index(const char *word, const char *const *list)
{
    for (int i = 0; list[i]; i++) {
        if (strcmp(word, list[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static bool take_word(int *out, const char *word, const char *const *list)
{
    *out = word_index(word, list);
    return *out >= 0;
}

static bool take_accept(double *out, const char *word)
{
    if (strcmp(word, "exact") == 0) {
        *out = 1;
        return true;
    }
    return parse_number(word, 0, 1, out) && *out > 0;
}

/* Whole numbers.  False: the option has none, or not this one. */
static bool take_int(struct cli_options *o, int id, const char *v)
{
    static const struct {
        int id;
        long long lo, hi;
    } ranges[] = {
        { OPT_MIN_PIXELS, 1, PIXELS_MAX },
        { OPT_MAX_PIXELS, PIXELS_MIN, PIXELS_MAX },
        { OPT_MAX_NEW_TOKENS, 1, TOKENS_MAX },
        { OPT_CTX, 1, CONTEXT_MAX },
        { OPT_SEQS, 1, ROWS_MAX },
        { OPT_ROWS, 1, ROWS_MAX },
        { OPT_MEMORY, 1, MEMORY_MAX },
        { OPT_THREADS, 1, POOL_THREADS_MAX },
    };
    long long n = 0;
    bool ok = false;
    for (size_t i = 0; i < COUNT(ranges); i++) {
        ok = ok || (ranges[i].id == id && parse_int(v, ranges[i].lo, ranges[i].hi, &n));
    }
    switch (id) {
    case OPT_MIN_PIXELS:
        o->convert.min_pixels = n;
        break;
    case OPT_MAX_PIXELS:
        o->convert.max_pixels = n;
        break;
    case OPT_MAX_NEW_TOKENS:
        o->convert.max_new_tokens = (int)n;
        break;
    case OPT_CTX:
        o->context = (int)n;
        break;
    case OPT_SEQS:
        o->max_seqs = (int)n;
        break;
    case OPT_ROWS:
        o->max_rows = (int)n;
        break;
    case OPT_MEMORY:
        o->memory_bytes = (uint64_t)n << 20;
        break;
    case OPT_THREADS:
        o->threads = (int)n;
        break;
    default:
        break;
    }
    return ok;
}

/* False: the value is not one the option can have. */
static bool take_value(struct cli_options *o, int id, const char *v)
{
    static const char *const formats[] = { "md", "json", "html", "text", NULL };
    static const char *const drafts[] = { "auto", "none", "text", "ocr", NULL };
    static const char *const furniture[] = { "drop", "keep", NULL };
    static const char *const kinds[] = { "auto", "f32", "f16", "bf16", "q8", "fp8", NULL };
    static const char *const linears[] = { "auto", "exact", NULL };
    int word = 0;
    bool ok = true;
    switch (id) {
    case OPT_FORMAT:
        ok = take_word(&word, v, formats);
        o->format = ok ? (enum galley_format)word : o->format;
        return ok;
    case OPT_DRAFT:
        ok = take_word(&word, v, drafts);
        o->convert.draft = ok ? (enum galley_draft)word : o->convert.draft;
        return ok;
    case OPT_FURNITURE:
        ok = take_word(&word, v, furniture);
        o->convert.keep_furniture = word == 1;
        return ok;
    case OPT_ACCEPT:
        return take_accept(&o->convert.accept, v);
    case OPT_DPI:
        return parse_number(v, DPI_MIN, DPI_MAX, &o->convert.dpi);
    case OPT_PAGE_SECONDS:
        return parse_number(v, SECONDS_MIN, SECONDS_MAX, &o->convert.page_seconds);
    case OPT_KV:
        o->kv = v;
        return take_word(&word, v, kinds);
    case OPT_LINEAR:
        ok = take_word(&word, v, linears);
        o->exact_linear = word == 1;
        return ok;
    default:
        return take_int(o, id, v);
    }
}

/* Options whose value is a plain string, or that have none. */
static bool take_plain(struct cli_options *o, int id, const char *v)
{
    switch (id) {
    case OPT_OUTPUT:
        o->output = v;
        return true;
    case OPT_PAGES:
        o->convert.pages = v;
        return true;
    case OPT_PASSWORD:
        o->convert.password = v;
        return true;
    case OPT_MODEL:
        o->model = v;
        return true;
    case OPT_OCR_LANG:
        o->convert.ocr_languages = v;
        return true;
    case OPT_FIGURES:
        o->figures = v;
        return true;
    case OPT_STATS:
        o->stats = v;
        return true;
    case OPT_REGIONS:
        o->regions = v;
        return true;
    case OPT_MMPROJ:
        o->mmproj = v;
        return true;
    case OPT_VISION_CACHE:
        o->vision_cache = v;
        return true;
    case OPT_PLAN:
        o->plan = true;
        return true;
    case OPT_PAGE_BREAK:
        o->page_break = true;
        return true;
    case OPT_QUIET:
        o->quiet = true;
        return true;
    case OPT_VERBOSE:
        o->verbose = true;
        return true;
    case OPT_JSON:
        o->json = true;
        return true;
    default:
        return false;
    }
}

static const char *option_name(int id)
{
    for (int i = 0; long_options[i].name; i++) {
        if (long_options[i].val == id) {
            return long_options[i].name;
        }
    }
    return "?";
}

int options_parse(struct cli_options *out, const char *command, int argc, char **argv, int *first)
{
    *out = (struct cli_options){ .convert.figure_prefix = "figure" };
    optind = 0; /* GNU: start anew */
    opterr = 0;
    for (;;) {
        const int id = getopt_long(argc, argv, ":o:qv", long_options, NULL);
        if (id == -1) {
            break;
        }
        if (id == '?') {
            const char *word = argv[optind > 1 ? optind - 1 : 1];
            return usage_error(command, "%s has no option %s", command, word);
        }
        if (id != ':' && !has_option(command, id)) {
            return usage_error(command, "%s has no option --%s", command, option_name(id));
        }
        if (id == ':') {
            return usage_error(command, "%s needs a value", argv[optind - 1]);
        }
        if (!take_plain(out, id, optarg) && !take_value(out, id, optarg)) {
            return usage_error(command, "--%s cannot be \"%s\"", option_name(id), optarg);
        }
    }
    const struct galley_convert_options *c = &out->convert;
    if (strcmp(command, "inspect") == 0 && c->draft == GALLEY_DRAFT_NONE) {
        return usage_error(command, "inspect shows drafts: --draft cannot be \"none\"");
    }
    if (c->min_pixels && c->max_pixels && c->min_pixels > c->max_pixels) {
        return usage_error(command, "--min-pixels %lld is over --max-pixels %lld",
                           (long long)c->min_pixels, (long long)c->max_pixels);
    }
    if (out->quiet && out->verbose) {
        return usage_error(command, "--quiet and --verbose exclude each other");
    }
    *first = optind;
    return 0;
}
