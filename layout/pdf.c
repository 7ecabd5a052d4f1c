/* pdf.c - the library's side of galley-pdf: starts, asks, limits, kills and reaps the child.
 *
 * Nothing of the host process is touched: no signal handlers, no wait for any process but our own,
 * every descriptor CLOEXEC.  The child's answers are read with pread into our own memory before
 * they are looked at, so it can neither shrink nor change them under us.  All waiting goes through
 * one poll with a deadline that also listens to pdf_cancel's eventfd. */
#include "layout/pdf.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "layout/pdf_proto.h"
#include "src/base/clock.h"
#include "src/base/map.h"
#include "src/base/mem.h"

#define START_SECONDS 20.0 /* libraries, fonts and warm-up, on a slow and busy machine */
#define PAGE_SECONDS  3.0
#define WALL_FACTOR   3.0 /* a busy machine gets so much longer to spend the same processor time */

struct pdf {
    char *helper; /* path */
    uint64_t memory_bytes, max_page_pixels;
    double open_seconds, page_seconds;
    int max_pages, n_pages;
    char password[PDF_MAX_PASSWORD + 1];
    int bytes_fd; /* sealed memfd with the document, handed to every child */
    int wake_fd;  /* eventfd; the only field that pdf_cancel touches */
    /* The running child; pid 0: none. */
    pid_t pid;
    int pid_fd; /* -1 on kernels without pidfd_open */
    int socket;
    int lost_by; /* the signal that ended the last lost child; 0: none */
};

static void fd_close(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* Moves fd above the numbers that the child's descriptors get, so that no dup2 of the spawn
 * overwrites one that is still needed. */
static int fd_raise(int fd)
{
    if (fd < 0 || fd >= 10) {
        return fd;
    }
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    close(fd);
    return high;
}

/* --- finding the helper --- */

/* DIR/REST into path[PATH_MAX]; false when no program lies there. */
static bool is_program(char *path, const char *dir, size_t n, const char *rest)
{
    const int len = snprintf(path, PATH_MAX, "%.*s/%s", (int)n, dir, rest);
    return len >= 0 && len < PATH_MAX && access(path, X_OK) == 0;
}

static bool helper_on_path(char *path)
{
    const char *dirs = getenv("PATH");
    while (dirs && *dirs) {
        const size_t n = strcspn(dirs, ":");
        if (n && is_program(path, dirs, n, "galley-pdf")) {
            return true;
        }
        dirs += n + (dirs[n] == ':');
    }
    return false;
}

/* Near the file `self`: a program in a build folder or bin/, the library in lib/ or lib/ARCH/. */
static bool helper_near(char *path, const char *self)
{
    static const char *const places[] = { "galley-pdf", "../libexec/galley/galley-pdf",
                                          "../../libexec/galley/galley-pdf",
                                          "../lib/galley/galley-pdf" };
    const char *slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < COUNT(places); i++) {
        if (is_program(path, self, (size_t)(slash - self), places[i])) {
            return true;
        }
    }
    return false;
}

static bool helper_find(char *path)
{
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = 0;
        if (helper_near(path, self)) {
            return true;
        }
    }
    /* Somebody else's program: where this code was loaded from. */
    static const char here;
    Dl_info info;
    if (dladdr(&here, &info) != 0 && info.dli_fname && helper_near(path, info.dli_fname)) {
        return true;
    }
    return helper_on_path(path);
}

/* --- the child --- */

static int child_wait(struct pdf *p)
{
    int status = 0;
    pid_t got;
    do {
        got = waitpid(p->pid, &status, 0);
    } while (got < 0 && errno == EINTR);
    return got == p->pid ? status : 0; /* ECHILD: the host reaps children itself */
}

static void child_signal(const struct pdf *p, int sig)
{
    if (p->pid_fd < 0) {
        kill(p->pid, sig);
        return;
    }
    syscall(SYS_pidfd_send_signal, p->pid_fd, sig, NULL, 0);
}

