/* chat_dump.c - checks a file of `tools/reference/chat.py files`: real templates stay outside. */
#include "tests/format/chat_golden.h"

static const char *path;

static void check(void)
{
    printf("%d conversations agree\n", check_chat_file(path));
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: chat_dump CASES_JSON\n");
        return 2;
    }
    path = argv[1];
    return t_run(check);
}
