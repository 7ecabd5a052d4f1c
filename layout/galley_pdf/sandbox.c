/* sandbox.c - rlimits, seccomp filter and its self-test.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (galley-pdf is linked with Poppler)
 *
 * The filter refuses (EPERM) every call that is not listed below.  What stays, and why:
 *   memory        mmap, mprotect (never executable), munmap, mremap, brk, madvise
 *   descriptors   read, write, lseek, close, fstat, dup, fcntl, readv, writev, pread64, pwrite64:
 *                 the document, the preopened fonts and CMaps (all opened read-only), the socket,
 *                 /dev/null and own memfds are all there is to use them on
 *   results       memfd_create, ftruncate, sendmsg/recvmsg/sendto/recvfrom on the socket only
 *   time, random  clock_gettime, clock_getres, gettimeofday, nanosleep, getrandom
 *   the rest      futex, poll, signals to itself (abort), exit, getpid/gettid, getrusage
 * No call that takes a path is left: nothing can be opened, listed, stat-ed, renamed or removed.
 * No socket, no exec, no fork, no thread, no ptrace, no prctl, no setrlimit. */
#include "layout/galley_pdf/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "layout/pdf_proto.h"
#include "src/base/compiler.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static bool limit_set(int what, rlim_t value)
{
    const struct rlimit limit = { value, value };
    return setrlimit(what, &limit) == 0;
}

bool sandbox_limit(uint64_t memory_bytes)
{
    /* Sanitizers reserve terabytes of address space. */
    const bool ok = SANITIZED || limit_set(RLIMIT_AS, memory_bytes);
    /* FSIZE bounds the memfd of a page; the processor time is set and renewed by the library. */
    return ok && limit_set(RLIMIT_CORE, 0) && limit_set(RLIMIT_FSIZE, (rlim_t)1 << 30) &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static bool allow_plain(scmp_filter_ctx f)
{
    static const int calls[] = {
        SCMP_SYS(munmap),
        SCMP_SYS(mremap),
        SCMP_SYS(brk),
        SCMP_SYS(madvise),
        SCMP_SYS(read),
        SCMP_SYS(write),
        SCMP_SYS(readv),
        SCMP_SYS(writev),
        SCMP_SYS(pread64),
        SCMP_SYS(pwrite64),
        SCMP_SYS(lseek),
        SCMP_SYS(close),
        SCMP_SYS(fstat),
        SCMP_SYS(dup),
        SCMP_SYS(ftruncate),
        SCMP_SYS(clock_gettime),
        SCMP_SYS(clock_getres),
        SCMP_SYS(gettimeofday),
        SCMP_SYS(nanosleep),
        SCMP_SYS(getrandom),
        SCMP_SYS(clock_nanosleep),
        SCMP_SYS(futex),
        SCMP_SYS(poll),
        SCMP_SYS(ppoll),
        SCMP_SYS(rt_sigaction),
        SCMP_SYS(rt_sigprocmask),
        SCMP_SYS(rt_sigreturn),
        SCMP_SYS(sigaltstack),
        SCMP_SYS(exit),
        SCMP_SYS(exit_group),
        SCMP_SYS(getpid),
        SCMP_SYS(gettid),
        SCMP_SYS(getrusage),
        SCMP_SYS(sched_yield),
        SCMP_SYS(restart_syscall),
        SCMP_SYS(sched_getaffinity),
    };
    for (size_t i = 0; i < COUNT(calls); i++) {
        /* A call that this machine does not have needs no rule. */
        const int rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, calls[i], 0);
        if (rc && rc != -EDOM) {
            return false;
        }
    }
    return true;
}

/* Allows `call` when its argument number i_arg compares so. */
static bool allow_if(scmp_filter_ctx f, int call, unsigned i_arg, enum scmp_compare op,
                     scmp_datum_t a, scmp_datum_t b)
{
    const struct scmp_arg_cmp compare = { i_arg, op, a, b };
    return seccomp_rule_add_array(f, SCMP_ACT_ALLOW, call, 1, &compare) == 0;
}

static bool allow_checked(scmp_filter_ctx f)
{
    static const int on_socket[] = { SCMP_SYS(sendmsg), SCMP_SYS(recvmsg), SCMP_SYS(sendto),
                                     SCMP_SYS(recvfrom) };
    static const unsigned commands[] = { F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL };
    bool ok = allow_if(f, SCMP_SYS(mmap), 2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0) &&
              allow_if(f, SCMP_SYS(mprotect), 2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
    for (size_t i = 0; i < COUNT(on_socket) && ok; i++) {
        ok = allow_if(f, on_socket[i], 0, SCMP_CMP_EQ, PDF_FD_SOCKET, 0);
    }
    for (size_t i = 0; i < COUNT(commands) && ok; i++) {
        ok = allow_if(f, SCMP_SYS(fcntl), 1, SCMP_CMP_EQ, commands[i], 0);
    }
    /* No huge pages; abort() and raise() send to the own process only. */
    return ok && allow_if(f, SCMP_SYS(memfd_create), 1, SCMP_CMP_EQ, MFD_CLOEXEC, 0) &&
           allow_if(f, SCMP_SYS(tgkill), 0, SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0);
}

bool sandbox_enter(void)
{
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    const bool ok = f && allow_plain(f) && allow_checked(f) && seccomp_load(f) == 0;
    if (f) {
        seccomp_release(f);
    }
    return ok;
}

static bool refused(long result)
{
    return result == -1 && (errno == EPERM || errno == EACCES);
}

uint32_t sandbox_probe(void)
{
    uint32_t set = 0;
    char *const argv[] = { NULL };
    /* The system calls themselves: the wrappers above must not be what refuses. */
    set |=
        refused(syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY)) ? PDF_PROBE_READ_FILE : 0;
    set |= refused(syscall(SYS_openat, AT_FDCWD, "/tmp/galley-pdf-probe", O_WRONLY | O_CREAT, 0600))
               ? PDF_PROBE_WRITE_FILE
               : 0;
    set |= refused(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0)) ? PDF_PROBE_NETWORK : 0;
    set |= refused(syscall(SYS_execve, "/bin/true", argv, argv)) ? PDF_PROBE_EXEC : 0;
    const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        syscall(SYS_exit_group, 0);
    }
    set |= refused(child) ? PDF_PROBE_FORK : 0;
    set |= refused(syscall(SYS_kill, getppid(), 0)) ? PDF_PROBE_SIGNAL : 0;
    void *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    set |= code == MAP_FAILED && errno == EPERM ? PDF_PROBE_CODE : 0;
    return set;
}
