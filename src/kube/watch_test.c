#include "kube/watch.h"

#include "tests/lib/kube_try.h"

/* What the watch told, as text: "L" a list begins, "+a" added, "~a" modified, "-a" deleted, "S" synced,
 * "?" away, "!" back. */
struct world {
    struct loop *loop;
    struct try_api *api;
    struct kube_config config;
    struct kube_client *client;
    struct kube_watch *watch;
    struct buf told, asked; /* asked: the targets, one a line */
    const char *until;
    struct err away;
    bool free_at_first;
    struct try_conn *open; /* the stream of the last watch */
    int lists, watches;
};

static void on_list(void *ctx)
{
    buf_addz(&((struct world *)ctx)->told, "L ");
}

static void on_object(void *ctx, enum kube_change change, const struct json *object)
{
    struct world *w = ctx;
    struct str name = { 0 };
    struct err e;
    CHECK(json_need_str(json_find(object, "metadata"), "name", 64, &name, &e) == 0);
    buf_printf(&w->told, "%c%.*s ", "+~-"[change], STR_ARG(name));
    if (w->free_at_first)
        w->watch = kube_watch_free(w->watch);
}

static void on_synced(void *ctx)
{
    buf_addz(&((struct world *)ctx)->told, "S ");
}

static void on_away(void *ctx, const struct err *why)
{
    struct world *w = ctx;
    w->away = *why;
    buf_addz(&w->told, "? ");
}

static void on_back(void *ctx)
{
    buf_addz(&((struct world *)ctx)->told, "! ");
}

static bool is_told(void *ctx)
{
    struct world *w = ctx;
    return w->told.p && strcmp(w->told.p, w->until) == 0;
}

static void wait_told(struct world *w, const char *text)
{
    w->until = text;
    for (int i = 0; i < 5000 && !is_told(w); i++)
        try_turns(w->loop);
    CHECK_STR(w->told.p, text);
}

static void world_begin(struct world *w, try_fn *fn)
{
    struct err e;
    *w = (struct world){ .loop = loop_new(), .told = BUF(1 << 20), .asked = BUF(1 << 20) };
    w->api = try_begin(w->loop, fn, w);
    w->config = try_config(w->api);
    w->client = kube_client_new(w->loop, NULL, &w->config, &e);
    CHECK(w->client);
    struct kube_watch_config c = {
        .client = w->client,
        .path = "/api/v1/pods",
        .query = "labelSelector=x%3Dy",
        .ctx = w,
        .on_list = on_list,
        .on_object = on_object,
        .on_synced = on_synced,
        .on_away = on_away,
        .on_back = on_back,
    };
    w->watch = kube_watch_new(w->loop, &c);
}

static void world_end(struct world *w)
{
    kube_watch_free(w->watch);
    kube_client_free(w->client);
    try_end(w->api);
    loop_free(w->loop);
    buf_free(&w->told);
    buf_free(&w->asked);
}

static bool is_watch(struct world *w, struct try_conn *c, struct str rq)
{
    bool watch = strstr(rq.p, "watch=1") != NULL;
    buf_printf(&w->asked, "%.*s\n", (int)strcspn(rq.p, "\r"), rq.p);
    CHECK(strstr(rq.p, "labelSelector=x%3Dy"));
    w->lists += !watch;
    w->watches += watch;
    if (watch)
        w->open = c;
    return watch;
}

static bool asked(const struct world *w, const char *text)
{
    return strstr(w->asked.p, text) != NULL;
}

#define ITEM(name, rv) "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" rv "\"}}"
#define LIST(rv, more, items)                                                                      \
    "{\"metadata\":{\"resourceVersion\":\"" rv "\"" more "},\"items\":[" items "]}"
#define EVENT(type, name, rv) "{\"type\":\"" type "\",\"object\":" ITEM(name, rv) "}\n"
#define BOOKMARK(rv) EVENT("BOOKMARK", "", rv)
#define GONE                                                                                       \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","     \
    "\"message\":\"too old resource version\"}}\n"
#define GONE_BODY "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"old\"}"

/* ---- how it should be ---- */

