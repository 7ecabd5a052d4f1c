/* main.c - the program: which command, and what the commands share. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cli/cli.h"

static volatile sig_atomic_t n_signals;

static void on_signal(int sig)
{
    (void)sig;
    if (n_signals++ > 0) {
        _exit(EXIT_INTERRUPTED);
    }
}

void catch_signals(void)
{
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    /* A reader that went away is an error of write(), not a death. */
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    sigaction(SIGPIPE, &ignore, NULL);
}

bool interrupted(void)
{
    return n_signals > 0;
}

void make_printable(char *s)
{
    for (unsigned char *c = (unsigned char *)s; *c; c++) {
        if (*c < 0x20 || *c == 0x7f) {
            *c = '?';
        } else if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) {
            *c = c[1] = '?'; /* U+0080..U+009F: 8-bit escapes, some terminals obey them */
        }
    }
}

static void print_line(const char *fmt, va_list ap, const char *after)
{
    char text[2048];
    vsnprintf(text, sizeof(text), fmt, ap);
    make_printable(text);
    fprintf(stderr, "galley: %s%s\n", text, after);
}

void complain(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_line(fmt, ap, "");
    va_end(ap);
}

int usage_error(const char *command, const char *fmt, ...)
{
    char after[128];
    snprintf(after, sizeof(after), " (see: galley help%s%s)", command[0] ? " " : "", command);
    va_list ap;
    va_start(ap, fmt);
    print_line(fmt, ap, after);
    va_end(ap);
    return EXIT_USAGE;
}

int exit_code_of(enum galley_status rc)
{
    switch (rc) {
    case GALLEY_OK:
        return EXIT_OK;
    case GALLEY_EUSAGE:
        return EXIT_USAGE;
    case GALLEY_EMODEL:
        return EXIT_MODEL;
    case GALLEY_EINPUT:
    case GALLEY_EUNSUP:
    case GALLEY_EIO:
    case GALLEY_ETIMEOUT:
        return EXIT_INPUT;
    case GALLEY_EENCRYPTED:
        return EXIT_ENCRYPTED;
    case GALLEY_ELIMIT:
    case GALLEY_ENOMEM:
        return EXIT_LIMIT;
    case GALLEY_ECANCELLED:
        return EXIT_INTERRUPTED;
    default:
        return EXIT_INTERNAL;
    }
}

static bool is_model(const char *dir)
{
    char file[PATH_MAX + 16];
    struct stat st;
    snprintf(file, sizeof(file), "%s/config.json", dir);
    return stat(file, &st) == 0 && S_ISREG(st.st_mode);
}

bool find_model(char *path, size_t size)
{
    const char *env = getenv("GALLEY_MODEL");
    if (env && env[0]) {
        return (size_t)snprintf(path, size, "%s", env) < size;
    }
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0) {
        return false;
    }
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    /* build/bin/galley in a source tree; bin/galley of an installation. */
    static const char *const places[] = { "../../models/galley-tiny", "../share/galley/galley-tiny",
                                          "../models/galley-tiny" };
    for (size_t i = 0; i < COUNT(places); i++) {
        if ((size_t)snprintf(path, size, "%s/%s", self, places[i]) < size && is_model(path)) {
            return true;
        }
    }
    return false;
}

bool parse_int(const char *word, long long lo, long long hi, long long *out)
{
    char *end;
    errno = 0;
    const long long v = strtoll(word, &end, 10);
    if (errno || end == word || *end || v < lo || v > hi) {
        return false;
    }
    *out = v;
    return true;
}

bool parse_number(const char *word, double lo, double hi, double *out)
{
    char *end;
    errno = 0;
    const double v = strtod(word, &end);
    if (errno || end == word || *end || !(v >= lo && v <= hi)) {
        return false;
    }
    *out = v;
    return true;
}

static int print_help(const char *command)
{
    const char *text = help_text(command);
    if (!text) {
        return usage_error("", "there is no command \"%s\"", command);
    }
    fputs(text, stdout);
    return EXIT_OK;
}

static bool asks_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {
        { "convert", cli_convert },   { "inspect", cli_inspect }, { "doctor", cli_doctor },
        { "quantize", cli_quantize }, { "bench", cli_bench },
    };
    if (argc < 2) {
        fputs(help_text(""), stderr);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 || strcmp(word, "version") == 0) {
        printf("galley %s\n", galley_version());
        return EXIT_OK;
    }
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        return print_help(argc > 2 ? argv[2] : "");
    }
    for (size_t i = 0; i < COUNT(commands); i++) {
        if (strcmp(word, commands[i].name) == 0) {
            if (asks_help(argc - 1, argv + 1)) {
                return print_help(word);
            }
            const int code = commands[i].run(argc - 1, argv + 1);
            if (fflush(stdout) != 0 && code == EXIT_OK) {
                complain("cannot write to standard output: %s", strerror(errno));
                return EXIT_INTERNAL;
            }
            return code;
        }
    }
    struct stat st;
    if (stat(word, &st) == 0) {
        return usage_error("convert",
                           "there is no command \"%s\"; to read that file: galley convert %s", word,
                           word);
    }
    return usage_error("", "there is no command \"%s\"", word);
}
