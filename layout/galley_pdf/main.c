/* main.c - galley-pdf: parses one PDF on behalf of the Galley library.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (galley-pdf is linked with Poppler)
 *
 * Started by layout/pdf.c with a socket on descriptor 3 and the document's bytes on 4
 * (pdf_proto.h). Order matters: limits, then a warm-up that loads every library, font table and
 * CMap it can, then the system-call filter, and only then the first byte of the document. */
#include <cairo.h>
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <glib.h>
#include <iconv.h>
#include <poll.h>
#include <poppler.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout/galley_pdf/files.h"
#include "layout/galley_pdf/sandbox.h"
#include "layout/galley_pdf/sheet.h"
#include "layout/pdf_proto.h"

#ifndef GALLEY_POPPLER_DATA
#define GALLEY_POPPLER_DATA "/usr/share/poppler"
#endif

/* --- the other end's death --- */

/* PR_SET_PDEATHSIG follows the thread that started us, not its process, so it would kill us when a
 * thread pool shrinks.  The socket's hang-up is the honest sign. */
static void on_socket_event(int sig)
{
    struct pollfd p = { PDF_FD_SOCKET, POLLRDHUP, 0 };
    (void)sig;
    if (poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLRDHUP))) {
        _exit(0);
    }
}

static bool watch_socket(void)
{
    struct sigaction sa = { .sa_handler = on_socket_event, .sa_flags = SA_RESTART };
    return sigaction(SIGIO, &sa, NULL) == 0 && fcntl(PDF_FD_SOCKET, F_SETOWN, getpid()) == 0 &&
           fcntl(PDF_FD_SOCKET, F_SETFL, O_ASYNC) == 0;
}

/* --- warm-up --- */

/* One small page with a font that is not embedded: loads fontconfig's tables, FreeType, the colour
 * management and everything else that Poppler opens lazily.  Its document is never released: with
 * the last one Poppler would drop the list of CMap folders, which cannot be read again. */
static const char warm_pdf[] =
    "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    "2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    "3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]/Contents 4 0 R/Resources<</Font<</F 5 0 "
    "R>>>>>>endobj\n"
    "4 0 obj<</Length 32>>stream\nBT /F 12 Tf 5 20 Td (Aa1) Tj ET \nendstream endobj\n"
    "5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n"
    "trailer<</Root 1 0 R>>\n%%EOF\n";

static bool warm_up(void)
{
    static GBytes *bytes;
    static PopplerDocument *doc; /* kept; static so that leak checkers see it */
    static iconv_t latin1;       /* kept: Poppler converts passwords, glibc loads the code for it */
    latin1 = iconv_open("ISO-8859-1", "UTF-8");
    bytes = g_bytes_new_static(warm_pdf, sizeof warm_pdf - 1);
    doc = poppler_document_new_from_bytes(bytes, NULL, NULL);
    if (doc) {
        const struct pdf_request request = { .kind = PDF_REQUEST_PAGE,
                                             .dpi = 72,
                                             .max_pixels = 1000000 };
        struct pdf_reply reply;
        const int fd = sheet_make(doc, &request, &reply);
        if (fd >= 0) {
            close(fd);
        }
    }
    return doc != NULL && latin1 != (iconv_t)-1;
}

/* --- requests --- */

