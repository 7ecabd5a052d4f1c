/* fuzz_pdf_proto.c - bytes of a hostile child into the decoders of layout/pdf_proto.c.
 *
 * The first byte chooses the decoder.  What is accepted must survive a second trip unchanged. */
#include <stdlib.h>
#include <string.h>

#include "layout/pdf_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void fuzz_page(const uint8_t *bytes, size_t n)
{
    struct page *page, *again;
    struct buf b;
    if (pdf_page_decode(&page, bytes, n, NULL)) {
        return;
    }
    buf_init(&b, PDF_MAX_PAYLOAD);
    pdf_page_encode(page, &b);
    if (!buf_ok(&b) || pdf_page_decode(&again, (const uint8_t *)b.data, b.n, NULL)) {
        abort();
    }
    if (again->n_glyphs != page->n_glyphs || again->n_links != page->n_links) {
        abort();
    }
    buf_deinit(&b);
    page_free(again);
    page_free(page);
}

static void fuzz_reply(const uint8_t *bytes, size_t n)
{
    struct pdf_reply reply;
    uint8_t out[PDF_MAX_PACKET];
    if (pdf_reply_decode(&reply, bytes, n, NULL)) {
        return;
    }
    if (pdf_reply_encode(&reply, out) > n || pdf_reply_bytes(&reply) < reply.payload_bytes) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct pdf_request request;
    if (!n) {
        return 0;
    }
    switch (data[0] % 3) {
    case 0:
        fuzz_page(data + 1, n - 1);
        break;
    case 1:
        fuzz_reply(data + 1, n - 1);
        break;
    default:
        if (pdf_request_decode(&request, data + 1, n - 1, NULL) == GALLEY_OK &&
            request.kind > PDF_REQUEST_PROBE) {
            abort();
        }
    }
    return 0;
}
