/* Usage of a span: whole days from their sums; of the days that its ends cut, the runs themselves. */
#include "base/map.h"
#include "store/read.h"
#include "store/usage.h"

#define NAME_BITS 21u /* three of them make a key */

static struct store_run run_of_row(sqlite3_stmt *q, struct arena *a)
{
    return (struct store_run){ .job = row_u64(q, 0),
                               .run = row_u32(q, 1),
                               .tenant = row_text(q, 2, a),
                               .user = row_text(q, 3, a),
                               .node = row_text(q, 4, a),
                               .model = row_text(q, 5, a),
                               .gpu_milli = row_u64(q, 6),
                               .cpu_milli = row_u64(q, 7),
                               .mem_mib = row_u64(q, 8),
                               .started_ms = sqlite3_column_int64(q, 9),
                               .ended_ms = sqlite3_column_int64(q, 10) };
}

int store_job_runs(struct store *s, const struct store_scope *who, uint64_t job, struct arena *a,
                   struct store_runs *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_RUNS);
    AUTO(free_p) struct store_run *v = NULL;
    size_t n = 0, cap = 0;
    row_bind_u64(q, 1, job);
    int got;
    while ((got = row_next(s, q, e)) > 0) {
        if (!store_scope_sees(who, row_text(q, 2, NULL)))
            continue;
        vec_grow(v, n, cap);
        v[n++] = run_of_row(q, a);
    }
    if (got < 0)
        return -1;
    *out = (struct store_runs){ arena_array(a, struct store_run, n), n };
    if (n)
        memcpy(out->v, v, n * sizeof *v);
    return 0;
}

/* ---- sums by tenant, user, model and day ---- */

struct amount {
    uint64_t ms;
    uint32_t rest; /* thousandths of it */
};

struct sum {
    int64_t day;
    uint32_t tenant, user, model; /* in `names` */
    struct amount gpu, cpu;
    uint64_t runs;
};

struct sums {
    struct store *s;
    const struct store_scope *who;
    struct store_span span;
    struct names names;
    struct map rows;   /* tenant, user and model -> a number */
    struct map by_key; /* that number and a day -> a sum */
    struct sum *v;
    size_t n, cap;
};

static void sums_clear(struct sums *u)
{
    names_free(&u->names);
    map_free(&u->rows);
    map_free(&u->by_key);
    free(u->v);
}

static bool is_by(const struct sums *u, enum store_usage_by by)
{
    return u->span.by & (1u << by);
}

static void amount_add(struct amount *a, uint64_t milli_ms)
{
    uint64_t rest = a->rest + milli_ms % 1000;
    a->ms += milli_ms / 1000 + rest / 1000;
    a->rest = (uint32_t)(rest % 1000);
}

static uint32_t name_in_row(struct sums *u, sqlite3_stmt *q, int column, enum store_usage_by by)
{
    return names_intern(&u->names, is_by(u, by) ? row_text(q, column, NULL) : STR(""));
}

/* Columns 0 to 2 name it; NULL when it may not be seen. */
static struct sum *sum_of_row(struct sums *u, sqlite3_stmt *q, int64_t day)
{
    if (!store_scope_sees(u->who, row_text(q, 0, NULL)))
        return NULL;
    struct sum add = { .day = is_by(u, USAGE_BY_DAY) ? day : 0,
                       .tenant = name_in_row(u, q, 0, USAGE_BY_TENANT),
                       .user = name_in_row(u, q, 1, USAGE_BY_USER),
                       .model = name_in_row(u, q, 2, USAGE_BY_MODEL) };
    uint64_t row = (uint64_t)add.tenant << 2 * NAME_BITS | (uint64_t)add.user << NAME_BITS |
                   (uint64_t)add.model;
    uint64_t number, at;
    if (!map_get(&u->rows, row, &number)) {
        number = u->n; /* of its first sum: nobody else's */
        map_set(&u->rows, row, number);
    }
    uint64_t key = number << 32 | (uint32_t)add.day;
    if (map_get(&u->by_key, key, &at))
        return &u->v[at];
    map_set(&u->by_key, key, u->n);
    vec_grow(u->v, u->n, u->cap);
    u->v[u->n] = add;
    return &u->v[u->n++];
}

