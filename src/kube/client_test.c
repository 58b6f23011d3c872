#include "kube/client.h"

#include <sys/stat.h>

#include "sys/file.h"
#include "tests/lib/kube_try.h"

struct world {
    struct loop *loop;
    struct try_api *api;
    struct kube_config config;
    struct kube_client *client;
};

static void world_begin(struct world *w, try_fn *fn, void *ctx)
{
    struct err e;
    w->loop = loop_new();
    w->api = try_begin(w->loop, fn, ctx);
    w->config = try_config(w->api);
    w->client = kube_client_new(w->loop, NULL, &w->config, &e);
    CHECK(w->client);
}

static void world_end(struct world *w)
{
    kube_client_free(w->client);
    try_end(w->api);
    loop_free(w->loop);
}

/* What came of a call. */
struct got {
    int times, status;
    int64_t retry_after_ms;
    char body[256], reason[64];
    struct err err;
};

static void take(void *ctx, const struct kube_reply *r)
{
    struct got *g = ctx;
    g->times++;
    g->status = r->status;
    g->retry_after_ms = r->retry_after_ms;
    g->err = r->err;
    snprintf(g->body, sizeof g->body, "%.*s", STR_ARG(r->body));
    snprintf(g->reason, sizeof g->reason, "%.*s", STR_ARG(r->reason));
}

static bool has_come(void *ctx)
{
    return ((struct got *)ctx)->times > 0;
}

static struct got ask(struct world *w, const char *method, const char *path, const char *body)
{
    struct got g = { 0 };
    struct kube_request rq = { .method = method, .path = str_of(path), .body = str_of(body) };
    kube_send(w->client, &rq, take, &g);
    CHECK(g.times == 0);
    try_until(w->loop, has_come, &g);
    return g;
}

/* ---- calls ---- */

static void echo(struct try_conn *c, struct str rq)
{
    char body[256];
    const char *end = strstr(rq.p, "\r\n\r\n") + 4;
    snprintf(body, sizeof body, "%.*s [%s]", (int)strcspn(rq.p, "\r"), rq.p, end);
    try_reply(c, "200 OK", "", body);
    CHECK(strstr(rq.p, "Accept: application/json\r\n"));
    CHECK(!strcasestr(rq.p, "Accept-Encoding") && !strcasestr(rq.p, "Expect"));
    CHECK(!*end == !strcasestr(rq.p, "Content-Type: application/json"));
}

static void a_request_arrives_as_it_was_meant(void)
{
    struct world w;
    world_begin(&w, echo, NULL);
    static const char *const methods[] = { "POST", "GET", "PUT", "PATCH", "DELETE", "GET" };
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        const char *body = strcmp(methods[i], "GET") == 0 ? "" : "{\"a\":1}";
        char want[128];
        struct got g = ask(&w, methods[i], "/api/v1/pods?limit=5", body);
        snprintf(want, sizeof want, "%s /api/v1/pods?limit=5 HTTP/1.1 [%s]", methods[i], body);
        CHECK_INT(g.status, 200);
        CHECK_STR(g.body, want);
        CHECK(g.err.code == ERR_NONE && !g.reason[0]);
    }
    CHECK(strstr(ask(&w, "DELETE", "/x", "").body, "DELETE /x HTTP/1.1 []"));
    CHECK_INT(w.api->n_conns, 1);
    world_end(&w);
}

static void too_many(struct try_conn *c, struct str rq)
{
    if (strstr(rq.p, "/busy"))
        try_reply(c, "429 Too Many Requests", "Retry-After: 3\r\n",
                  "{\"kind\":\"Status\",\"message\":\"try later\",\"reason\":\"TooManyRequests\"}");
    else if (strstr(rq.p, "/there"))
        try_reply(c, "409 Conflict", "",
                  "{\"kind\":\"Status\",\"message\":\"pods \\\"a\\\" already "
                  "exists\",\"reason\":\"AlreadyExists\"}");
    else
        try_reply(c, "500 Internal Server Error", "", "boom\n");
}

