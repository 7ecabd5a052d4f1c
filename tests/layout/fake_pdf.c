/* fake_pdf.c - a helper that lies: stands in for galley-pdf in test_pdf_child.c.
 *
 * The address-space limit, the only argument, chooses the lie. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "layout/pdf_proto.h"
#include "src/base/mem.h"
#include "tests/layout/fake_pdf.h"

static void send_packet(const void *bytes, size_t n, const int *fds, size_t n_fds)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(64 * sizeof(int))];
    struct iovec iov = { (void *)(uintptr_t)bytes, n };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
    if (n_fds) {
        memset(control, 0, sizeof control);
        msg.msg_control = control;
        msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    if (sendmsg(PDF_FD_SOCKET, &msg, MSG_NOSIGNAL) < 0) {
        _exit(9);
    }
}

static void send_reply(const struct pdf_reply *reply, const int *fds, size_t n_fds)
{
    uint8_t bytes[PDF_MAX_PACKET];
    send_packet(bytes, pdf_reply_encode(reply, bytes), fds, n_fds);
}

static void wait_request(void)
{
    uint8_t bytes[PDF_MAX_PACKET];
    if (recv(PDF_FD_SOCKET, bytes, sizeof bytes, 0) <= 0) {
        _exit(0);
    }
}

/* A memfd with a good page of 100 x 100 pt, cut to `keep` bytes (0: whole). */
static int page_fd(struct pdf_reply *reply, size_t keep)
{
    struct page page = { .width = 100, .height = 100, .scale = 1 };
    struct buf b;
    buf_init(&b, PDF_MAX_PAYLOAD);
    pdf_page_encode(&page, &b);
    const int fd = memfd_create("fake", MFD_CLOEXEC);
    reply->payload_bytes = (uint32_t)b.n;
    if (write(fd, b.data, b.n) != (ssize_t)b.n || (keep && ftruncate(fd, (off_t)keep) != 0)) {
        _exit(8);
    }
    buf_deinit(&b);
    return fd;
}

static void answer_page(int lie)
{
    struct pdf_reply reply = { 0 };
    int fds[64];
    int pipes[2];
    fds[0] = page_fd(&reply, lie == FAKE_SHORT_FILE ? 10 : 0);
    switch (lie) {
    case FAKE_GARBAGE:
        send_packet("garbage", 7, NULL, 0);
        break;
    case FAKE_NO_FILE:
        send_reply(&reply, NULL, 0);
        break;
    case FAKE_PIPE:
        if (pipe(pipes) != 0) {
            _exit(7);
        }
        send_reply(&reply, pipes, 1);
        break;
    case FAKE_MANY_FILES:
        for (int i = 1; i < 12; i++) {
            fds[i] = fds[0];
        }
        send_reply(&reply, fds, 12);
        break;
    case FAKE_TOO_MANY_FILES:
        for (int i = 1; i < 64; i++) {
            fds[i] = fds[0];
        }
        send_reply(&reply, fds, 64);
        break;
    case FAKE_BIG_BITMAP: /* does not fit a page of 100 x 100 pt at scale 1 */
        reply.bitmap_width = reply.bitmap_height = 30000;
        if (ftruncate(fds[0], (off_t)3 << 30) != 0) {
            _exit(6);
        }
        send_reply(&reply, fds, 1);
        break;
    case FAKE_OTHER_PAGE:
        reply.page = 1;
        send_reply(&reply, fds, 1);
        break;
    case FAKE_EMPTY_PACKET:
        send_packet("", 0, NULL, 0);
        break;
    default:
        send_reply(&reply, fds, 1);
    }
}

int main(int argc, char **argv)
{
    const struct pdf_reply ready = { 0 }, two = { .n_pages = 2 };
    const int lie = argc > 1 ? atoi(argv[1]) : 0;
    if (lie == FAKE_DEAD_START) {
        return 3;
    }
    if (lie == FAKE_GARBAGE_START) {
        send_packet("hello", 5, NULL, 0);
        pause();
    }
    send_reply(&ready, NULL, 0);
    wait_request();
    send_reply(&two, NULL, 0);
    for (;;) {
        wait_request();
        answer_page(lie);
    }
}
