#include "notice/render.h"

#include <stdio.h>

#include "base/date.h"
#include "base/url.h"

#define TEXT_LIMIT (96u << 10)
#define NAME_SHOWN 60u
#define REASON_SHOWN 120u
#define NODES_SHOWN 16u
#define WORD_BYTES 42u /* in an encoded word: base64 of it, its head and tail stay below 75 */

/* ---- text of any origin ---- */

void render_clean(struct str text, bool lines, struct buf *out)
{
    while (text.n) {
        size_t n = str_utf8_len(text);
        unsigned char c = (unsigned char)text.p[0];
        bool kept = lines && (c == '\n' || c == '\t');
        bool c1 = n == 2 && c == 0xc2 && (unsigned char)text.p[1] < 0xa0;
        bool line_end = n == 3 && memcmp(text.p, "\xe2\x80", 2) == 0 &&
                        ((unsigned char)text.p[2] == 0xa8 || (unsigned char)text.p[2] == 0xa9);
        if (n == 0)
            buf_addc(out, '?');
        else if ((c < 0x20 && !kept) || c == 0x7f || c1 || line_end)
            buf_addc(out, ' ');
        else
            buf_add(out, (struct str){ text.p, n });
        n = MAX(n, (size_t)1);
        text = (struct str){ text.p + n, text.n - n };
    }
}

