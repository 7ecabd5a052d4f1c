/* galley_types.h - the values the public API passes around; galley.h re-exports them.
 *
 * Zero is the default of every option field; new fields go last. */
#ifndef GALLEY_TYPES_H
#define GALLEY_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What became of a page.  The text is what JSON output says. */
#define GALLEY_PAGE_MAP(X)              \
    X(OK, "ok")                         \
    X(BLANK, "blank")                   \
    X(TRUNCATED, "truncated")           \
    X(REPETITION, "repetition")         \
    X(LOW_CONFIDENCE, "low_confidence") \
    X(UNVERIFIED, "unverified")         \
    X(ENCRYPTED, "encrypted")           \
    X(CORRUPT, "corrupt")               \
    X(TIMEOUT, "timeout")               \
    X(CANCELLED, "cancelled")

enum galley_page_status {
#define X(name, text) GALLEY_PAGE_##name,
    GALLEY_PAGE_MAP(X)
#undef X
        GALLEY_PAGE_STATUS_COUNT
};

/* Where drafts come from. */
enum galley_draft {
    GALLEY_DRAFT_AUTO, /* the PDF's text layer where it can be believed, else Tesseract */
    GALLEY_DRAFT_NONE, /* the model alone, token by token */
    GALLEY_DRAFT_TEXT, /* the text layer only */
    GALLEY_DRAFT_OCR   /* Tesseract only */
};

enum galley_format { GALLEY_FORMAT_MD, GALLEY_FORMAT_JSON, GALLEY_FORMAT_HTML, GALLEY_FORMAT_TEXT };

struct galley_box {
    float x0, y0, x1, y1; /* pt, origin top-left of the displayed page, y down */
};

struct galley_region {
    const char *kind; /* "heading", "paragraph", "list", "table", "figure", "caption", ... */
    int level;        /* headings: 1..6 */
    struct galley_box box;
    const char *markdown;           /* the result */
    const char *draft;              /* what the light parser read */
    const char *draft_source;       /* "text", "ocr" or "none" */
    float draft_score;              /* 0..1 */
    enum galley_page_status status; /* OK, TRUNCATED, REPETITION, LOW_CONFIDENCE, UNVERIFIED ... */
    const char *reason;             /* one sentence when status is not OK, else "" */
    const char *rule;               /* "exact", "tau", "plain" (no draft) or "unverified" */
    double tau;                     /* the threshold when rule is "tau" */
    int n_output, n_drafted, n_accepted, n_steps; /* tokens, tokens, tokens, forward passes */
    double logprob;                               /* mean log-probability of the output tokens */
};

struct galley_page {
    int number;           /* 1-based */
    int n_document_pages; /* of the whole document, selected or not */
    enum galley_page_status status;
    const char *reason;  /* one sentence when status is not OK, else "" */
    float width, height; /* pt */
    const char *markdown;
    const struct galley_region *regions; /* reading order */
    int n_regions;
    bool used_ocr;
    /* The page as it was read (upright); NULL when it could not be rendered. */
    const uint8_t *rgb; /* [px_height][stride] */
    int px_width, px_height;
    size_t stride;
    float scale; /* pixels per pt */
};

struct galley_stats {
    int n_pages, n_regions, n_verified;
    int64_t n_visual, n_prompt, n_output; /* tokens */
    int64_t n_steps;                      /* sum over regions of the forward passes each needed */
    int64_t n_passes;                     /* ragged forward passes that were run */
    int64_t n_drafted, n_accepted;        /* tokens */
    double accept_length;                 /* output tokens per step */
    int64_t peak_rss_bytes;               /* of this process */
    double parse_seconds, render_seconds, layout_seconds, ocr_seconds;
    double encode_seconds, prefill_seconds, decode_seconds, total_seconds, first_page_seconds;
};

struct galley_progress {
    int n_pages, n_pages_done;
    int n_regions, n_regions_done;
    int64_t n_output;
    double seconds, accept_length;
};

