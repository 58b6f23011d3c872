#include "kube/exec.h"

#include <fcntl.h>

#include "tests/lib/kube_try.h"

#define WELCOME                                                                                    \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"            \
    "Sec-WebSocket-Accept: ku7S62yQUUpTuxt7O2SldjjkJ7g=\r\nSec-WebSocket-Protocol: %s\r\n\r\n"
#define SUCCESS "\x03{\"status\":\"Success\"}"
#define FAILED_7                                                                                   \
    "\x03{\"status\":\"Failure\",\"message\":\"command terminated with exit code 7\","             \
    "\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":\"ExitCode\","            \
    "\"message\":\"7\"}]}}"

struct world {
    struct loop *loop;
    struct try_api *api;
    struct kube_config config;
    struct kube_client *client;
    int fd, ends, code;
    struct err why;
    char complaints[64];
    const char *protocol;
    struct buf heard;  /* by the server: frames as "<channel in hex>:<bytes>|" */
    struct buf output; /* by the caller */
    struct try_conn *conn;
    bool eof;
};

static void on_end(void *ctx, int exit_code, struct str complaints, const struct err *why)
{
    struct world *w = ctx;
    w->ends++;
    w->code = exit_code;
    w->why = why ? *why : (struct err){ 0 };
    snprintf(w->complaints, sizeof w->complaints, "%.*s", STR_ARG(complaints));
}

static void world_begin(struct world *w, try_fn *fn)
{
    struct err e;
    static const char *const argv[] = { "echo", "a b", NULL };
    struct kube_exec_request rq = { .ns = "lab", .pod = "p", .container = "c", .argv = argv };
    *w = (struct world){ .loop = loop_new(), .protocol = "v5.channel.k8s.io" };
    w->heard = w->output = BUF(8 << 20);
    w->api = try_begin(w->loop, fn, w);
    w->config = try_config(w->api);
    w->config.token = "secret";
    w->client = kube_client_new(w->loop, NULL, &w->config, &e);
    w->fd = kube_exec(w->client, &rq, on_end, w, &e);
    CHECK(w->fd >= 0 && fcntl(w->fd, F_GETFL) & O_NONBLOCK);
}

static void world_end(struct world *w)
{
    if (w->fd >= 0)
        close(w->fd);
    kube_client_free(w->client);
    try_end(w->api);
    loop_free(w->loop);
    buf_free(&w->heard);
    buf_free(&w->output);
}

static void drink(struct world *w)
{
    char chunk[65536];
    ssize_t n;
    while (!w->eof && (n = read(w->fd, chunk, sizeof chunk)) >= 0) {
        buf_add(&w->output, (struct str){ chunk, (size_t)n });
        w->eof = n == 0;
    }
}

static bool is_over(void *ctx)
{
    struct world *w = ctx;
    drink(w);
    return w->ends > 0;
}

static bool is_connected(void *ctx)
{
    return ((struct world *)ctx)->conn != NULL;
}

/* ---- the server's side ---- */

static void frame(struct try_conn *c, unsigned first, struct str payload)
{
    uint8_t head[4] = { (uint8_t)first, (uint8_t)MIN(payload.n, (size_t)126),
                        (uint8_t)(payload.n >> 8), (uint8_t)payload.n };
    CHECK(payload.n < 65536);
    try_say_bytes(c, (struct str){ (char *)head, payload.n < 126 ? 2 : 4 });
    try_say_bytes(c, payload);
}

/* Writes down whole frames of the client; what is not whole waits in c->in. */
static void note(struct world *w, struct str in)
{
    while (in.n >= 6) {
        const uint8_t *p = (const uint8_t *)in.p;
        size_t n = p[1] & 0x7f, at = 2;
        if (n == 126) {
            n = (size_t)(p[2] << 8 | p[3]);
            at = 4;
        }
        CHECK(p[1] & 0x80 && in.n >= at + 4 + n);
        for (size_t i = 0; i < n; i++) {
            uint8_t byte = p[at + 4 + i] ^ p[at + i % 4];
            if (i == 0)
                buf_printf(&w->heard, "%x:", byte);
            else if (byte == '\0')
                buf_addz(&w->heard, "0");
            else
                buf_addc(&w->heard, (char)byte);
        }
        buf_addz(&w->heard, "|");
        in = (struct str){ in.p + at + 4 + n, in.n - at - 4 - n };
    }
}

