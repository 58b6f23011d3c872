/* Who did what: entries of handlers, lists, verifying, exporting.  It has everybody's doings, so it is
 * for administrators. */
#include "api/audit.h"
#include "api/telling.h"

#include <stdio.h>

#define PAGE_DEFAULT 100
#define CHECK_ROWS 500u /* a piece of a verification: about a millisecond */
#define CHECKS_MAX 4
#define EXPORT_ROWS 16u
#define EXPORT_BYTES (128u << 10) /* a page ends when it has so many */

/* ---- writing ---- */

/* As identify() found them, in its order. */
static const char *call_via(struct call *c)
{
    struct arena *a = http_arena(c->rq);
    if (c->who.via == VIA_SOCKET)
        return arena_printf(a, "socket uid %u", c->who.uid);
    return c->who.via == VIA_TOKEN ? arena_printf(a, "token %s", c->who.key) : via_name(c->who.via);
}

static struct audit_row row_of(struct call *c, const struct audit_change *ch)
{
    return (struct audit_row){ .t_ms = clock_now_ms(&c->api->config.clock),
                               .who = str_of(c->who.user),
                               .via = str_of(call_via(c)),
                               .address = str_of(http_peer(c->rq)->address),
                               .what = str_of(audit_verb_name(ch->what)),
                               .subject = ch->subject,
                               .tenant = ch->tenant,
                               .before = ch->before,
                               .after = ch->after,
                               .reason = ch->reason };
}

void api_audit(struct call *c, const struct audit_change *ch)
{
    struct audit_row row = row_of(c, ch);
    control_audit(c->api->config.control, &row);
}

void api_audit_to(struct call *c, struct store_batch *b, const struct audit_change *ch)
{
    struct audit_row row = row_of(c, ch);
    store_add_audit(b, &row);
}

bool audit_is_foreign(const struct call *c, struct str user)
{
    return !str_is(user, c->who.user);
}

struct str audit_job_subject(struct call *c, uint64_t job)
{
    return str_of(arena_printf(http_arena(c->rq), "%llu", (unsigned long long)job));
}

struct str audit_job_state(struct call *c, uint64_t job)
{
    struct job_view v;
    if (!core_job(control_core(c->api->config.control), (job_id){ job }, &v))
        return STR("");
    return str_of(arena_printf(http_arena(c->rq), "{\"state\":\"%s\"}", job_state_name(v.state)));
}

/* ---- rows ---- */

static void put_hash(struct json_out *w, const struct audit_hash *h)
{
    char text[AUDIT_HASH_TEXT];
    json_put_str(w, "hash", str_of(audit_hash_format(h, text)));
}

static void put_row(struct json_out *w, const struct store_audit *r)
{
    json_begin(w, NULL, '{');
    json_put_u64(w, "number", r->row.number);
    json_put_i64(w, "t_ms", r->row.t_ms);
#define X(name, max) json_put_str(w, #name, r->row.name);
    AUDIT_TEXTS(X)
#undef X
    put_hash(w, &r->hash);
    json_end(w, '}');
}

static void put_link(struct json_out *w, const char *key, const struct audit_link *l)
{
    json_begin(w, key, '{');
    json_put_u64(w, "number", l->number);
    put_hash(w, &l->hash);
    json_end(w, '}');
}

int api_audit_list(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    struct store_audits rows;
    struct store_audit_filter f = { .who = query_text(c, "who"),
                                    .what = query_text(c, "what"),
                                    .subject = query_text(c, "subject"),
                                    .tenant = query_text(c, "tenant"),
                                    .since_ms = (int64_t)query_number(c, "since_ms", 0),
                                    .until_ms = (int64_t)query_number(c, "until_ms", 0),
                                    .before = query_number(c, "before", 0),
                                    .limit = (uint32_t)query_number(c, "limit", PAGE_DEFAULT) };
    if (store_audit_list(c->api->config.store, &f, http_arena(c->rq), &rows, e) < 0)
        return -1;
    json_begin(&w, NULL, '{');
    json_begin(&w, "rows", '[');
    for (size_t i = 0; i < rows.n; i++)
        put_row(&w, &rows.v[i]);
    json_end(&w, ']');
    if (rows.next)
        json_put_u64(&w, "next", rows.next);
    else
        json_put_null(&w, "next");
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- verifying, in pieces ---- */

struct verifying {
    struct api *api;
    struct http_request *rq;
    struct store_audit_check check;
    struct loop_watch *again; /* as in telling.c */
    struct verifying *next;
};

static void verifying_drop(struct verifying *v)
{
    loop_unwatch(v->again);
    free(v);
}

static void verifying_free(struct verifying *v)
{
    struct verifying **at = &v->api->verifyings;
    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    verifying_drop(v);
}

static void put_result(const struct store_audit_check *check, struct json_out *w)
{
    const struct audit_chain *chain = &check->chain;
    json_begin(w, NULL, '{');
    json_put_bool(w, "ok", chain->fault == AUDIT_FAULT_NONE);
    json_put_u64(w, "rows", chain->rows);
    put_link(w, "cut", &check->ends.cut);
    put_link(w, "head", &check->ends.head);
    if (chain->fault) {
        json_put_u64(w, "row", chain->fault_at);
        json_put_str(w, "fault", str_of(audit_fault_name(chain->fault)));
    } else {
        json_put_null(w, "row");
        json_put_null(w, "fault");
    }
    json_put_str(w, "message", str_of(audit_fault_help(chain->fault)));
    json_end(w, '}');
}

static void verify_on(void *ctx)
{
    struct verifying *v = ctx;
    AUTO(buf_free) struct buf b = BUF(4096);
    struct json_out w = { .b = &b };
    struct err e;
    if (store_audit_check(v->api->config.store, &v->check, CHECK_ROWS, &e) < 0) {
        http_reply_error(v->rq, &e, NULL);
        verifying_free(v);
        return;
    }
    if (!v->check.done) {
        loop_wakeup_send(v->again);
        return;
    }
    put_result(&v->check, &w);
    http_reply(v->rq, 200, "application/json", buf_str(&b));
    verifying_free(v);
}

void verifyings_free(struct api *a)
{
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "the server is being stopped");
    for (struct verifying *v = a->verifyings, *next; v; v = next) {
        next = v->next;
        a->verifyings = next;
        http_reply_error(v->rq, &e, NULL);
        verifying_drop(v);
    }
}

