#include "store/audit.h"
#include "store/read.h"

#define VISITS_MAX 5000u /* rows that one page looks at: some 4 ms */
#define CUT_ROWS 2000u   /* that one cut removes */

static struct store_audit row_of(sqlite3_stmt *q, struct arena *a)
{
    struct store_audit r = { .row = { .number = row_u64(q, 0),
                                      .t_ms = sqlite3_column_int64(q, 1) } };
    int at = 2;
#define X(name, max) r.row.name = row_text(q, at++, a);
    AUDIT_TEXTS(X)
#undef X
    const void *hash = sqlite3_column_blob(q, at);
    if (hash && sqlite3_column_bytes(q, at) == (int)sizeof r.hash.b)
        memcpy(r.hash.b, hash, sizeof r.hash.b);
    return r;
}

/* ---- pages ---- */

static bool matches(struct str want, struct str got)
{
    return want.n == 0 || str_eq(want, got);
}

static bool passes(const struct store_audit_filter *f, const struct audit_row *r)
{
    bool what =
        r->what.n >= f->what.n && (f->what.n == 0 || memcmp(r->what.p, f->what.p, f->what.n) == 0);
    return what && matches(f->who, r->who) && matches(f->subject, r->subject) &&
           matches(f->tenant, r->tenant) && r->t_ms >= f->since_ms &&
           (f->until_ms == 0 || r->t_ms < f->until_ms);
}

/* The narrowest range that has an index. */
static sqlite3_stmt *range(struct store *s, const struct store_audit_filter *f)
{
    enum stmt id = f->subject.n ? ST_AUDIT_OF_SUBJECT
                 : f->tenant.n  ? ST_AUDIT_OF_TENANT
                 : f->who.n     ? ST_AUDIT_OF_WHO
                                : ST_AUDIT_NEWEST;
    sqlite3_stmt *q = row_query(s, id);
    row_bind_u64(q, 1, f->before ? f->before : INT64_MAX);
    if (id != ST_AUDIT_NEWEST)
        row_bind_text(q, 2, f->subject.n ? f->subject : f->tenant.n ? f->tenant : f->who);
    return q;
}

int store_audit_list(struct store *s, const struct store_audit_filter *f, struct arena *a,
                     struct store_audits *out, struct err *e)
{
    uint32_t limit = f->limit == 0 || f->limit > PAGE_MAX ? PAGE_MAX : f->limit;
    struct store_audits r = { .v = arena_array(a, struct store_audit, limit) };
    AUTO(row_end_p) sqlite3_stmt *q = range(s, f);
    uint64_t last = 0;
    int got = 0;
    for (uint32_t visits = 0; r.n < limit && visits < VISITS_MAX; visits++) {
        if ((got = row_next(s, q, e)) <= 0)
            break;
        struct store_audit seen = row_of(q, NULL);
        last = seen.row.number;
        if (passes(f, &seen.row))
            r.v[r.n++] = row_of(q, a);
    }
    if (got < 0)
        return -1;
    r.next = got > 0 && last > 1 ? last : 0;
    *out = r;
    return 0;
}

int store_audit_page(struct store *s, const struct store_audit_span *span, store_audit_fn *fn,
                     void *ctx, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_AUDIT_PAGE);
    int got, n = 0;
    row_bind_u64(q, 1, span->after);
    row_bind_u64(q, 2, span->last);
    row_bind_u64(q, 3, span->rows);
    for (; (got = row_next(s, q, e)) > 0; n++) {
        struct store_audit r = row_of(q, NULL);
        if (fn(ctx, &r, e) < 0)
            return -1;
    }
    return got < 0 ? -1 : n;
}

/* ---- both ends ---- */

/* What cannot be read is all zero, and so does not match. */
static int read_link(struct store *s, const char *key, struct audit_link *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_META);
    struct audit_link l;
    row_bind_text(q, 1, str_of(key));
    int got = row_next(s, q, e);
    *out = got > 0 && audit_link_parse(row_text(q, 0, NULL), &l) ? l : (struct audit_link){ 0 };
    return got < 0 ? -1 : 0;
}

int store_audit_ends(struct store *s, struct store_audit_ends *out, struct err *e)
{
    AUTO(snapshot_end_p) struct store *held = snapshot_begin(s);
    struct store_audit_ends r;
    if (read_link(held, AUDIT_CUT_KEY, &r.cut, e) < 0 ||
        read_link(held, AUDIT_HEAD_KEY, &r.head, e) < 0)
        return -1;
    *out = r;
    return 0;
}

/* ---- verifying ---- */

int store_audit_check_begin(struct store *s, const struct audit_link *noted,
                            struct store_audit_check *out, struct err *e)
{
    struct store_audit_check c = { 0 };
    if (store_audit_ends(s, &c.ends, e) < 0)
        return -1;
    audit_chain_begin(&c.chain, &c.ends.cut, noted);
    *out = c;
    return 0;
}

static int check_row(void *ctx, const struct store_audit *r, struct err *e)
{
    (void)e;
    audit_chain_add(ctx, &r->row, &r->hash);
    return 0;
}

/* Rows before the cut, and behind the head, are there only if somebody has put them there. */
static int check_outside(struct store *s, struct store_audit_check *c, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_AUDIT_OUTSIDE);
    int got = row_next(s, q, e);
    if (got > 0 && sqlite3_column_type(q, 0) != SQLITE_NULL && !c->chain.fault) {
        c->chain.fault = AUDIT_FAULT_OUTSIDE;
        c->chain.fault_at = row_u64(q, 0);
    }
    return got < 0 ? -1 : 0;
}

int store_audit_check(struct store *s, struct store_audit_check *c, uint32_t rows, struct err *e)
{
    AUTO(snapshot_end_p) struct store *held = snapshot_begin(s);
    struct store_audit_ends now;
    if (c->done)
        return 0;
    if (store_audit_ends(held, &now, e) < 0)
        return -1;
    if (now.cut.number > c->chain.at.number) {
        struct audit_link noted = c->chain.noted;
        return store_audit_check_begin(held, c->chain.has_noted ? &noted : NULL, c, e);
    }
    struct store_audit_span span = { c->chain.at.number, c->ends.head.number, rows };
    int n = store_audit_page(held, &span, check_row, &c->chain, e);
    if (n < 0)
        return -1;
    c->done = c->chain.fault || (uint32_t)n < rows;
    if (c->done)
        audit_chain_end(&c->chain, &c->ends.head);
    return c->done ? check_outside(held, c, e) : 0;
}

/* ---- what is old ---- */

int store_audit_old(struct store *s, int64_t before_ms, struct store_audit_old *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_AUDIT_OLDEST);
    struct store_audit_old r = { 0 };
    int got = 0;
    while (r.rows < CUT_ROWS && (got = row_next(s, q, e)) > 0) {
        struct store_audit row = row_of(q, NULL);
        if (row.row.t_ms >= before_ms)
            break;
        r.last = (struct audit_link){ row.row.number, row.hash };
        r.until_ms = MAX(r.until_ms, row.row.t_ms);
        r.rows++;
    }
    if (got < 0)
        return -1;
    *out = r;
    return 0;
}
