/* test_text.c - base: buffers, UTF-8, errors, hashes, log lines. */
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/hash.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "tests/base/utf8_golden.h"
#include "tests/t.h"

/* ---- buf ---- */

static void buf_grows(void)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 5000; i++) {
        buf_addf(&b, "%d,", i);
        T_EQ(b.data[b.n], 0);
    }
    T_OK(buf_ok(&b));
    T_EQ(b.n, 10 * 2 + 90 * 3 + 900 * 4 + 4000 * 5);
    char *s = buf_take(&b);
    T_EQ(strlen(s), 10 * 2 + 90 * 3 + 900 * 4 + 4000 * 5);
    T_OK(strncmp(s, "0,1,2,3,", 8) == 0 && strcmp(s + strlen(s) - 5, "4999,") == 0);
    T_EQ(b.n, 0);
    mem_free(s);
    buf_add_str(&b, "again");
    T_STR(b.data, "again");
    buf_deinit(&b);
}

static void buf_stops_at_its_maximum(void)
{
    for (size_t max = 0; max < 200; max++) {
        struct buf b;
        buf_init(&b, max);
        for (size_t i = 0; i < max; i++) {
            buf_add_char(&b, 'x');
        }
        T_OK(buf_ok(&b));
        T_EQ(b.n, max);
        buf_add(&b, "", 0);
        T_OK(buf_ok(&b));
        buf_add_char(&b, 'y');
        T_OK(!buf_ok(&b));
        T_EQ(b.n, max);
        buf_add_str(&b, "");
        T_OK(!buf_ok(&b)); /* it sticks */
        T_OK(buf_take(&b) == NULL);
        T_OK(b.data == NULL);
    }
    struct buf b;
    buf_init(&b, 10);
    buf_add_str(&b, "12345678");
    buf_addf(&b, "%d", 123);
    T_OK(!buf_ok(&b));
    T_STR(b.data, "12345678");
    buf_deinit(&b);
    buf_init(&b, 10);
    buf_add(&b, "x", SIZE_MAX);
    T_OK(!buf_ok(&b));
    buf_deinit(&b);
}

static void buf_takes_even_nothing(void)
{
    struct buf b;
    buf_init(&b, 0);
    char *s = buf_take(&b);
    T_STR(s, "");
    mem_free(s);
    buf_init(&b, 100);
    buf_add_str(&b, "abcdef");
    buf_cut(&b, 2);
    T_STR(b.data, "ab");
    buf_add_cp(&b, 0x1f600);
    buf_add_cp(&b, 0xd800);
    T_STR(b.data, "ab\xf0\x9f\x98\x80\xef\xbf\xbd");
    buf_deinit(&b);
}

static void buf_survives_short_memory(void)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_add_str(&b, "kept");
    mem_fail_at(1);
    for (int i = 0; i < 100; i++) {
        buf_add_str(&b, "0123456789");
    }
    mem_fail_at(0);
    T_OK(!buf_ok(&b));
    T_OK(strncmp(b.data, "kept", 4) == 0);
    T_OK(buf_take(&b) == NULL);
}

static void buf_repairs_utf8(void)
{
    struct buf b;
    buf_init(&b, 100);
    buf_add_utf8(&b, "", 0);
    T_EQ(b.n, 0);
    buf_add_utf8(&b, "a\0\xc3\xa9\xff\xe2\x82z\xf0\x9f", 10);
    T_EQ(b.n, 14);
    T_OK(memcmp(b.data, "a\0\xc3\xa9\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd", 14) == 0);
    buf_deinit(&b);
    buf_init(&b, 5);
    buf_add_utf8(&b, "\xff\xff", 2);
    T_OK(!buf_ok(&b));
    buf_deinit(&b);
}

/* ---- utf8 ---- */

static void utf8_knows_all_scalars(void)
{
    struct buf b;
    buf_init(&b, 8 << 20);
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        char s[4];
        const int n = utf8_encode(cp, s);
        uint32_t back;
        T_EQ(utf8_decode(s, (size_t)n, &back), n);
        if (cp >= 0xd800 && cp < 0xe000) {
            T_EQ(back, UTF8_REPLACEMENT);
            continue;
        }
        T_EQ(back, cp);
        buf_add(&b, s, (size_t)n);
    }
    char sha[HASH_HEX_BYTES];
    hash_sha256_hex(b.data, b.n, sha);
    T_STR(sha, all_scalars_sha256);
    T_OK(utf8_valid(b.data, b.n));
    buf_deinit(&b);
    char s[4];
    T_EQ(utf8_encode(0x110000, s), 3);
    T_EQ(utf8_encode(0xffffffff, s), 3);
    T_OK(memcmp(s, "\xef\xbf\xbd", 3) == 0);
}