static bool greet(struct try_conn *c, struct str rq)
{
    struct world *w = c->api->ctx;
    if (c->raw) {
        note(w, rq);
        return false;
    }
    CHECK(strncmp(rq.p,
                  "GET /api/v1/namespaces/lab/pods/p/exec?stdin=true&stdout=true&stderr=true"
                  "&tty=false&container=c&command=echo&command=a%20b HTTP/1.1\r\n",
                  120) == 0);
    CHECK(strstr(rq.p, "\r\nAuthorization: Bearer secret\r\n"));
    CHECK(strstr(rq.p, "\r\nSec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\n"));
    try_say(c, WELCOME, w->protocol);
    c->raw = true;
    w->conn = c;
    return true;
}

static void only_greet(struct try_conn *c, struct str rq)
{
    greet(c, rq);
}

static void echo_and_end(struct try_conn *c, struct str rq)
{
    if (!greet(c, rq))
        return;
    frame(c, 0x82,
          STR("\x01"
              "a "));
    frame(c, 0x89, STR("hi")); /* a ping in between */
    frame(c, 0x02,
          STR("\x01"
              "b")); /* a message in three frames */
    frame(c, 0x00, STR(""));
    frame(c, 0x80, STR("\n"));
    frame(c, 0x82,
          STR("\x02"
              "oh dear"));
    frame(c, 0x82, STR(FAILED_7));
    frame(c, 0x88, STR("\x03\xe8"));
    try_hang_up(c);
}

static void output_and_exit_code_arrive(void)
{
    struct world w;
    world_begin(&w, echo_and_end);
    try_until(w.loop, is_over, &w);
    drink(&w);
    CHECK_STR(w.output.p, "a b\n");
    CHECK(w.eof);
    CHECK_INT(w.code, 7);
    CHECK_STR(w.why.msg, "command terminated with exit code 7");
    CHECK_STR(w.complaints, "oh dear");
    try_turns(w.loop);
    CHECK_INT(w.ends, 1);
    world_end(&w);
}

static bool has_heard_end(void *ctx)
{
    struct world *w = ctx;
    return w->heard.p && strstr(w->heard.p, "ff:0|");
}

static void input_goes_in_and_ends(void)
{
    struct world w;
    world_begin(&w, only_greet);
    CHECK(write(w.fd, "hello", 5) == 5); /* before it is even connected */
    CHECK(shutdown(w.fd, SHUT_WR) == 0);
    try_until(w.loop, has_heard_end, &w);
    CHECK_STR(w.heard.p, "0:hello|ff:0|");
    frame(w.conn, 0x82, STR(SUCCESS));
    try_hang_up(w.conn);
    try_until(w.loop, is_over, &w);
    CHECK(w.code == 0 && w.why.code == ERR_NONE && w.eof);
    world_end(&w);
}

static bool is_gone(void *ctx)
{
    struct world *w = ctx;
    return w->ends > 0 && w->api->now == 0;
}

static void closing_the_socket_ends_it(void)
{
    struct world w;
    world_begin(&w, only_greet);
    try_until(w.loop, is_connected, &w);
    try_turns(w.loop);
    close(w.fd);
    w.fd = -1;
    try_until(w.loop, is_gone, &w);
    CHECK(w.code == -1 && strstr(w.why.msg, "left by its caller"));
    world_end(&w);
}

#define FLOOD 300 /* frames of 60000 bytes */

static void flood(struct try_conn *c, struct str rq)
{
    static char block[60000];
    if (!greet(c, rq))
        return;
    memset(block, 'x', sizeof block);
    block[0] = 1;
    for (int i = 0; i < FLOOD; i++)
        frame(c, 0x82, (struct str){ block, sizeof block });
    frame(c, 0x82, STR(SUCCESS));
    frame(c, 0x88, STR(""));
}

static void a_slow_reader_is_waited_for(void)
{
    struct world w;
    world_begin(&w, flood);
    buf_free(&w.output);
    w.output = BUF(32 << 20);
    try_until(w.loop, is_connected, &w);
    try_turns(w.loop);
    try_turns(w.loop);
    CHECK(w.ends == 0 && w.conn->out_at < w.conn->out.n); /* the server is kept waiting too */
    try_until(w.loop, is_over, &w);
    drink(&w);
    CHECK_INT(w.output.n, FLOOD * 59999);
    CHECK_INT(w.code, 0);
    world_end(&w);
}

