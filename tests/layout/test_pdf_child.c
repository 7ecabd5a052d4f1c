/* test_pdf_child.c - the child's life: death, hanging, cancelling, lies, leaks. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "layout/pdf.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "tests/layout/fake_pdf.h"
#include "tests/layout/pdf_write.h"
#include "tests/t.h"

static struct pdf_writer three; /* pages; written once */

static struct pdf *open_three(const struct pdf_options *opt)
{
    struct pdf *pdf;
    struct galley_err err = { 0 };
    if (!three.n) {
        pdf_write_pages(&three, 3, "/MediaBox[0 0 595 842]",
                        "BT /F1 12 Tf 72 700 Td (hello) Tj ET");
    }
    if (pdf_open(&pdf, three.out.data, three.out.n, opt, &err)) {
        T_FAIL("pdf_open: %s", err.msg);
    }
    return pdf;
}

static enum galley_status page_try(struct pdf *pdf, int i)
{
    struct page *page;
    const enum galley_status rc = pdf_page(pdf, i, 72, &page, NULL);
    T_OK((page != NULL) == (rc == GALLEY_OK));
    if (page) {
        T_EQ(page->index, i);
    }
    page_free(page);
    return rc;
}

static int n_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir)) {
        n++;
    }
    closedir(dir);
    return n;
}

/* No child, living or dead, is left. */
static void check_no_child(void)
{
    errno = 0;
    T_EQ(waitpid(-1, NULL, WNOHANG), -1);
    T_EQ(errno, ECHILD);
}

static void nap(double seconds)
{
    const struct timespec t = { (time_t)seconds,
                                (long)((seconds - (double)(time_t)seconds) * 1e9) };
    nanosleep(&t, NULL);
}

/* A second thread that does one thing to the call in progress. */
struct meddler {
    struct pdf *pdf;
    double after;
    int signal; /* to the child; 0: pdf_cancel */
    pid_t pid;
};

static void *meddle(void *arg)
{
    const struct meddler *m = arg;
    nap(m->after);
    if (m->signal) {
        kill(m->pid, m->signal);
    } else {
        pdf_cancel(m->pdf);
    }
    return NULL;
}

static void killed_between_pages(void)
{
    struct pdf *pdf = open_three(NULL);
    T_EQ(page_try(pdf, 0), GALLEY_OK);
    const int pid = pdf_child_pid(pdf);
    T_OK(pid > 0);
    kill(pid, SIGKILL);
    T_EQ(page_try(pdf, 1), GALLEY_EINPUT);
    T_EQ(pdf_child_pid(pdf), 0);
    T_EQ(page_try(pdf, 1), GALLEY_OK);
    T_OK(pdf_child_pid(pdf) > 0 && pdf_child_pid(pdf) != pid);
    T_EQ(page_try(pdf, 2), GALLEY_OK);
    pdf_close(pdf);
    check_no_child();
}

/* Stopped first, so that the kill surely comes while the page is being waited for. */
static void killed_in_the_middle(void)
{
    struct pdf *pdf = open_three(NULL);
    struct meddler m = { pdf, 0.2, SIGKILL, pdf_child_pid(pdf) };
    pthread_t thread;
    kill(m.pid, SIGSTOP);
    T_EQ(pthread_create(&thread, NULL, meddle, &m), 0);
    T_EQ(page_try(pdf, 1), GALLEY_EINPUT);
    pthread_join(thread, NULL);
    T_EQ(page_try(pdf, 2), GALLEY_OK);
    pdf_close(pdf);
    check_no_child();
}

static void hung(void)
{
    const struct pdf_options opt = { .page_seconds = 0.5 };
    struct pdf *pdf = open_three(&opt);
    kill(pdf_child_pid(pdf), SIGSTOP);
    const double start = clock_seconds();
    T_EQ(page_try(pdf, 0), GALLEY_ETIMEOUT);
    const double took = clock_seconds() - start;
    T_OK(took >= 0.5 && took < 2);
    check_no_child();
    T_EQ(page_try(pdf, 0), GALLEY_OK);
    pdf_close(pdf);
}

static void cancelled(void)
{
    struct pdf *pdf = open_three(NULL);
    struct meddler m = { .pdf = pdf, .after = 0.1 };
    pthread_t thread;
    kill(pdf_child_pid(pdf), SIGSTOP);
    T_EQ(pthread_create(&thread, NULL, meddle, &m), 0);
    const double start = clock_seconds();
    T_EQ(page_try(pdf, 0), GALLEY_ECANCELLED);
    T_OK(clock_seconds() - start < 2);
    pthread_join(thread, NULL);
    T_EQ(page_try(pdf, 0), GALLEY_OK);
    pdf_cancel(pdf); /* between calls: the next one takes it */
    pdf_cancel(pdf);
    T_EQ(page_try(pdf, 1), GALLEY_ECANCELLED);
    T_EQ(page_try(pdf, 1), GALLEY_OK);
    pdf_close(pdf);
    check_no_child();
}

