#include "store/read.h"

#include "store/directory.h"
#include "store/pools.h"

struct store *snapshot_begin(struct store *s)
{
    if (s->snapshots++ == 0) {
        sqlite3_step(s->st.of[ST_SNAPSHOT]); /* takes no lock yet, so nothing can refuse it */
        sqlite3_reset(s->st.of[ST_SNAPSHOT]);
    }
    return s;
}

void snapshot_end_p(struct store **s)
{
    if (--(*s)->snapshots == 0) {
        sqlite3_step((*s)->st.of[ST_SNAPSHOT_END]);
        sqlite3_reset((*s)->st.of[ST_SNAPSHOT_END]);
    }
}

sqlite3_stmt *row_query(struct store *s, enum stmt id)
{
    return s->st.of[id];
}

void row_end_p(sqlite3_stmt **q)
{
    sqlite3_reset(*q);
}

int row_next(struct store *s, sqlite3_stmt *q, struct err *e)
{
    int rc = db_step(q);
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return rc == SQLITE_ROW;
    db_fail(s->db, s->path, "read", e);
    if ((rc & 0xff) == SQLITE_CORRUPT && !s->damage.code)
        s->damage = *e;
    return -1;
}

void row_bind_text(sqlite3_stmt *q, int at, struct str v)
{
    /* A null pointer would be NULL, which equals nothing. */
    sqlite3_bind_text64(q, at, v.p ? v.p : "", v.n, SQLITE_STATIC, SQLITE_UTF8);
}

void row_bind_u64(sqlite3_stmt *q, int at, uint64_t v)
{
    sqlite3_bind_int64(q, at, (int64_t)MIN(v, (uint64_t)INT64_MAX));
}

struct str row_text(sqlite3_stmt *q, int column, struct arena *a)
{
    const char *p = (const char *)sqlite3_column_text(q, column);
    struct str s = { p ? p : "", (size_t)sqlite3_column_bytes(q, column) };
    if (!s.n)
        return STR("");
    return a ? (struct str){ arena_strndup(a, s.p, s.n), s.n } : s;
}

uint64_t row_u64(sqlite3_stmt *q, int column)
{
    return (uint64_t)sqlite3_column_int64(q, column);
}

uint32_t row_u32(sqlite3_stmt *q, int column)
{
    return (uint32_t)sqlite3_column_int64(q, column);
}

int read_number(struct store *s, enum stmt id, uint64_t *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, id);
    int got = row_next(s, q, e);
    if (got > 0)
        *out = row_u64(q, 0);
    return got < 0 ? -1 : 0;
}

bool store_scope_sees(const struct store_scope *who, struct str tenant)
{
    bool sees = who->everything;
    for (size_t i = 0; i < who->n && !sees; i++)
        sees = str_eq(who->tenant[i], tenant);
    return sees;
}

/* ---- the journal ---- */

static int walk_journal(struct store *s, enum stmt id, store_line_fn *fn, void *ctx, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, id);
    uint64_t segment = 0;
    int got;
    while ((got = row_next(s, q, e)) > 0) {
        uint64_t of = row_u64(q, 0) >> 32;
        int64_t t_ms = sqlite3_column_int64(q, 1);
        if (segment && of != segment && fn(ctx, t_ms, STR(""), e) < 0)
            return -1;
        segment = of;
        if (fn(ctx, t_ms, row_text(q, 2, NULL), e) < 0)
            return -1;
    }
    return got;
}

int store_journal(struct store *s, store_line_fn *fn, void *ctx, struct err *e)
{
    return walk_journal(s, ST_JOURNAL, fn, ctx, e);
}

int store_journal_all(struct store *s, store_line_fn *fn, void *ctx, struct err *e)
{
    return walk_journal(s, ST_JOURNAL_ALL, fn, ctx, e);
}

/* ---- events ---- */

struct numbers {
    uint64_t *v;
    size_t n, cap;
};

