#include <fcntl.h>
#include <sys/stat.h>

#include "sys/file.h"
#include "sys/process.h"
#include "tests/lib/http_try.h"

#define GET_CLOSE "GET /x HTTP/1.1\r\n" TRY_HOST "Connection: close\r\n\r\n"
#define GET_KEEP "GET /x HTTP/1.1\r\n" TRY_HOST "\r\n"

static void hello(void *ctx, struct http_request *rq)
{
    ((struct trial *)ctx)->handled++;
    http_reply(rq, 200, "text/plain", STR("hello"));
}

static void whoami(void *ctx, struct http_request *rq)
{
    (void)ctx;
    const struct http_peer *p = http_peer(rq);
    char *text = arena_printf(http_arena(rq), "local=%d uid=%u gid=%u pid=%d at=%s", p->local,
                              p->uid, p->gid, p->pid, p->address);
    http_reply(rq, 200, "text/plain", str_of(text));
}

/* ---- who is calling ---- */

struct place {
    char folder[32], path[48];
};

static struct place place_new(void)
{
    struct place p = { .folder = "/tmp/http-XXXXXX" };
    CHECK(mkdtemp(p.folder));
    snprintf(p.path, sizeof p.path, "%s/s", p.folder);
    return p;
}

static void a_unix_socket_knows_who_is_calling(void)
{
    struct place p = place_new();
    struct trial t;
    struct try_client cl;
    char want[100];
    struct http_config c = { .unix_path = p.path, .unix_mode = 0666, .handler = whoami };
    trial_begin(&t, &c);
    try_client_unix(&cl, t.loop, p.path);
    try_send(&cl, GET_CLOSE);
    snprintf(want, sizeof want, "local=1 uid=%u gid=%u pid=%d at=unix", getuid(), getgid(),
             getpid());
    CHECK(strstr(try_hear(&cl, NULL), want));
    try_client_end(&cl);
    trial_end(&t);
    CHECK(rmdir(p.folder) == 0); /* the socket file went with the server */
}

static void a_port_knows_the_address(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = whoami };
    trial_begin(&t, &c);
    CHECK(strstr(try_ask(&t, &a, GET_CLOSE), "local=0 uid=0 gid=0 pid=0 at=127.0.0.1:"));
    trial_end(&t);
}

/* ---- limits ---- */

static void too_many_requests_are_refused_for_a_while(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .handler = hello, .rate_per_s = 1, .rate_burst = 2 };
    trial_begin(&t, &c);
    try_client_tcp(&cl, t.loop, http_port(t.server));
    try_send(&cl, GET_KEEP GET_KEEP GET_KEEP GET_KEEP GET_CLOSE);
    const char *all = try_hear(&cl, NULL);
    const char *refused = strstr(all, "HTTP/1.1 429 ");
    CHECK(refused && t.handled >= 2 && t.handled < 5); /* the second may have passed meanwhile */
    CHECK(strstr(refused, "\r\nRetry-After: 1\r\n"));
    CHECK(strstr(refused, "too many requests; you may send 1 a second"));
    try_client_end(&cl);
    trial_end(&t);
}

static void connections_are_limited_for_one_and_for_all(void)
{
    struct trial t;
    struct try_client cl[3];
    struct http_config c = { .handler = hello, .connections_max = 4 };
    trial_begin(&t, &c);
    for (size_t i = 0; i < 2; i++) {
        try_client_tcp(&cl[i], t.loop, http_port(t.server));
        try_send(&cl[i], GET_KEEP);
        try_hear(&cl[i], "hello");
    }
    try_client_tcp(&cl[2], t.loop, http_port(t.server)); /* half of them is one peer's share */
    const char *all = try_hear(&cl[2], NULL);
    CHECK(strncmp(all, "HTTP/1.1 503 ", 13) == 0);
    CHECK(strstr(all, "you have 2 connections open; the limit is 2"));
    try_client_end(&cl[2]);
    try_client_end(&cl[1]);
    try_turns(t.loop); /* one goes, and there is room again */
    try_client_tcp(&cl[1], t.loop, http_port(t.server));
    try_send(&cl[1], GET_KEEP);
    try_hear(&cl[1], "hello");
    for (size_t i = 0; i < 2; i++)
        try_client_end(&cl[i]);
    trial_end(&t);

    c = (struct http_config){ .handler = hello, .connections_max = 1 };
    trial_begin(&t, &c);
    try_client_tcp(&cl[0], t.loop, http_port(t.server));
    try_send(&cl[0], GET_KEEP);
    try_hear(&cl[0], "hello");
    try_client_tcp(&cl[1], t.loop, http_port(t.server));
    CHECK(strstr(try_hear(&cl[1], NULL), "all 1 connections are taken"));
    for (size_t i = 0; i < 2; i++)
        try_client_end(&cl[i]);
    trial_end(&t);
}

