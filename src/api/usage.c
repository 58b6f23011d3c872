/* What was used, and whose the GPUs were: rows as JSON or CSV. */
#include "api/sheet.h"
#include "api/state.h"
#include "base/date.h"
#include "base/map.h"

#define CSV_TYPE "text/csv; charset=utf-8"

__extension__ typedef __int128 i128;

static const char *const usage_bys[] = {
#define X(id, name) name,
    STORE_USAGE_BYS(X)
#undef X
};

/* ---- both ---- */

struct asked {
    int64_t from_ms, to_ms, now_ms;
};

static int read_span(struct call *c, struct asked *out, struct err *e)
{
    int64_t now_ms = control_now_ms(c->api->config.control);
    uint64_t from = query_number(c, "from_ms", (uint64_t)MAX(now_ms - 30 * DAY_MS, INT64_C(0))),
             to = query_number(c, "to_ms", (uint64_t)now_ms);
    if (to < from) {
        c->field = "to_ms";
        err_set(e, ERR_CONFLICT, "query 'to_ms' lies before 'from_ms'");
        return err_hint(e, "both are Unix milliseconds; without them it is the last 30 days");
    }
    *out = (struct asked){ (int64_t)from, (int64_t)to, now_ms };
    return 0;
}

static bool wants_csv(const struct call *c)
{
    struct str format = query_text(c, "format");
    const char *accept = http_header(c->rq, "Accept");
    return str_is(format, "csv") || (!format.n && accept && strncmp(accept, "text/csv", 8) == 0);
}

static void reply_csv(struct call *c, const struct buf *b)
{
    struct err e;
    if (buf_check(b, &e) < 0)
        http_reply_error(c->rq, &e, NULL);
    else
        http_reply(c->rq, 200, CSV_TYPE, buf_str(b));
}

static void put_day(struct sheet *s, int64_t day)
{
    char text[32];
    struct date d = date_of_days(day);
    snprintf(text, sizeof text, "%04d-%02d-%02d", d.year, d.month, d.day);
    sheet_text(s, "day", str_of(text));
}

/* ---- usage ---- */

static unsigned read_bys(const struct call *c)
{
    struct str rest = query_text(c, "group"), word;
    unsigned by = 0;
    bool more = rest.n > 0;
    while (more) {
        more = str_cut(rest, ',', &word, &rest);
        for (size_t i = 0; i < ARRAY_LEN(usage_bys); i++)
            if (str_is(word, usage_bys[i]) || str_is(word, "all"))
                by |= 1u << i;
    }
    return by ? by : 1u << USAGE_BY_TENANT | 1u << USAGE_BY_USER | 1u << USAGE_BY_MODEL;
}

static void put_usage(struct sheet *s, const struct store_usage *u, unsigned by)
{
    const struct str text[USAGE_BY_COUNT] = {
        [USAGE_BY_TENANT] = u->tenant, [USAGE_BY_USER] = u->user, [USAGE_BY_MODEL] = u->model
    };
    sheet_row(s);
    for (unsigned i = 0; i < USAGE_BY_COUNT; i++) {
        if (!(by & (1u << i)))
            continue;
        if (i == USAGE_BY_DAY)
            put_day(s, u->day);
        else
            sheet_text(s, usage_bys[i], text[i]);
    }
    sheet_hours(s, "gpu_hours", (double)u->gpu_ms / 3.6e6);
    sheet_hours(s, "cpu_hours", (double)u->cpu_ms / 3.6e6);
    sheet_count(s, "runs", u->runs);
    sheet_row_end(s);
}

static void put_usages(struct sheet *s, const struct store_usages *u, unsigned by)
{
    for (size_t i = 0; i < u->n; i++)
        put_usage(s, &u->v[i], by);
}

