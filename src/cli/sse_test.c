#include "cli/sse.h"

#include "tests/lib/test.h"

static void events(const char *text, size_t step, const char *want)
{
    AUTO(sse_clear) struct sse s = sse_new();
    AUTO(buf_free) struct buf b = BUF(400);
    for (size_t at = 0; at < strlen(text); at += step) {
        struct str chunk = { text + at, MIN(step, strlen(text) - at) };
        struct sse_event ev;
        struct err e;
        while (sse_next(&s, &chunk, &ev, &e) > 0)
            buf_printf(&b, "[%s %.*s]", ev.id, STR_ARG(ev.data));
    }
    CHECK_STR(buf_str(&b).p, want);
}

static void an_event_ends_with_an_empty_line(void)
{
    for (size_t step = 1; step < 60; step += 4)
        events(": hello\n\nid: 7\nevent: job\ndata: {\"a\":1}\n\nid: 8\r\ndata:x\r\ndata: y\r\n\r\n"
               "data: not yet",
               step, "[7 {\"a\":1}][8 x\ny]");
}

static void an_id_stays_until_the_next(void)
{
    events("id: 1\ndata: a\n\ndata: b\n\n", 100, "[1 a][1 b]");
}

static void an_event_is_bounded(void)
{
    AUTO(sse_clear) struct sse s = sse_new();
    AUTO(buf_free) struct buf b = BUF(SSE_EVENT_MAX * 2);
    buf_addz(&b, "data: ");
    while (b.n <= SSE_EVENT_MAX)
        buf_addc(&b, 'x');
    struct str chunk = buf_str(&b);
    struct sse_event ev;
    struct err e;
    CHECK(sse_next(&s, &chunk, &ev, &e) == -1 && e.code == ERR_TOO_LARGE);
}

static const struct test tests[] = {
    { "an event ends with an empty line", an_event_ends_with_an_empty_line },
    { "an id stays until the next", an_id_stays_until_the_next },
    { "an event is bounded", an_event_is_bounded },
};
TEST_CASES(tests)