static void numbers_clear(struct numbers *x)
{
    free(x->v);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The first number that is not durable yet, or one whose batch may still be thrown away. */
static uint64_t first_hidden_event(const struct store *s)
{
    uint64_t first = s->last_event + 1;
    for (const struct store_batch *b = s->batches; b; b = b->next)
        if (b->events)
            first = MIN(first, b->first_event);
    return first;
}

static int find_events(struct store *s, enum stmt id, struct str tenant,
                       const struct store_after *after, struct numbers *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, id);
    if (id == ST_EVENTS_OF_TENANT)
        row_bind_text(q, 1, tenant);
    row_bind_u64(q, 2, after->number);
    row_bind_u64(q, 3, first_hidden_event(s));
    row_bind_u64(q, 4, after->limit);
    int got;
    while ((got = row_next(s, q, e)) > 0) {
        vec_grow(out->v, out->n, out->cap);
        out->v[out->n++] = row_u64(q, 0);
    }
    return got;
}

static int read_event(struct store *s, uint64_t number, struct arena *a, struct store_event *out,
                      struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_EVENT);
    row_bind_u64(q, 1, number);
    int got = row_next(s, q, e);
    if (got > 0)
        *out = (struct store_event){ .number = row_u64(q, 0),
                                     .job = row_u64(q, 1),
                                     .t_ms = sqlite3_column_int64(q, 2),
                                     .kind = row_text(q, 3, a),
                                     .tenant = row_text(q, 4, a),
                                     .body = row_text(q, 5, a) };
    return got;
}

int store_events_after(struct store *s, const struct store_scope *who,
                       const struct store_after *after, struct arena *a, struct store_events *out,
                       struct err *e)
{
    struct store_after from = *after;
    from.limit = from.limit == 0 || from.limit > PAGE_MAX ? PAGE_MAX : from.limit;
    AUTO(snapshot_end_p) struct store *held = snapshot_begin(s);
    AUTO(numbers_clear) struct numbers found = { 0 };
    if (who->everything && find_events(held, ST_EVENTS, STR(""), &from, &found, e) < 0)
        return -1;
    for (size_t i = 0; i < who->n && !who->everything; i++)
        if (find_events(held, ST_EVENTS_OF_TENANT, who->tenant[i], &from, &found, e) < 0)
            return -1;
    if (found.n)
        qsort(found.v, found.n, sizeof *found.v, by_value);
    struct store_events r = { arena_array(a, struct store_event, MIN(found.n, (size_t)from.limit)),
                              0 };
    for (size_t i = 0; i < found.n && r.n < from.limit; i++) {
        if (i > 0 && found.v[i] == found.v[i - 1]) /* a scope may name a tenant twice */
            continue;
        if (read_event(held, found.v[i], a, &r.v[r.n++], e) < 0)
            return -1;
    }
    *out = r;
    return 0;
}

/* ---- accounts, the directory, answers, meta ---- */

int store_accounts(struct store *s, struct arena *a, struct store_account **out, size_t *out_n,
                   struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_ACCOUNTS);
    AUTO(free_p) struct store_account *v = NULL;
    size_t n = 0, cap = 0;
    int got;
    while ((got = row_next(s, q, e)) > 0) {
        vec_grow(v, n, cap);
        v[n++] = (struct store_account){ .name = row_text(q, 0, a),
                                         .home = row_text(q, 1, a),
                                         .uid = row_u32(q, 2),
                                         .gid = row_u32(q, 3),
                                         .ours = row_u32(q, 4) != 0,
                                         .created_ms = sqlite3_column_int64(q, 5) };
    }
    if (got < 0)
        return -1;
    *out = arena_array(a, struct store_account, n);
    if (n)
        memcpy(*out, v, n * sizeof *v);
    *out_n = n;
    return 0;
}