int api_usage(struct call *c, struct err *e)
{
    struct asked q = { 0 };
    struct store_usages rows;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    unsigned by = read_bys(c);
    if (read_span(c, &q, e) < 0)
        return -1;
    struct store_span span = { q.from_ms, q.to_ms, q.now_ms, by };
    if (store_usage(c->api->config.store, &c->scope, &span, http_arena(c->rq), &rows, e) < 0)
        return -1;
    if (wants_csv(c)) {
        put_usage(&(struct sheet){ .form = SHEET_TITLES, .b = &b }, &(struct store_usage){ 0 }, by);
        put_usages(&(struct sheet){ .form = SHEET_CSV, .b = &b }, &rows, by);
        reply_csv(c, &b);
        return 0;
    }
    json_begin(&w, NULL, '{');
    json_put_i64(&w, "from_ms", q.from_ms);
    json_put_i64(&w, "to_ms", q.to_ms);
    json_begin(&w, "rows", '[');
    put_usages(&(struct sheet){ .form = SHEET_JSON, .w = &w }, &rows, by);
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- fairness ---- */

/* Of a tenant, or of all machines, whose name is empty; of a day, or of all. */
struct fair {
    struct str tenant;
    int64_t day;
    i128 entitled, got, lent, borrowed, frozen, wanted, total, idle, away;
};

struct fairs {
    struct arena *a;
    bool by_day;
    struct names names;
    struct map by_key;
    struct fair *v;
    size_t n, cap;
};

static void fairs_clear(struct fairs *f)
{
    names_free(&f->names);
    map_free(&f->by_key);
    free(f->v);
}

static struct fair *fair_of(struct fairs *f, const struct ledger_row *r)
{
    int64_t day = f->by_day ? r->day : 0;
    uint64_t key = (uint64_t)names_intern(&f->names, r->tenant) << 32 | (uint32_t)day, at;
    if (map_get(&f->by_key, key, &at))
        return &f->v[at];
    map_set(&f->by_key, key, f->n);
    vec_grow(f->v, f->n, f->cap);
    f->v[f->n] =
        (struct fair){ .tenant = { arena_strndup(f->a, r->tenant.p, r->tenant.n), r->tenant.n },
                       .day = day };
    return &f->v[f->n++];
}

static void add_row(void *ctx, const struct ledger_row *r)
{
    struct fair *f = fair_of(ctx, r);
    f->entitled += r->sums.entitled;
    f->got += r->sums.got + r->machines.got;
    f->lent += r->sums.lent;
    f->borrowed += r->sums.borrowed;
    f->frozen += r->sums.frozen;
    f->wanted += r->sums.wanted;
    f->total += r->machines.total;
    f->idle += r->machines.idle;
    f->away += r->machines.away;
}

static int by_day_and_name(const void *a, const void *b)
{
    const struct fair *x = a, *y = b;
    if (x->day != y->day)
        return x->day < y->day ? -1 : 1;
    return strcmp(x->tenant.p, y->tenant.p);
}

static void put_hours(struct sheet *s, const char *name, i128 milli_ms)
{
    sheet_hours(s, name, (double)milli_ms / 3.6e9);
}

/* CSV has both kinds of rows in one table. */
static void put_fair(struct sheet *s, const struct fair *f, bool by_day)
{
    bool all = f->tenant.n == 0 && s->form != SHEET_TITLES;
    const struct {
        const char *name;
        i128 v;
        bool of_tenants, of_machines;
    } cells[] = {
        { "entitled_gpu_hours", f->entitled, true, false },
        { "got_gpu_hours", f->got, true, true },
        { "lent_gpu_hours", f->lent, true, false },
        { "borrowed_gpu_hours", f->borrowed, true, false },
        { "frozen_gpu_hours", f->frozen, true, false },
        { "wanted_gpu_hours", f->wanted, true, false },
        { "total_gpu_hours", f->total, false, true },
        { "capacity_gpu_hours", f->got + f->idle, false, true },
        { "idle_gpu_hours", f->idle, false, true },
        { "away_gpu_hours", f->away, false, true },
    };
    sheet_row(s);
    if (by_day)
        put_day(s, f->day);
    if (s->form != SHEET_JSON)
        sheet_text(s, "of", all ? STR("machines") : STR("tenant"));
    if (!all)
        sheet_text(s, "tenant", f->tenant);
    else
        sheet_none(s, "tenant");
    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        if (all ? cells[i].of_machines : cells[i].of_tenants || s->form == SHEET_TITLES)
            put_hours(s, cells[i].name, cells[i].v);
        else
            sheet_none(s, cells[i].name);
    sheet_row_end(s);
}

static void put_fairs(struct sheet *s, const struct fairs *f, bool machines)
{
    for (size_t i = 0; i < f->n; i++)
        if ((f->v[i].tenant.n == 0) == machines)
            put_fair(s, &f->v[i], f->by_day);
}

static void write_fairness(const struct fairs *f, const struct asked *q, struct buf *b)
{
    struct json_out w = { .b = b };
    struct sheet s = { .form = SHEET_JSON, .w = &w };
    json_begin(&w, NULL, '{');
    json_put_i64(&w, "from_ms", q->from_ms);
    json_put_i64(&w, "to_ms", q->to_ms);
    json_begin(&w, "tenants", '[');
    put_fairs(&s, f, false);
    json_end(&w, ']');
    json_begin(&w, "machines", '[');
    put_fairs(&s, f, true);
    json_end(&w, ']');
    json_end(&w, '}');
}

static void write_fairness_csv(const struct fairs *f, struct buf *b)
{
    struct sheet s = { .form = SHEET_CSV, .b = b };
    put_fair(&(struct sheet){ .form = SHEET_TITLES, .b = b }, &(struct fair){ 0 }, f->by_day);
    put_fairs(&s, f, false);
    put_fairs(&s, f, true);
}

/* Whole days: what was counted is kept by day. */
int api_fairness(struct call *c, struct err *e)
{
    struct asked q = { 0 };
    AUTO(fairs_clear)
    struct fairs f = { .a = http_arena(c->rq), .by_day = str_is(query_text(c, "by"), "day") };
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    if (read_span(c, &q, e) < 0)
        return -1;
    struct control_days days = { q.from_ms / DAY_MS, (q.to_ms + DAY_MS - 1) / DAY_MS, q.now_ms };
    q.from_ms = days.from * DAY_MS;
    q.to_ms = MIN(days.to * DAY_MS, q.now_ms);
    q.to_ms = MAX(q.to_ms, q.from_ms);
    if (control_ledger(c->api->config.control, &c->scope, days, add_row, &f, e) < 0)
        return -1;
    if (f.n)
        qsort(f.v, f.n, sizeof *f.v, by_day_and_name);
    if (wants_csv(c)) {
        write_fairness_csv(&f, &b);
        reply_csv(c, &b);
        return 0;
    }
    write_fairness(&f, &q, &b);
    reply_json(c, 200, &b);
    return 0;
}