struct galley_source {
    const char *name; /* for errors and JSON: a path or "-" */
    const void *bytes;
    size_t n_bytes;
};

struct galley_convert_options {
    const char *pages;    /* "1-3,7"; NULL: all */
    const char *password; /* of an encrypted PDF */
    enum galley_draft draft;
    double accept; /* 0: the model card's rule per draft source; 1: exact; in between: tau */
    const char *ocr_languages;      /* "eng+kor"; NULL: "eng" */
    double dpi;                     /* of rendered PDF pages and assumed of pictures; 0: 200 */
    int64_t min_pixels, max_pixels; /* per crop; 0: the model's */
    int max_new_tokens;             /* per crop; 0: the model's */
    bool keep_furniture;            /* running headers, footers, page numbers stay in the text */
    const char *figure_prefix;      /* ![](PREFIX-pN-K.png); NULL: "figure" */
    uint64_t max_picture_pixels;    /* of PNG and JPEG input; 0: 100,000,000 */
    const char *pdf_helper;         /* path of galley-pdf; NULL: found beside the program */
    uint64_t pdf_memory_bytes;      /* 0: 2 GiB */
    double page_seconds;            /* processor time per page in galley-pdf; 0: 3 */
    double ocr_seconds;             /* time limit per page in Tesseract; 0: 60 */
};

/* ---- talking to the model ---- */

enum galley_role { GALLEY_SYSTEM, GALLEY_USER, GALLEY_ASSISTANT };

/* A piece of a message: one of text, tokens, an encoded picture, or pixels. */
struct galley_part {
    const char *text;
    const int32_t *tokens; /* [n_tokens] ids as they are: for those who tokenise themselves */
    int n_tokens;
    const void *picture; /* PNG or JPEG */
    size_t n_picture;
    const uint8_t *rgb; /* [height][width][3] */
    int width, height;
    int64_t min_pixels, max_pixels; /* of this image; 0: the model's */
};

struct galley_message {
    enum galley_role role;
    const struct galley_part *parts;
    int n_parts;
};

enum galley_finish {
    GALLEY_FINISH_STOP,
    GALLEY_FINISH_STOP_STRING,
    GALLEY_FINISH_LENGTH,
    GALLEY_FINISH_REPETITION, /* a loop: the text is cut behind its first round, chunks had more */
    GALLEY_FINISH_DEADLINE,
    GALLEY_FINISH_CANCELLED,
    GALLEY_FINISH_FAILED
};

struct galley_top {
    int32_t id;
    float logprob;
};

struct galley_token {
    int32_t id;
    float logprob;
    const struct galley_top *top; /* [n_top_logprobs] */
};

/* A stretch of decided text: whole UTF-8 characters, lent for the call. */
struct galley_chunk {
    uint64_t id;
    const char *text;
    size_t n_text;
    const int32_t *tokens; /* [n_tokens] decided since the last chunk */
    int n_tokens;
    const struct galley_token *logprobs; /* [n_tokens]; NULL unless asked for */
};

struct galley_generated {
    uint64_t id;
    enum galley_finish finish;
    int status;        /* enum galley_status */
    const char *error; /* "" unless failed */
    const char *text;
    size_t n_text;
    int n_prompt, n_visual, n_output;
    int n_cached, n_images_cached, n_preempted;
    int n_steps, n_drafted, n_accepted;
    double mean_logprob;
    double queue_seconds, first_token_seconds, total_seconds;
    double encode_seconds, prefill_seconds, decode_seconds;
};

