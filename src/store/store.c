#include "store/store.h"

#include <stdio.h>
#include <sys/stat.h>

#include "store/inside.h"
#include "store/mend.h"
#include "store/migrate.h"
#include "store/read.h"
#include "store/reserve.h"
#include "store/sum.h"
#include "store/wal.h"
#include "sys/clock.h"
#include "sys/failpoint.h"
#include "sys/file.h"

#define CLOSE_WAIT_MS 5000u

/* ---- what the writer hands back ---- */

static void batch_done(struct store *s, struct store_batch *b)
{
    store_done_fn *fn = b->durable ? b->fn : NULL;
    void *ctx = b->ctx;
    s->pending--;
    if (b->durable) {
        s->failing = false;
        s->on_reserve = b->on_reserve;
        s->stats.batches++;
        s->stats.rows += b->rows;
        s->stats.transactions += b->ends_group;
    }
    batch_release(b);
    fail_point("store.before_callback");
    if (fn)
        fn(ctx);
}

static void on_back(void *ctx, struct worker_item *item)
{
    struct store *s = ctx;
    struct parcel *p = (struct parcel *)item;
    switch (p->kind) {
    case PARCEL_BATCH: batch_done(s, (struct store_batch *)p); return;
    case PARCEL_REFUSAL:
        s->failing = true;
        s->why = ((struct refusal *)p)->why;
        s->stats.refused++;
        free(p);
        return;
    }
}

/* ---- life ---- */

static int open_reader(struct store *s, struct err *e)
{
    s->db = db_open(s->path, e);
    if (!s->db || db_make_reader(s->db, s->path, e) < 0)
        return -1;
    return statements_prepare(&s->st, s->db, STMT_R, s->path, e);
}

/* A store that is larger is not kept waiting for at each start: `nightshift verify` looks at all of it. */
#define CHECK_ALL_PAGES 16384 /* 64 MiB: with its indexes, about a second */
#define CHECK_PAGES 65536     /* 256 MiB: the tables */

static int check_pages(sqlite3 *db, const char *path, int64_t pages, struct log *log, struct err *e)
{
    if (pages <= CHECK_ALL_PAGES) {
        struct err why = { 0 };
        if (db_sound(db, path, "PRAGMA integrity_check(1)", &why) == 0 ||
            mend_indexes(db, path, log))
            return 0;
        *e = why;
        return -1;
    }
    if (pages <= CHECK_PAGES)
        return db_sound(db, path, "PRAGMA quick_check(1)", e);
    if (log)
        log_event(log, LOG_INFO_, "store.large", "pages=%lld hint=%s", (long long)pages,
                  "not all of it is checked at each start: nightshift verify");
    return 0;
}

/* What no start is made from keeps none from being made: it is told, and whoever reads it is refused. */
static void check_history(struct store *s, sqlite3 *db, struct log *log)
{
    struct err why = { 0 };
    if (sum_check(db, s->path, SUM_HISTORY, &why) == 0)
        return;
    s->damage = why;
    if (log)
        log_event(log, LOG_ERROR_, "store.damaged", "why=%s hint=%s", why.msg, why.hint);
}

static int open_writer(struct store *s, struct log *log, struct err *e)
{
    AUTO(db_close_p) sqlite3 *db = db_open(s->path, e);
    int64_t pages = 0, version = 0;
    if (!db || migrate_check(db, s->path, e) < 0 || db_make_writer(db, s->path, e) < 0 ||
        db_number(db, s->path, "PRAGMA page_count", &pages, e) < 0 ||
        db_number(db, s->path, "PRAGMA user_version", &version, e) < 0)
        return -1;
    /* Frames that a crash has left in the log would look, at the next start, as if they had been lost. */
    if (sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) == SQLITE_OK)
        db_note_boot(s->lock);
    bool small = pages <= CHECK_PAGES;
    bool whole = version == (int64_t)migrations_n && mend_rows(db, s->path, small, log);
    if (check_pages(db, s->path, pages, log, e) < 0 || migrate_up(db, s->path, log, e) < 0 ||
        (version < (int64_t)migrations_n && sum_give(db, s->path, e) < 0) ||
        migrate_words(db, s->path, e) < 0 || (!whole && sum_check(db, s->path, SUM_START, e) < 0))
        return -1;
    if (small)
        mend_counts(db, s->path, log);
    if (small && !whole)
        check_history(s, db, log);
    s->writer = writer_new(TAKE(db), s->path, e);
    return s->writer ? 0 : -1;
}