static void nothing_leaks(void)
{
    pdf_close(open_three(NULL));
    const int before = n_descriptors();
    for (int i = 0; i < 10; i++) {
        struct pdf *pdf = open_three(NULL);
        T_EQ(page_try(pdf, i % 3), GALLEY_OK);
        if (i % 2) {
            kill(pdf_child_pid(pdf), SIGKILL);
            T_EQ(page_try(pdf, 0), GALLEY_EINPUT);
        }
        pdf_close(pdf);
    }
    T_EQ(n_descriptors(), before);
    check_no_child();
}

/* When this process dies, so does the child: it sees the socket hang up, even while it is stopped
 * from reading it. */
static void orphan_ends(void)
{
    int pipes[2];
    int pid = 0;
    T_EQ(pipe(pipes), 0);
    const pid_t middle = fork();
    if (middle == 0) {
        struct pdf *pdf;
        if (pdf_open(&pdf, three.out.data, three.out.n, NULL, NULL) == GALLEY_OK) {
            pid = pdf_child_pid(pdf);
        }
        const ssize_t n = write(pipes[1], &pid, sizeof pid);
        _exit(n == sizeof pid ? 0 : 1); /* without pdf_close */
    }
    T_EQ(read(pipes[0], &pid, sizeof pid), sizeof pid);
    waitpid(middle, NULL, 0);
    close(pipes[0]);
    close(pipes[1]);
    T_OK(pid > 0);
    bool gone = false;
    for (int i = 0; i < 100 && !gone; i++) {
        char path[64], state = 0;
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *f = fopen(path, "r");
        /* A zombie waits for its new parent only. */
        gone = !f || (fscanf(f, "%*d (galley-pdf) %c", &state) == 1 && state == 'Z');
        if (f) {
            fclose(f);
        }
        nap(0.02);
    }
    T_OK(gone);
}

/* The host's ways with signals neither disturb us nor are disturbed. */
static void host_signals(void)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN }, before, now;
    T_EQ(sigaction(SIGCHLD, &ignore, &before), 0);
    struct pdf *pdf = open_three(NULL);
    T_EQ(page_try(pdf, 0), GALLEY_OK);
    kill(pdf_child_pid(pdf), SIGKILL);
    nap(0.05);
    T_EQ(page_try(pdf, 0), GALLEY_EINPUT); /* and no SIGPIPE, which would end this test */
    T_EQ(page_try(pdf, 0), GALLEY_OK);
    pdf_close(pdf);
    T_EQ(sigaction(SIGCHLD, &before, &now), 0);
    T_OK(now.sa_handler == SIG_IGN);
}

static char *beside(char path[PATH_MAX], const char *name)
{
    const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    T_OK(n > 0);
    path[n] = 0;
    char *slash = strrchr(path, '/');
    snprintf(slash + 1, PATH_MAX - (size_t)(slash + 1 - path), "%s", name);
    return path;
}

/* A helper that is killed while it starts, the first time (then the flag is there). */
static void killed_at_the_start(void)
{
    char dir[] = "/tmp/galley-start-XXXXXX", script[64], flag[64], real[PATH_MAX];
    T_OK(mkdtemp(dir));
    snprintf(script, sizeof script, "%s/helper", dir);
    snprintf(flag, sizeof flag, "%s/flag", dir);
    FILE *f = fopen(script, "w");
    T_OK(f);
    fprintf(f, "#!/bin/sh\n[ -e %s ] && exec %s \"$@\"\n: >%s\nkill -9 $$\n", flag,
            beside(real, "galley-pdf"), flag);
    T_EQ(fclose(f), 0);
    T_EQ(chmod(script, 0700), 0);
    const struct pdf_options opt = { .helper = script };
    struct pdf *pdf = open_three(&opt);
    T_EQ(access(flag, F_OK), 0);
    T_EQ(page_try(pdf, 0), GALLEY_OK);
    pdf_close(pdf);
    check_no_child();
    unlink(flag);
    unlink(script);
    rmdir(dir);
}