/* At most so many bytes, with a mark when there were more; no character is cut. */
static void add_short(struct buf *out, struct str s, size_t most)
{
    size_t n = MIN(s.n, most);
    while (n < s.n && n > 0 && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--;
    render_clean((struct str){ s.p, n }, false, out);
    if (n < s.n)
        buf_addz(out, "…");
}

static void add_span(struct buf *out, int64_t ms)
{
    long long s = MAX(ms, INT64_C(0)) / 1000, min = s / 60, h = min / 60, d = h / 24;
    if (d)
        buf_printf(out, "%lld d %lld h", d, h % 24);
    else if (h)
        buf_printf(out, "%lld h %lld min", h, min % 60);
    else if (min)
        buf_printf(out, "%lld min %lld s", min, s % 60);
    else
        buf_printf(out, "%lld s", s);
}

/* ---- data ---- */

static struct str text_of(const struct json *o, const char *key)
{
    struct str s = STR("");
    struct err e;
    if (json_get_str(o, key, 64u << 10, &s, &e) < 0)
        return STR("");
    return s;
}

static int64_t number_of(const struct json *o, const char *key)
{
    int64_t v = 0;
    struct err e;
    if (json_get_i64(o, key, INT64_MIN, INT64_MAX, &v, &e) < 0)
        return 0;
    return v;
}

static double real_of(const struct json *o, const char *key)
{
    double v = 0;
    struct err e;
    if (json_get_f64(o, key, -1e18, 1e18, &v, &e) < 0)
        return 0;
    return v;
}

static void put_nodes(struct json_out *w, struct str where)
{
    struct err e;
    AUTO(json_free_p) struct json_doc *d = where.n ? json_read(where, &e) : NULL;
    const struct json *list = d ? json_root(d) : NULL;
    struct str last = STR("");
    size_t n = 0;
    json_begin(w, "nodes", '[');
    for (const struct json *o = json_is_array(list) ? json_first(list) : NULL; o && n < NODES_SHOWN;
         o = json_next(list, o)) {
        struct str node = text_of(o, "node");
        if (node.n && !str_eq(node, last)) {
            json_put_str(w, NULL, node);
            n++;
        }
        last = node;
    }
    json_end(w, ']');
}

static void put_text(struct json_out *w, const char *key, struct str s, size_t most)
{
    AUTO(buf_free) struct buf b = BUF(most + 8);
    add_short(&b, s, most);
    json_put_str(w, key, buf_str(&b));
}

void render_put_job(struct json_out *w, const struct store_job *j)
{
    json_put_u64(w, "id", j->fixed.id);
    put_text(w, "name", j->fixed.name, 256);
    json_put_str(w, "user", j->fixed.user);
    json_put_str(w, "tenant", j->fixed.tenant);
    if (j->fixed.array) {
        json_put_u64(w, "array", j->fixed.array);
        json_put_u64(w, "index", j->fixed.array_index);
    }
    json_put_str(w, "state", str_of(job_state_name(j->now.state)));
    json_put_str(w, "end", j->now.end);
    put_text(w, "message", j->now.message, 600);
    json_put_i64(w, "exit_code", j->now.exit_code);
    json_put_i64(w, "exit_signal", j->now.exit_signal);
    json_put_u64(w, "run", j->now.run);
    json_put_u64(w, "replicas", j->fixed.replicas);
    json_put_i64(w, "ran_ms", j->now.ran_ms);
    json_put_i64(w, "t_ms", j->now.state_ms);
    put_nodes(w, j->now.where);
}

static const struct json *first_job(const struct json *data)
{
    const struct json *list = json_find(data, "jobs");
    return json_is_array(list) ? json_first(list) : NULL;
}

/* ---- subjects ---- */

static void add_name(struct buf *b, const struct json *job)
{
    struct str name = text_of(job, "name");
    if (!name.n)
        return;
    buf_addz(b, " '");
    add_short(b, name, NAME_SHOWN);
    buf_addc(b, '\'');
}

static void add_job(struct buf *b, const struct json *job)
{
    buf_printf(b, "Job %lld", (long long)number_of(job, "id"));
    add_name(b, job);
}

static void add_reason(struct buf *b, const struct json *job)
{
    struct str why = text_of(job, "message");
    if (!why.n)
        return;
    buf_addz(b, ": ");
    add_short(b, why, REASON_SHOWN);
}

static void say_ended(const struct json *data, struct buf *b)
{
    static const char *const how[] = { "failed", "succeeded", "cancelled" };
    const struct json *job = first_job(data);
    const char *sep = ": ";
    if (number_of(data, "count") <= 1) {
        struct str state = text_of(job, "state");
        add_job(b, job);
        buf_printf(b, " %s%.*s", str_is(state, "cancelled") ? "was " : "", STR_ARG(state));
        if (number_of(job, "ran_ms") > 0) {
            buf_addz(b, " after ");
            add_span(b, number_of(job, "ran_ms"));
        }
        add_reason(b, job);
        return;
    }
    buf_printf(b, "%lld jobs", (long long)number_of(data, "count"));
    if (number_of(data, "array")) {
        buf_printf(b, " of array %lld", (long long)number_of(data, "array"));
        add_name(b, job);
    }
    buf_addz(b, " ended");
    for (size_t i = 0; i < ARRAY_LEN(how); i++) {
        if (!number_of(data, how[i]))
            continue;
        buf_printf(b, "%s%lld %s", sep, (long long)number_of(data, how[i]), how[i]);
        sep = ", ";
    }
}

static void say_frozen(const struct json *data, struct buf *b)
{
    const struct json *job = first_job(data);
    struct str state = text_of(job, "state");
    if (number_of(data, "count") <= 1) {
        add_job(b, job);
        buf_printf(b, " is %.*s", STR_ARG(state));
        add_reason(b, job);
        return;
    }
    buf_printf(b, "%lld jobs", (long long)number_of(data, "count"));
    if (number_of(data, "array")) {
        buf_printf(b, " of array %lld", (long long)number_of(data, "array"));
        add_name(b, job);
    }
    buf_addz(b, " are frozen");
    add_reason(b, job);
}

static void say_idle(const struct json *data, struct buf *b)
{
    add_job(b, first_job(data));
    buf_addz(b, " leaves a GPU idle: GPU ");
    buf_printf(b, "%lld of ", (long long)number_of(data, "gpu"));
    add_short(b, text_of(data, "node"), NAME_SHOWN);
    buf_addz(b, " did nothing for ");
    add_span(b, number_of(data, "idle_ms"));
}

static void say_budget(const struct json *data, struct buf *b)
{
    bool all = number_of(data, "percent") >= 100;
    buf_addz(b, "Tenant '");
    add_short(b, text_of(data, "tenant"), NAME_SHOWN);
    if (all)
        buf_printf(b, "' has used up its %.1f GPU-hours", real_of(data, "gpu_hours"));
    else
        buf_printf(b, "' has used %lld %% of its %.1f GPU-hours",
                   (long long)number_of(data, "percent"), real_of(data, "gpu_hours"));
}

static void say_drained(const struct json *data, struct buf *b)
{
    buf_addz(b, "Machine '");
    add_short(b, text_of(data, "node"), NAME_SHOWN);
    buf_addz(b, "' was drained: ");
    add_short(b, text_of(data, "reason"), REASON_SHOWN);
}

static void say_trial(const struct json *data, struct buf *b)
{
    buf_addz(b, "A trial notice for ");
    add_short(b, text_of(data, "user"), NAME_SHOWN);
}

static void (*const says[])(const struct json *data, struct buf *b) = {
    [EVENT_OF_JOB_ENDED] = say_ended,      [EVENT_OF_JOB_FROZEN] = say_frozen,
    [EVENT_OF_GPU_IDLE] = say_idle,        [EVENT_OF_BUDGET] = say_budget,
    [EVENT_OF_NODE_DRAINED] = say_drained, [EVENT_OF_TRIAL] = say_trial,
};
_Static_assert(ARRAY_LEN(says) == NOTICE_EVENT_COUNT, "an event was added without its sentence");

int render_subject(enum notice_event event, const struct json *data, struct buf *out, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(8192);
    if (!json_is_object(data))
        return err_set(e, ERR_INVALID, "a notice's data is no object");
    says[event](data, &b);
    add_short(out, buf_str(&b), NOTICE_SUBJECT_MAX);
    return buf_check(out, e);
}

/* ---- the text of a mail ---- */

static void line(struct buf *b, const char *key, struct str value)
{
    if (!value.n)
        return;
    buf_printf(b, "  %-10s", key);
    render_clean(value, false, b);
    buf_addc(b, '\n');
}

static void add_nodes(struct buf *b, const struct json *job)
{
    const struct json *list = json_find(job, "nodes");
    AUTO(buf_free) struct buf all = BUF(8192);
    struct str node;
    struct err e;
    for (const struct json *v = json_is_array(list) ? json_first(list) : NULL; v;
         v = json_next(list, v))
        if (json_as_str(v, 256, &node, &e) == 0)
            buf_printf(&all, "%s%.*s", all.n ? ", " : "", STR_ARG(node));
    line(b, "where", buf_str(&all));
}

static void add_exit(struct buf *b, const struct json *job)
{
    char text[48];
    int64_t code = number_of(job, "exit_code"), signo = number_of(job, "exit_signal");
    if (signo)
        snprintf(text, sizeof text, "killed by signal %lld", (long long)signo);
    else
        snprintf(text, sizeof text, "exit code %lld", (long long)code);
    if (signo || code)
        line(b, "end", str_of(text));
}

static void add_time(struct buf *b, const char *key, int64_t ms)
{
    char when[32];
    if (ms > 0 && ms < INT64_C(253402300799999))
        line(b, key, str_of(date_format(ms / 1000 * 1000, when)));
}

static void tell_job(const struct json *job, struct buf *b)
{
    char number[64];
    snprintf(number, sizeof number, "%lld", (long long)number_of(job, "id"));
    if (number_of(job, "array"))
        snprintf(number, sizeof number, "%lld (number %lld of array %lld)",
                 (long long)number_of(job, "id"), (long long)number_of(job, "index"),
                 (long long)number_of(job, "array"));
    line(b, "job", str_of(number));
    line(b, "name", text_of(job, "name"));
    line(b, "user", text_of(job, "user"));
    line(b, "tenant", text_of(job, "tenant"));
    line(b, "state", text_of(job, "state"));
    line(b, "why", text_of(job, "message"));
    add_exit(b, job);
    add_nodes(b, job);
    add_time(b, "time", number_of(job, "t_ms"));
}

static void tell_jobs(const struct json *data, struct buf *b)
{
    const struct json *list = json_find(data, "jobs");
    int64_t told = 0;
    for (const struct json *j = json_is_array(list) ? json_first(list) : NULL; j;
         j = json_next(list, j), told++) {
        buf_printf(b, "  %-8lld ", (long long)number_of(j, "id"));
        add_short(b, text_of(j, "name"), NAME_SHOWN);
        buf_printf(b, "  %.*s", STR_ARG(text_of(j, "state")));
        add_reason(b, j);
        buf_addc(b, '\n');
    }
    if (number_of(data, "count") > told)
        buf_printf(b, "  … and %lld more\n", (long long)(number_of(data, "count") - told));
}

static void tell_budget(const struct json *data, struct buf *b)
{
    char text[64];
    line(b, "tenant", text_of(data, "tenant"));
    snprintf(text, sizeof text, "%.1f of %.1f GPU-hours", real_of(data, "used_gpu_hours"),
             real_of(data, "gpu_hours"));
    line(b, "used", str_of(text));
    add_time(b, "until", number_of(data, "until_ms"));
}

static void tell_data(const struct notice_letter *l, const struct json *data, struct buf *b)
{
    switch (l->event) {
    case EVENT_OF_JOB_ENDED:
    case EVENT_OF_JOB_FROZEN:
        if (number_of(data, "count") > 1)
            tell_jobs(data, b);
        else
            tell_job(first_job(data), b);
        return;
    case EVENT_OF_GPU_IDLE:
        tell_job(first_job(data), b);
        add_time(b, "idle since", number_of(data, "idle_since_ms"));
        buf_addz(b, "\nA GPU that a job holds and does not use is nobody else's either: if the job "
                    "waits for something else, ask for fewer GPUs.\n");
        return;
    case EVENT_OF_BUDGET: tell_budget(data, b); return;
    case EVENT_OF_NODE_DRAINED:
        line(b, "machine", text_of(data, "node"));
        line(b, "why", text_of(data, "reason"));
        buf_addz(b, "\nIt finishes what runs there and takes nothing new until somebody says "
                    "`nightshift resume`.\n");
        return;
    case EVENT_OF_TRIAL:
        buf_addz(b, "  This is how notices arrive. Nothing has happened.\n");
        return;
    case NOTICE_EVENT_COUNT: break;
    }
    abort();
}

/* What a letter is about: "job/17". */
static void add_about(const struct notice_letter *l, const struct json *data, struct buf *b)
{
    int64_t array = number_of(data, "array");
    switch (l->event) {
    case EVENT_OF_JOB_ENDED:
    case EVENT_OF_JOB_FROZEN:
        if (number_of(data, "count") > 1 && array)
            buf_printf(b, "array/%lld", (long long)array);
        else if (number_of(data, "count") > 1)
            buf_addz(b, "jobs");
        else
            buf_printf(b, "job/%lld", (long long)number_of(first_job(data), "id"));
        return;
    case EVENT_OF_GPU_IDLE:
        buf_printf(b, "job/%lld", (long long)number_of(first_job(data), "id"));
        return;
    case EVENT_OF_BUDGET: buf_printf(b, "tenant/%.*s", STR_ARG(text_of(data, "tenant"))); return;
    case EVENT_OF_NODE_DRAINED: buf_printf(b, "node/%.*s", STR_ARG(text_of(data, "node"))); return;
    case EVENT_OF_TRIAL: buf_printf(b, "user/%.*s", STR_ARG(text_of(data, "user"))); return;
    case NOTICE_EVENT_COUNT: break;
    }
    abort();
}

static void add_link(const struct notice_letter *l, const struct json *data, struct buf *b)
{
    AUTO(buf_free) struct buf about = BUF(1024);
    struct str kind, number;
    add_about(l, data, &about);
    str_cut(buf_str(&about), '/', &kind, &number);
    if (str_is(kind, "job"))
        buf_printf(b, "%s/#/jobs/%.*s", l->url, STR_ARG(number));
    else if (str_is(kind, "node"))
        buf_printf(b, "%s/#/nodes", l->url);
    else
        buf_printf(b, "%s/#/jobs", l->url);
}

static void tell(const struct notice_letter *l, const struct json *data, struct buf *b)
{
    render_clean(l->subject, false, b);
    buf_addz(b, "\n\n");
    tell_data(l, data, b);
    if (l->url) {
        buf_addz(b, "\n  ");
        add_link(l, data, b);
        buf_addc(b, '\n');
    }
    if (l->log.n) {
        buf_addz(b, "\nThe last lines of its output:\n\n");
        render_clean(l->log, true, b);
        buf_addz(b, b->n && b->p[b->n - 1] == '\n' ? "" : "\n");
    }
    buf_addz(b, "\n-- \nWhat is sent to you, and where: nightshift notices\n");
}

/* ---- a mail ---- */

/* Lines of at most 76, as RFC 2045 has them. */
static void add_quoted(struct buf *out, struct str text)
{
    size_t column = 0;
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool at_end = i + 1 == text.n || text.p[i + 1] == '\n';
        bool plain = (c > 0x20 && c < 0x7f && c != '=') || ((c == ' ' || c == '\t') && !at_end);
        if (c == '\n') {
            buf_addz(out, "\r\n");
            column = 0;
            continue;
        }
        if (column + (plain ? 1 : 3) > 75) {
            buf_addz(out, "=\r\n");
            column = 0;
        }
        if (plain)
            buf_addc(out, (char)c);
        else
            buf_printf(out, "=%02X", c);
        column += plain ? 1 : 3;
    }
}