/* A disk that is full keeps no daemon from starting: it has to let people end what fills it. */
static int open_on_full(struct store *s, struct log *log, struct err *e)
{
    if (open_writer(s, log, e) == 0)
        return 0;
    if (e->code != ERR_UNAVAILABLE || !reserve_release(s->path))
        return -1;
    s->on_reserve = true;
    return open_writer(s, log, e);
}

struct store *store_open(struct loop *l, const char *path, struct log *log, struct err *e)
{
    AUTO(store_close_p) struct store *s = xcalloc(1, sizeof *s);
    s->path = xstrdup(path);
    s->lock = db_claim(path, e);
    if (s->lock < 0 || wal_check(path, db_same_boot(s->lock), e) < 0 ||
        open_on_full(s, log, e) < 0 || open_reader(s, e) < 0 ||
        read_number(s, ST_LAST_JOB, &s->last_job, e) < 0 ||
        read_number(s, ST_LAST_EVENT, &s->last_event, e) < 0 ||
        read_number(s, ST_JOURNAL_LINES, &s->journal_lines, e) < 0)
        return NULL;
    s->worker = worker_new(l, writer_run, s->writer, on_back, s);
    return TAKE(s);
}

int store_flush(struct store *s, uint64_t wait_ms, struct err *e)
{
    int64_t until_ns = clock_mono_ns() + (int64_t)wait_ms * 1000000;
    while (s->pending > 0) {
        int64_t left_ns = until_ns - clock_mono_ns();
        if (left_ns <= 0)
            break;
        worker_await(s->worker, (uint64_t)left_ns / 1000000 + 1);
    }
    s->gave_up = s->pending > 0;
    if (!s->gave_up)
        return 0;
    err_set(e, ERR_UNAVAILABLE, "'%s' did not take %zu batches of changes in %llu ms", s->path,
            s->pending, (unsigned long long)wait_ms);
    if (s->failing) {
        *e = s->why;
        return err_wrap(e, "%zu batches of changes are not written", s->pending);
    }
    return err_hint(e, "the disk is slow: wait longer");
}

struct store *store_close(struct store *s)
{
    if (!s)
        return NULL;
    struct err unwritten; /* whoever wants to know it flushes first, and is not waited for twice */
    if (s->worker && !s->gave_up && store_flush(s, CLOSE_WAIT_MS, &unwritten) < 0)
        s->gave_up = true;
    s->worker = worker_free(s->worker);
    while (s->batches) /* those nobody handed over */
        store_batch_free(s->batches);
    statements_clear(&s->st);
    db_close_p(&s->db);
    s->writer = writer_free(s->writer);
    file_close_p(&s->lock);
    free(s->path);
    free(s);
    return NULL;
}

void store_close_p(struct store **s)
{
    *s = store_close(*s);
}

/* ---- writing ---- */

void store_commit(struct store *s, struct store_batch *b, store_done_fn *fn, void *ctx)
{
    b->fn = fn;
    b->ctx = ctx;
    s->pending++;
    worker_give(s->worker, &b->parcel.item);
}

size_t store_pending(const struct store *s)
{
    return s->pending;
}

bool store_failing(const struct store *s, struct err *out)
{
    if (s->failing && out)
        *out = s->why;
    return s->failing;
}

bool store_on_reserve(const struct store *s)
{
    return s->on_reserve;
}

void store_stats(const struct store *s, struct store_stats *out)
{
    *out = s->stats;
}

bool store_damaged(const struct store *s, struct err *out)
{
    if (s->damage.code)
        *out = s->damage;
    return s->damage.code != ERR_NONE;
}

uint64_t store_bytes(const struct store *s)
{
    static const char *const ends[] = { "", "-wal" };
    uint64_t sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char path[4096 + 8];
        struct stat st;
        snprintf(path, sizeof path, "%s%s", s->path, ends[i]);
        if (stat(path, &st) == 0)
            sum += (uint64_t)st.st_size;
    }
    return sum;
}

/* ---- what is known without asking the file ---- */

uint64_t store_last_job(const struct store *s)
{
    return s->last_job;
}

uint64_t store_last_event(const struct store *s)
{
    return s->last_event;
}

uint64_t store_journal_lines(const struct store *s)
{
    return s->journal_lines;
}