static void put_le32(struct buf *b, uint32_t v)
{
    const char le[4] = { (char)v, (char)(v >> 8), (char)(v >> 16), (char)(v >> 24) };
    buf_add(b, le, 4);
}

static void utf8_replaces_as_python_does(void)
{
    const size_t n = COUNT(edge_bytes);
    struct buf b;
    buf_init(&b, 16 << 20);
    int n_valid = 0;
    for (size_t i = 0; i < n * n * n * n; i++) {
        const char s[4] = { (char)edge_bytes[i / (n * n * n)], (char)edge_bytes[i / (n * n) % n],
                            (char)edge_bytes[i / n % n], (char)edge_bytes[i % n] };
        for (size_t k = 0; k < 4;) {
            uint32_t cp;
            const int used = utf8_decode(s + k, 4 - k, &cp);
            T_OK(used >= 1 && (size_t)used <= 4 - k);
            put_le32(&b, cp);
            k += (size_t)used;
        }
        n_valid += utf8_valid(s, 4);
    }
    char sha[HASH_HEX_BYTES];
    hash_sha256_hex(b.data, b.n, sha);
    T_STR(sha, edge_decoded_sha256);
    T_EQ(n_valid, EDGE_N_VALID);
    buf_deinit(&b);
}

/* The string ends in the middle: nothing behind the end is looked at (ASan watches). */
static void utf8_stops_at_the_end(void)
{
    static const char *const cut[] = { "\xc3", "\xe2",     "\xe2\x82",
                                       "\xf0", "\xf0\x9f", "\xf0\x9f\x98" };
    for (size_t i = 0; i < COUNT(cut); i++) {
        const size_t n = strlen(cut[i]);
        char *s = malloc(n);
        memcpy(s, cut[i], n);
        uint32_t cp;
        T_EQ(utf8_decode(s, n, &cp), n);
        T_EQ(cp, UTF8_REPLACEMENT);
        T_OK(!utf8_valid(s, n));
        free(s);
    }
    T_OK(utf8_valid("", 0));
    T_OK(utf8_valid("\xef\xbf\xbd", 3)); /* a real U+FFFD */
}

/* ---- err ---- */

static void err_says_one_sentence(void)
{
    struct galley_err err = { 0 };
    T_EQ(galley_err_set(&err, GALLEY_EINPUT, "%s: %d bytes", "a\tb\x1b[31m\x7f", 7), GALLEY_EINPUT);
    T_EQ(err.status, GALLEY_EINPUT);
    T_STR(err.msg, "a?b?[31m?: 7 bytes");
    T_EQ(galley_err_prefix(&err, GALLEY_EIO, "page %d", 3), GALLEY_EIO);
    T_EQ(err.status, GALLEY_EIO);
    T_STR(err.msg, "page 3: a?b?[31m?: 7 bytes");
    T_EQ(galley_err_set(NULL, GALLEY_ENOMEM, "nobody listens"), GALLEY_ENOMEM);
    T_EQ(galley_err_prefix(NULL, GALLEY_ENOMEM, "nobody listens"), GALLEY_ENOMEM);
    err = (struct galley_err){ 0 };
    (void)galley_err_prefix(&err, GALLEY_ENOMEM, "x");
    T_STR(err.msg, "x: out of memory");
}

/* Every way a long sentence can be cut, in two-, three- and four-byte characters. */
static void err_cuts_between_characters(void)
{
    static const char *const chars[] = { "\xc3\xa9", "\xed\x95\x9c", "\xf0\x9f\x98\x80" };
    for (size_t c = 0; c < COUNT(chars); c++) {
        for (int lead = 0; lead < 5; lead++) {
            char text[1024] = "";
            memset(text, 'x', (size_t)lead);
            for (size_t n = (size_t)lead; n < 700; n += strlen(chars[c])) {
                memcpy(text + n, chars[c], strlen(chars[c]));
            }
            struct galley_err err = { 0 };
            (void)galley_err_set(&err, GALLEY_EINPUT, "%s", text);
            const size_t n = strlen(err.msg);
            T_OK(n < GALLEY_ERR_MAX && n >= GALLEY_ERR_MAX - 5);
            T_OK(utf8_valid(err.msg, n));
            T_OK(strncmp(err.msg, text, n) == 0);
            (void)galley_err_prefix(&err, GALLEY_EINPUT, "%s", "page 1");
            T_OK(utf8_valid(err.msg, strlen(err.msg)));
            T_OK(strncmp(err.msg, "page 1: ", 8) == 0);
            T_OK(strncmp(err.msg + 8, text, strlen(err.msg) - 8) == 0);
            (void)galley_err_prefix(&err, GALLEY_EINPUT, "%s", text);
            T_OK(utf8_valid(err.msg, strlen(err.msg)));
            T_OK(strlen(err.msg) >= GALLEY_ERR_MAX - 5);
        }
    }
}