static void reply_send(const struct pdf_reply *reply, int fd)
{
    uint8_t bytes[PDF_MAX_PACKET];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec iov = { bytes, pdf_reply_encode(reply, bytes) };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
    if (fd >= 0) {
        msg.msg_control = control;
        msg.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    ssize_t sent;
    do {
        sent = sendmsg(PDF_FD_SOCKET, &msg, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        _exit(4);
    }
}

static void reply_fail(struct pdf_reply *reply, enum galley_status status, const char *message)
{
    *reply = (struct pdf_reply){ .status = status };
    snprintf(reply->message, sizeof reply->message, "%s", message);
}

static bool page_exists(PopplerDocument *doc, int i)
{
    PopplerPage *page = poppler_document_get_page(doc, i);
    if (page) {
        g_object_unref(page);
    }
    return page != NULL;
}

/* A page tree may claim any count.  Pages that are not there are found out now, by bisection (those
 * that exist come first), rather than by one failed request each.  Where the file is large enough
 * for its claim the walk through the whole tree is saved. */
static int count_pages(PopplerDocument *doc, size_t n_bytes)
{
    const int claimed = poppler_document_get_n_pages(doc);
    if (claimed < 64 || n_bytes / (size_t)claimed >= 256 || page_exists(doc, claimed - 1)) {
        return claimed;
    }
    int have = 0, lack = claimed; /* pages 0 .. have-1 exist, page lack-1 does not */
    while (lack - have > 1) {
        const int middle = have + (lack - have) / 2;
        if (page_exists(doc, middle - 1)) {
            have = middle;
        } else {
            lack = middle;
        }
    }
    return have;
}

static PopplerDocument *document_open(GBytes *bytes, const char *password, struct pdf_reply *reply)
{
    GError *error = NULL;
    PopplerDocument *doc;
    if (password[0]) {
        /* Poppler 22.12 crashes on a wrong password in new_from_bytes and new_from_data (it tries
         * again with a stream that the first try has freed); this slower way is sound. */
        GInputStream *stream = g_memory_input_stream_new_from_bytes(bytes);
        doc = poppler_document_new_from_stream(stream, (goffset)g_bytes_get_size(bytes), password,
                                               NULL, &error);
        g_object_unref(stream);
    } else {
        doc = poppler_document_new_from_bytes(bytes, NULL, &error);
    }
    if (!doc) {
        const bool locked = g_error_matches(error, POPPLER_ERROR, POPPLER_ERROR_ENCRYPTED);
        if (locked) {
            reply_fail(reply, GALLEY_EENCRYPTED,
                       password[0] ? "the password is wrong" : "a password is needed");
        } else {
            reply_fail(reply, GALLEY_EINPUT, error ? error->message : "no readable PDF");
        }
        g_clear_error(&error);
        return NULL;
    }
    *reply = (struct pdf_reply){ .n_pages = count_pages(doc, g_bytes_get_size(bytes)) };
    if (reply->n_pages < 1) {
        reply_fail(reply, GALLEY_EINPUT, "the document has no pages");
    }
    return doc;
}

static void answer(PopplerDocument **doc, GBytes *bytes, const struct pdf_request *request)
{
    struct pdf_reply reply;
    int fd = -1;
    if (request->kind == PDF_REQUEST_OPEN) {
        if (*doc) {
            g_object_unref(*doc);
        }
        *doc = document_open(bytes, request->password, &reply);
    } else if (request->kind == PDF_REQUEST_PROBE) {
        reply = (struct pdf_reply){ .refused = sandbox_probe() };
    } else if (!*doc) {
        reply_fail(&reply, GALLEY_EUSAGE, "no document is open");
    } else {
        fd = sheet_make(*doc, request, &reply);
    }
    reply_send(&reply, fd);
    if (fd >= 0) {
        close(fd);
    }
}

static void serve(GBytes *bytes)
{
    PopplerDocument *doc = NULL;
    for (;;) {
        uint8_t packet[PDF_MAX_PACKET];
        struct pdf_request request;
        const ssize_t n = recv(PDF_FD_SOCKET, packet, sizeof packet, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0 || pdf_request_decode(&request, packet, (size_t)n, NULL)) {
            _exit(0);
        }
        answer(&doc, bytes, &request);
    }
}

static GBytes *document_bytes(void)
{
    struct stat st;
    if (fstat(PDF_FD_BYTES, &st) != 0 || st.st_size <= 0) {
        return NULL;
    }
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, PDF_FD_BYTES, 0);
    return map == MAP_FAILED ? NULL : g_bytes_new_static(map, (size_t)st.st_size);
}

int main(int argc, char **argv)
{
    struct pdf_reply ready = { 0 };
    if (argc != 2 || fcntl(PDF_FD_SOCKET, F_GETFD) < 0 || fcntl(PDF_FD_BYTES, F_GETFD) < 0) {
        fprintf(stderr, "galley-pdf is started by the Galley library, not by hand\n");
        return 2;
    }
    GBytes *bytes = document_bytes();
    /* The document's own mapping does not count. */
    const uint64_t memory = strtoull(argv[1], NULL, 10) + (bytes ? g_bytes_get_size(bytes) : 0);
    if (!bytes || !watch_socket() || !sandbox_limit(memory)) {
        reply_fail(&ready, GALLEY_EIO, "cannot set resource limits");
        reply_send(&ready, -1);
        return 3;
    }
    if (!warm_up()) {
        reply_fail(&ready, GALLEY_EIO, "Poppler cannot read its own warm-up page");
        reply_send(&ready, -1);
        return 3;
    }
    files_preopen(GALLEY_POPPLER_DATA);
    files_seal();
    if (!sandbox_enter()) {
        reply_fail(&ready, GALLEY_EIO, "the kernel refuses the system-call filter");
        reply_send(&ready, -1);
        return 3;
    }
    reply_send(&ready, -1);
    serve(bytes);
    return 0;
}
