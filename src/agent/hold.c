#include "agent/hold.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "sys/file.h"

#define FOR_MAX_MS (INT64_C(366) * 86400000)

static bool next_number(struct str *rest, int64_t max, int64_t *out)
{
    struct str word;
    struct err ignored;
    uint64_t v;
    if (!str_next_word(rest, &word) || parse_u64(word, (uint64_t)max, &v, &ignored) < 0)
        return false;
    *out = (int64_t)v;
    return true;
}

/* One line of text; what is none becomes '?'. */
static void keep_text(char *out, size_t size, struct str text)
{
    text = str_trim(text);
    size_t n = MIN(text.n, size - 1);
    while (n && !str_is_utf8((struct str){ text.p, n })) /* not within a letter */
        n--;
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)text.p[i] < ' ' || text.p[i] == 127 ? '?' : text.p[i];
    out[n] = '\0';
}

int hold_load(const char *path, struct report_hold *out, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct str rest, by;
    *out = (struct report_hold){ 0 };
    if (access(path, F_OK) < 0)
        return 0;
    if (file_read(path, 1024, &text, e) < 0)
        return -1;
    rest = buf_str(&text);
    if (!next_number(&rest, REPORT_VALUE_MAX, &out->since_ms) || out->since_ms == 0 ||
        !next_number(&rest, REPORT_VALUE_MAX, &out->until_ms) || !str_next_word(&rest, &by)) {
        *out = (struct report_hold){ 0 };
        return err_set(e, ERR_INVALID, "%s is no hold", path);
    }
    if (out->until_ms == 0)
        out->until_ms = REPORT_UNKNOWN;
    keep_text(out->by, sizeof out->by, by);
    keep_text(out->reason, sizeof out->reason, rest);
    return 0;
}

int hold_save(const char *path, const struct report_hold *h, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(1024);
    if (h->since_ms == 0) {
        if (unlink(path) == 0 || errno == ENOENT)
            return 0;
        return err_set(e, ERR_UNAVAILABLE, "%s: %s", path, strerror(errno));
    }
    buf_printf(&text, "%lld %lld %s %s\n", (long long)h->since_ms,
               (long long)MAX(h->until_ms, INT64_C(0)), h->by, h->reason);
    return file_write_private(path, buf_str(&text), e);
}

static void put_time(struct buf *b, int64_t t_ms)
{
    char text[32];
    time_t t = (time_t)(t_ms / 1000);
    struct tm at;
    if (localtime_r(&t, &at) && strftime(text, sizeof text, "%Y-%m-%d %H:%M", &at))
        buf_addz(b, text);
}

static void describe(struct buf *b, const struct report_hold *h)
{
    if (h->since_ms == 0) {
        buf_addz(b, "ok not held\n");
        return;
    }
    buf_printf(b, "ok held by %s since ", h->by);
    put_time(b, h->since_ms);
    if (h->until_ms > 0) {
        buf_addz(b, ", until ");
        put_time(b, h->until_ms);
    }
    buf_printf(b, "%s%s\n", h->reason[0] ? ": " : "", h->reason);
}

int hold_request(struct str line, const char *by, int64_t now_ms, struct report_hold *h,
                 struct buf *answer)
{
    struct str word = STR("");
    int64_t for_ms = 0;
    bool changed = true;
    (void)str_next_word(&line, &word);
    if (str_is(word, "hold") && next_number(&line, FOR_MAX_MS, &for_ms)) {
        int64_t since_ms = h->since_ms ? h->since_ms : now_ms; /* said again it goes on */
        *h = (struct report_hold){ .since_ms = since_ms,
                                   .until_ms = for_ms ? now_ms + for_ms : REPORT_UNKNOWN };
        keep_text(h->by, sizeof h->by, str_of(by));
        keep_text(h->reason, sizeof h->reason, line);
    } else if (str_is(word, "release")) {
        changed = h->since_ms != 0;
        *h = (struct report_hold){ 0 };
    } else if (str_is(word, "show")) {
        changed = false;
    } else {
        buf_addz(answer, "error say: hold FOR_MS REASON, release or show\n");
        return 0;
    }
    describe(answer, h);
    return changed;
}