static int read_noted(struct call *c, struct audit_link *out, bool *given, struct err *e)
{
    struct str head = query_text(c, "head");
    *out = (struct audit_link){ .number = query_number(c, "number", 0) };
    *given = head.n > 0;
    if (*given)
        audit_hash_parse(head, &out->hash); /* the table of routes has checked it */
    if (*given || out->number == 0)
        return 0;
    c->field = "number";
    err_set(e, ERR_INVALID, "query 'number': it needs head, the hash of that row");
    return err_hint(e, "both are in the log: audit.head number=… hash=…");
}

int api_audit_verify(struct call *c, struct err *e)
{
    struct api *a = c->api;
    struct store_audit_check check;
    struct audit_link noted;
    bool given;
    size_t open = 0;
    for (const struct verifying *v = a->verifyings; v; v = v->next)
        open++;
    if (open >= CHECKS_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%zu callers verify the audit already", open);
    if (read_noted(c, &noted, &given, e) < 0 ||
        store_audit_check_begin(a->config.store, given ? &noted : NULL, &check, e) < 0)
        return -1;
    struct verifying *v = xcalloc(1, sizeof *v);
    *v = (struct verifying){ .api = a, .rq = c->rq, .check = check, .next = a->verifyings };
    v->again = loop_wakeup(a->config.loop, verify_on, v);
    a->verifyings = v;
    loop_wakeup_send(v->again);
    return 0;
}

/* ---- exporting: where it begins and ends, then each row ---- */

struct page {
    struct buf *out;
    uint64_t last;
};

static int put_line(void *ctx, const struct store_audit *r, struct err *e)
{
    struct page *p = ctx;
    struct json_out w = { .b = p->out };
    put_row(&w, r);
    buf_addc(p->out, '\n');
    p->last = r->row.number;
    return buf_check(p->out, e);
}

static void put_header(const struct store_audit_ends *ends, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "audit", 1);
    put_link(&w, "cut", &ends->cut);
    put_link(&w, "head", &ends->head);
    json_end(&w, '}');
    buf_addc(out, '\n');
}

static int put_page(struct api *a, union telling_place *at, struct buf *out, bool *more,
                    struct err *e)
{
    struct audit_place *p = &at->audit;
    struct store_audit_ends now;
    struct page page = { .out = out, .last = p->after };
    int n = (int)EXPORT_ROWS;
    if (!p->begun)
        put_header(&p->ends, out);
    p->begun = true;
    if (store_audit_ends(a->config.store, &now, e) < 0)
        return -1;
    if (now.cut.number > p->after) {
        err_set(e, ERR_CONFLICT, "the audit was cut while it was read");
        return err_hint(e, "export it again");
    }
    while (n == (int)EXPORT_ROWS && out->n < EXPORT_BYTES) {
        struct store_audit_span span = { page.last, p->ends.head.number, EXPORT_ROWS };
        n = store_audit_page(a->config.store, &span, put_line, &page, e);
    }
    p->after = page.last;
    *more = n == (int)EXPORT_ROWS;
    return n < 0 ? -1 : 0;
}

static const struct telling_kind export_kind = { "audit.read", put_page };

int api_audit_export(struct call *c, struct err *e)
{
    union telling_place at = { .audit = { .after = 0 } };
    if (store_audit_ends(c->api->config.store, &at.audit.ends, e) < 0)
        return -1;
    at.audit.after = at.audit.ends.cut.number;
    return telling_begin(c, &export_kind, &at, e);
}

struct str audit_kept(struct call *c, const struct buf *b)
{
    return (struct str){ arena_strndup(http_arena(c->rq), b->n ? b->p : "", b->n), b->n };
}