/* Ends the child, whatever it is doing, and returns its wait status. */
static int child_end(struct pdf *p)
{
    if (!p->pid) {
        return 0;
    }
    child_signal(p, SIGKILL);
    const int status = child_wait(p);
    fd_close(&p->pid_fd);
    fd_close(&p->socket);
    p->pid = 0;
    return status;
}

/* Seconds of processor time the child has used; negative when the kernel does not say. */
static double child_cpu(const struct pdf *p)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(p->pid, &clock) || clock_gettime(clock, &used)) {
        return -1;
    }
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* A backstop for when this process is stopped and cannot watch the wall clock: the kernel ends the
 * child after `seconds` more of processor time (SIGXCPU). */
static void child_renew_cpu(const struct pdf *p, double seconds)
{
    const double used = child_cpu(p);
    if (used < 0) {
        return;
    }
    const struct rlimit limit = { (rlim_t)used + (rlim_t)ceil(seconds) + 2, RLIM_INFINITY };
    prlimit(p->pid, RLIMIT_CPU, &limit, NULL);
}

static int spawn_actions(posix_spawn_file_actions_t *fa, int socket, int bytes_fd)
{
    int rc = 0;
    for (int fd = 0; fd < 3 && !rc; fd++) {
        rc = posix_spawn_file_actions_addopen(fa, fd, "/dev/null", O_RDWR, 0);
    }
    rc = rc ? rc : posix_spawn_file_actions_adddup2(fa, socket, PDF_FD_SOCKET);
    rc = rc ? rc : posix_spawn_file_actions_adddup2(fa, bytes_fd, PDF_FD_BYTES);
    return rc ? rc : posix_spawn_file_actions_addclosefrom_np(fa, PDF_FD_BYTES + 1);
}

/* Own process group: a terminal's interrupt is for us to handle, not for the child. */
static int spawn_attributes(posix_spawnattr_t *at)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int rc = posix_spawnattr_setflags(at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    rc = rc ? rc : posix_spawnattr_setsigmask(at, &none);
    rc = rc ? rc : posix_spawnattr_setsigdefault(at, &all);
    return rc ? rc : posix_spawnattr_setpgroup(at, 0);
}

/* The child gets none of our environment: it has no use for what may be secret there, and its fonts
 * must not depend on who runs it. */
static int child_spawn(struct pdf *p, int socket)
{
    char memory[32];
    snprintf(memory, sizeof memory, "%llu", (unsigned long long)p->memory_bytes);
    char name[] = "galley-pdf", locale[] = "LC_ALL=C.UTF-8", path[] = "PATH=/usr/bin:/bin";
    char *argv[] = { name, memory, NULL };
    char *env[] = { locale, path, NULL };
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    int rc = posix_spawn_file_actions_init(&fa);
    if (rc) {
        return rc;
    }
    rc = posix_spawnattr_init(&at);
    if (rc) {
        posix_spawn_file_actions_destroy(&fa);
        return rc;
    }
    rc = spawn_actions(&fa, socket, p->bytes_fd);
    rc = rc ? rc : spawn_attributes(&at);
    rc = rc ? rc : posix_spawn(&p->pid, p->helper, &fa, &at, argv, env);
    posix_spawnattr_destroy(&at);
    posix_spawn_file_actions_destroy(&fa);
    return rc;
}

/* --- one packet in, one packet out --- */

/* Says how the child ended; `what` is the work it had. */
static enum galley_status child_lost(struct pdf *p, const char *what, struct galley_err *err)
{
    /* A child that is dead already keeps its own status whatever we send it. */
    const int status = child_end(p);
    p->lost_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (WIFSIGNALED(status)) {
        return galley_err_set(err, GALLEY_EINPUT, "%s: galley-pdf ended by signal %d", what,
                              WTERMSIG(status));
    }
    return galley_err_set(err, GALLEY_EINPUT, "%s: galley-pdf ended with status %d", what,
                          WEXITSTATUS(status));
}