static void add_base64(struct buf *out, struct str s)
{
    static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < s.n; i += 3) {
        uint32_t v = 0;
        size_t n = MIN(s.n - i, (size_t)3);
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < n ? (unsigned char)s.p[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            buf_addc(out, k <= n ? signs[v >> (18 - 6 * k) & 63] : '=');
    }
}

static bool is_ascii(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || (unsigned char)s.p[i] > 0x7e)
            return false;
    return !memmem(s.p, s.n, "=?", 2); /* what looks like an encoded word becomes one */
}

/* A header's text: as it is, folded at blanks, or as encoded words. */
static void add_header_text(struct buf *out, struct str text)
{
    AUTO(buf_free) struct buf clean = BUF(NOTICE_SUBJECT_MAX * 2 + 16);
    render_clean(text, false, &clean);
    struct str s = buf_str(&clean);
    size_t column = 10;
    if (!is_ascii(s)) {
        for (bool first = true; s.n; first = false) {
            size_t n = MIN(s.n, (size_t)WORD_BYTES);
            while (n < s.n && n > 1 && ((unsigned char)s.p[n] & 0xc0) == 0x80)
                n--;
            buf_addz(out, first ? "=?utf-8?B?" : "\r\n =?utf-8?B?");
            add_base64(out, (struct str){ s.p, n });
            buf_addz(out, "?=");
            s = (struct str){ s.p + n, s.n - n };
        }
        return;
    }
    for (size_t i = 0; i < s.n; i++, column++) {
        if (s.p[i] == ' ' && column > 60 && i + 1 < s.n && s.p[i + 1] != ' ') {
            buf_addz(out, "\r\n");
            column = 0;
        }
        buf_addc(out, s.p[i]);
    }
}