/* ---- pieces of the span ---- */

struct piece {
    int64_t from_ms, to_ms;
    bool first; /* what goes on at its beginning is counted here: of the span, or of a day by day */
};

/* The row's run, as far as it lies in the piece, which is of one day if it is by day; it ended at
 * `ended_ms`. */
static void add_run(struct sums *u, sqlite3_stmt *q, const struct piece *p, int64_t ended_ms)
{
    int64_t started_ms = sqlite3_column_int64(q, 5);
    bool begins = started_ms >= p->from_ms && started_ms < p->to_ms;
    bool goes_on = started_ms < p->from_ms && ended_ms > p->from_ms;
    struct sum *to = begins || goes_on ? sum_of_row(u, q, p->from_ms / DAY_MS) : NULL;
    if (!to)
        return;
    int64_t part_ms = MIN(ended_ms, p->to_ms) - MAX(started_ms, p->from_ms);
    if (part_ms > 0) {
        amount_add(&to->gpu, (uint64_t)part_ms * row_u64(q, 3));
        amount_add(&to->cpu, (uint64_t)part_ms * row_u64(q, 4));
    }
    to->runs += begins || p->first;
}

static int add_runs(struct sums *u, sqlite3_stmt *q, const struct piece *p, struct err *e)
{
    int got;
    while ((got = row_next(u->s, q, e)) > 0)
        add_run(u, q, p, sqlite3_column_int64(q, 6));
    return got;
}

/* A part of one day: the runs that were carried into it, and those that began in it. */
static int add_part(struct sums *u, const struct piece *p, struct err *e)
{
    int64_t day = p->from_ms / DAY_MS;
    AUTO(row_end_p) sqlite3_stmt *carried = row_query(u->s, ST_RUNS_CARRIED);
    AUTO(row_end_p) sqlite3_stmt *begun = row_query(u->s, ST_RUNS_BEGUN);
    sqlite3_bind_int64(carried, 1, day);
    sqlite3_bind_int64(begun, 1, day * DAY_MS);
    sqlite3_bind_int64(begun, 2, p->to_ms);
    return add_runs(u, carried, p, e) < 0 || add_runs(u, begun, p, e) < 0 ? -1 : 0;
}

static int add_days(struct sums *u, const struct piece *p, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(u->s, ST_USAGE_DAYS);
    int64_t from = p->from_ms / DAY_MS;
    int got;
    sqlite3_bind_int64(q, 1, from);
    sqlite3_bind_int64(q, 2, p->to_ms / DAY_MS);
    while ((got = row_next(u->s, q, e)) > 0) {
        int64_t day = sqlite3_column_int64(q, 7);
        struct sum *to = sum_of_row(u, q, day);
        if (!to)
            continue;
        amount_add(&to->gpu, row_u64(q, 3));
        amount_add(&to->cpu, row_u64(q, 4));
        to->runs += row_u64(q, 5);
        if ((p->first && day == from) || is_by(u, USAGE_BY_DAY))
            to->runs += row_u64(q, 6);
    }
    return got;
}

/* By day: as far as it lies in each. */
static void add_run_by_day(struct sums *u, sqlite3_stmt *q, int64_t ended_ms)
{
    int64_t from_ms = MAX(u->span.from_ms, sqlite3_column_int64(q, 5)), to_ms = u->span.to_ms;
    do { /* one that has just begun is of its day, too */
        int64_t end_ms = MIN((from_ms / DAY_MS + 1) * DAY_MS, to_ms);
        struct piece p = { MAX(from_ms / DAY_MS * DAY_MS, u->span.from_ms), end_ms, true };
        add_run(u, q, &p, ended_ms);
        from_ms = end_ms;
    } while (from_ms < MIN(to_ms, ended_ms));
}

