#include "store/statements.h"

#include "store/db.h"

static const struct {
    enum stmt_side side;
    const char *sql;
} table[] = {
#define X(id, side, sql) [ST_##id] = { STMT_##side, sql },
    STATEMENTS(X)
#undef X
};

int statements_prepare(struct statements *st, sqlite3 *db, enum stmt_side side, const char *path,
                       struct err *e)
{
    for (size_t i = 0; i < STMT_COUNT; i++) {
        if (table[i].side != side)
            continue;
        int rc =
            sqlite3_prepare_v3(db, table[i].sql, -1, SQLITE_PREPARE_PERSISTENT, &st->of[i], NULL);
        if (rc != SQLITE_OK)
            return db_fail(db, path, "read", e);
    }
    return 0;
}

void statements_clear(struct statements *st)
{
    for (size_t i = 0; i < STMT_COUNT; i++) {
        sqlite3_finalize(st->of[i]);
        st->of[i] = NULL;
    }
}