static void paged(struct try_conn *c, struct str rq)
{
    struct world *w = c->api->ctx;
    if (is_watch(w, c, rq)) {
        try_stream(c);
        try_chunk(c, EVENT("ADDED", "c", "11"));
        try_chunk(c, EVENT("MODIFIED", "a", "12") EVENT("DELETED", "b", "13"));
        try_chunk(c, "{\"type\":\"ADD"); /* a line may come in pieces */
        try_chunk(c, "ED\",\"object\":" ITEM("d", "14") "}");
        try_chunk(c, "\n");
    } else if (strstr(rq.p, "continue=n%2Fext"))
        try_reply(c, "200 OK", "", LIST("10", "", ITEM("b", "2")));
    else
        try_reply(c, "200 OK", "", LIST("10", ",\"continue\":\"n/ext\"", ITEM("a", "1")));
}

static void pages_then_changes(void)
{
    struct world w;
    world_begin(&w, paged);
    wait_told(&w, "L +a +b S +c ~a -b +d ");
    CHECK(asked(&w, "GET /api/v1/pods?limit=500&labelSelector=x%3Dy HTTP/1.1\n"));
    CHECK(asked(&w, "&continue=n%2Fext"));
    CHECK(asked(&w, "watch=1&allowWatchBookmarks=true&timeoutSeconds="));
    CHECK(asked(&w, "resourceVersion=10&"));
    CHECK_INT(w.lists, 2);
    CHECK_INT(w.watches, 1);
    world_end(&w);
}

static void it_may_be_freed_in_a_callback(void)
{
    struct world w;
    world_begin(&w, paged);
    w.free_at_first = true;
    wait_told(&w, "L +a ");
    try_turns(w.loop);
    CHECK_STR(w.told.p, "L +a ");
    CHECK(!w.watch && kube_watch_free(NULL) == NULL);
    world_end(&w);
}

/* ---- ends and cuts ---- */

static void cut_in_a_line(struct try_conn *c, struct str rq)
{
    struct world *w = c->api->ctx;
    if (!is_watch(w, c, rq)) {
        try_reply(c, "200 OK", "", LIST("10", "", ITEM("a", "1")));
        return;
    }
    try_stream(c);
    if (w->watches == 1) {
        try_chunk(c, EVENT("ADDED", "b", "11") "{\"type\":\"ADDED\",\"obj");
        try_hang_up(c);
    } else if (w->watches == 2) {
        try_chunk(c, EVENT("ADDED", "c", "12") BOOKMARK("20"));
        try_last_chunk(c);
    } else
        try_chunk(c, EVENT("ADDED", "d", "21"));
}

static void a_cut_goes_on_where_it_was(void)
{
    struct world w;
    world_begin(&w, cut_in_a_line);
    wait_told(&w, "L +a S +b ? ! +c +d ");
    CHECK(asked(&w, "resourceVersion=11&") && asked(&w, "resourceVersion=20&"));
    CHECK_INT(w.lists, 1); /* neither the cut nor the end cost a list */
    world_end(&w);
}

static void busy(struct try_conn *c, struct str rq)
{
    struct world *w = c->api->ctx;
    bool watch = is_watch(w, c, rq);
    if (!watch && w->lists == 1)
        try_reply(c, "429 Too Many Requests", "", "{\"message\":\"slow down\"}");
    else if (!watch && w->lists == 2)
        try_reply(c, "503 Service Unavailable", "", "");
    else if (!watch)
        try_reply(c, "200 OK", "", LIST("10", "", ITEM("a", "1")));
    else if (w->watches == 1)
        try_hang_up(c);
    else if (w->watches == 2)
        try_reply(c, "429 Too Many Requests", "", "{\"message\":\"slow down\"}");
    else {
        try_stream(c);
        try_chunk(c, EVENT("ADDED", "b", "11"));
    }
}

static void a_busy_server_is_asked_again(void)
{
    struct world w;
    world_begin(&w, busy);
    wait_told(&w, "? L +a S ? ! +b ");
    CHECK_INT(w.lists, 3);
    CHECK_INT(w.watches, 3);
    world_end(&w);
}

/* ---- too long ago ---- */

static void gone(struct try_conn *c, struct str rq)
{
    struct world *w = c->api->ctx;
    if (!is_watch(w, c, rq)) {
        const char *list = w->lists == 1 ? LIST("10", "", ITEM("a", "1") "," ITEM("b", "2"))
                                         : LIST("30", "", ITEM("b", "2"));
        try_reply(c, "200 OK", "", list);
    } else if (w->watches == 1) { /* inside the stream */
        try_stream(c);
        try_chunk(c, GONE);
    } else if (w->watches == 2) { /* as an answer */
        try_reply(c, "410 Gone", "", GONE_BODY);
    } else {
        try_stream(c);
        try_chunk(c, EVENT("ADDED", "c", "31"));
    }
}