/* What has not ended holds its GPUs until now. */
static int add_living(struct sums *u, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(u->s, ST_RUNS_LIVING);
    struct piece p = { u->span.from_ms, u->span.to_ms, true };
    int64_t now_ms = u->span.now_ms;
    int got;
    sqlite3_bind_int64(q, 1, p.to_ms);
    while ((got = row_next(u->s, q, e)) > 0)
        if (is_by(u, USAGE_BY_DAY))
            add_run_by_day(u, q, now_ms);
        else
            add_run(u, q, &p, now_ms);
    return got;
}

static int add_span(struct sums *u, struct err *e)
{
    const struct store_span *s = &u->span;
    int64_t from = (s->from_ms + DAY_MS - 1) / DAY_MS * DAY_MS, to = s->to_ms / DAY_MS * DAY_MS;
    struct piece left = { s->from_ms, MIN(from, s->to_ms), true };
    struct piece days = { from, to, from == s->from_ms };
    struct piece right = { to, s->to_ms, to == s->from_ms || is_by(u, USAGE_BY_DAY) };
    if (left.from_ms < left.to_ms && add_part(u, &left, e) < 0)
        return -1;
    if (days.from_ms < days.to_ms && add_days(u, &days, e) < 0)
        return -1;
    if (from <= to && right.from_ms < right.to_ms && add_part(u, &right, e) < 0)
        return -1;
    return add_living(u, e);
}

/* To whole days, where the runs that a part would be counted from are gone. */
static int widen(struct store *s, struct store_span *span, struct err *e)
{
    int64_t before_ms;
    if (read_whole_days(s, &before_ms, e) < 0)
        return -1;
    if (span->from_ms < span->to_ms && span->from_ms < before_ms)
        span->from_ms = span->from_ms / DAY_MS * DAY_MS;
    if (span->from_ms < span->to_ms && span->to_ms < before_ms)
        span->to_ms = (span->to_ms + DAY_MS - 1) / DAY_MS * DAY_MS;
    return 0;
}

/* ---- the answer ---- */

static int by_names(const void *a, const void *b)
{
    const struct store_usage *x = a, *y = b;
    if (x->day != y->day)
        return x->day < y->day ? -1 : 1;
    int by = strcmp(x->tenant.p, y->tenant.p);
    by = by ? by : strcmp(x->user.p, y->user.p);
    return by ? by : strcmp(x->model.p, y->model.p);
}

static struct str name_of(const struct sums *u, uint32_t name, struct arena *a)
{
    struct str s = str_of(names_get(&u->names, name));
    return (struct str){ arena_strndup(a, s.p, s.n), s.n };
}

int store_usage(struct store *s, const struct store_scope *who, const struct store_span *span,
                struct arena *a, struct store_usages *out, struct err *e)
{
    AUTO(snapshot_end_p) struct store *held = snapshot_begin(s);
    AUTO(sums_clear) struct sums u = { .s = held, .who = who, .span = *span };
    if (u.span.by == 0)
        u.span.by = 1u << USAGE_BY_TENANT | 1u << USAGE_BY_USER | 1u << USAGE_BY_MODEL;
    if (widen(held, &u.span, e) < 0 || (u.span.from_ms < u.span.to_ms && add_span(&u, e) < 0))
        return -1;
    struct store_usage *v = arena_array(a, struct store_usage, u.n);
    for (size_t i = 0; i < u.n; i++)
        v[i] = (struct store_usage){ .day = u.v[i].day,
                                     .tenant = name_of(&u, u.v[i].tenant, a),
                                     .user = name_of(&u, u.v[i].user, a),
                                     .model = name_of(&u, u.v[i].model, a),
                                     .gpu_ms = u.v[i].gpu.ms,
                                     .cpu_ms = u.v[i].cpu.ms,
                                     .runs = u.v[i].runs };
    if (u.n)
        qsort(v, u.n, sizeof *v, by_names);
    *out = (struct store_usages){ v, u.n };
    return 0;
}