/* Sun, 01 Mar 2026 12:30:00 +0000 */
static void add_date(struct buf *out, int64_t ms)
{
    static const char days[] = "SunMonTueWedThuFriSat",
                      months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t day = floor_div(ms, DAY_MS), s = (ms - day * DAY_MS) / 1000;
    struct date d = date_of_days(day);
    buf_printf(out, "%.3s, %02u %.3s %04d %02d:%02d:%02d +0000", days + 3 * date_weekday(day),
               (unsigned)d.day, months + 3 * (d.month - 1), (int)d.year, (int)(s / 3600),
               (int)(s / 60 % 60), (int)(s % 60));
}

int render_mail(const struct notice_letter *l, struct buf *out, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(TEXT_LIMIT);
    AUTO(json_free_p) struct json_doc *d = json_read(l->data, e);
    struct str local, domain;
    if (!d)
        return -1;
    tell(l, json_root(d), &text);
    if (buf_check(&text, e) < 0)
        return -1;
    str_cut(str_of(l->from), '@', &local, &domain);
    buf_printf(out, "From: Nightshift <%s>\r\nTo: <%s>\r\nSubject: ", l->from, l->to);
    add_header_text(out, l->subject);
    buf_addz(out, "\r\nDate: ");
    add_date(out, l->made_ms);
    buf_printf(out,
               "\r\nMessage-ID: <%s@%.*s>\r\nAuto-Submitted: auto-generated\r\n"
               "X-Nightshift-Event: %s\r\nMIME-Version: 1.0\r\n"
               "Content-Type: text/plain; charset=utf-8\r\n"
               "Content-Transfer-Encoding: quoted-printable\r\n\r\n",
               l->id, STR_ARG(domain), notice_event_type(l->event));
    add_quoted(out, buf_str(&text));
    return buf_check(out, e);
}

