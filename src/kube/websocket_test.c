#include "kube/websocket.h"

#include "tests/lib/test.h"

static const uint8_t mask[4] = { 1, 2, 3, 4 };

/* A frame that we wrote, as a server sees it; returns how long it is. */
static size_t unmask(struct buf *b, struct str *out)
{
    uint8_t *p = (uint8_t *)b->p;
    size_t n = p[1] & 0x7f, at = 2;
    if (n == 126) {
        n = (size_t)(p[2] << 8 | p[3]);
        at = 4;
    } else if (n == 127) {
        n = (size_t)p[6] << 24 | (size_t)p[7] << 16 | (size_t)p[8] << 8 | p[9];
        at = 10;
    }
    CHECK(p[1] & 0x80 && memcmp(p + at, mask, 4) == 0);
    for (size_t i = 0; i < n; i++)
        p[at + 4 + i] ^= mask[i % 4];
    *out = (struct str){ (char *)p + at + 4, n };
    return at + 4 + n;
}

static void what_is_written_is_masked_and_whole(void)
{
    static const size_t sizes[] = { 0, 1, 124, 125, 126, 1000, 65534, 65535, 65536, 300000 };
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        AUTO(buf_free) struct buf text = BUF(1 << 20), out = BUF(1 << 20);
        struct str got;
        for (size_t k = 0; k < sizes[i]; k++)
            buf_addc(&text, (char)k);
        kube_ws_write(&out, KUBE_WS_BINARY, STR("#"), buf_str(&text), mask);
        CHECK_INT((uint8_t)out.p[0], 0x82);
        CHECK_INT(unmask(&out, &got), out.n);
        CHECK(got.n == sizes[i] + 1 && got.p[0] == '#');
        CHECK(memcmp(got.p + 1, buf_str(&text).p, sizes[i]) == 0);
    }
}

static void frames_are_read_when_they_are_there(void)
{
    static const char bytes[] = "\x82\x03"
                                "abc"
                                "\x01\x00"
                                "\x89\x7d";
    struct kube_ws_frame f;
    struct err e;
    size_t n = 0;
    for (size_t part = 0; part < 5; part++)
        CHECK_INT(kube_ws_read((struct str){ bytes, part }, &f, &n, &e), 0);
    CHECK_INT(kube_ws_read((struct str){ bytes, 9 }, &f, &n, &e), 1);
    CHECK(n == 5 && f.kind == KUBE_WS_BINARY && f.last && str_is(f.payload, "abc"));
    CHECK_INT(kube_ws_read((struct str){ bytes + 5, 4 }, &f, &n, &e), 1);
    CHECK(n == 2 && f.kind == KUBE_WS_TEXT && !f.last && f.payload.n == 0);
    CHECK_INT(kube_ws_read((struct str){ bytes + 7, 2 }, &f, &n, &e), 0); /* 125 bytes come */
}

static void long_frames_have_long_lengths(void)
{
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    struct kube_ws_frame f;
    struct err e;
    size_t n = 0;
    buf_add(&b, (struct str){ "\x82\x7f\0\0\0\0\0\1\0\0", 10 });
    CHECK_INT(kube_ws_read(buf_str(&b), &f, &n, &e), 0);
    for (size_t i = 0; i < 65536; i++)
        buf_addc(&b, 'x');
    CHECK_INT(kube_ws_read(buf_str(&b), &f, &n, &e), 1);
    CHECK(f.payload.n == 65536 && n == 65546);
}

static void what_a_server_may_not_send_is_refused(void)
{
    static const struct str cases[] = {
        STR("\x82\x81"
            "aaaab"), /* masked */
        STR("\xc2\x01"
            "a"), /* a reserved bit */
        STR("\x83\x01"
            "a"), /* an unknown kind */
        STR("\x8b\x01"
            "a"),                /* the same for control */
        STR("\x89\x7e\x01\x01"), /* a long ping */
        STR("\x09\x01"
            "a"),                          /* a split ping */
        STR("\x82\x7f\0\0\0\0\0\x10\0\1"), /* more than 1 MiB */
        STR("\x82\x7f\xff\0\0\0\0\0\0\1"), /* far more */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kube_ws_frame f;
        struct err e = { 0 };
        size_t n;
        CHECK_AT(i, kube_ws_read(cases[i], &f, &n, &e) < 0 && e.code == ERR_UNAVAILABLE);
    }
}

#define WELCOME                                                                                    \
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\n"                                   \
    "Connection: keep-alive, Upgrade\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n"
#define RIGHT "Sec-WebSocket-Accept: ku7S62yQUUpTuxt7O2SldjjkJ7g=\r\n"

static void a_handshake_is_checked(void)
{
    AUTO(buf_free) struct buf out = BUF(1 << 16);
    struct kube_ws_hello hello = { STR("h:443"), STR("/x?a=b"), "v5, v4",
                                   "Authorization: Bearer t" };
    struct kube_ws_welcome w;
    struct err e = { 0 };
    kube_ws_hello(&out, &hello);
    CHECK(strncmp(out.p, "GET /x?a=b HTTP/1.1\r\nHost: h:443\r\n", 34) == 0);
    CHECK(strstr(out.p, "\r\nSec-WebSocket-Protocol: v5, v4\r\n"));
    CHECK(strstr(out.p, "\r\nAuthorization: Bearer t\r\n\r\n"));
    CHECK_INT(kube_ws_welcome(STR(WELCOME), &w, &e), 0);
    CHECK_INT(kube_ws_welcome(STR(WELCOME RIGHT "\r\n\x82\x01"), &w, &e), 1);
    CHECK(w.status == 101 && w.head_n == sizeof(WELCOME RIGHT "\r\n") - 1);
    CHECK(str_is(w.protocol, "v5.channel.k8s.io"));
    CHECK_INT(kube_ws_welcome(STR(WELCOME "Sec-WebSocket-Accept: x\r\n\r\n"), &w, &e), -1);
    CHECK_INT(kube_ws_welcome(STR(WELCOME "\r\n"), &w, &e), -1);
    CHECK_INT(kube_ws_welcome(STR("220 smtp\r\n\r\n"), &w, &e), -1);
    CHECK_INT(kube_ws_welcome(STR("HTTP/1.1 999 x\r\n\r\n"), &w, &e), -1);
    CHECK_INT(kube_ws_welcome(STR("HTTP/1.1 403 Forbidden\r\nContent-Length: 7\r\n\r\n"), &w, &e),
              1);
    CHECK(w.status == 403 && w.body_n == 7);
    CHECK_INT(kube_ws_welcome(STR("HTTP/1.1 500\r\n\r\n"), &w, &e), 1);
    CHECK(w.status == 500 && w.body_n == SIZE_MAX);
}

static const struct test tests[] = {
    { "what is written is masked and whole, whatever its size",
      what_is_written_is_masked_and_whole },
    { "a frame is read when all of it is there", frames_are_read_when_they_are_there },
    { "long frames have long lengths", long_frames_have_long_lengths },
    { "what a server may not send is refused", what_a_server_may_not_send_is_refused },
    { "a handshake is checked", a_handshake_is_checked },
};
TEST_CASES(tests)
