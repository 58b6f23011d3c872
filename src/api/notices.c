/* What people want to be told, and where. */
#include "api/notices.h"

#include <sodium.h>

#include "api/audit.h"
#include "wire/joblog.h"

#define LOG_SHOWN 100u
#define LINE_SHOWN 400u /* bytes of a line of output */

static struct notices *notices_of(const struct call *c)
{
    return c->api->config.notices;
}

/* ---- show ---- */

static void put_choice(const struct call *c, struct json_out *w)
{
    struct str user = str_of(c->who.user);
    const struct notice_choice *of = notices_choice(notices_of(c), user);
    struct notice_choice none;
    struct choice_bounds b;
    choice_init(&none);
    notices_bounds(notices_of(c), user, &b);
    choice_put(of ? of : &none, w);
    struct str mail = notices_mail_of(notices_of(c), user);
    json_put_str(w, "mail_address", mail);
    json_put_str(w, "record_mail", b.record);
    json_put_bool(w, "mail_possible", b.mail);
    json_put_str(w, "webhooks", str_of(webhook_reach_name(b.webhooks)));
    json_begin(w, "about", '{');
    for (int k = 0; k < NOTICE_KIND_COUNT; k++)
        json_put_str(w, notice_kind((enum notice_kind)k)->name,
                     str_of(notice_kind((enum notice_kind)k)->help));
    json_end(w, '}');
}