static void cancel_take(struct pdf *p)
{
    uint64_t count;
    const ssize_t n = read(p->wake_fd, &count, sizeof count);
    (void)n; /* non-blocking: nothing there is as good */
}

/* Takes the descriptors out of a message: keeps the first, closes the rest. */
static int message_fd(struct msghdr *msg)
{
    int first = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (first < 0) {
                first = fd;
            } else {
                close(fd);
            }
        }
    }
    return first;
}

/* 1: a packet of *n bytes; 0: nothing yet; -1: the child is gone. */
static int packet_receive(struct pdf *p, uint8_t *bytes, size_t *n, int *fd)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))];
    struct iovec iov = { bytes, PDF_MAX_PACKET };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
    };
    const ssize_t got = recvmsg(p->socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }
    *fd = message_fd(&msg);
    if (got == 0 || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        fd_close(fd);
        return -1;
    }
    *n = (size_t)got;
    return 1;
}

/* Seconds the child may still take: `limit` of its own processor time, and WALL_FACTOR times that
 * by the wall clock (it may hang, or the machine may have little time for it). */
static double time_left(const struct pdf *p, double limit, double start, double cpu_start)
{
    const double wall = clock_seconds() - start;
    const double cpu = child_cpu(p);
    const double used = cpu < 0 || cpu_start < 0 ? wall : cpu - cpu_start;
    return fmin(limit - used, WALL_FACTOR * limit - wall);
}

/* Waits for one reply.  On anything but GALLEY_OK the child has been ended. */
static enum galley_status reply_wait(struct pdf *p, double limit, const char *what,
                                     struct pdf_reply *reply, int *fd, struct galley_err *err)
{
    uint8_t bytes[PDF_MAX_PACKET];
    size_t n = 0;
    *fd = -1;
    const double start = clock_seconds(), cpu_start = child_cpu(p);
    for (;;) {
        const double left = time_left(p, limit, start, cpu_start);
        if (left <= 0) {
            child_end(p);
            return galley_err_set(err, GALLEY_ETIMEOUT, "%s took longer than %g s", what, limit);
        }
        struct pollfd polls[2] = { { p->socket, POLLIN, 0 }, { p->wake_fd, POLLIN, 0 } };
        const int ready = poll(polls, 2, (int)fmin(left * 1000 + 1, 60000));
        if (ready < 0 && errno != EINTR) {
            child_end(p);
            return galley_err_set(err, GALLEY_EIO, "%s: poll: %s", what, strerror(errno));
        }
        if (ready > 0 && (polls[1].revents & POLLIN)) {
            cancel_take(p);
            child_end(p);
            return galley_err_set(err, GALLEY_ECANCELLED, "%s was cancelled", what);
        }
        if (ready <= 0 || !polls[0].revents) {
            continue;
        }
        const int got = packet_receive(p, bytes, &n, fd);
        if (got < 0) {
            return child_lost(p, what, err);
        }
        if (got > 0) {
            break;
        }
    }
    const enum galley_status rc = pdf_reply_decode(reply, bytes, n, err);
    if (rc) {
        fd_close(fd);
        child_end(p);
    }
    return rc;
}

