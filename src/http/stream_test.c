#include <sys/resource.h>

#include "tests/lib/http_try.h"

#define GET_KEEP "GET /s HTTP/1.1\r\n" TRY_HOST "\r\n"
#define GET_CLOSE "GET /s HTTP/1.1\r\n" TRY_HOST "Connection: close\r\n\r\n"

static void stream(void *ctx, struct http_request *rq)
{
    hold(ctx, rq);
    http_stream_begin(rq, 200, "text/event-stream", on_stream_close, ctx);
}

static void one_client(struct trial *t, struct try_client *cl, struct http_config *c,
                       const char *request)
{
    c->handler = c->handler ? c->handler : stream;
    trial_begin(t, c);
    try_client_tcp(cl, t->loop, http_port(t->server));
    try_send(cl, request);
    try_until(t->loop, try_held, t);
}

static void ends(struct trial *t, struct try_client *cl)
{
    try_client_end(cl);
    trial_end(t);
}

static void events_come_as_they_are_written(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { 0 };
    one_client(&t, &cl, &c, GET_KEEP);
    const char *head = try_hear(&cl, "\r\n\r\n"); /* before the first byte is written */
    CHECK(strncmp(head, "HTTP/1.1 200", 12) == 0);
    CHECK(strstr(head, "Content-Type: text/event-stream\r\n"));
    CHECK(strstr(head, "Transfer-Encoding: chunked\r\n") && strstr(head, "nosniff"));
    CHECK(http_stream_write(t.held[0], STR("data: one\n\n")));
    try_hear(&cl, "data: one\n\n\r\n");
    try_turns(t.loop); /* it sleeps, and wakes up again */
    CHECK(http_stream_write(t.held[0], STR("data: t")) && http_stream_write(t.held[0], STR("")));
    CHECK(http_stream_write(t.held[0], STR("wo\n\n")));
    try_hear(&cl, "data: two\n\n\r\n");
    CHECK_INT(http_stream_queued(t.held[0]), 0);
    CHECK_INT(http_open_requests(t.server), 1);
    http_stream_end(t.held[0]);
    try_hear(&cl, "\r\n0\r\n\r\n");
    try_until(t.loop, try_idle, &t);
    CHECK_INT(t.closed, 0); /* we ended it ourselves */
    t.n_held = 0;
    try_send(&cl, GET_KEEP); /* and the connection goes on */
    try_until(t.loop, try_held, &t);
    ends(&t, &cl);
    CHECK_INT(t.closed, 1); /* freeing the server ends a stream that was open */
}

static void says_room(void *ctx)
{
    ((struct trial *)ctx)->handled += 100;
}

static bool has_room(void *ctx)
{
    return ((struct trial *)ctx)->handled >= 100;
}

static void whoever_fills_a_stream_hears_when_it_is_sent(void)
{
    static char much[200000];
    struct trial t;
    struct try_client cl;
    struct http_config c = { 0 };
    memset(much, 'm', sizeof much - 1);
    one_client(&t, &cl, &c, GET_KEEP);
    http_stream_on_room(t.held[0], says_room);
    CHECK(http_stream_write(t.held[0], STR("little")));
    try_hear(&cl, "little");
    try_turns(t.loop);
    CHECK(!has_room(&t)); /* it never was full */
    CHECK(http_stream_write(t.held[0], (struct str){ much, sizeof much - 1 }));
    try_until(t.loop, has_room, &t);
    CHECK(http_stream_queued(t.held[0]) <= 65536);
    ends(&t, &cl);
}

static void a_stream_may_begin_later(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .handler = hold };
    one_client(&t, &cl, &c, GET_CLOSE);
    try_turns(t.loop);
    http_stream_begin(t.held[0], 200, "text/plain", on_stream_close, &t);
    CHECK(http_stream_write(t.held[0], STR("early ")));
    CHECK(http_stream_write(t.held[0], STR("bytes")));
    http_stream_end(t.held[0]);
    CHECK(strstr(try_hear(&cl, NULL), "early bytes"));
    CHECK_INT(t.closed, 0);
    ends(&t, &cl);
}

static void an_old_client_gets_it_without_chunks(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { 0 };
    one_client(&t, &cl, &c, "GET /s HTTP/1.0\r\n\r\n");
    CHECK(http_stream_write(t.held[0], STR("plain")));
    try_hear(&cl, "\r\n\r\nplain");
    CHECK(http_stream_write(t.held[0], STR(" bytes")));
    http_stream_end(t.held[0]);
    CHECK(strstr(try_hear(&cl, NULL), "\r\n\r\nplain bytes"));
    ends(&t, &cl);
}

