/* ocr_reader.c - Tesseract engines. */
#include "layout/ocr_reader.h"

#include <dlfcn.h>
#include <leptonica/allheaders.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <tesseract/capi.h>

#include "layout/raster_pix.h"
#include "src/base/clock.h"
#include "src/base/mem.h"

#define READ_DPI      300
#define LANGUAGES_MAX 1024
#define NAME_MAX_     64

/* --- one thread --- */

/* libgomp came with libtesseract; a Tesseract without OpenMP has none and needs none. */
static int serial_begin(void)
{
    int (*levels)(void) = NULL;
    void (*set_levels)(int) = NULL;
    void *f = dlsym(RTLD_DEFAULT, "omp_get_max_active_levels");
    void *g = dlsym(RTLD_DEFAULT, "omp_set_max_active_levels");
    if (!f || !g) {
        return -1;
    }
    memcpy(&levels, &f, sizeof f); /* POSIX: object and function pointers convert */
    memcpy(&set_levels, &g, sizeof g);
    const int before = levels();
    set_levels(0); /* parallel regions of this thread run serially */
    return before;
}

static void serial_end(int before)
{
    void (*set_levels)(int) = NULL;
    void *g = dlsym(RTLD_DEFAULT, "omp_set_max_active_levels");
    if (before >= 0 && g) {
        memcpy(&set_levels, &g, sizeof g);
        set_levels(before);
    }
}

/* Tesseract's settings are partly global to the process, and setting up an engine writes them: one
 * engine at a time.  Later they are only read. */
static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER;

/* As TessBaseAPIInit2, without a word on stderr; 0 is success. */
static int engine_setup(struct TessBaseAPI *api, const char *datapath, const char *languages,
                        TessOcrEngineMode mode)
{
    pthread_mutex_lock(&setup_lock);
    TessBaseAPISetVariable(api, "debug_file", "/dev/null");
    const int rc = TessBaseAPIInit2(api, datapath, languages, mode);
    pthread_mutex_unlock(&setup_lock);
    return rc;
}

/* --- languages --- */

static bool name_in(char **names, const char *name, size_t n)
{
    for (; names && *names; names++) {
        if (strlen(*names) == n && strncmp(*names, name, n) == 0) {
            return true;
        }
    }
    return false;
}

/* A name that no model has fails before anything is loaded (5 ms), and by then Tesseract knows its
 * data directory: its own rules decide where that is. */
static char **installed(struct TessBaseAPI *api, const char *datapath)
{
    if (engine_setup(api, datapath, "-", OEM_LSTM_ONLY) == 0) {
        return NULL; /* somebody has a model of that name */
    }
    return TessBaseAPIGetAvailableLanguagesAsVector(api);
}

static enum galley_status missing(const char *name, size_t n, struct galley_err *err)
{
    char package[NAME_MAX_];
    size_t k = n < NAME_MAX_ - 1 ? n : NAME_MAX_ - 1;
    memcpy(package, name, k);
    package[k] = '\0';
    for (char *c = package; *c; c++) {
        *c = *c == '_' ? '-' : *c; /* chi_sim is in tesseract-ocr-chi-sim */
    }
    return galley_err_set(err, GALLEY_EUNSUP,
                          "OCR language \"%.*s\" is not installed (Debian package "
                          "tesseract-ocr-%s)",
                          (int)k, name, package);
}

static bool name_ok(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-')) {
            return false;
        }
    }
    return n > 0 && n < NAME_MAX_;
}

static enum galley_status check_languages(const char *languages, const char *datapath,
                                          struct galley_err *err)
{
    struct TessBaseAPI *api = TessBaseAPICreate();
    if (!api) {
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory for Tesseract");
    }
    char **names = installed(api, datapath);
    enum galley_status rc = GALLEY_OK;
    for (const char *s = languages; !rc; s += strcspn(s, "+") + 1) {
        const size_t n = strcspn(s, "+");
        if (!name_ok(s, n)) {
            rc = galley_err_set(err, GALLEY_EUSAGE,
                                "OCR languages \"%.200s\": names like eng or eng+kor are expected",
                                languages);
        } else if (!name_in(names, s, n)) {
            rc = missing(s, n, err);
        }
        if (s[n] == '\0') {
            break;
        }
    }
    if (!rc && !name_in(names, "osd", 3)) {
        rc = missing("osd", 3, err);
    }
    if (names) {
        TessDeleteTextArray(names);
    }
    TessBaseAPIDelete(api);
    return rc;
}

enum galley_status ocr_reader_open(struct ocr_reader *r, const char *languages,
                                   const char *datapath, struct galley_err *err)
{
    raster_quiet();
    if (strlen(languages) >= LANGUAGES_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE, "OCR languages: %zu characters, at most %d",
                              strlen(languages), LANGUAGES_MAX - 1);
    }
    const enum galley_status rc = check_languages(languages, datapath, err);
    if (rc) {
        return rc;
    }
    r->languages = mem_strdup(languages);
    r->datapath = datapath ? mem_strdup(datapath) : NULL;
    if (!r->languages || (datapath && !r->datapath)) {
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory for OCR options");
    }
    return GALLEY_OK;
}