int api_notices_get(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(64u << 10);
    struct json_out w = { .b = &b };
    (void)e;
    json_begin(&w, NULL, '{');
    put_choice(c, &w);
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- change ---- */

struct choice_later {
    struct call call;
    char secret[WEBHOOK_SECRET_TEXT]; /* that was made; "": none was */
};

static void on_chosen(void *ctx)
{
    struct choice_later *l = ctx;
    AUTO(buf_free) struct buf b = BUF(64u << 10);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    put_choice(&l->call, &w);
    if (l->secret[0])
        json_put_str(&w, "secret", str_of(l->secret));
    json_end(&w, '}');
    reply_json(&l->call, 200, &b);
    sodium_memzero(l->secret, sizeof l->secret);
    sodium_memzero(b.p, b.n);
}

/* Never the secret. */
static struct str kept_choice(struct call *c)
{
    AUTO(buf_free) struct buf b = BUF(AUDIT_JSON_MAX);
    struct json_out w = { .b = &b };
    const struct notice_choice *of = notices_choice(notices_of(c), str_of(c->who.user));
    json_begin(&w, NULL, '{');
    if (of)
        choice_put(of, &w);
    json_end(&w, '}');
    return audit_kept(c, &b);
}

int api_notices_put(struct call *c, struct err *e)
{
    static const char *const keys[] = { "mail", "webhook", "new_secret", "log", "kinds" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct str user = str_of(c->who.user);
    const struct notice_choice *old = notices_choice(notices_of(c), user);
    struct choice_later *l = arena_new(http_arena(c->rq), struct choice_later);
    struct choice_bounds bounds;
    struct notice_choice fresh;
    bool secret = false;
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0)
        return -1;
    notices_bounds(notices_of(c), user, &bounds);
    if (old)
        choice_copy(&fresh, old);
    else
        choice_init(&fresh);
    struct str before = kept_choice(c);
    if (choice_change(&fresh, json_root(d), &bounds, &secret, e) < 0) {
        if (e->field[0])
            c->field = arena_printf(http_arena(c->rq), "%s", e->field);
        choice_clear(&fresh);
        return -1;
    }
    l->call = *c;
    if (secret)
        memcpy(l->secret, fresh.secret, sizeof l->secret);
    if (notices_choose(notices_of(c), control_batch(c->api->config.control), user, &fresh, e) < 0) {
        choice_clear(&fresh);
        return -1;
    }
    api_audit(c, &(struct audit_change){ .what = AUDIT_NOTICES_SET,
                                         .subject = user,
                                         .before = before,
                                         .after = kept_choice(c) });
    control_commit(c->api->config.control, (struct control_done){ on_chosen, l });
    return 0;
}

/* ---- a trial ---- */

static void on_tried(void *ctx, const struct err *why)
{
    struct call *c = ctx;
    AUTO(buf_free) struct buf b = BUF(4096);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    json_put_bool(&w, "ok", !why);
    json_put_str(&w, "error", str_of(why ? why->msg : ""));
    json_put_str(&w, "hint", str_of(why ? why->hint : ""));
    json_end(&w, '}');
    reply_json(c, 200, &b);
}

int api_notices_test(struct call *c, struct err *e)
{
    static const char *const keys[] = { "way" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct call *kept = arena_new(http_arena(c->rq), struct call);
    struct str word = STR("");
    enum notice_way way;
    c->field = "way";
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0 ||
        json_need_str(json_root(d), "way", 16, &word, e) < 0)
        return -1;
    if (!notice_way_parse(word, &way)) {
        err_set(e, ERR_INVALID, "field 'way': '%.*s' is not known here", STR_ARG(word));
        return err_hint(e, "mail or webhook");
    }
    c->field = NULL;
    *kept = *c;
    return notices_try(notices_of(c), str_of(c->who.user), way, on_tried, kept, e);
}

/* ---- the log ---- */

static const char *state_name(enum store_notice_state s)
{
    static const char *const names[] = {
#define X(id, name) name,
        STORE_NOTICE_STATES(X)
#undef X
    };
    return s < STORE_NOTICE_STATE_COUNT ? names[s] : "?";
}

int api_notices_log(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    struct json_out w = { .b = &b };
    struct store_notices all;
    if (store_notices_of(c->api->config.store, str_of(c->who.user), LOG_SHOWN, http_arena(c->rq),
                         &all, e) < 0)
        return -1;
    json_begin(&w, NULL, '{');
    json_begin(&w, "notices", '[');
    for (size_t i = 0; i < all.n; i++) {
        const struct store_notice *n = &all.v[i];
        if (n->way >= NOTICE_WAY_COUNT || n->event >= NOTICE_EVENT_COUNT)
            continue;
        json_begin(&w, NULL, '{');
        json_put_str(&w, "id", n->id);
        json_put_str(&w, "way", str_of(notice_way_name((enum notice_way)n->way)));
        json_put_str(&w, "type", str_of(notice_event_type((enum notice_event)n->event)));
        json_put_str(&w, "state", str_of(state_name(n->state)));
        json_put_i64(&w, "made_ms", n->made_ms);
        json_put_i64(&w, n->state == STORE_NOTICE_WAITING ? "next_ms" : "over_ms", n->due_ms);
        json_put_u64(&w, "tries", n->tries);
        json_put_str(&w, "subject", n->subject);
        json_put_str(&w, "why", n->why);
        json_end(&w, '}');
    }
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- what a notice says of a job's output ---- */

static void add_line(struct buf *out, struct str text)
{
    struct str s = { text.p, MIN(text.n, (size_t)LINE_SHOWN) };
    while (s.n && (s.p[s.n - 1] == '\n' || s.p[s.n - 1] == '\r'))
        s.n--;
    if (out->n + s.n * 3 + 1 > out->limit)
        return;
    render_clean(s, true, out);
    buf_addc(out, '\n');
}

void notice_tail(void *api, uint64_t job, uint32_t run, struct buf *out)
{
    struct api *a = api;
    const struct engine *en = control_engine(a->config.control);
    struct joblog_record r;
    char dir[4096];
    struct err e;
    if (!en->ops || !en->ops->log_dir)
        return;
    en->ops->log_dir(en->self, (struct task_id){ job, run, 0 }, dir, sizeof dir);
    AUTO(joblog_reader_free_p) struct joblog_reader *reader = joblog_reader_open(dir, &e);
    if (!reader || joblog_reader_tail(reader, NOTICE_LOG_LINES, &e) < 0)
        return;
    for (unsigned i = 0; i < NOTICE_LOG_LINES && joblog_reader_next(reader, &r, &e) == 1; i++)
        add_line(out, r.text);
}

/* ---- figures ---- */

void put_notice_metrics(const struct api *a, struct buf *b)
{
    if (!a->config.notices)
        return;
    struct notice_stats s = notices_stats(a->config.notices);
    const struct {
        const char *name, *type, *help;
        uint64_t v;
    } rows[] = {
        { "notices_sent", "counter", "Notices that arrived at a mail server or a webhook.",
          s.sent },
        { "notices_failed", "counter", "Tries to send one that failed.", s.failed },
        { "notices_given_up", "counter", "Notices that were tried for too long.", s.given_up },
        { "notices_dropped", "counter", "Notices that were too many, or not wanted any more.",
          s.dropped },
        { "notices_waiting", "gauge", "Notices that have still to be sent.", s.waiting },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        buf_printf(b, "# TYPE nightshift_%s %s\n# HELP nightshift_%s %s\nnightshift_%s%s %llu\n",
                   rows[i].name, rows[i].type, rows[i].name, rows[i].help, rows[i].name,
                   strcmp(rows[i].type, "counter") == 0 ? "_total" : "",
                   (unsigned long long)rows[i].v);
}