static void client_from(struct try_client *c, struct trial *t, const char *address)
{
    struct sockaddr_in from = { .sin_family = AF_INET }, to = from;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(inet_pton(AF_INET, address, &from.sin_addr) == 1);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(http_port(t->server));
    CHECK(bind(fd, (struct sockaddr *)&from, sizeof from) == 0);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    try_client_begin(c, t->loop, fd);
}

/* Three addresses that take what they can get leave one for a fourth. */
static void a_few_addresses_never_hold_all_connections(void)
{
    static const struct {
        const char *address;
        size_t gets;
    } callers[] = { { "127.0.0.2", 8 }, { "127.0.0.3", 4 }, { "127.0.0.4", 2 } };
    struct trial t;
    struct try_client cl[16], last;
    size_t n = 0;
    struct http_config c = { .handler = hello, .connections_max = 16 };
    trial_begin(&t, &c);
    for (size_t i = 0; i < ARRAY_LEN(callers); i++) {
        for (size_t k = 0; k < callers[i].gets; k++, n++) {
            client_from(&cl[n], &t, callers[i].address);
            try_send(&cl[n], GET_KEEP);
            try_hear(&cl[n], "hello");
        }
        client_from(&last, &t, callers[i].address);
        CHECK_AT(i, strstr(try_hear(&last, NULL), "connections open; the limit is"));
        try_client_end(&last);
        try_turns(t.loop);
    }
    client_from(&last, &t, "127.0.0.5");
    try_send(&last, GET_KEEP);
    try_hear(&last, "hello");
    try_client_end(&last);
    while (n > 0)
        try_client_end(&cl[--n]);
    trial_end(&t);
}

/* ---- time ---- */

static void an_idle_connection_is_closed(void)
{
    struct trial t;
    struct try_client fresh, used;
    struct http_config c = { .handler = hello, .timeout_s = 1 };
    trial_begin(&t, &c);
    try_client_tcp(&fresh, t.loop, http_port(t.server));
    try_client_tcp(&used, t.loop, http_port(t.server));
    try_send(&used, GET_KEEP);
    try_hear(&used, "hello");
    try_forget(&used);
    CHECK_STR(try_hear(&fresh, NULL), ""); /* without a word */
    CHECK_STR(try_hear(&used, NULL), "");
    try_client_end(&fresh);
    try_client_end(&used);
    trial_end(&t);
}

struct drip {
    struct try_client *cl;
    const char *text;
    size_t sent;
};

static void drop(void *ctx)
{
    struct drip *d = ctx;
    char one[2] = { d->text[d->sent % strlen(d->text)] };
    d->sent++;
    try_send(d->cl, one);
}

/* A client that never stops sending and never ends: each byte a sign of life. */
static void drip(const char *begin, const char *again)
{
    struct trial t;
    struct try_client cl;
    struct drip d = { &cl, again, 0 };
    struct http_config c = { .handler = hello,
                             .timeout_s = 3 }; /* a busy machine sends some by then */
    trial_begin(&t, &c);
    try_client_tcp(&cl, t.loop, http_port(t.server));
    struct loop_watch *timer = loop_timer(t.loop, drop, &d);
    try_send(&cl, begin);
    loop_timer_set(timer, 100, 100);
    const char *all = try_hear(&cl, NULL);
    loop_unwatch(timer);
    CHECK(strncmp(all, "HTTP/1.1 408 ", 13) == 0);
    CHECK(strstr(all, "did not arrive within 3 seconds") && strstr(all, "problem+json"));
    CHECK(d.sent > 0 && t.handled == 0); /* due before the time-out, so sent before it */
    try_client_end(&cl);
    trial_end(&t);
}

static void a_request_that_never_ends_is_cut(void)
{
    drip("GET /x HTTP/1.1\r\n" TRY_HOST, "X-Y: z\r\n");
    drip("POST /x HTTP/1.1\r\n" TRY_HOST "Content-Length: 500\r\n\r\n", "abc");
}

static void silence_in_a_request_is_cut(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = hello, .timeout_s = 1 };
    trial_begin(&t, &c);
    const char *all =
        try_ask(&t, &a, "POST /x HTTP/1.1\r\n" TRY_HOST "Content-Length: 5\r\n\r\nab");
    CHECK(strncmp(all, "HTTP/1.1 408 ", 13) == 0);
    trial_end(&t);
}

