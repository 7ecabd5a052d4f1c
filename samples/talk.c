/* talk.c - talks with a model: a line from stdin is a message, its answer streams to stdout.
 *
 *     talk MODEL [PROMPT] [--image FILE] [--system TEXT] [--temperature T] [--seed N]
 *          [--max-tokens N] [--thinking]
 *
 * MODEL is a directory or a GGUF file.  With PROMPT there is one question and one answer.  Without
 * a temperature the answer is the likeliest, the same every time. */
#include <errno.h>
#include <galley/galley.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MESSAGES_MAX 256 /* the engine's own limit is 1024 */
#define PICTURE_MAX  (64u << 20)

struct chat {
    struct galley_generation ask; /* its messages are the conversation so far */
    struct galley_message messages[MESSAGES_MAX];
    struct galley_part parts[MESSAGES_MAX][2]; /* the text, and in the first question the image */
    struct galley_part picture;
    const char *model, *prompt, *system, *image;
    /* the answer, written by the engine's thread */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done;
    char *answer; /* NULL: it failed */
};

/* ---- an answer, on the engine's thread ---- */

static void on_chunk(void *user, const struct galley_chunk *c)
{
    (void)user;
    fwrite(c->text, 1, c->n_text, stdout);
    fflush(stdout);
}

static void on_end(void *user, const struct galley_generated *g)
{
    struct chat *chat = user;
    const bool failed = g->finish == GALLEY_FINISH_FAILED;
    if (failed) {
        fprintf(stderr, "\n%s\n", g->error);
    } else if (g->finish != GALLEY_FINISH_STOP) {
        fprintf(stderr, "\n(ended by %s after %d tokens)", galley_finish_name(g->finish),
                g->n_output);
    }
    pthread_mutex_lock(&chat->lock);
    chat->answer = failed ? NULL : strndup(g->text, g->n_text);
    chat->done = true;
    pthread_cond_signal(&chat->ended);
    pthread_mutex_unlock(&chat->lock);
}

/* ---- the conversation ---- */

/* text is owned by the conversation from here on. */
static void add_message(struct chat *chat, enum galley_role role, char *text)
{
    const int i = chat->ask.n_messages++;
    const bool first = i == (chat->system ? 1 : 0);
    struct galley_part *part = chat->parts[i];
    int n = 0;
    if (first && chat->image) {
        part[n++] = chat->picture;
    }
    part[n++] = (struct galley_part){ .text = text };
    chat->messages[i] = (struct galley_message){ .role = role, .parts = part, .n_parts = n };
}

/* Asks, waits for the answer and keeps both; true when there was one. */
static bool ask(struct chat *chat, struct galley_engine *engine, const char *question)
{
    uint64_t id;
    struct galley_err err = { 0 };
    add_message(chat, GALLEY_USER, strdup(question));
    chat->done = false;
    if (galley_submit(engine, &chat->ask, &id, &err) != GALLEY_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return false;
    }
    pthread_mutex_lock(&chat->lock);
    while (!chat->done) {
        pthread_cond_wait(&chat->ended, &chat->lock);
    }
    pthread_mutex_unlock(&chat->lock);
    puts("");
    fflush(stdout);
    if (chat->answer) {
        add_message(chat, GALLEY_ASSISTANT, chat->answer);
    }
    return chat->answer != NULL;
}

/* Reads messages until the end of stdin; true when every one was answered. */
static bool talk(struct chat *chat, struct galley_engine *engine)
{
    const bool person = isatty(STDIN_FILENO);
    char *line = NULL;
    size_t size = 0;
    bool ok = true;
    while (ok && chat->ask.n_messages + 2 <= MESSAGES_MAX) {
        if (person) {
            fputs("> ", stderr);
        }
        if (getline(&line, &size, stdin) < 0) {
            break;
        }
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0]) {
            ok = ask(chat, engine, line);
        }
    }
    free(line);
    return ok;
}

/* ---- the command line ---- */

static bool read_picture(struct chat *chat)
{
    errno = 0;
    FILE *f = fopen(chat->image, "rb");
    void *bytes = f ? malloc(PICTURE_MAX) : NULL;
    const size_t n = bytes ? fread(bytes, 1, PICTURE_MAX, f) : 0;
    if (n == 0) {
        fprintf(stderr, "%s: %s\n", chat->image, errno ? strerror(errno) : "empty");
    }
    if (f) {
        fclose(f);
    }
    chat->picture = (struct galley_part){ .picture = bytes, .n_picture = n };
    return n > 0;
}

/* False: not a number from 0 to max. */
static bool parse_number(double *out, const char *text, double max)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= 0 && *out <= max;
}

static bool take_option(struct chat *chat, const char *name, const char *value)
{
    double number = 0;
    bool ok = true;
    if (strcmp(name, "--image") == 0) {
        chat->image = value;
    } else if (strcmp(name, "--system") == 0) {
        chat->system = value;
    } else if (strcmp(name, "--temperature") == 0) {
        ok = parse_number(&chat->ask.temperature, value, 10);
    } else if (strcmp(name, "--seed") == 0) {
        ok = parse_number(&number, value, 1e15);
        chat->ask.seed = (uint64_t)number;
    } else if (strcmp(name, "--max-tokens") == 0) {
        ok = parse_number(&number, value, 1e6);
        chat->ask.max_new_tokens = (int)number;
    } else {
        return false;
    }
    if (!ok) {
        fprintf(stderr, "%s cannot be %s\n", name, value);
    }
    return ok;
}

static bool parse_options(struct chat *chat, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--thinking") == 0) {
            chat->ask.thinking = true;
        } else if (strncmp(argv[i], "--", 2) == 0) {
            if (i + 1 == argc || !take_option(chat, argv[i], argv[i + 1])) {
                return false;
            }
            i++;
        } else if (!chat->model) {
            chat->model = argv[i];
        } else if (!chat->prompt) {
            chat->prompt = argv[i];
        } else {
            return false;
        }
    }
    return chat->model != NULL;
}

static int run(struct chat *chat)
{
    const struct galley_engine_config config = { .model_path = chat->model };
    struct galley_engine *engine = NULL;
    struct galley_err err = { 0 };
    if (chat->image && !read_picture(chat)) {
        return 1;
    }
    if (galley_engine_open(&engine, &config, &err) != GALLEY_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    if (chat->system) {
        add_message(chat, GALLEY_SYSTEM, strdup(chat->system));
    }
    const bool ok = chat->prompt ? ask(chat, engine, chat->prompt) : talk(chat, engine);
    galley_engine_close(engine);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    static struct chat chat = { .lock = PTHREAD_MUTEX_INITIALIZER,
                                .ended = PTHREAD_COND_INITIALIZER };
    chat.ask.messages = chat.messages;
    chat.ask.user = &chat;
    chat.ask.on_chunk = on_chunk;
    chat.ask.on_end = on_end;
    if (!parse_options(&chat, argc, argv)) {
        fprintf(stderr,
                "usage: %s MODEL [PROMPT] [--image FILE] [--system TEXT] [--temperature T]\n"
                "       [--seed N] [--max-tokens N] [--thinking]\n",
                argv[0]);
        return 2;
    }
    const int rc = run(&chat);
    for (int i = 0; i < chat.ask.n_messages; i++) {
        free((char *)chat.parts[i][chat.messages[i].n_parts - 1].text);
    }
    free((void *)chat.picture.picture);
    return rc;
}