/* Sends a request and waits.  A reply with an error status becomes that error; the child lives. */
static enum galley_status child_ask(struct pdf *p, const struct pdf_request *request, double limit,
                                    const char *what, struct pdf_reply *reply, int *fd,
                                    struct galley_err *err)
{
    uint8_t bytes[PDF_MAX_PACKET];
    const size_t n = pdf_request_encode(request, bytes);
    *fd = -1;
    child_renew_cpu(p, limit);
    if (send(p->socket, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n) {
        return child_lost(p, what, err);
    }
    const enum galley_status rc = reply_wait(p, limit, what, reply, fd, err);
    if (rc) {
        return rc;
    }
    if (reply->status) {
        fd_close(fd);
        return galley_err_set(err, reply->status, "%s: %s", what,
                              reply->message[0] ? reply->message : status_text(reply->status));
    }
    return GALLEY_OK;
}

/* Starts a child and waits until its sandbox is on (it says so with an empty good reply). */
static enum galley_status child_start(struct pdf *p, struct galley_err *err)
{
    int pair[2];
    assert(!p->pid);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return galley_err_set(err, GALLEY_EIO, "socketpair: %s", strerror(errno));
    }
    pair[1] = fd_raise(pair[1]);
    const int failed = pair[1] < 0 ? EMFILE : child_spawn(p, pair[1]);
    fd_close(&pair[1]);
    if (failed) {
        fd_close(&pair[0]);
        p->pid = 0;
        return galley_err_set(err, GALLEY_EIO, "cannot start %s: %s", p->helper, strerror(failed));
    }
    p->socket = pair[0];
    p->pid_fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    struct pdf_reply reply;
    int fd;
    enum galley_status rc = reply_wait(p, START_SECONDS, "starting galley-pdf", &reply, &fd, err);
    if (rc) {
        /* A helper that dies before it has seen a byte of the document is our trouble. */
        return rc == GALLEY_EINPUT ? galley_err_prefix(err, GALLEY_EIO, "%s", p->helper) : rc;
    }
    fd_close(&fd);
    if (reply.status) {
        child_end(p);
        return galley_err_set(err, GALLEY_EIO, "%s: %s", p->helper, reply.message);
    }
    return GALLEY_OK;
}

static enum galley_status child_open_once(struct pdf *p, struct galley_err *err)
{
    enum galley_status rc = child_start(p, err);
    if (rc) {
        return rc;
    }
    struct pdf_request request = { .kind = PDF_REQUEST_OPEN };
    memcpy(request.password, p->password, sizeof request.password);
    struct pdf_reply reply;
    int fd;
    rc = child_ask(p, &request, p->open_seconds, "opening the document", &reply, &fd, err);
    if (rc) {
        child_end(p);
        return rc;
    }
    fd_close(&fd);
    if (reply.n_pages < 1) {
        child_end(p);
        return galley_err_set(err, GALLEY_EINPUT, "the document has no pages");
    }
    if (reply.n_pages > p->max_pages) {
        child_end(p);
        return galley_err_set(err, GALLEY_ELIMIT, "the document has %d pages, the limit is %d",
                              reply.n_pages, p->max_pages);
    }
    /* A later child may count differently; the first count was given to the caller. */
    p->n_pages = p->n_pages ? p->n_pages : reply.n_pages;
    return GALLEY_OK;
}

/* A running child that has the document open.  One that was killed from outside before it got that
 * far has cost nothing yet: a second one may do better. */
static enum galley_status child_open(struct pdf *p, struct galley_err *err)
{
    if (p->pid) {
        return GALLEY_OK;
    }
    p->lost_by = 0;
    const enum galley_status rc = child_open_once(p, err);
    return rc && p->lost_by == SIGKILL ? child_open_once(p, err) : rc;
}

/* --- pages --- */