/* ---- a CloudEvent ---- */

static void put_log(struct json_out *w, struct str log)
{
    struct str one;
    json_begin(w, "log", '[');
    while (str_next_line(&log, &one)) {
        AUTO(buf_free) struct buf clean = BUF(NOTICE_LOG_MAX * 3);
        render_clean(one, true, &clean);
        json_put_str(w, NULL, buf_str(&clean));
    }
    json_end(w, ']');
}

int render_event(const struct notice_letter *l, struct buf *out, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(l->data, e);
    AUTO(buf_free) struct buf about = BUF(1024), link = BUF(4096);
    struct json_out w = { .b = out };
    struct json_member m = { 0 };
    char when[32];
    if (!d)
        return -1;
    add_about(l, json_root(d), &about);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "specversion", STR("1.0"));
    json_put_str(&w, "id", str_of(l->id));
    json_put_str(&w, "source", str_of(l->url ? l->url : "urn:nightshift"));
    json_put_str(&w, "type", str_of(notice_event_type(l->event)));
    json_put_str(&w, "subject", buf_str(&about));
    json_put_str(&w, "time", str_of(date_format(l->made_ms, when)));
    json_put_str(&w, "datacontenttype", STR("application/json"));
    json_begin(&w, "data", '{');
    json_put_str(&w, "summary", l->subject);
    if (l->url) {
        add_link(l, json_root(d), &link);
        json_put_str(&w, "link", buf_str(&link));
    }
    while (json_next_member(json_root(d), &m))
        json_put(&w, m.key.p, m.value);
    if (l->log.n)
        put_log(&w, l->log);
    json_end(&w, '}');
    json_end(&w, '}');
    return buf_check(out, e);
}
