/* pdf_proto.h - what the library and galley-pdf say to each other.
 *
 * A SOCK_SEQPACKET pair carries one request and one reply at a time, each a packet of fixed layout
 * in host byte order (both ends run on one machine).  A page travels in a memfd whose descriptor
 * rides with the reply and which the library only ever copies from (pread): first `payload_bytes`
 * of encoded page, then, at the next multiple of PDF_BITMAP_ALIGN, the RGB bitmap with tight rows.
 *
 * Everything the child says is hostile: the decoders check every length, count and number, so that
 * what they hand on is a well-formed page whatever the bytes were.  Pure; any thread. */
#ifndef GALLEY_LAYOUT_PDF_PROTO_H
#define GALLEY_LAYOUT_PDF_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "layout/page.h"
#include "src/base/buf.h"
#include "src/base/compiler.h"
#include "src/base/err.h"

/* Descriptors the child starts with (0-2 are /dev/null). */
#define PDF_FD_SOCKET 3
#define PDF_FD_BYTES  4 /* sealed memfd with the document */

#define PDF_MAX_SIDE     14400.0f /* pt */
#define PDF_MAX_GLYPHS   500000
#define PDF_MAX_RUNS     100000
#define PDF_MAX_RULES    20000
#define PDF_MAX_PICTURES 5000
#define PDF_MAX_LINKS    10000
#define PDF_MAX_URI      2048 /* bytes */
#define PDF_MAX_PASSWORD 512  /* bytes */
#define PDF_MAX_MESSAGE  200  /* bytes */
#define PDF_MAX_PACKET   1024
#define PDF_BITMAP_ALIGN 4096
/* The largest encoded page: all the caps above at once stay below this. */
#define PDF_MAX_PAYLOAD (64u << 20)

enum pdf_request_kind {
    PDF_REQUEST_OPEN = 1, /* parse the document: reply has n_pages */
    PDF_REQUEST_PAGE,     /* one page: reply carries a memfd */
    PDF_REQUEST_PROBE     /* try what the sandbox forbids: reply.refused */
};

/* What a probe found refused; all of PDF_PROBE_ALL is the only good answer. */
enum pdf_probe {
    PDF_PROBE_READ_FILE = 1,
    PDF_PROBE_WRITE_FILE = 2,
    PDF_PROBE_NETWORK = 4,
    PDF_PROBE_EXEC = 8,
    PDF_PROBE_FORK = 16,
    PDF_PROBE_SIGNAL = 32, /* another process */
    PDF_PROBE_CODE = 64,   /* mapping memory as executable */
    PDF_PROBE_ALL = 127
};

struct pdf_request {
    enum pdf_request_kind kind;
    int page;
    double dpi;          /* 0: no bitmap wanted */
    uint64_t max_pixels; /* the scale is lowered to stay below */
    char password[PDF_MAX_PASSWORD + 1];
};

struct pdf_reply {
    enum galley_status status;
    int n_pages;
    int page;
    uint32_t refused; /* enum pdf_probe */
    uint32_t payload_bytes;
    int bitmap_width, bitmap_height; /* 0: none */
    char message[PDF_MAX_MESSAGE + 1];
};

/* Encoders return the packet's bytes; `out` has room for PDF_MAX_PACKET. */
size_t pdf_request_encode(const struct pdf_request *r, uint8_t out[PDF_MAX_PACKET]);
size_t pdf_reply_encode(const struct pdf_reply *r, uint8_t out[PDF_MAX_PACKET]);
GALLEY_MUST_USE enum galley_status pdf_request_decode(struct pdf_request *r, const uint8_t *bytes,
                                                      size_t n, struct galley_err *err);
GALLEY_MUST_USE enum galley_status pdf_reply_decode(struct pdf_reply *r, const uint8_t *bytes,
                                                    size_t n, struct galley_err *err);

/* Bytes of the whole memfd that a reply announces. */
uint64_t pdf_reply_bytes(const struct pdf_reply *r);
uint64_t pdf_bitmap_offset(const struct pdf_reply *r);

/* Appends p without its bitmap; check buf_ok afterwards. */
void pdf_page_encode(const struct page *p, struct buf *out);
/* A new page (page_free) without bitmap from bytes[0..n). */
GALLEY_MUST_USE enum galley_status pdf_page_decode(struct page **out, const uint8_t *bytes,
                                                   size_t n, struct galley_err *err);

#endif
