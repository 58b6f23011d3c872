#include "store/chain.h"

#include "store/db.h"

/* A head that cannot be read is all zero: what follows is written, and the chain is broken for
 * everybody to see. */
static int read_head(const struct statements *st, struct audit_link *out)
{
    sqlite3_stmt *head = st->of[ST_AUDIT_HEAD], *last = st->of[ST_AUDIT_LAST];
    struct audit_link l = { 0 };
    int rc = db_step(head);
    if (rc == SQLITE_ROW) {
        struct str text = { (const char *)sqlite3_column_text(head, 0),
                            (size_t)sqlite3_column_bytes(head, 0) };
        if (!text.p || !audit_link_parse(text, &l))
            l = (struct audit_link){ 0 };
    }
    sqlite3_reset(head);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return rc;
    rc = db_step(last);
    if (rc == SQLITE_ROW) /* a number that is taken would be refused for ever */
        l.number = MAX(l.number, (uint64_t)sqlite3_column_int64(last, 0));
    sqlite3_reset(last);
    *out = l;
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

int chain_link(const struct statements *st, struct field f[static CHAIN_FIELDS],
               struct chain_room *room)
{
    struct audit_link head = { 0 };
    int rc = read_head(st, &head), at = CHAIN_TEXTS;
    if (rc != SQLITE_OK)
        return rc;
    struct audit_row row = { .number = head.number + 1, .t_ms = f[CHAIN_TIME].v };
#define X(name, max) row.name = f[at++].s;
    AUDIT_TEXTS(X)
#undef X
    audit_row_hash(&head.hash, &row, &room->hash);
    head = (struct audit_link){ row.number, room->hash };
    f[CHAIN_NUMBER].v = (int64_t)row.number;
    f[CHAIN_HASH].s = (struct str){ (const char *)room->hash.b, sizeof room->hash.b };
    f[CHAIN_HEAD].s = str_of(audit_link_format(&head, room->head));
    return SQLITE_OK;
}