static void a_version_that_is_gone_means_a_list(void)
{
    struct world w;
    world_begin(&w, gone);
    wait_told(&w, "L +a +b S L +b S L +b S +c ");
    CHECK_INT(w.lists, 3);
    CHECK(asked(&w, "resourceVersion=30&"));
    world_end(&w);
}

static void expired(struct try_conn *c, struct str rq)
{
    struct world *w = c->api->ctx;
    if (is_watch(w, c, rq))
        try_stream(c);
    else if (strstr(rq.p, "continue=old"))
        try_reply(c, "410 Gone", "", GONE_BODY);
    else if (w->lists == 1)
        try_reply(c, "200 OK", "", LIST("10", ",\"continue\":\"old\"", ITEM("a", "1")));
    else
        try_reply(c, "200 OK", "", LIST("20", "", ITEM("b", "2")));
}

static void an_expired_page_begins_the_list_anew(void)
{
    struct world w;
    world_begin(&w, expired);
    wait_told(&w, "L +a L +b S ");
    world_end(&w);
}

/* ---- nonsense ---- */

static void nonsense(struct try_conn *c, struct str rq)
{
    struct world *w = c->api->ctx;
    if (!is_watch(w, c, rq)) {
        try_reply(c, "200 OK", "", w->lists == 1 ? "{}" : LIST("10", "", ""));
        return;
    }
    try_stream(c);
    if (w->watches == 1)
        try_chunk(c, "rubbish\n");
    else if (w->watches == 2) {
        struct buf line = BUF(KUBE_EVENT_MAX + 100);
        for (size_t i = 0; i < KUBE_EVENT_MAX + 10; i++)
            buf_addc(&line, 'x');
        try_say(c, "%zx\r\n", line.n);
        try_say_bytes(c, buf_str(&line));
        buf_free(&line);
    } else
        try_chunk(c, EVENT("ADDED", "b", "11"));
}

static void nonsense_is_told_and_listed_away(void)
{
    struct world w;
    world_begin(&w, nonsense);
    wait_told(&w, "? L S ? L S ? L S +b ");
    world_end(&w);
}

static void a_server_that_is_not_there_is_waited_for(void)
{
    struct world w;
    world_begin(&w, paged);
    w.api->fn = paged;
    CHECK(loop_fd_set(w.api->watch, 0, &w.away) ==
          0); /* nobody accepts, and then the port is closed */
    uint16_t port = w.api->port;
    close(w.api->fd);
    w.api->fd = -1;
    wait_told(&w, "? ");
    CHECK(w.away.code == ERR_UNAVAILABLE);
    try_turns(w.loop);
    CHECK_STR(w.told.p, "? "); /* once */
    loop_unwatch(w.api->watch);
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int yes = 1;
    w.api->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(w.api->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    CHECK(bind(w.api->fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(w.api->fd, 64) == 0);
    w.api->watch = loop_fd(w.loop, w.api->fd, try_accept, w.api, &w.away);
    CHECK(loop_fd_set(w.api->watch, LOOP_READ, &w.away) == 0);
    for (int i = 0; i < 300 && !strstr(w.told.p, "+d"); i++)
        try_turns(w.loop);
    CHECK(strcmp(w.told.p, "? L +a +b S +c ~a -b +d ") == 0);
    world_end(&w);
}

static const struct test tests[] = {
    { "pages, then changes, whatever pieces they come in", pages_then_changes },
    { "a watch may be freed in its callback", it_may_be_freed_in_a_callback },
    { "a cut in a line and an end go on from the last version", a_cut_goes_on_where_it_was },
    { "a busy server is asked again, and away is told once", a_busy_server_is_asked_again },
    { "410 in the stream or as the answer means a new list", a_version_that_is_gone_means_a_list },
    { "an expired page begins the list anew", an_expired_page_begins_the_list_anew },
    { "nonsense and endless lines lead to a new list", nonsense_is_told_and_listed_away },
    { "a server that is not there is waited for", a_server_that_is_not_there_is_waited_for },
};
TEST_CASES(tests)
