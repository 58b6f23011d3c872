#include "tests/lib/http_try.h"

#define UPGRADE                                                                                    \
    "POST /attach HTTP/1.1\r\n" TRY_HOST "Connection: Upgrade\r\nUpgrade: nightshift-stream\r\n"   \
    "Content-Length: 0\r\n\r\n"

/* Sends back what it gets, until the other end or a '.' ends it. */
struct line {
    struct trial t; /* first: what handlers and waits see */
    struct http_upgrade *up;
    struct loop_watch *watch;
    int fd, calls;
    bool open;
};

static void line_close(struct line *ln)
{
    ln->watch = loop_unwatch(ln->watch);
    http_upgrade_close(ln->up);
    ln->open = false;
    ln->t.closed++;
}

static void line_ready(void *ctx, unsigned events)
{
    (void)events;
    struct line *ln = ctx;
    char bytes[100];
    ssize_t n = recv(ln->fd, bytes, sizeof bytes, 0);
    CHECK(n >= 0 || errno == EAGAIN);
    if (n > 0)
        CHECK(send(ln->fd, bytes, (size_t)n, MSG_NOSIGNAL) == n);
    if (n == 0 || (n > 0 && bytes[n - 1] == '.'))
        line_close(ln);
}

static void on_socket(void *ctx, struct http_upgrade *up, int fd, struct str early)
{
    struct line *ln = ctx;
    struct err e;
    ln->calls++;
    ln->up = up;
    ln->fd = fd;
    if (!up) {
        CHECK(fd == -1 && early.n == 0);
        return;
    }
    ln->open = true;
    ln->watch = loop_fd(ln->t.loop, fd, line_ready, ln, &e);
    CHECK(ln->watch && loop_fd_set(ln->watch, LOOP_READ, &e) == 0);
    if (early.n)
        CHECK(send(fd, early.p, early.n, MSG_NOSIGNAL) == (ssize_t)early.n);
}

static void attach(void *ctx, struct http_request *rq)
{
    struct line *ln = ctx;
    ln->t.handled++;
    http_upgrade(rq, "nightshift-stream", on_socket, ln);
}

static bool was_called(void *ctx)
{
    return ((struct line *)ctx)->calls > 0;
}

static void talk(struct line *ln, struct try_client *cl)
{
    try_send(cl, UPGRADE "early ");
    const char *all = try_hear(cl, "early ");
    CHECK(strncmp(all, "HTTP/1.1 101 ", 13) == 0);
    CHECK(strstr(all, "\r\nUpgrade: nightshift-stream\r\n"));
    CHECK(strcasestr(all, "\r\nConnection: upgrade\r\n"));
    for (int i = 0; i < 3; i++) {
        try_forget(cl);
        try_send(cl, "ping");
        try_hear(cl, "ping");
    }
    CHECK(ln->calls == 1 && http_open_requests(ln->t.server) == 1);
}

static void the_socket_is_handed_over(void)
{
    struct line ln = { 0 };
    struct try_client cl;
    struct http_config c = { .handler = attach };
    trial_begin(&ln.t, &c);
    try_client_tcp(&cl, ln.t.loop, http_port(ln.t.server));
    talk(&ln, &cl);
    try_send(&cl, "bye.");
    CHECK(strstr(try_hear(&cl, NULL), "bye.")); /* closed by our side */
    try_until(ln.t.loop, try_idle, &ln);
    try_client_end(&cl);
    trial_end(&ln.t);
}

static void it_works_on_a_unix_socket(void)
{
    struct line ln = { 0 };
    struct try_client cl;
    char folder[] = "/tmp/http-XXXXXX", path[64];
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s", folder);
    struct http_config c = { .unix_path = path, .unix_mode = 0600, .handler = attach };
    trial_begin(&ln.t, &c);
    try_client_unix(&cl, ln.t.loop, path);
    talk(&ln, &cl);
    try_client_end(&cl); /* closed by the other side */
    try_until(ln.t.loop, try_closed, &ln);
    try_until(ln.t.loop, try_idle, &ln);
    trial_end(&ln.t);
    CHECK(rmdir(folder) == 0);
}

static void hold_line(void *ctx, struct http_request *rq)
{
    hold(ctx, rq);
}

static void it_may_come_later_and_to_nobody(void)
{
    struct line ln = { 0 };
    struct try_client cl;
    struct http_config c = { .handler = hold_line };
    trial_begin(&ln.t, &c);
    try_client_tcp(&cl, ln.t.loop, http_port(ln.t.server));
    try_send(&cl, UPGRADE);
    try_until(ln.t.loop, try_held, &ln);
    try_turns(ln.t.loop);
    http_upgrade(ln.t.held[0], "nightshift-stream", on_socket, &ln);
    try_hear(&cl, "101 Switching Protocols");
    try_send(&cl, "x.");
    try_hear(&cl, "x.");
    try_client_end(&cl);
    try_until(ln.t.loop, try_idle, &ln);

    ln.t.n_held = 0;
    ln.calls = 0;
    try_client_tcp(&cl, ln.t.loop, http_port(ln.t.server));
    try_send(&cl, UPGRADE);
    try_until(ln.t.loop, try_held, &ln);
    struct linger now = { .l_onoff = 1 };
    CHECK(setsockopt(cl.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0);
    try_client_end(&cl);
    try_turns(ln.t.loop);
    http_upgrade(ln.t.held[0], "nightshift-stream", on_socket, &ln);
    try_until(ln.t.loop, was_called, &ln); /* with a socket that is dead, or with none */
    try_until(ln.t.loop, try_idle, &ln);
    CHECK(ln.calls == 1 && !ln.open);
    trial_end(&ln.t);
}

static void who_does_not_ask_for_it_is_told_how(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    static const char *const asks[] = {
        "GET /a HTTP/1.1\r\n" TRY_HOST "Connection: close\r\n\r\n",
        "GET /a HTTP/1.1\r\n" TRY_HOST "Connection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "GET /a HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: nightshift-stream\r\n\r\n",
    };
    struct line ln = { 0 };
    struct http_config c = { .handler = attach };
    trial_begin(&ln.t, &c);
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
        ln.calls = 0;
        const char *all = try_ask(&ln.t, &a, asks[i]);
        CHECK(strstr(all, " 426 ") && strstr(all, "Upgrade: nightshift-stream\r\n"));
        CHECK(strstr(all, "did not ask for"));
        try_until(ln.t.loop, was_called, &ln);
        CHECK(ln.calls == 1 && !ln.up);
    }
    trial_end(&ln.t);
}

static void freeing_the_server_ends_it(void)
{
    struct line ln = { 0 };
    struct try_client cl;
    struct http_config c = { .handler = attach };
    trial_begin(&ln.t, &c);
    try_client_tcp(&cl, ln.t.loop, http_port(ln.t.server));
    talk(&ln, &cl);
    ln.watch = loop_unwatch(ln.watch);
    ln.t.server = http_free(ln.t.server);
    try_hear(&cl, NULL);
    try_client_end(&cl);
    trial_end(&ln.t);
}

static const struct test tests[] = {
    { "the socket is handed over with what came early", the_socket_is_handed_over },
    { "an upgrade works on a unix socket", it_works_on_a_unix_socket },
    { "an upgrade may come later, and to nobody", it_may_come_later_and_to_nobody },
    { "who does not ask for an upgrade is told how", who_does_not_ask_for_it_is_told_how },
    { "freeing the server ends an upgraded connection", freeing_the_server_ends_it },
};
TEST_MAIN(tests)