static void head_of_a_stream_ends_at_once(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { 0 };
    one_client(&t, &cl, &c, "HEAD /s HTTP/1.1\r\n" TRY_HOST "\r\n");
    try_hear(&cl, "\r\n\r\n");
    try_until(t.loop, try_closed, &t);
    CHECK_INT(http_open_requests(t.server), 0);
    ends(&t, &cl);
    CHECK_INT(t.closed, 1);
}

/* Writes as much as there is room for, whenever there is. */
struct flood {
    struct trial *t;
    size_t left, lines;
};

static bool flooded(void *ctx)
{
    struct flood *f = ctx;
    struct http_request *rq = f->t->held[0];
    char line[32];
    while (f->left > 0 && http_stream_queued(rq) < 5000) {
        snprintf(line, sizeof line, "line %zu\n", f->lines++);
        CHECK(http_stream_write(rq, str_of(line)));
        f->left--;
    }
    return f->left == 0;
}

static void much_comes_whole_and_in_order(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .stream_queue_max = 6000 };
    one_client(&t, &cl, &c, "GET /s HTTP/1.0\r\n\r\n");
    struct flood f = { &t, 100000, 0 };
    try_until(t.loop, flooded, &f);
    http_stream_end(t.held[0]);
    const char *at = strstr(try_hear(&cl, NULL), "\r\n\r\n") + 4;
    for (size_t i = 0; i < 100000; i++) {
        char line[32];
        int n = snprintf(line, sizeof line, "line %zu\n", i);
        CHECK_AT(i, strncmp(at, line, (size_t)n) == 0);
        at += n;
    }
    CHECK(*at == '\0' && t.closed == 0);
    ends(&t, &cl);
}

static bool clogged(void *ctx)
{
    static const char block[65536];
    struct trial *t = ctx;
    if (t->closed || http_stream_write(t->held[0], (struct str){ block, sizeof block }))
        return t->closed > 0;
    CHECK(t->closed == 0); /* never from inside a write */
    CHECK(!http_stream_write(t->held[0], STR("more")));
    CHECK(http_stream_queued(t->held[0]) <= 200000);
    return true;
}

static void a_slow_reader_is_cut_off(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .stream_queue_max = 200000 };
    one_client(&t, &cl, &c, GET_KEEP);
    cl.deaf = true;
    try_client_listen(&cl);
    try_until(t.loop, clogged, &t);
    try_until(t.loop, try_closed, &t);
    CHECK_INT(http_open_requests(t.server), 0);
    cl.deaf = false;
    try_client_listen(&cl);
    try_hear(&cl, NULL);
    ends(&t, &cl);
    CHECK_INT(t.closed, 1);
}

static void one_large_write_is_refused(void)
{
    static const char block[5000];
    struct trial t;
    struct try_client cl;
    struct http_config c = { .stream_queue_max = 4999 };
    one_client(&t, &cl, &c, GET_KEEP);
    CHECK(!http_stream_write(t.held[0], (struct str){ block, sizeof block }));
    try_until(t.loop, try_closed, &t);
    ends(&t, &cl);
}

enum leave {
    LEAVE_CLOSE,
    LEAVE_RESET,
    LEAVE_HALF
};

static void leave(struct try_client *cl, enum leave how)
{
    struct linger now = { .l_onoff = how == LEAVE_RESET };
    if (how == LEAVE_HALF) {
        CHECK(shutdown(cl->fd, SHUT_WR) == 0);
        return;
    }
    CHECK(setsockopt(cl->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0);
    try_client_end(cl);
}

static void who_goes_away_is_noticed_at_once(void)
{
    static const enum leave ways[] = { LEAVE_CLOSE, LEAVE_RESET, LEAVE_HALF };
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct trial t;
        struct try_client cl;
        struct http_config c = { 0 };
        one_client(&t, &cl, &c, GET_KEEP);
        CHECK(http_stream_write(t.held[0], STR("x")));
        try_hear(&cl, "x\r\n");
        try_turns(t.loop); /* nothing is queued: the connection sleeps */
        leave(&cl, ways[i]);
        try_until(t.loop, try_closed, &t); /* nothing was written, and nobody asked */
        CHECK_INT(http_open_requests(t.server), 0);
        if (ways[i] == LEAVE_HALF)
            try_client_end(&cl);
        trial_end(&t);
        CHECK_INT(t.closed, 1);
    }
}

static void who_leaves_a_unix_socket_is_noticed_too(void)
{
    struct trial t;
    struct try_client cl;
    char folder[] = "/tmp/http-XXXXXX", path[64];
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s", folder);
    struct http_config c = { .unix_path = path, .unix_mode = 0600, .handler = stream };
    trial_begin(&t, &c);
    try_client_unix(&cl, t.loop, path);
    try_send(&cl, GET_KEEP);
    try_hear(&cl, "\r\n\r\n");
    try_turns(t.loop);
    try_client_end(&cl);
    try_until(t.loop, try_closed, &t);
    trial_end(&t);
    CHECK(rmdir(folder) == 0);
}