static void a_refusal_is_given_on(void)
{
    struct world w;
    world_begin(&w, too_many, NULL);
    struct got g = ask(&w, "GET", "/busy", "");
    CHECK_INT(g.status, 429);
    CHECK_INT(g.retry_after_ms, 3000);
    CHECK_STR(g.reason, "TooManyRequests");
    CHECK_STR(g.err.msg, "the API server answered 429: try later");
    CHECK(g.err.code == ERR_UNAVAILABLE);
    g = ask(&w, "POST", "/there", "{}");
    CHECK(g.status == 409 && g.err.code == ERR_CONFLICT && g.retry_after_ms == 0);
    CHECK_STR(g.reason, "AlreadyExists");
    g = ask(&w, "GET", "/", "");
    CHECK_STR(g.err.msg, "the API server answered 500: boom");
    CHECK(g.err.code == ERR_UNAVAILABLE && !g.reason[0]);
    CHECK_INT(w.api->requests, 3); /* nothing was tried again */
    world_end(&w);
}

static void silence(struct try_conn *c, struct str rq)
{
    if (strstr(rq.p, "/cut"))
        try_hang_up(c);
    else if (strstr(rq.p, "/half")) {
        try_say(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
        try_hang_up(c);
    } else if (strstr(rq.p, "/long"))
        try_reply(c, "200 OK", "", "0123456789");
    else if (!strstr(rq.p, "/dead"))
        try_reply(c, "200 OK", "", "alive");
}

static void no_answer_is_an_error(void)
{
    struct world w;
    struct got g = { 0 };
    world_begin(&w, silence, NULL);
    struct kube_request rq = { .path = STR("/dead"), .timeout_ms = 40 };
    kube_send(w.client, &rq, take, &g);
    try_until(w.loop, has_come, &g);
    CHECK(g.status == 0 && g.err.code == ERR_UNAVAILABLE);
    CHECK(strstr(g.err.msg, "no answer from the API server at http://127.0.0.1:"));
    CHECK_STR(ask(&w, "GET", "/fine", "").body, "alive"); /* over a new connection */
    g = ask(&w, "GET", "/cut", "");
    CHECK(g.status == 0 && g.err.code == ERR_UNAVAILABLE && g.err.hint[0]);
    g = ask(&w, "GET", "/half", "");
    CHECK(g.status == 0 && g.err.code == ERR_UNAVAILABLE);
    g = (struct got){ 0 };
    rq = (struct kube_request){ .path = STR("/long"), .max_bytes = 9 };
    kube_send(w.client, &rq, take, &g);
    try_until(w.loop, has_come, &g);
    CHECK(g.status == 0 && g.err.code == ERR_TOO_LARGE);
    world_end(&w);
}

/* ---- many, and those that are not wanted any more ---- */

struct crowd {
    struct world w;
    struct kube_call *calls[500];
    size_t answered, last_answered;
    bool in_order, cancelling;
};

struct member {
    struct crowd *crowd;
    size_t i;
};

static void in_turn(void *ctx, const struct kube_reply *r)
{
    struct member *m = ctx;
    struct crowd *c = m->crowd;
    CHECK_INT(r->status, 200);
    c->in_order = c->in_order && (c->answered == 0 || m->i > c->last_answered);
    c->last_answered = m->i;
    c->answered++;
    c->calls[m->i] = NULL;
    if (c->cancelling && m->i == 0) /* one that waits, and one that is under way */
        for (size_t i = 1; i < 500; i += i == 1 ? 498 : 1)
            c->calls[i] = kube_cancel(c->calls[i]);
}

static bool all_answered(void *ctx)
{
    struct crowd *c = ctx;
    return c->answered == (c->cancelling ? 498 : 500);
}

static void crowd_run(size_t in_flight, bool cancelling, struct crowd *c)
{
    static struct member members[500];
    *c = (struct crowd){ .in_order = true, .cancelling = cancelling };
    world_begin(&c->w, echo, NULL);
    kube_client_set_in_flight(c->w.client, in_flight);
    for (size_t i = 0; i < 500; i++) {
        struct kube_request rq = { .path = STR("/x") };
        members[i] = (struct member){ c, i };
        c->calls[i] = kube_send(c->w.client, &rq, in_turn, &members[i]);
    }
    CHECK_INT(kube_client_waiting(c->w.client), 500);
    try_until(c->w.loop, all_answered, c);
    try_turns(c->w.loop);
    CHECK(all_answered(c) && kube_client_waiting(c->w.client) == 0);
}

static void calls_wait_their_turn(void)
{
    struct crowd c;
    crowd_run(1, false, &c);
    CHECK(c.in_order);
    CHECK_INT(c.w.api->most, 1);
    world_end(&c.w);
    crowd_run(8, false, &c);
    CHECK(c.w.api->most <= 8);
    CHECK_INT(c.w.api->requests, 500);
    world_end(&c.w);
}

static void a_cancelled_call_is_silent(void)
{
    struct crowd c;
    crowd_run(4, true, &c);
    world_end(&c.w);
}

static void a_client_ends_with_calls_open(void)
{
    struct world w;
    struct got g = { 0 };
    world_begin(&w, silence, NULL);
    struct kube_request rq = { .path = STR("/dead") };
    for (int i = 0; i < 100; i++)
        kube_send(w.client, &rq, take, &g);
    kube_open(w.client, STR("/dead"), 0, NULL, take, &g);
    try_turns(w.loop);
    w.client = kube_client_free(w.client);
    try_turns(w.loop);
    CHECK_INT(g.times, 0);
    CHECK(kube_client_free(NULL) == NULL && kube_cancel(NULL) == NULL && kube_close(NULL) == NULL);
    world_end(&w);
}

/* ---- credentials ---- */

/* Lets in who has the token in ctx. */
static void guard(struct try_conn *c, struct str rq)
{
    char line[128];
    snprintf(line, sizeof line, "\r\nAuthorization: Bearer %s\r\n", (const char *)c->api->ctx);
    if (strstr(rq.p, line))
        try_reply(c, "200 OK", "", "in");
    else
        try_reply(c, "401 Unauthorized", "", "{\"message\":\"Unauthorized\"}");
}

static void a_new_token_is_read_after_a_401(void)
{
    struct world w;
    struct err e;
    char path[] = "/tmp/token-XXXXXX", good[16] = "one";
    int fd = mkstemp(path);
    close(fd);
    world_begin(&w, guard, good);
    w.config.token_file = path;
    CHECK(file_write(path, STR("one\n"), &e) == 0);
    CHECK_INT(ask(&w, "GET", "/", "").status, 200);
    CHECK(file_write(path, STR("two\n"), &e) == 0);
    CHECK_INT(ask(&w, "GET", "/", "").status, 200); /* it is not looked at each time */
    snprintf(good, sizeof good, "two");
    CHECK_INT(w.api->requests, 2);
    CHECK_INT(ask(&w, "POST", "/", "{}").status, 200);
    CHECK_INT(w.api->requests, 4); /* the 401, and once more */
    snprintf(good, sizeof good, "three");
    struct got g = ask(&w, "GET", "/", "");
    CHECK(g.status == 401 && g.err.code == ERR_DENIED); /* no other token: it is told */
    CHECK_INT(w.api->requests, 5);
    CHECK(unlink(path) == 0);
    CHECK_INT(ask(&w, "GET", "/", "").status, 401);
    world_end(&w);
}

static void a_token_is_one_word(void)
{
    struct world w;
    char good[] = "one";
    world_begin(&w, guard, good);
    w.config.token = "one\r\nX-Forged: yes";
    struct got g = ask(&w, "GET", "/", "");
    CHECK(g.status == 0 && g.err.code == ERR_INVALID && !strstr(g.err.msg, "Forged"));
    w.config.token = "one";
    CHECK_INT(ask(&w, "GET", "/", "").status, 200);
    world_end(&w);
}

static void a_plugin_gives_the_token(void)
{
    struct world w;
    char good[] = "one";
    struct got g[3] = { 0 };
    const char *const argv[] = { "sh", "-c",
                                 "test -n \"$KUBERNETES_EXEC_INFO\" && printf '"
                                 "{\"status\":{\"token\":\"%s\"}}' $WHICH",
                                 NULL };
    const char *const env[] = { "WHICH=one", NULL };
    struct kube_plugin p = { .argv = argv, .env = env, .api_version = "v1" };
    world_begin(&w, guard, good);
    w.config.plugin = &p;
    struct kube_request rq = { .path = STR("/") };
    for (size_t i = 0; i < ARRAY_LEN(g); i++)
        kube_send(w.client, &rq, take, &g[i]);
    for (size_t i = 0; i < ARRAY_LEN(g); i++) {
        try_until(w.loop, has_come, &g[i]);
        CHECK_INT(g[i].status, 200);
    }
    world_end(&w);
}

static void a_plugin_that_fails_is_told(void)
{
    struct world w;
    const char *const argv[] = { "sh", "-c", "echo sign in first >&2; exit 3", NULL };
    const char *const none[] = { "/no/such/program", NULL }, *const env[] = { NULL };
    struct kube_plugin p = { .argv = argv, .env = env, .api_version = "v1" };
    world_begin(&w, guard, NULL);
    w.config.plugin = &p;
    struct got g = ask(&w, "GET", "/", "");
    CHECK(g.status == 0 && strstr(g.err.msg, "it ended with 3: sign in first"));
    kube_client_free(w.client);
    p = (struct kube_plugin){
        .argv = none, .env = env, .api_version = "v1", .install_hint = "get it"
    };
    w.client = kube_client_new(w.loop, NULL, &w.config, &g.err);
    g = ask(&w, "GET", "/", "");
    CHECK(g.status == 0 && strstr(g.err.msg, "/no/such/program"));
    CHECK_STR(g.err.hint, "get it");
    world_end(&w);
}

/* ---- streams ---- */

struct tap {
    struct got end;
    struct buf text;
    size_t agreed, most;
    bool pause, close;
    struct kube_stream *stream;
};

static bool drink(void *ctx, struct str chunk)
{
    struct tap *t = ctx;
    t->agreed += chunk.n == 0;
    t->most = MAX(t->most, chunk.n);
    buf_add(&t->text, chunk);
    if (t->close && chunk.n)
        t->stream = kube_close(t->stream);
    return !t->pause;
}

static void tap_end(void *ctx, const struct kube_reply *r)
{
    take(&((struct tap *)ctx)->end, r);
}

static bool has_ended(void *ctx)
{
    return ((struct tap *)ctx)->end.times > 0;
}

static bool has_drunk(void *ctx)
{
    return ((struct tap *)ctx)->text.n > 0;
}

static bool has_agreed(void *ctx)
{
    return ((struct tap *)ctx)->agreed > 0;
}

static void pour(struct try_conn *c, struct str rq)
{
    if (strstr(rq.p, "/no")) {
        try_reply(c, "404 Not Found", "", "{\"message\":\"no such pod\",\"reason\":\"NotFound\"}");
        return;
    }
    try_stream(c);
    if (strstr(rq.p, "/quiet"))
        return;
    try_chunk(c, "hello ");
    try_chunk(c, "world");
    if (strstr(rq.p, "/cut"))
        try_hang_up(c);
    else if (strstr(rq.p, "/end"))
        try_last_chunk(c);
}

static struct tap follow(struct world *w, const char *path, uint64_t idle_ms)
{
    struct tap t = { .text = BUF(1 << 20) };
    t.stream = kube_open(w->client, str_of(path), idle_ms, drink, tap_end, &t);
    try_until(w->loop, has_ended, &t);
    return t;
}

static void a_stream_tells_how_it_ends(void)
{
    struct world w;
    world_begin(&w, pour, NULL);
    struct tap t = follow(&w, "/end", 0);
    CHECK(t.end.status == 200 && t.end.err.code == ERR_NONE && t.agreed == 1);
    CHECK_STR(t.text.p, "hello world");
    buf_free(&t.text);
    t = follow(&w, "/cut", 0);
    CHECK(t.end.status == 200 && t.end.err.code == ERR_UNAVAILABLE);
    CHECK_STR(t.text.p, "hello world");
    buf_free(&t.text);
    t = follow(&w, "/no", 0);
    CHECK(t.end.status == 404 && t.agreed == 0 && t.text.n == 0);
    CHECK_STR(t.end.reason, "NotFound");
    buf_free(&t.text);
    t = follow(&w, "/quiet", 1);
    CHECK(t.end.status == 200 && t.end.err.code == ERR_UNAVAILABLE && t.agreed == 1);
    buf_free(&t.text);
    world_end(&w);
}

static void a_stream_may_be_closed_by_its_reader(void)
{
    struct world w;
    struct tap t = { .text = BUF(1 << 20), .close = true };
    world_begin(&w, pour, NULL);
    t.stream = kube_open(w.client, STR("/open"), 0, drink, tap_end, &t);
    try_until(w.loop, has_drunk, &t);
    try_turns(w.loop);
    CHECK(t.end.times == 0 && !t.stream && w.api->now == 0);
    buf_free(&t.text);
    world_end(&w);
}

#define FLOOD ((size_t)16 << 20)

static void flood(struct try_conn *c, struct str rq)
{
    (void)rq;
    AUTO(arena_free) struct arena a = { 0 };
    try_say(c, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", FLOOD);
    try_say_bytes(c, (struct str){ arena_alloc(&a, FLOOD, 1), FLOOD });
}

static void a_reader_may_pause(void)
{
    struct world w;
    struct tap t = { .text = BUF(FLOOD), .pause = true };
    world_begin(&w, flood, NULL);
    t.stream = kube_open(w.client, STR("/flood"), 1000, drink, tap_end, &t);
    try_until(w.loop, has_agreed, &t);
    try_turns(w.loop);
    CHECK(t.text.n == 0 && t.end.times == 0); /* after the first call, which has no bytes */
    while (t.text.n < FLOOD / 2) {
        size_t had = t.text.n;
        kube_stream_resume(t.stream);
        try_turns(w.loop);
        CHECK(t.text.n >= had);
    }
    t.pause = false;
    kube_stream_resume(t.stream);
    try_until(w.loop, has_ended, &t);
    CHECK_INT(t.text.n, FLOOD);
    CHECK(t.end.status == 200 && t.end.err.code == ERR_NONE && t.most <= FLOOD / 8);
    buf_free(&t.text);
    world_end(&w);
}

static const struct test tests[] = {
    { "a request arrives as it was meant", a_request_arrives_as_it_was_meant },
    { "a refusal is given on with its reason and its Retry-After", a_refusal_is_given_on },
    { "no answer, half an answer and too much of one are errors", no_answer_is_an_error },
    { "calls wait for their turn in their order", calls_wait_their_turn },
    { "a call that was cancelled in a callback is silent", a_cancelled_call_is_silent },
    { "a client may end with calls and streams open", a_client_ends_with_calls_open },
    { "a new token is read after a 401, and the call sent once more",
      a_new_token_is_read_after_a_401 },
    { "a token that is not one word is not sent", a_token_is_one_word },
    { "a plugin gives the token; calls wait for it", a_plugin_gives_the_token },
    { "a plugin that fails is told with its words", a_plugin_that_fails_is_told },
    { "a stream tells how it ends", a_stream_tells_how_it_ends },
    { "a stream may be closed by its reader", a_stream_may_be_closed_by_its_reader },
    { "a reader may pause, and everything still arrives", a_reader_may_pause },
};
TEST_CASES(tests)
