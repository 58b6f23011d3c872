/* Lists of jobs.  job_count tells which tenants have jobs in which states; each such pair that is
 * asked for is one range of an index, walked in pieces from its newest id.  Once a page is full,
 * what lies below its last id is not looked at. */
#include "store/read.h"

#define PIECE_MIN 32u
#define MANY 5000u   /* ended jobs that are too many to put in order, of all ranges together */
#define MANY_MIN 64u /* of one range */

_Static_assert(JOB_STATE_COUNT <= 32, "a filter has a bit for each state");

static int job_of_row(sqlite3_stmt *q, struct arena *a, struct store_job *out, struct err *e)
{
    uint64_t state = row_u64(q, 10), priority = row_u64(q, 11);
    if (state >= JOB_STATE_COUNT || priority >= PRIO_COUNT)
        return err_set(e, ERR_INTERNAL, "job %llu has state %llu, priority %llu in the store",
                       (unsigned long long)row_u64(q, 0), (unsigned long long)state,
                       (unsigned long long)priority);
    out->fixed = (struct store_job_fixed){ .id = row_u64(q, 0),
                                           .tenant = row_text(q, 1, a),
                                           .user = row_text(q, 2, a),
                                           .name = row_text(q, 3, a),
                                           .uid = row_u32(q, 4),
                                           .submitted_ms = sqlite3_column_int64(q, 5),
                                           .replicas = row_u32(q, 6),
                                           .gpu_milli = row_u64(q, 7),
                                           .spec = STR(""),
                                           .array = row_u64(q, 8),
                                           .array_index = row_u32(q, 9) };
    out->now = (struct store_job_now){ .state = (enum job_state)state,
                                       .priority = (enum priority)priority,
                                       .state_ms = sqlite3_column_int64(q, 12),
                                       .started_ms = sqlite3_column_int64(q, 13),
                                       .ended_ms = sqlite3_column_int64(q, 14),
                                       .run = row_u32(q, 15),
                                       .exit_code = sqlite3_column_int(q, 16),
                                       .exit_signal = sqlite3_column_int(q, 17),
                                       .end = row_text(q, 18, a),
                                       .message = row_text(q, 19, a),
                                       .where = row_text(q, 20, a),
                                       .ran_ms = sqlite3_column_int64(q, 21),
                                       .fails = row_u32(q, 22) };
    return 0;
}

static int read_job(struct store *s, uint64_t id, struct arena *a, struct store_job *out,
                    struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_JOB);
    row_bind_u64(q, 1, id);
    int got = row_next(s, q, e);
    return got > 0 && job_of_row(q, a, out, e) < 0 ? -1 : got;
}

static int read_spec(struct store *s, uint64_t id, struct arena *a, struct str *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_SPEC);
    row_bind_u64(q, 1, id);
    int got = row_next(s, q, e);
    if (got > 0)
        *out = row_text(q, 0, a);
    return got;
}

/* held: a snapshot. */
static int read_seen(struct store *held, const struct store_scope *who, uint64_t id,
                     struct arena *a, struct store_job *out, struct err *e)
{
    struct store_job j = { 0 };
    int got = read_job(held, id, a, &j, e);
    if (got < 0)
        return -1;
    if (got == 0 || !store_scope_sees(who, j.fixed.tenant)) { /* the same words for both */
        err_set(e, ERR_NOT_FOUND, "there is no job %llu", (unsigned long long)id);
        return err_hint(e, "see those there are: nightshift ps --all");
    }
    *out = j;
    return 0;
}

int store_job_get(struct store *s, const struct store_scope *who, uint64_t id, struct arena *a,
                  struct store_job *out, struct err *e)
{
    AUTO(snapshot_end_p) struct store *held = snapshot_begin(s);
    struct store_job j;
    if (read_seen(held, who, id, a, &j, e) < 0 || read_spec(held, id, a, &j.fixed.spec, e) < 0)
        return -1;
    *out = j;
    return 0;
}

int store_job_brief(struct store *s, const struct store_scope *who, uint64_t id, struct arena *a,
                    struct store_job *out, struct err *e)
{
    AUTO(snapshot_end_p) struct store *held = snapshot_begin(s);
    return read_seen(held, who, id, a, out, e);
}

/* ---- lists ---- */

struct range {
    struct str tenant;
    enum job_state state;
    enum stmt by;
    uint64_t before; /* goes on below this id; 0: it is at its end */
};

struct picking {
    struct store *s;
    const struct store_filter *f;
    struct range *range;
    size_t ranges, ranges_cap;
    uint64_t *id; /* a page, newest first, and what was found since it was put in order */
    size_t n, cap, limit;
    uint64_t floor; /* ids up to this are not on the page */
};

static void picking_clear(struct picking *p)
{
    free(p->range);
    free(p->id);
}

static int newest_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static void settle(struct picking *p)
{
    if (p->n == 0)
        return;
    qsort(p->id, p->n, sizeof *p->id, newest_first);
    p->n = MIN(p->n, p->limit);
    if (p->n == p->limit)
        p->floor = p->id[p->n - 1];
}

static bool wanted(const struct store_scope *who, const struct store_filter *f, struct str tenant,
                   uint64_t state)
{
    uint32_t states = f->states ? f->states : UINT32_MAX;
    return state < JOB_STATE_COUNT && (states >> state & 1) && store_scope_sees(who, tenant) &&
           (!f->tenant.n || str_eq(f->tenant, tenant));
}