static void answer_now(void *ctx)
{
    struct trial *t = ctx;
    http_reply(t->held[0], 200, "text/plain", STR("at last"));
}

static void a_handler_may_take_longer_than_a_client(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .handler = hold, .timeout_s = 1 };
    trial_begin(&t, &c);
    try_client_tcp(&cl, t.loop, http_port(t.server));
    try_send(&cl, GET_KEEP);
    loop_timer_set(loop_timer(t.loop, answer_now, &t), 2500, 0);
    CHECK(strstr(try_hear(&cl, "at last"), "HTTP/1.1 200 "));
    try_client_end(&cl);
    trial_end(&t);
}

static void much(void *ctx, struct http_request *rq)
{
    hold(ctx, rq);
    size_t n = 32u << 20; /* more than the kernel keeps for a socket */
    http_reply(rq, 200, "text/plain", (struct str){ arena_alloc(http_arena(rq), n, 1), n });
}

static void a_reply_that_nobody_reads_is_given_up(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .handler = much, .timeout_s = 1 };
    trial_begin(&t, &c);
    try_client_tcp(&cl, t.loop, http_port(t.server));
    cl.deaf = true;
    try_send(&cl, GET_KEEP);
    try_until(t.loop, try_held, &t);
    CHECK_INT(http_open_requests(t.server), 1);
    try_until(t.loop, try_idle, &t);
    try_client_end(&cl);
    trial_end(&t);
}

/* ---- TLS ---- */

struct pem {
    struct buf cert, key;
};

static void pem_free(struct pem *p)
{
    buf_free(&p->cert);
    buf_free(&p->key);
}

static struct pem pem_new(void)
{
    struct pem p = { BUF(0), BUF(0) };
    struct place at = place_new();
    struct process_exit how;
    struct err e;
    AUTO(buf_free) struct buf out = BUF(0);
    char script[400], path[64];
    snprintf(script, sizeof script,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
             " -subj /CN=localhost -keyout %s/k -out %s/c",
             at.folder, at.folder);
    const char *argv[] = { "sh", "-c", script, NULL };
    if (process_capture(argv, 10000, 20000, &out, &how, &e) < 0 || how.code != 0)
        SKIP("openssl makes no certificate here");
    snprintf(path, sizeof path, "%s/k", at.folder);
    CHECK(file_read(path, 10000, &p.key, &e) == 0 && unlink(path) == 0);
    snprintf(path, sizeof path, "%s/c", at.folder);
    CHECK(file_read(path, 10000, &p.cert, &e) == 0 && unlink(path) == 0);
    CHECK(rmdir(at.folder) == 0);
    return p;
}

/* `openssl s_client` as a client whose lines we write and read. */
struct tls_client {
    struct try_client cl; /* of its output */
    struct process *p;
    int in;
    bool ended;
};

static void tls_ended(void *ctx, const struct process_exit *how)
{
    (void)how;
    ((struct tls_client *)ctx)->ended = true;
}

static bool tls_has_ended(void *ctx)
{
    return ((struct tls_client *)ctx)->ended;
}

static void tls_begin_with(struct tls_client *tc, struct trial *t, const char *cipher)
{
    char at[32];
    int in[2], out[2];
    struct err e;
    CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    snprintf(at, sizeof at, "127.0.0.1:%u", http_port(t->server));
    const char *argv[] = { "openssl",  "s_client", "-quiet",
                           "-connect", at,         cipher ? "-tls1_2" : NULL,
                           "-cipher",  cipher,     NULL };
    struct process_spec spec = { .argv = argv, .fd = { in[0], out[1], PROCESS_NO_FD } };
    *tc = (struct tls_client){ .in = in[1] };
    tc->p = process_spawn(t->loop, &spec, tls_ended, tc, &e);
    CHECK(tc->p);
    close(in[0]);
    close(out[1]);
    try_client_begin(&tc->cl, t->loop, out[0]);
}

static void tls_begin(struct tls_client *tc, struct trial *t)
{
    tls_begin_with(tc, t, NULL);
}

static void tls_send(struct tls_client *tc, const char *text)
{
    CHECK(write(tc->in, text, strlen(text)) == (ssize_t)strlen(text));
}

static void tls_end(struct tls_client *tc)
{
    close(tc->in);
    try_client_end(&tc->cl);
    process_kill(tc->p, 15);
    process_free(tc->p);
}