/* Zero is a default everywhere: greedy, the model's own limits. */
struct galley_generation {
    const struct galley_message *messages;
    int n_messages;
    bool raw;            /* the parts of one message are the prompt itself, without a chat frame;
                            special tokens in its text count as such, beginning-of-text is first */
    bool thinking;       /* Qwen3's switch */
    const char *draft;   /* a text to verify; NULL: none */
    double accept;       /* 0 or 1: lossless; below 1: HSD's threshold, greedy only */
    double temperature;  /* 0 to 100; 0: greedy */
    double top_p, min_p; /* 0 to 1; 0: off */
    double repetition_penalty; /* over prompt and output, 0.01 to 100; 0 or 1: off */
    int top_k;                 /* 0: all */
    uint64_t seed;             /* the same one writes the same text, whatever runs beside */
    const char *const *stop;   /* [n_stop] of 1 to 1024 bytes */
    int n_stop;                /* 0 to 64 */
    bool ignore_eos;
    bool logprobs;
    int n_top_logprobs; /* 0..20 */
    int max_new_tokens;
    int priority;            /* -100..100 */
    double deadline_seconds; /* from submission; 0: none */
    void *user;
    /* On the engine's thread: must not block nor call galley, except galley_submit and
     * galley_cancel. */
    void (*on_chunk)(void *user, const struct galley_chunk *c);
    void (*on_end)(void *user, const struct galley_generated *g); /* exactly once */
};

/* What was opened. */
struct galley_info {
    const char *family; /* "qwen2_5_vl" ...; lives as long as the engine */
    int n_vocab;
    int context; /* most tokens of one sequence */
    bool has_vision;
    const char *kv_type;
};

/* What the engine has done since it was opened. */
struct galley_totals {
    uint64_t n_passes, n_rows;
    uint64_t n_prompt_tokens, n_cached_tokens, n_output_tokens;
    uint64_t n_drafted, n_accepted, n_preemptions, n_images, n_images_cached;
    int n_running, n_waiting, n_kv_blocks, n_kv_free;
    /* The cache of image embeddings; the first trouble of each kind is said to the log, too. */
    uint64_t n_vision_hits, n_vision_disk_hits, n_vision_misses;
    uint64_t n_vision_evicted, n_vision_disk_evicted; /* to make room */
    uint64_t n_vision_damaged;     /* files that were not what they should be, removed */
    uint64_t n_vision_disk_errors; /* disk full, permissions ...: it went on without */
    uint64_t n_vision_unwritten;   /* came faster than the disk takes them: kept in memory only */
    uint64_t vision_cache_bytes;   /* held in memory now */
};

/* ---- planning ---- */

struct galley_plan_request {
    const char *model_path, *mmproj_path;
    const char *kv_type;             /* as galley_engine_config */
    int context, max_seqs, max_rows; /* 0: the defaults of galley_engine_config */
    uint64_t memory_bytes;           /* 0: nine tenths of the machine's */
    int64_t max_pixels;              /* largest image; 0: the model's */
    bool measure;                    /* fill in the roof: takes about a second */
    const char *cpu;
    int threads;
    bool exact_linear; /* as galley_engine_config */
};

/* What a model will take.  Bytes, unless named otherwise. */
struct galley_plan {
    const char *kv_type;
    uint64_t language_bytes, vision_bytes;
    uint64_t kv_token_bytes, kv_bytes, step_bytes, vision_job_bytes, total_bytes, memory_bytes;
    int context, max_seqs, max_rows, n_kv_blocks;
    int fit_context; /* longest context of max_seqs sequences that fits */
    int fit_seqs;    /* most sequences of `context` tokens that fit */
    int64_t max_pixels;
    bool quantised;
    double flops_per_row, bytes_per_step;
    double read_bytes_per_s, f32_per_s, int8_per_s; /* measured; 0: not, for want of memory too */
    uint64_t read_buffer_bytes;                     /* what was read to measure: 512 MiB, or less */
    int model_context; /* the model's own limit: neither context nor fit_context goes beyond it */
    bool exact_linear;
};

/* What convert calls back, all on the thread that called it; user is handed through.  Any may be
 * NULL. */
struct galley_convert_events {
    void *user;
    /* Once per selected page, in order; the page is lent for the call. */
    void (*on_page)(void *user, const struct galley_page *page);
    void (*on_progress)(void *user, const struct galley_progress *p); /* about 10 times a second */
    bool (*should_stop)(void *user); /* polled; true ends the conversion after the finished pages */
};

#endif
