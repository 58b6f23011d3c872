/* Generated rows in generated batches, some thrown away, some lost with a process that is killed at its
 * commit: what is there verifies, and any byte of it that is changed is found. */
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "store/audit.h"
#include "tests/lib/storing.h"

#define ROUNDS 12
#define ROWS_MAX 40

static const char *const columns[] = { "number",  "t_ms",   "who",    "via",   "address", "what",
                                       "subject", "tenant", "before", "after", "reason",  "hash" };

static struct str text(struct rng *g, char *out, size_t max)
{
    static const char signs[] = "abc:,0123 \n\"{}";
    size_t n = rng_below(g, (uint32_t)max);
    for (size_t i = 0; i < n; i++)
        out[i] = signs[rng_below(g, sizeof signs - 1)];
    return (struct str){ out, n };
}

static void add_row(struct rng *g, struct store_batch *b)
{
    struct audit_row r = { .t_ms = (int64_t)rng_below(g, 1000000) };
    char room[9][64];
    size_t i = 0;
#define X(name, max) r.name = text(g, room[i++], sizeof room[0]);
    AUDIT_TEXTS(X)
#undef X
    store_add_audit(b, &r);
}

static int add_batch(struct rng *g, struct store *s, struct storing *t)
{
    struct store_batch *b = store_batch_new(s);
    int rows = 1 + (int)rng_below(g, 5);
    for (int i = 0; i < rows; i++)
        add_row(g, b);
    if (rng_below(g, 4) == 0) {
        store_batch_free(b);
        return 0;
    }
    store_commit(s, b, storing_count, &t->done);
    return rows;
}

/* In a process of its own, which dies before or after its commit. */
static void add_and_die(struct rng *g, struct storing *t)
{
    const char *when = rng_below(g, 2) ? "store.before_commit" : "store.after_commit";
    int status;
    t->store = store_close(t->store);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        struct err e;
        setenv("NIGHTSHIFT_FAILPOINT", when, 1);
        struct loop *l = loop_new();
        struct store *s = store_open(l, t->path, NULL, &e);
        if (!s)
            _exit(2);
        while (add_batch(g, s, t) == 0) {
        }
        if (store_flush(s, STORING_WAIT_MS, &e) < 0)
            _exit(3);
        _exit(4);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    storing_open(t);
}

static struct audit_chain verify(struct storing *t)
{
    struct store_audit_check c;
    struct err e = { 0 };
    CHECK(store_audit_check_begin(t->store, NULL, &c, &e) == 0);
    while (!c.done)
        CHECK(store_audit_check(t->store, &c, 7, &e) == 0);
    return c.chain;
}

/* One bit of the value as SQLite stores it, whatever it is then. */
static void flip(sqlite3 *db, uint64_t seed, struct rng *g, uint64_t number, const char *column)
{
    sqlite3_stmt *q = NULL;
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT %s FROM audit WHERE number = %llu", column,
             (unsigned long long)number);
    CHECK_AT(seed, sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK);
    CHECK_AT(seed, sqlite3_step(q) == SQLITE_ROW);
    int type = sqlite3_column_type(q, 0);
    size_t n = (size_t)sqlite3_column_bytes(q, 0);
    char value[256] = "x"; /* an empty one gets a byte */
    int64_t v = (int64_t)sqlite3_column_int64(q, 0) ^ (INT64_C(1) << rng_below(g, 40));
    if (n && type != SQLITE_INTEGER) {
        memcpy(value, sqlite3_column_blob(q, 0), MIN(n, sizeof value));
        size_t at = rng_below(g, (uint32_t)n);
        value[at] = (char)(value[at] ^ 1 << rng_below(g, 7));
    }
    sqlite3_finalize(q);
    snprintf(sql, sizeof sql, "UPDATE audit SET %s = ?1 WHERE number = %llu", column,
             (unsigned long long)number);
    CHECK_AT(seed, sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK);
    if (type == SQLITE_INTEGER)
        sqlite3_bind_int64(q, 1, v);
    else if (type == SQLITE_BLOB)
        sqlite3_bind_blob(q, 1, value, (int)MAX(n, (size_t)1), SQLITE_STATIC);
    else
        sqlite3_bind_text(q, 1, value, (int)MAX(n, (size_t)1), SQLITE_STATIC);
    int rc = sqlite3_step(q);
    /* Another row may have the number already: then one of the two goes. */
    CHECK_AT(seed, rc == SQLITE_DONE || rc == SQLITE_CONSTRAINT);
    sqlite3_finalize(q);
    if (rc == SQLITE_CONSTRAINT) {
        snprintf(sql, sizeof sql, "DELETE FROM audit WHERE number = %llu",
                 (unsigned long long)number);
        CHECK_AT(seed, sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    }
}

static void try_every_byte(struct storing *t, uint64_t seed, struct rng *g, uint64_t rows)
{
    sqlite3 *db = NULL;
    CHECK_AT(seed, sqlite3_open(t->path, &db) == SQLITE_OK);
    CHECK_AT(seed, sqlite3_exec(db,
                                "DROP TRIGGER audit_grows; DROP TRIGGER audit_stays;"
                                "DROP TRIGGER audit_goes; PRAGMA synchronous = OFF;"
                                "CREATE TABLE copy AS SELECT * FROM audit",
                                NULL, NULL, NULL) == SQLITE_OK);
    for (uint64_t number = 1; number <= rows; number++)
        for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
            flip(db, seed, g, number, columns[i]);
            struct audit_chain c = verify(t);
            CHECK_AT(seed, c.fault != AUDIT_FAULT_NONE && c.fault_at <= number);
            CHECK_AT(seed,
                     sqlite3_exec(db, "DELETE FROM audit; INSERT INTO audit SELECT * FROM copy",
                                  NULL, NULL, NULL) == SQLITE_OK);
        }
    CHECK_AT(seed, verify(t).fault == AUDIT_FAULT_NONE);
    CHECK_AT(seed, sqlite3_close(db) == SQLITE_OK);
}

static void a_chain_verifies_until_a_byte_is_changed(void)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        AUTO(storing_end) struct storing t;
        struct rng g = { seed };
        struct err e = { 0 };
        uint64_t least = 0;
        storing_begin(&t);
        storing_open(&t);
        while (least < ROWS_MAX / 2) {
            if (rng_below(&g, 5) == 0) {
                CHECK_AT(seed, store_flush(t.store, STORING_WAIT_MS, &e) == 0);
                add_and_die(&g, &t);
            }
            least += (uint64_t)add_batch(&g, t.store, &t);
        }
        CHECK_AT(seed, store_flush(t.store, STORING_WAIT_MS, &e) == 0);
        struct audit_chain c = verify(&t);
        CHECK_AT(seed, c.fault == AUDIT_FAULT_NONE && c.rows >= least);
        try_every_byte(&t, seed, &g, c.rows);
    }
}

static const struct test tests[] = {
    { "a chain verifies until a byte is changed", a_chain_verifies_until_a_byte_is_changed },
};
TEST_CASES(tests)
