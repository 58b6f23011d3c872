/* Any bytes as a calendar: what is refused is told in one line with a hint, what is read comes back
 * from its own text, and its changes go forward and are changes. */
#include "base/calendar.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void follow(const struct calendar *c, int64_t now_ms)
{
    for (int i = 0; i < 20 && now_ms != INT64_MAX; i++) {
        bool open = calendar_is_open(c, now_ms);
        int64_t next = calendar_next_change(c, now_ms);
        must(next > now_ms);
        must(next == INT64_MAX || calendar_is_open(c, next) != open);
        must(next == INT64_MAX || calendar_is_open(c, next - 1) == open);
        now_ms = next;
    }
}

FUZZ_TARGET(data, size)
{
    struct str text = { size ? (const char *)data : "", size };
    AUTO(buf_free) struct buf out = BUF(CALENDAR_TEXT_MAX);
    struct calendar c, again;
    struct err e = { 0 };
    if (calendar_parse(text, NULL, NULL, &c, &e) < 0) {
        must(e.code != ERR_NONE && e.msg[0] && e.hint[0] && !strchr(e.msg, '\n'));
        return 0;
    }
    calendar_format(&c, &out);
    must(!out.full);
    must(calendar_parse(buf_str(&out), NULL, NULL, &again, &e) == 0 && calendar_equal(&c, &again));
    follow(&c, INT64_MIN);
    follow(&c, INT64_C(1774746000000)); /* 2026-03-29, where Europe's clocks jump */
    follow(&c, INT64_C(1792890000000)); /* and where they are set back */
    return 0;
}