static void err_has_a_text_for_every_status(void)
{
    T_STR(status_text(GALLEY_OK), "ok");
    for (int s = 0; s > -13; s--) {
        T_OK(strcmp(status_text((enum galley_status)s), "unknown status") != 0);
    }
    T_STR(status_text((enum galley_status) - 99), "unknown status");
}

/* ---- hash: the examples of FIPS 180-4 ---- */

static void hash_equals_fips(void)
{
    static const struct {
        const char *text, *sha;
    } known[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };
    char sha[HASH_HEX_BYTES];
    for (size_t i = 0; i < COUNT(known); i++) {
        hash_sha256_hex(known[i].text, strlen(known[i].text), sha);
        T_STR(sha, known[i].sha);
    }
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    hash_sha256_hex(million, 1000000, sha);
    free(million);
    T_STR(sha, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Cut anywhere, the digest is the same; finishing starts anew. */
static void hash_takes_numbers(void)
{
    static const unsigned char raw[16] = { 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                           0,    0,    0,    0,    0,    0,    0xf8, 0x3f };
    unsigned char numbers[HASH_BYTES], bytes[HASH_BYTES];
    struct hash h;
    hash_init(&h);
    hash_add_int(&h, -2);
    hash_add_number(&h, 1.5);
    hash_finish(&h, numbers);
    hash_add(&h, raw, sizeof(raw));
    hash_finish(&h, bytes);
    T_OK(memcmp(numbers, bytes, HASH_BYTES) == 0);
}

static void hash_takes_pieces(void)
{
    unsigned char bytes[300], digest[HASH_BYTES];
    char whole[HASH_HEX_BYTES], pieces[HASH_HEX_BYTES];
    struct hash h;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(i * 7);
    }
    hash_sha256_hex(bytes, sizeof(bytes), whole);
    hash_init(&h);
    for (size_t cut = 0; cut <= sizeof(bytes); cut += 13) {
        hash_add(&h, bytes, cut);
        hash_add(&h, NULL, 0);
        hash_add(&h, bytes + cut, sizeof(bytes) - cut);
        hash_finish(&h, digest);
        hash_hex(digest, pieces);
        T_STR(pieces, whole);
    }
    hash_finish(&h, digest);
    hash_hex(digest, pieces);
    T_STR(pieces, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/* ---- log ---- */

static char logged[256];

static void keep_line(void *user, enum log_level level, const char *event, const char *text)
{
    snprintf(logged, sizeof(logged), "%s %d %s %s", (const char *)user, (int)level, event, text);
}

static void log_filters_by_level(void)
{
    char name[] = "me";
    const struct log l = { .fn = keep_line, .user = name, .min_level = LOG_INFO };
    logged[0] = '\0';
    log_line(&l, LOG_DEBUG, "kv.evict", "seq=%d", 1);
    T_STR(logged, "");
    log_line(&l, LOG_INFO, "kv.evict", "seq=%d", 2);
    T_STR(logged, "me 1 kv.evict seq=2");
    log_line(NULL, LOG_WARN, "nobody", "listens");
    const struct log silent = { 0 };
    log_line(&silent, LOG_WARN, "nobody", "listens");
    T_STR(logged, "me 1 kv.evict seq=2");
}

static const struct t_case cases[] = {
    { "buf_grows", buf_grows },
    { "buf_stops_at_its_maximum", buf_stops_at_its_maximum },
    { "buf_takes_even_nothing", buf_takes_even_nothing },
    { "buf_survives_short_memory", buf_survives_short_memory },
    { "buf_repairs_utf8", buf_repairs_utf8 },
    { "utf8_knows_all_scalars", utf8_knows_all_scalars },
    { "utf8_replaces_as_python_does", utf8_replaces_as_python_does },
    { "utf8_stops_at_the_end", utf8_stops_at_the_end },
    { "err_says_one_sentence", err_says_one_sentence },
    { "err_cuts_between_characters", err_cuts_between_characters },
    { "err_has_a_text_for_every_status", err_has_a_text_for_every_status },
    { "hash_equals_fips", hash_equals_fips },
    { "hash_takes_pieces", hash_takes_pieces },
    { "hash_takes_numbers", hash_takes_numbers },
    { "log_filters_by_level", log_filters_by_level },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
