#include "store/write.h"

#include "store/chain.h"
#include "store/db.h"
#include "store/reserve.h"
#include "sys/failpoint.h"

#define STATEMENTS_PER_OP 3u

static const struct {
    size_t n;
    enum stmt run[STATEMENTS_PER_OP];
} ops[] = {
#define COUNT(...) (sizeof((enum stmt[]){ __VA_ARGS__ }) / sizeof(enum stmt))
#define X(id, ...) [OP_##id] = { COUNT(__VA_ARGS__), { __VA_ARGS__ } },
    STORE_OPS(X)
#undef X
};

struct writer {
    char *path;
    sqlite3 *db;
    struct statements st;
    bool full;                        /* the last failure: there is no room */
    bool on_reserve;                  /* which was given up, and could not be made again */
    struct worker_item *head, **tail; /* batches that are not durable, in order */
};

struct writer *writer_new(sqlite3 *db, const char *path, struct err *e)
{
    struct writer *w = xcalloc(1, sizeof *w);
    w->path = xstrdup(path);
    w->db = db;
    w->tail = &w->head;
    return statements_prepare(&w->st, db, STMT_W, path, e) < 0 ? writer_free(w) : w;
}

struct writer *writer_free(struct writer *w)
{
    if (!w)
        return NULL;
    statements_clear(&w->st);
    /* Without this the next start reads the log; so a failure costs time, not data. */
    sqlite3_wal_checkpoint_v2(w->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    db_close_p(&w->db);
    free(w->path);
    free(w);
    return NULL;
}

static int bind(sqlite3_stmt *q, int at, const struct field *f)
{
    switch (f->type) {
    case FIELD_INT: return sqlite3_bind_int64(q, at, f->v);
    case FIELD_TEXT: return sqlite3_bind_text64(q, at, f->s.p, f->s.n, SQLITE_STATIC, SQLITE_UTF8);
    case FIELD_BLOB: return sqlite3_bind_blob64(q, at, f->s.p, f->s.n, SQLITE_STATIC);
    }
    abort();
}

/* Runs one statement with the fields it asks for; the batch holds the bytes meanwhile. */
static int run(struct writer *w, enum stmt id, const struct field *f, size_t n, struct err *e)
{
    sqlite3_stmt *q = w->st.of[id];
    int rc = SQLITE_OK;
    size_t want = MIN(n, (size_t)sqlite3_bind_parameter_count(q));
    for (size_t i = 0; i < want && rc == SQLITE_OK; i++)
        rc = bind(q, (int)i + 1, &f[i]);
    if (rc == SQLITE_OK)
        rc = db_step(q);
    w->full = rc != SQLITE_DONE && db_is_full(w->db);
    int failed = rc == SQLITE_DONE ? 0 : db_fail(w->db, w->path, "write", e);
    sqlite3_reset(q);
    return failed;
}

static int apply(struct writer *w, const struct store_batch *b, struct err *e)
{
    struct batch_cursor c = { b->p, b->n > 0 ? b->p + b->n : b->p };
    struct field f[OP_FIELDS_MAX];
    struct chain_room room;
    enum store_op op;
    size_t n;
    while (batch_next(&c, &op, f, &n)) {
        if (op == OP_ADD_AUDIT && chain_link(&w->st, f, &room) != SQLITE_OK)
            return db_fail(w->db, w->path, "read", e);
        for (size_t i = 0; i < ops[op].n; i++)
            if (run(w, ops[op].run[i], f, n, e) < 0)
                return -1;
    }
    return 0;
}

/* The batches from the head to before `end` in one transaction. */
static int transact(struct writer *w, const struct worker_item *end, struct err *e)
{
    if (run(w, ST_BEGIN, NULL, 0, e) < 0)
        return -1;
    for (const struct worker_item *i = w->head; i != end; i = i->next)
        if (apply(w, (const struct store_batch *)i, e) < 0)
            return -1;
    fail_point("store.before_commit");
    if (run(w, ST_COMMIT, NULL, 0, e) < 0)
        return -1;
    fail_point("store.after_commit");
    return 0;
}

/* Where the next transaction ends: after as many batches as the bound lets in, at least one. */
static struct worker_item *group_end(const struct writer *w, uint64_t *out_rows)
{
    struct worker_item *i = w->head;
    uint64_t rows = 0;
    do {
        rows += ((struct store_batch *)i)->rows;
        i = i->next;
    } while (i && rows + ((struct store_batch *)i)->rows <= GROUP_ROWS_MAX);
    *out_rows = rows;
    return i;
}

static void hand_back(struct writer *w, struct worker *worker, const struct worker_item *end,
                      bool durable)
{
    while (w->head != end) {
        struct store_batch *b = (struct store_batch *)w->head;
        w->head = w->head->next;
        b->durable = durable;
        b->on_reserve = w->on_reserve;
        b->ends_group = w->head == end;
        worker_return(worker, &b->parcel.item);
    }
    if (!w->head)
        w->tail = &w->head;
}

static void take(struct writer *w, struct worker *worker)
{
    *w->tail = worker_take(worker, w->head == NULL);
    while (*w->tail)
        w->tail = &(*w->tail)->next;
}

static void refuse(struct writer *w, struct worker *worker, const struct err *why)
{
    if (!sqlite3_get_autocommit(w->db)) { /* some failures have rolled back already */
        struct err ignored;
        run(w, ST_ROLLBACK, NULL, 0, &ignored);
    }
    struct refusal *r = xcalloc(1, sizeof *r);
    r->parcel.kind = PARCEL_REFUSAL;
    r->why = *why;
    worker_return(worker, &r->parcel.item);
}

void writer_run(void *writer, struct worker *worker)
{
    struct writer *w = writer;
    uint64_t wait_ms = RETRY_FIRST_MS;
    for (take(w, worker); w->head; take(w, worker)) {
        struct err why = { 0 };
        uint64_t rows;
        struct worker_item *end = group_end(w, &rows);
        if (rows == 0 || transact(w, end, &why) == 0) {
            if (rows)
                w->on_reserve = !reserve_make(w->path) && w->on_reserve;
            hand_back(w, worker, end, true);
            wait_ms = RETRY_FIRST_MS;
            continue;
        }
        refuse(w, worker, &why);
        if (w->full && reserve_release(w->path)) { /* room to record what ends */
            w->on_reserve = true;
            continue;
        }
        if (!worker_pause(worker, wait_ms)) {
            take(w, worker);
            hand_back(w, worker, NULL, false);
        }
        wait_ms = MIN(wait_ms * 2, (uint64_t)RETRY_LAST_MS);
    }
}