static void tls_has_suites_without_static_keys_and_cbc(void)
{
    static const char *const refused[] = { "AES256-GCM-SHA384:AES128-GCM-SHA256:AES128-SHA256",
                                           "ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES128-SHA",
                                           "ECDHE-RSA-AES256-SHA384:ECDHE-ECDSA-AES256-SHA384",
                                           "DHE-RSA-AES256-GCM-SHA384" };
    AUTO(pem_free) struct pem pem = pem_new();
    struct trial t;
    struct tls_client tc;
    struct http_config c = { .handler = hello, .tls_cert = pem.cert.p, .tls_key = pem.key.p };
    trial_begin(&t, &c);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        tls_begin_with(&tc, &t, refused[i]);
        try_until(t.loop, tls_has_ended, &tc);
        tls_end(&tc);
    }
    tls_begin_with(&tc, &t, "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256");
    tls_send(&tc, GET_KEEP);
    CHECK(strstr(try_hear(&tc.cl, "hello"), "Strict-Transport-Security: max-age="));
    tls_end(&tc);
    trial_end(&t);
}

static void tls_carries_replies_streams_and_refusals(void)
{
    AUTO(pem_free) struct pem pem = pem_new();
    struct trial t;
    struct tls_client tc;
    struct http_config c = { .handler = hold, .tls_cert = pem.cert.p, .tls_key = pem.key.p };
    trial_begin(&t, &c);
    tls_begin(&tc, &t);
    tls_send(&tc, GET_KEEP);
    try_until(t.loop, try_held, &t);
    http_reply(t.held[0], 200, "text/plain", STR("sealed"));
    try_hear(&tc.cl, "sealed");
    t.n_held = 0;
    tls_send(&tc, "GET /s HTTP/1.1\r\n" TRY_HOST "\r\n");
    try_until(t.loop, try_held, &t);
    http_stream_begin(t.held[0], 200, "text/plain", on_stream_close, &t);
    CHECK(http_stream_write(t.held[0], STR("one")));
    try_hear(&tc.cl, "one");
    try_turns(t.loop);
    process_kill(tc.p, 9);
    try_until(t.loop, try_closed, &t);
    tls_end(&tc);
    trial_end(&t);
}

static void plain_words_to_a_tls_port_do_no_harm(void)
{
    AUTO(pem_free) struct pem pem = pem_new();
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct tls_client tc;
    struct http_config c = {
        .handler = hello, .timeout_s = 1, .tls_cert = pem.cert.p, .tls_key = pem.key.p
    };
    trial_begin(&t, &c);
    CHECK(!strstr(try_ask(&t, &a, GET_CLOSE), "hello"));
    CHECK(!strstr(try_ask(&t, &a, "\x16\x03"), "hello")); /* a handshake that stops: cut in time */
    CHECK_INT(t.handled, 0);
    tls_begin(&tc, &t);
    tls_send(&tc, GET_CLOSE);
    try_hear(&tc.cl, "hello");
    try_until(t.loop, tls_has_ended, &tc);
    tls_end(&tc);
    trial_end(&t);
}

static void bad_pem_is_explained(void)
{
    AUTO(pem_free) struct pem pem = pem_new(), other = pem_new();
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct err e;
    struct http_config c = { .host = "127.0.0.1", .handler = hello };
    c.tls_cert = pem.cert.p;
    CHECK(!http_new(l, &c, &e) && e.code == ERR_INVALID && strstr(e.msg, "needs its key"));
    c.tls_key = "what?";
    CHECK(!http_new(l, &c, &e) && e.code == ERR_INVALID && strstr(e.msg, "key is not PEM"));
    c.tls_key = pem.key.p;
    c.tls_cert = pem.key.p;
    CHECK(!http_new(l, &c, &e) && strstr(e.msg, "certificate is not PEM"));
    c.tls_cert = pem.cert.p;
    c.tls_key = other.key.p; /* whole, and of another certificate */
    CHECK(!http_new(l, &c, &e) && e.code == ERR_INVALID && strstr(e.msg, "are refused"));
    CHECK(e.hint[0]);
}

/* ---- beginning and ending ---- */