int store_entries(struct store *s, enum directory_kind kind, struct arena *a,
                  struct store_entry **out, size_t *out_n, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_ENTRIES);
    AUTO(free_p) struct store_entry *v = NULL;
    size_t n = 0, cap = 0;
    int got;
    row_bind_text(q, 1, directory_kind_name(kind));
    while ((got = row_next(s, q, e)) > 0) {
        vec_grow(v, n, cap);
        v[n++] = (struct store_entry){ row_text(q, 0, a), row_text(q, 1, a) };
    }
    if (got < 0)
        return -1;
    *out = arena_array(a, struct store_entry, n);
    if (n)
        memcpy(*out, v, n * sizeof *v);
    *out_n = n;
    return 0;
}

int store_pools(struct store *s, struct arena *a, struct store_pool **out, size_t *out_n,
                struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_POOLS);
    AUTO(free_p) struct store_pool *v = NULL;
    size_t n = 0, cap = 0;
    int got;
    while ((got = row_next(s, q, e)) > 0) {
        vec_grow(v, n, cap);
        v[n++] = (struct store_pool){ .name = row_text(q, 0, a),
                                      .calendar = row_text(q, 1, a),
                                      .nodes = row_text(q, 2, a),
                                      .exceptions = row_text(q, 3, a),
                                      .of_settings = row_u32(q, 4) != 0,
                                      .stage = row_text(q, 5, a) };
    }
    if (got < 0)
        return -1;
    *out = arena_array(a, struct store_pool, n);
    if (n)
        memcpy(*out, v, n * sizeof *v);
    *out_n = n;
    return 0;
}

int store_answer(struct store *s, struct str user, struct str key, struct arena *a, struct str *out,
                 struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_ANSWER);
    row_bind_text(q, 1, user);
    row_bind_text(q, 2, key);
    int got = row_next(s, q, e);
    if (got == 0)
        return err_set(e, ERR_NOT_FOUND, "no answer was given to '%.*s' yet", STR_ARG(key));
    if (got > 0)
        *out = row_text(q, 0, a);
    return got < 0 ? -1 : 0;
}

int store_meta(struct store *s, const char *key, struct arena *a, struct str *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_META);
    row_bind_text(q, 1, str_of(key));
    int got = row_next(s, q, e);
    if (got == 0)
        return err_set(e, ERR_NOT_FOUND, "the store has nothing under '%s'", key);
    if (got > 0)
        *out = row_text(q, 0, a);
    return got < 0 ? -1 : 0;
}

int store_journal_from(struct store *s, int64_t since_ms, struct store_journal_place *out,
                       struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_JOURNAL_FROM);
    sqlite3_bind_int64(q, 1, since_ms);
    int got = row_next(s, q, e);
    if (got > 0)
        *out = (struct store_journal_place){ .next = row_u64(q, 0),
                                             .last = row_u64(q, 1),
                                             .begin_ms = sqlite3_column_int64(q, 2) };
    return got < 0 ? -1 : 0;
}

/* Lines of a segment are numbered without gaps, each segment from its own first number on. */
int store_journal_page(struct store *s, struct store_journal_place *at, uint32_t lines,
                       store_line_fn *fn, void *ctx, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_JOURNAL_PAGE);
    uint32_t n = 0;
    int got;
    row_bind_u64(q, 1, at->next);
    row_bind_u64(q, 2, at->last);
    row_bind_u64(q, 3, lines);
    for (; (got = row_next(s, q, e)) > 0; n++) {
        uint64_t seq = row_u64(q, 0);
        int64_t t_ms = sqlite3_column_int64(q, 1);
        bool first = (uint32_t)seq == 0;
        if (seq != at->next && !first)
            return err_set(e, ERR_CONFLICT, "the journal was cut while it was read");
        if ((first && fn(ctx, t_ms, STR(""), e) < 0) || fn(ctx, t_ms, row_text(q, 2, NULL), e) < 0)
            return -1;
        at->next = seq + 1;
    }
    if (got == 0 && n < lines)
        at->next = at->last + 1;
    return got;
}