static enum galley_status lie_open(enum fake_lie lie, struct pdf **pdf, struct galley_err *err)
{
    char path[PATH_MAX];
    const struct pdf_options opt = { .helper = beside(path, "fake-pdf"),
                                     .memory_bytes = lie,
                                     .page_seconds = 5 };
    return pdf_open(pdf, "x", 1, &opt, err);
}

static void lies(void)
{
    static const struct {
        enum fake_lie lie;
        enum galley_status rc;
    } cases[] = {
        { FAKE_HONEST, GALLEY_OK },
        { FAKE_GARBAGE, GALLEY_EINPUT },
        { FAKE_NO_FILE, GALLEY_EINPUT },
        { FAKE_SHORT_FILE, GALLEY_EINPUT },
        { FAKE_PIPE, GALLEY_EINPUT },
        { FAKE_MANY_FILES, GALLEY_OK },
        { FAKE_TOO_MANY_FILES, GALLEY_EINPUT },
        { FAKE_BIG_BITMAP, GALLEY_EINPUT },
        { FAKE_OTHER_PAGE, GALLEY_EINPUT },
        { FAKE_EMPTY_PACKET, GALLEY_EINPUT },
    };
    const int before = n_descriptors();
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct pdf *pdf;
        struct galley_err err = { 0 };
        T_EQ(lie_open(cases[i].lie, &pdf, &err), GALLEY_OK);
        for (int again = 0; again < 2; again++) {
            if (page_try(pdf, 0) != cases[i].rc) {
                T_FAIL("lie %d was not answered by %d", cases[i].lie, cases[i].rc);
            }
        }
        pdf_close(pdf);
    }
    T_EQ(n_descriptors(), before);
    check_no_child();
}

static void helper_does_not_start(void)
{
    struct pdf *pdf;
    struct galley_err err = { 0 };
    const struct pdf_options opt = { .helper = "/nonexistent/galley-pdf" };
    const int before = n_descriptors();
    T_EQ(pdf_open(&pdf, "x", 1, &opt, &err), GALLEY_EIO);
    T_OK(strstr(err.msg, "/nonexistent/galley-pdf") != NULL);
    T_OK(pdf == NULL);
    T_EQ(lie_open(FAKE_DEAD_START, &pdf, &err), GALLEY_EIO);
    T_EQ(lie_open(FAKE_GARBAGE_START, &pdf, &err), GALLEY_EIO);
    T_EQ(n_descriptors(), before);
    check_no_child();
}

static void memory_is_short(void)
{
    struct galley_err err = { 0 };
    pdf_close(open_three(NULL));
    const int before = n_descriptors();
    int n_failed = 0;
    for (long n = 1; n < 100; n++) {
        struct pdf *pdf;
        struct page *page = NULL;
        mem_fail_at(n);
        enum galley_status rc = pdf_open(&pdf, three.out.data, three.out.n, NULL, &err);
        if (!rc) {
            rc = pdf_page(pdf, 0, 72, &page, &err);
        }
        const bool reached = mem_count() >= n;
        mem_fail_at(0);
        page_free(page);
        pdf_close(pdf);
        if (!reached) {
            break;
        }
        /* A failing strdup while searching for the helper looks like "not found". */
        T_OK(rc == GALLEY_ENOMEM || rc == GALLEY_EIO || rc == GALLEY_OK);
        n_failed += rc != GALLEY_OK;
    }
    T_OK(n_failed >= 8);
    T_EQ(n_descriptors(), before);
    check_no_child();
}

static void wrong_pages(void)
{
    struct pdf *pdf = open_three(NULL);
    T_EQ(pdf_n_pages(pdf), 3);
    T_EQ(page_try(pdf, -1), GALLEY_EUSAGE);
    T_EQ(page_try(pdf, 3), GALLEY_EUSAGE);
    pdf_close(pdf);
    const struct pdf_options opt = { .max_pages = 2 };
    struct galley_err err = { 0 };
    T_EQ(pdf_open(&pdf, three.out.data, three.out.n, &opt, &err), GALLEY_ELIMIT);
    T_OK(strstr(err.msg, "3 pages") != NULL);
    check_no_child();
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "wrong_pages", wrong_pages },
        { "killed_between_pages", killed_between_pages },
        { "killed_in_the_middle", killed_in_the_middle },
        { "killed_at_the_start", killed_at_the_start },
        { "hung", hung },
        { "cancelled", cancelled },
        { "nothing_leaks", nothing_leaks },
        { "host_signals", host_signals },
        { "lies", lies },
        { "helper_does_not_start", helper_does_not_start },
        { "memory_is_short", memory_is_short },
        { "orphan_ends", orphan_ends },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