static void a_taken_place_is_an_error(void)
{
    struct place p = place_new();
    struct trial t, u;
    struct err e;
    struct http_config c = { .handler = hello }, d = { .handler = hello };
    trial_begin(&t, &c);
    c.port = http_port(t.server);
    CHECK(!http_new(t.loop, &c, &e) && e.code == ERR_CONFLICT && strstr(e.hint, "ss -ltnp"));
    d.unix_path = p.path;
    d.unix_mode = 0600;
    trial_begin(&u, &d);
    CHECK(!http_new(u.loop, &d, &e) && e.code == ERR_CONFLICT && strstr(e.msg, "already running"));
    CHECK(access(p.path, F_OK) == 0); /* failing did not take it away */
    trial_end(&u);
    trial_end(&t);
    CHECK(rmdir(p.folder) == 0);
}

static void what_is_open_may_finish(void)
{
    struct place p = place_new();
    struct trial t;
    struct try_client cl, idle;
    struct http_config c = { .unix_path = p.path, .unix_mode = 0600, .handler = hold };
    trial_begin(&t, &c);
    try_client_unix(&idle, t.loop, p.path);
    try_client_unix(&cl, t.loop, p.path);
    try_send(&cl, GET_KEEP);
    try_until(t.loop, try_held, &t);
    http_quiesce(t.server);
    CHECK(access(p.path, F_OK) < 0 && http_open_requests(t.server) == 1);
    http_quiesce(t.server); /* once more changes nothing */
    http_reply(t.held[0], 200, "text/plain", STR("goodbye"));
    const char *all = try_hear(&cl, NULL);
    CHECK(strstr(all, "\r\nConnection: close\r\n") && strstr(all, "goodbye"));
    try_until(t.loop, try_idle, &t);
    try_client_end(&cl);
    try_client_end(&idle);
    trial_end(&t);
    CHECK(rmdir(p.folder) == 0);
}

static void half_held(void *ctx, struct http_request *rq)
{
    struct trial *t = ctx;
    hold(t, rq);
    if (strcmp(http_path(rq), "/stream") == 0)
        http_stream_begin(rq, 200, "text/plain", on_stream_close, t);
}

static bool two_held(void *ctx)
{
    return ((struct trial *)ctx)->n_held == 2;
}

static void freeing_cuts_what_is_open(void)
{
    struct trial t;
    struct try_client cl[5];
    struct http_config c = { .handler = half_held };
    static const char *const asks[] = {
        "",                                                           /* has just come */
        "GET /x HT",                                                  /* half a line */
        "POST / HTTP/1.1\r\n" TRY_HOST "Content-Length: 5\r\n\r\nab", /* half a body */
        "GET /pending HTTP/1.1\r\n" TRY_HOST "\r\n",
        "GET /stream HTTP/1.1\r\n" TRY_HOST "\r\n",
    };
    trial_begin(&t, &c);
    for (size_t i = 0; i < ARRAY_LEN(cl); i++) {
        try_client_tcp(&cl[i], t.loop, http_port(t.server));
        try_send(&cl[i], asks[i]);
    }
    try_until(t.loop, two_held, &t);
    try_turns(t.loop);
    t.server = http_free(t.server);
    CHECK_INT(t.closed, 1);
    for (size_t i = 0; i < ARRAY_LEN(cl); i++) {
        try_hear(&cl[i], NULL);
        try_client_end(&cl[i]);
    }
    trial_end(&t);
}

static const struct test tests[] = {
    { "a unix socket knows who is calling", a_unix_socket_knows_who_is_calling },
    { "a port knows the caller's address", a_port_knows_the_address },
    { "too many requests are refused for a while", too_many_requests_are_refused_for_a_while },
    { "connections are limited, for one peer and for all",
      connections_are_limited_for_one_and_for_all },
    { "an idle connection is closed without a word", an_idle_connection_is_closed },
    { "a request that never ends is cut, however lively", a_request_that_never_ends_is_cut },
    { "a request that falls silent is cut", silence_in_a_request_is_cut },
    { "a handler may take longer than a client may", a_handler_may_take_longer_than_a_client },
    { "a reply that nobody reads is given up", a_reply_that_nobody_reads_is_given_up },
    { "TLS has suites without static keys and CBC, and says that it stays",
      tls_has_suites_without_static_keys_and_cbc },
    { "a few addresses never hold all connections", a_few_addresses_never_hold_all_connections },
    { "TLS carries replies and streams, and its clients' leaving is noticed",
      tls_carries_replies_streams_and_refusals },
    { "plain words to a TLS port do no harm", plain_words_to_a_tls_port_do_no_harm },
    { "a bad certificate or key is explained", bad_pem_is_explained },
    { "a place that is taken is an error", a_taken_place_is_an_error },
    { "a quiet server lets what is open finish", what_is_open_may_finish },
    { "freeing a server cuts what is open", freeing_cuts_what_is_open },
};
TEST_CASES(tests)