static bool has_heard_all(void *ctx)
{
    struct world *w = ctx;
    return w->heard.p && strstr(w->heard.p, "end|");
}

static void much_input_arrives_whole(void)
{
    struct world w;
    size_t sent = 0, n = 3 << 20, got = 0;
    world_begin(&w, only_greet);
    while (sent < n) {
        char block[4096];
        memset(block, 'y', sizeof block);
        ssize_t rc = write(w.fd, block, sizeof block);
        if (rc > 0)
            sent += (size_t)rc;
        else
            try_turns(w.loop);
    }
    while (write(w.fd, "end", 3) != 3)
        try_turns(w.loop);
    try_until(w.loop, has_heard_all, &w);
    for (size_t i = 0; i < w.heard.n; i++)
        got += w.heard.p[i] == 'y';
    CHECK_INT(got, sent);
    world_end(&w);
}

static void refuse(struct try_conn *c, struct str rq)
{
    (void)rq;
    try_reply(c, "404 Not Found", "",
              "{\"message\":\"pods \\\"p\\\" not found\",\"reason\":\"NotFound\"}");
}

static void no_protocol(struct try_conn *c, struct str rq)
{
    ((struct world *)c->api->ctx)->protocol = "v1.other";
    greet(c, rq);
}

static void cut(struct try_conn *c, struct str rq)
{
    if (!greet(c, rq))
        return;
    frame(c, 0x82,
          STR("\x01"
              "half"));
    try_hang_up(c);
}

static void nonsense(struct try_conn *c, struct str rq)
{
    if (greet(c, rq))
        frame(c, 0xf2, STR("x"));
}

static void hang_up(struct try_conn *c, struct str rq)
{
    (void)rq;
    try_hang_up(c);
}

static void a_failure_is_told(void)
{
    static const struct {
        try_fn *fn;
        const char *says;
    } cases[] = {
        { refuse, "the API server answered 404: pods \"p\" not found" },
        { no_protocol, "the API server speaks neither v5 nor v4 of exec" },
        { cut, "the connection ended before the command did" },
        { nonsense, "the server's WebSocket is broken: a bit is set that nobody asked for" },
        { hang_up, "the API server hung up without an answer" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct world w;
        world_begin(&w, cases[i].fn);
        try_until(w.loop, is_over, &w);
        drink(&w);
        CHECK_STR(w.why.msg, cases[i].says);
        CHECK_AT(i, w.code == -1 && w.eof);
        if (cases[i].fn == cut)
            CHECK_STR(w.output.p, "half");
        world_end(&w);
    }
}

static void a_client_ends_with_one_open(void)
{
    struct world w;
    world_begin(&w, only_greet);
    try_until(w.loop, is_connected, &w);
    w.client = kube_client_free(w.client);
    try_turns(w.loop);
    drink(&w);
    CHECK(w.eof && w.ends == 0);
    world_end(&w);
}

static void a_status_is_read(void)
{
    struct err e = { 0 };
    int code = -2;
    CHECK(kube_exec_status(STR("{\"status\":\"Success\"}"), &code, &e) == 0 && code == 0);
    CHECK(kube_exec_status(str_of(&FAILED_7[1]), &code, &e) == 0 && code == 7);
    CHECK(kube_exec_status(STR("{\"status\":\"Failure\",\"message\":\"no shell\"}"), &code, &e) <
          0);
    CHECK_STR(e.msg, "no shell");
    CHECK(kube_exec_status(STR("[]"), &code, &e) < 0);
    CHECK(kube_exec_status(STR(""), &code, &e) < 0 && code == 7);
}

static const struct test tests[] = {
    { "output, complaints and exit code arrive, then the end", output_and_exit_code_arrive },
    { "input goes in, and its end too", input_goes_in_and_ends },
    { "closing the socket ends the command", closing_the_socket_ends_it },
    { "a slow reader is waited for, and gets everything", a_slow_reader_is_waited_for },
    { "much input arrives whole", much_input_arrives_whole },
    { "a failure is told", a_failure_is_told },
    { "a client may end with a command open", a_client_ends_with_one_open },
    { "the last word of the server is read", a_status_is_read },
};
TEST_CASES(tests)