static bool fd_read_at(int fd, void *to, size_t n, uint64_t offset)
{
    uint8_t *at = to;
    while (n) {
        const ssize_t got = pread(fd, at, n, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return true;
}

static enum galley_status bitmap_read(const struct pdf *p, struct page *page,
                                      const struct pdf_reply *reply, int fd, struct galley_err *err)
{
    const int w = reply->bitmap_width, h = reply->bitmap_height;
    const bool fits = fabs((double)page->width * page->scale - w) <= 2 &&
                      fabs((double)page->height * page->scale - h) <= 2;
    if (!fits || (uint64_t)w * (uint64_t)h > p->max_page_pixels) {
        return galley_err_set(err, GALLEY_EINPUT, "a bitmap of %d x %d does not fit its page", w,
                              h);
    }
    page->bitmap = image_new(w, h);
    if (!page->bitmap) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a bitmap of %d x %d", w, h);
    }
    const size_t row = 3 * (size_t)w;
    uint64_t at = pdf_bitmap_offset(reply);
    if (page->bitmap->stride == row) {
        if (!fd_read_at(fd, page->bitmap->rgb, row * (size_t)h, at)) {
            return galley_err_set(err, GALLEY_EINPUT, "a bitmap ends early");
        }
        return GALLEY_OK;
    }
    for (int y = 0; y < h; y++, at += row) {
        if (!fd_read_at(fd, page->bitmap->rgb + (size_t)y * page->bitmap->stride, row, at)) {
            return galley_err_set(err, GALLEY_EINPUT, "a bitmap ends early");
        }
    }
    return GALLEY_OK;
}

/* Turns a good reply into a page. */
static enum galley_status page_read(const struct pdf *p, int i, const struct pdf_reply *reply,
                                    int fd, struct page **out, struct galley_err *err)
{
    struct stat st;
    /* A regular file of enough bytes, or pread could wait for ever. */
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        (uint64_t)st.st_size < pdf_reply_bytes(reply) || reply->page != i) {
        return galley_err_set(err, GALLEY_EINPUT, "galley-pdf's answer has no page %d", i + 1);
    }
    uint8_t *bytes = mem_alloc(reply->payload_bytes);
    if (!bytes) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a page of %u bytes",
                              reply->payload_bytes);
    }
    enum galley_status rc;
    if (fd_read_at(fd, bytes, reply->payload_bytes, 0)) {
        rc = pdf_page_decode(out, bytes, reply->payload_bytes, err);
    } else {
        rc = galley_err_set(err, GALLEY_EINPUT, "a page ends early");
    }
    mem_free(bytes);
    if (!rc && (*out)->index != i) {
        rc = galley_err_set(err, GALLEY_EINPUT, "page %d came as page %d", i + 1, (*out)->index);
    }
    if (!rc && reply->bitmap_width) {
        rc = bitmap_read(p, *out, reply, fd, err);
    }
    if (rc) {
        page_free(*out);
        *out = NULL;
    }
    return rc;
}

enum galley_status pdf_page(struct pdf *p, int i, double dpi, struct page **out,
                            struct galley_err *err)
{
    assert(p && out);
    *out = NULL;
    if (i < 0 || i >= p->n_pages || !(dpi >= 0 && dpi <= 10000)) {
        return galley_err_set(err, GALLEY_EUSAGE, "page %d of %d at %g dpi", i + 1, p->n_pages,
                              dpi);
    }
    enum galley_status rc = child_open(p, err);
    if (rc) {
        return rc;
    }
    const struct pdf_request request = {
        .kind = PDF_REQUEST_PAGE, .page = i, .dpi = dpi, .max_pixels = p->max_page_pixels
    };
    char what[32];
    snprintf(what, sizeof what, "page %d", i + 1);
    struct pdf_reply reply;
    int fd;
    rc = child_ask(p, &request, p->page_seconds, what, &reply, &fd, err);
    if (rc) {
        return rc;
    }
    rc = page_read(p, i, &reply, fd, out, err);
    fd_close(&fd);
    if (rc == GALLEY_EINPUT) {
        child_end(p); /* it speaks nonsense: the next page gets a fresh one */
    }
    return rc;
}

/* --- opening and closing --- */

