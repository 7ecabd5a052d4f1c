/* talk.c - talks with a model: a line from stdin is a message, its answer streams to stdout.
 *
 *     talk MODEL [PROMPT] [--image FILE] [--system TEXT] [--temperature T] [--seed N]
 *          [--max-tokens N] [--thinking]
 *
 * MODEL is a directory or a GGUF file.  With PROMPT there is one question and one answer.  Without
 * a temperature the answer is the likeliest, the same every time. */
#include <errno.h>
#include <galley/galley.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"

#define MESSAGES_MAX 256 /* the engine's own limit is 1024 */
#define PICTURE_MAX  (64u << 20)

struct chat {
    struct galley_generation ask; /* its messages are the conversation so far */
    struct galley_message messages[MESSAGES_MAX];
    struct galley_part parts[MESSAGES_MAX][2]; /* the text, and in the first question the image */
    struct galley_part picture;
    const char *model, *prompt, *system, *image;
    char *answer; /* NULL: it failed; written by the engine's thread before it posts `ended` */
    sem_t ended;
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
    chat->answer = failed ? NULL : strndup(g->text, g->n_text);
    sem_post(&chat->ended);
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
    add_message(chat, GALLEY_USER, strdup(question));
    if (!ask_and_wait(engine, &chat->ask, &chat->ended)) {
        return false;
    }
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

static bool take_option(struct chat *chat, const char *name, const char *value)
{
    if (strcmp(name, "--image") == 0) {
        chat->image = value;
        return true;
    }
    if (strcmp(name, "--system") == 0) {
        chat->system = value;
        return true;
    }
    if (take_ask_option(&chat->ask, name, value)) {
        return true;
    }
    fprintf(stderr, "%s %s: no such option or value\n", name, value);
    return false;
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

static bool run(struct chat *chat)
{
    if (chat->image && !read_picture(chat)) {
        return false;
    }
    struct galley_engine *engine = open_model(chat->model);
    if (!engine) {
        return false;
    }
    if (chat->system) {
        add_message(chat, GALLEY_SYSTEM, strdup(chat->system));
    }
    const bool ok = chat->prompt ? ask(chat, engine, chat->prompt) : talk(chat, engine);
    galley_engine_close(engine);
    return ok;
}

int main(int argc, char **argv)
{
    static struct chat chat = { .ask = { .on_chunk = on_chunk, .on_end = on_end } };
    chat.ask.messages = chat.messages;
    chat.ask.user = &chat;
    sem_init(&chat.ended, 0, 0);
    if (!parse_options(&chat, argc, argv)) {
        fprintf(stderr,
                "usage: %s MODEL [PROMPT] [--image FILE] [--system TEXT] [--temperature T]\n"
                "       [--seed N] [--max-tokens N] [--thinking]\n",
                argv[0]);
        return 2;
    }
    const bool ok = run(&chat);
    for (int i = 0; i < chat.ask.n_messages; i++) {
        free((char *)chat.parts[i][chat.messages[i].n_parts - 1].text);
    }
    free((void *)chat.picture.picture);
    return ok ? 0 : 1;
}