static void who_left_before_it_began_is_noticed(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .handler = hold };
    one_client(&t, &cl, &c, GET_KEEP);
    try_client_end(&cl);
    try_turns(t.loop);
    http_stream_begin(t.held[0], 200, "text/plain", on_stream_close, &t);
    try_until(t.loop, try_closed, &t);
    trial_end(&t);
    CHECK_INT(t.closed, 1);
}

static void what_a_client_sends_meanwhile_waits(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { 0 };
    one_client(&t, &cl, &c, GET_KEEP);
    try_hear(&cl, "\r\n\r\n");
    try_send(&cl, GET_KEEP);
    try_turns(t.loop);
    CHECK(t.handled == 1 && t.closed == 0);
    t.n_held = 0;
    http_stream_end(t.held[0]);
    try_until(t.loop, try_held, &t);
    CHECK_INT(t.handled, 2);
    ends(&t, &cl);
}

/* ---- many ---- */

#define MANY 1000

struct crowd {
    struct trial t; /* first: what handlers and waits see */
    struct http_request *rq[MANY];
    int fd[MANY];
};

static void join(void *ctx, struct http_request *rq)
{
    struct crowd *w = ctx;
    w->rq[w->t.handled++] = rq;
    http_stream_begin(rq, 200, "text/event-stream", on_stream_close, w);
}

static bool all_there(void *ctx)
{
    return ((struct crowd *)ctx)->t.handled == MANY;
}

static bool all_gone(void *ctx)
{
    return ((struct crowd *)ctx)->t.closed == MANY;
}

static long resident_kib(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%*d %ld", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void crowd_begin(struct crowd *w)
{
    for (size_t i = 0; i < MANY; i++) {
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons(http_port(w->t.server)) };
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        w->fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(connect(w->fd[i], (struct sockaddr *)&to, sizeof to) == 0);
        CHECK(send(w->fd[i], GET_KEEP, sizeof GET_KEEP - 1, 0) == sizeof GET_KEEP - 1);
    }
}

static void a_thousand_idle_streams_are_cheap(void)
{
    static struct crowd w;
    struct http_config c = { .handler = join, .connections_max = 2 * MANY };
    struct rlimit files;
    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
    if (files.rlim_max < 2 * MANY + 100)
        SKIP("at most %llu open files", (unsigned long long)files.rlim_max);
    files.rlim_cur = files.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    trial_begin(&w.t, &c);
    long before_kib = resident_kib();
    crowd_begin(&w);
    try_until(w.t.loop, all_there, &w);
    try_turns(w.t.loop);
    long used_kib = resident_kib() - before_kib;
    printf("# %d streams: %ld KiB\n", MANY, used_kib);
#ifndef __SANITIZE_ADDRESS__
    /* A malloc that fills what it gives out touches memory that nobody uses otherwise. */
    CHECK(used_kib < (getenv("MALLOC_PERTURB_") ? 120L : 40L) * MANY);
#endif
    char text[512];
    for (size_t i = 0; i < MANY; i++)
        CHECK(http_stream_write(w.rq[i], STR("data: to all\n\n")));
    try_turns(w.t.loop);
    for (size_t i = 0; i < MANY; i++) {
        CHECK(recv(w.fd[i], text, sizeof text, 0) > 0);
        close(w.fd[i]);
    }
    try_until(w.t.loop, all_gone, &w);
    CHECK_INT(http_open_requests(w.t.server), 0);
    trial_end(&w.t);
}

static const struct test tests[] = {
    { "events come as they are written, and the end as well", events_come_as_they_are_written },
    { "whoever fills a stream hears when it is sent",
      whoever_fills_a_stream_hears_when_it_is_sent },
    { "a stream may begin later", a_stream_may_begin_later },
    { "an old client gets a stream without chunks", an_old_client_gets_it_without_chunks },
    { "the head of a stream ends at once", head_of_a_stream_ends_at_once },
    { "much comes whole and in order", much_comes_whole_and_in_order },
    { "a slow reader is cut off, and its owner told once", a_slow_reader_is_cut_off },
    { "one write larger than the queue is refused", one_large_write_is_refused },
    { "who goes away from an idle stream is noticed at once", who_goes_away_is_noticed_at_once },
    { "who leaves a unix socket is noticed too", who_leaves_a_unix_socket_is_noticed_too },
    { "who left before the stream began is noticed", who_left_before_it_began_is_noticed },
    { "what a client sends meanwhile waits for the end", what_a_client_sends_meanwhile_waits },
    { "a thousand idle streams are cheap", a_thousand_idle_streams_are_cheap },
};
TEST_CASES(tests)