static void engine_close(struct TessBaseAPI **api)
{
    if (*api) {
        TessBaseAPIEnd(*api);
        TessBaseAPIDelete(*api);
        *api = NULL;
    }
}

void ocr_reader_close(struct ocr_reader *r)
{
    engine_close(&r->text);
    engine_close(&r->osd);
    mem_free(r->languages);
    mem_free(r->datapath);
}

/* --- engines --- */

static enum galley_status engine_load(struct ocr_reader *r, struct TessBaseAPI **api,
                                      const char *languages, TessOcrEngineMode mode,
                                      struct galley_err *err)
{
    if (*api) {
        return GALLEY_OK;
    }
    const double t0 = clock_seconds();
    *api = TessBaseAPICreate();
    if (!*api) {
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory for Tesseract");
    }
    if (engine_setup(*api, r->datapath, languages, mode) != 0) {
        engine_close(api);
        return galley_err_set(err, GALLEY_EUNSUP, "Tesseract cannot load its models for \"%s\"",
                              languages);
    }
    /* After Init2, which resets it: Korean and Chinese words come in pieces; only so does a line's
     * text say which pieces were printed apart (ocr_words.c). */
    TessBaseAPISetVariable(*api, "preserve_interword_spaces", "1");
    r->load_seconds += clock_seconds() - t0;
    return GALLEY_OK;
}

static bool should_stop(void *cancel_this, int words)
{
    (void)words;
    const struct ocr_reader *r = cancel_this;
    /* Relaxed: nothing else is published with the flag. */
    return atomic_load_explicit(&r->cancelled, memory_order_relaxed) ||
           clock_seconds() > r->deadline;
}

static enum galley_status stop_reason(const struct ocr_reader *r, struct galley_err *err)
{
    if (atomic_load_explicit(&r->cancelled, memory_order_relaxed)) {
        return galley_err_set(err, GALLEY_ECANCELLED, "text recognition was cancelled");
    }
    if (clock_seconds() > r->deadline) {
        return galley_err_set(err, GALLEY_ETIMEOUT,
                              "text recognition took longer than %.1f s for one page",
                              r->page_seconds);
    }
    return GALLEY_OK;
}

enum galley_status ocr_reader_read(struct ocr_reader *r, struct Pix *gray, int y, int h,
                                   struct galley_err *err)
{
    enum galley_status rc = engine_load(r, &r->text, r->languages, OEM_LSTM_ONLY, err);
    rc = rc ? rc : stop_reason(r, err);
    if (rc) {
        return rc;
    }
    ETEXT_DESC *monitor = TessMonitorCreate();
    if (!monitor) {
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory for Tesseract");
    }
    const double left = fmin(fmax(r->deadline - clock_seconds(), 0.001), 86400.0);
    TessMonitorSetDeadlineMSecs(monitor, (int)(left * 1000) + 1);
    TessMonitorSetCancelFunc(monitor, should_stop);
    TessMonitorSetCancelThis(monitor, r);
    const int before = serial_begin();
    TessBaseAPISetPageSegMode(r->text, PSM_AUTO);
    TessBaseAPISetImage2(r->text, gray);
    TessBaseAPISetSourceResolution(r->text, READ_DPI);
    if (h > 0) {
        TessBaseAPISetRectangle(r->text, 0, y, pixGetWidth(gray), h);
    }
    const int failed = TessBaseAPIRecognize(r->text, monitor);
    serial_end(before);
    TessMonitorDelete(monitor);
    rc = stop_reason(r, err);
    if (!rc && failed) {
        /* Nothing to recognise is not a failure; the iterator is NULL then. */
        TessBaseAPIClear(r->text);
    }
    return rc;
}

float ocr_reader_conf(struct ocr_reader *r)
{
    const int *conf = TessBaseAPIAllWordConfidences(r->text);
    float sum = 0;
    int n = 0;
    for (; conf && conf[n] >= 0; n++) {
        sum += (float)conf[n];
    }
    TessDeleteIntArray(conf);
    return n > 0 ? sum / (float)n : 0;
}

enum galley_status ocr_reader_turn(struct ocr_reader *r, struct Pix *gray, int dpi, int *turn,
                                   float *conf, struct galley_err *err)
{
    *turn = -1;
    *conf = 0;
    const enum galley_status rc = engine_load(r, &r->osd, "osd", OEM_TESSERACT_ONLY, err);
    if (rc) {
        return rc;
    }
    int degrees = 0;
    float script_conf;
    const char *script; /* points into Tesseract's tables: not ours to free */
    const int before = serial_begin();
    TessBaseAPISetPageSegMode(r->osd, PSM_OSD_ONLY);
    TessBaseAPISetImage2(r->osd, gray);
    TessBaseAPISetSourceResolution(r->osd, dpi);
    const BOOL found =
        TessBaseAPIDetectOrientationScript(r->osd, &degrees, conf, &script, &script_conf);
    TessBaseAPIClear(r->osd);
    serial_end(before);
    if (found && degrees >= 0 && degrees < 360 && isfinite(*conf)) {
        *turn = (360 - degrees) % 360; /* it says how far the page has been turned */
    }
    return stop_reason(r, err);
}