static bool dated(const struct picking *p, const struct range *r)
{
    return p->f->ended_after_ms != 0 && job_state_ended(r->state);
}

/* Few that ended since are found by time and put in order; among many the newest ids come soon. */
static int few_ended(struct picking *p, const struct range *r, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(p->s, ST_MANY_ENDED);
    row_bind_text(q, 1, r->tenant);
    sqlite3_bind_int64(q, 2, p->f->ended_after_ms);
    row_bind_u64(q, 3, MAX(MANY / p->ranges, (size_t)MANY_MIN));
    int got = row_next(p->s, q, e);
    return got < 0 ? -1 : !got;
}

static int choose_index(struct picking *p, struct range *r, struct err *e)
{
    const struct store_filter *f = p->f;
    r->by = f->array ? ST_IDS_OF_ARRAY : f->user.n ? ST_IDS_OF_USER : ST_IDS_OF_TENANT;
    if (r->by == ST_IDS_OF_TENANT && f->name.n)
        r->by = ST_IDS_OF_NAME;
    int few = dated(p, r) ? few_ended(p, r, e) : 0;
    if (few > 0)
        r->by = ST_IDS_OF_ENDED;
    return few < 0 ? -1 : 0;
}

static int find_ranges(struct picking *p, const struct store_scope *who, struct arena *a,
                       struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(p->s, ST_COUNTS);
    int got;
    while ((got = row_next(p->s, q, e)) > 0) {
        if (!wanted(who, p->f, row_text(q, 0, NULL), row_u64(q, 1)))
            continue;
        vec_grow(p->range, p->ranges, p->ranges_cap);
        struct range *r = &p->range[p->ranges++];
        *r = (struct range){ .tenant = row_text(q, 0, a),
                             .state = (enum job_state)row_u64(q, 1),
                             .before = p->f->before ? p->f->before : INT64_MAX };
    }
    for (size_t i = 0; got == 0 && i < p->ranges; i++)
        got = choose_index(p, &p->range[i], e);
    return got;
}

/* The next `piece` ids of one range. */
static int walk_range(struct picking *p, struct range *r, size_t piece, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(p->s, r->by);
    row_bind_text(q, 1, r->tenant);
    sqlite3_bind_int64(q, 2, r->state);
    row_bind_u64(q, 3, p->floor);
    row_bind_u64(q, 4, r->before);
    row_bind_u64(q, 5, piece);
    row_bind_text(q, 6, p->f->user);
    row_bind_text(q, 7, p->f->name);
    row_bind_u64(q, 8, p->f->array);
    sqlite3_bind_int64(q, 9, dated(p, r) ? p->f->ended_after_ms : 0);
    size_t first = p->n;
    int got;
    while ((got = row_next(p->s, q, e)) > 0) {
        vec_grow(p->id, p->n, p->cap);
        p->id[p->n++] = row_u64(q, 0);
    }
    r->before = p->n - first == piece ? p->id[p->n - 1] : 0;
    return got;
}

/* Round after round, until no range has anything left above the page's last id. */
static int pick(struct picking *p, struct err *e)
{
    bool more = p->ranges > 0;
    while (more) {
        size_t share = 2 * p->limit / p->ranges;
        size_t piece = p->ranges == 1 ? p->limit : MAX(share, (size_t)PIECE_MIN);
        more = false;
        for (size_t i = 0; i < p->ranges; i++) {
            struct range *r = &p->range[i];
            if (r->before > p->floor + 1 && walk_range(p, r, piece, e) < 0)
                return -1;
        }
        settle(p);
        for (size_t i = 0; i < p->ranges; i++)
            more |= p->range[i].before > p->floor + 1;
    }
    return 0;
}

int store_jobs_list(struct store *s, const struct store_scope *who, const struct store_filter *f,
                    struct arena *a, struct store_jobs *out, struct err *e)
{
    AUTO(snapshot_end_p) struct store *held = snapshot_begin(s);
    uint32_t limit = f->limit == 0 || f->limit > PAGE_MAX ? PAGE_MAX : f->limit;
    AUTO(picking_clear) struct picking p = { .s = held, .f = f, .limit = limit };
    if (find_ranges(&p, who, a, e) < 0 || pick(&p, e) < 0)
        return -1;
    struct store_jobs r = { arena_array(a, struct store_job, p.n), p.n };
    for (size_t i = 0; i < p.n; i++)
        if (read_job(held, p.id[i], a, &r.v[i], e) < 0)
            return -1;
    *out = r;
    return 0;
}

int store_jobs_count(struct store *s, const struct store_scope *who, uint64_t out[JOB_STATE_COUNT],
                     struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_COUNTS);
    uint64_t n[JOB_STATE_COUNT] = { 0 };
    int got;
    while ((got = row_next(s, q, e)) > 0)
        if (row_u64(q, 1) < JOB_STATE_COUNT && store_scope_sees(who, row_text(q, 0, NULL)))
            n[row_u64(q, 1)] += row_u64(q, 2);
    if (got == 0)
        memcpy(out, n, sizeof n);
    return got;
}

int store_living_jobs(struct store *s, store_job_fn *fn, void *ctx, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_LIVING);
    int got;
    while ((got = row_next(s, q, e)) > 0) {
        struct store_job j;
        if (job_of_row(q, NULL, &j, e) < 0)
            return -1;
        if (fn(ctx, &j, e) < 0)
            return -1;
    }
    return got;
}