/* The document for the child, sealed: one child cannot change what the next one reads. */
static int bytes_fd_new(const void *bytes, size_t n)
{
    int fd = fd_raise(memfd_create("galley-document", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    if (fd >= 0 && (!fd_write(fd, bytes, n) || fcntl(fd, F_ADD_SEALS, seals) != 0)) {
        const int why = errno;
        fd_close(&fd);
        errno = why;
    }
    return fd;
}

static struct pdf *pdf_new(const struct pdf_options *opt)
{
    struct pdf *p = mem_new(struct pdf);
    if (!p) {
        return NULL;
    }
    p->bytes_fd = p->wake_fd = p->pid_fd = p->socket = -1;
    p->memory_bytes = opt->memory_bytes ? opt->memory_bytes : 2ull << 30;
    p->max_page_pixels = opt->max_page_pixels ? opt->max_page_pixels : 40000000;
    p->open_seconds = opt->open_seconds > 0 ? opt->open_seconds : 20;
    p->page_seconds = opt->page_seconds > 0 ? opt->page_seconds : PAGE_SECONDS;
    p->max_pages = opt->max_pages > 0 ? opt->max_pages : 100000;
    return p;
}

enum galley_status pdf_open(struct pdf **out, const void *bytes, size_t n,
                            const struct pdf_options *opt, struct galley_err *err)
{
    static const struct pdf_options none;
    enum galley_status rc = GALLEY_OK;
    assert(out && (bytes || !n));
    *out = NULL;
    opt = opt ? opt : &none;
    if (!n) {
        return galley_err_set(err, GALLEY_EINPUT, "the document is empty");
    }
    if (opt->password && strlen(opt->password) > PDF_MAX_PASSWORD) {
        return galley_err_set(err, GALLEY_EENCRYPTED, "the password is longer than %d bytes",
                              PDF_MAX_PASSWORD);
    }
    struct pdf *p = pdf_new(opt);
    if (!p) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory to open a document");
    }
    if (opt->password) {
        memcpy(p->password, opt->password, strlen(opt->password));
    }
    char path[PATH_MAX];
    if (!opt->helper && !helper_find(path)) {
        rc = galley_err_set(err, GALLEY_EIO,
                            "galley-pdf is neither beside this program nor on PATH");
        goto fail;
    }
    p->helper = mem_strdup(opt->helper ? opt->helper : path);
    if (!p->helper) {
        rc = galley_err_set(err, GALLEY_ENOMEM, "no memory to open a document");
        goto fail;
    }
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    p->bytes_fd = p->wake_fd < 0 ? -1 : bytes_fd_new(bytes, n);
    if (p->bytes_fd < 0) {
        rc = galley_err_set(err, GALLEY_EIO, "no memory file for a document of %zu bytes: %s", n,
                            strerror(errno));
        goto fail;
    }
    rc = child_open(p, err);
    if (rc) {
        goto fail;
    }
    *out = p;
    return GALLEY_OK;
fail:
    pdf_close(p);
    return rc;
}

void pdf_close(struct pdf *p)
{
    if (!p) {
        return;
    }
    child_end(p);
    fd_close(&p->bytes_fd);
    fd_close(&p->wake_fd);
    explicit_bzero(p->password, sizeof p->password);
    mem_free(p->helper);
    mem_free(p);
}

int pdf_n_pages(const struct pdf *p)
{
    return p->n_pages;
}

void pdf_cancel(struct pdf *p)
{
    const uint64_t one = 1;
    const ssize_t n = write(p->wake_fd, &one, sizeof one);
    (void)n; /* full means: already cancelled */
}

int pdf_child_pid(const struct pdf *p)
{
    return (int)p->pid;
}

enum galley_status pdf_probe_sandbox(struct pdf *p, uint32_t *refused, struct galley_err *err)
{
    enum galley_status rc = child_open(p, err);
    if (rc) {
        return rc;
    }
    const struct pdf_request request = { .kind = PDF_REQUEST_PROBE };
    struct pdf_reply reply;
    int fd;
    rc = child_ask(p, &request, p->open_seconds, "probing the sandbox", &reply, &fd, err);
    fd_close(&fd);
    *refused = rc ? 0 : reply.refused;
    return rc;
}
