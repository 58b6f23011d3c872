/* db - a connection to the store's file, and SQLite's failures in words.
 *
 * db_claim comes first: it keeps other processes away for as long as its descriptor is open.
 * Nothing may open and close the file by itself afterwards: closing any descriptor of it would drop
 * the locks SQLite holds through another.
 */
#ifndef NS_STORE_DB_H
#define NS_STORE_DB_H

#include <sqlite3.h>

#include "base/err.h"

/* Locks `<path>.lock` and makes the file when it is missing, for its owner alone.  ERR_CONFLICT
 * names the process that has it.  Returns the lock's descriptor: close it last. */
int db_claim(const char *path, struct err *e) MUST_USE;
/* Was the log emptied since the machine came up, with this lock?  Then nothing of it was torn by its going down. */
bool db_same_boot(int lock);
void db_note_boot(int lock); /* it is empty now */
/* Is it whole?  A store that somebody has open is in their hands. */
int db_log_check(const char *path, struct err *e) MUST_USE;

/* Changes nothing in the file, also at its close. */
sqlite3 *db_open(const char *path, struct err *e);
/* The same connection from now on for writing durably: WAL, every commit flushed. */
int db_make_writer(sqlite3 *db, const char *path, struct err *e) MUST_USE;
int db_make_reader(sqlite3 *db, const char *path, struct err *e) MUST_USE;
void db_close_p(sqlite3 **db); /* NULL ok */

int db_exec(sqlite3 *db, const char *path, const char *sql, struct err *e) MUST_USE;
int db_number(sqlite3 *db, const char *path, const char *sql, int64_t *out, struct err *e) MUST_USE;

/* A PRAGMA that answers "ok". */
int db_sound(sqlite3 *db, const char *path, const char *pragma, struct err *e) MUST_USE;
#define DB_DAMAGED_HINT                                                                            \
    "keep a copy of the file and its -wal; then: nightshift restore BACKUP, or save what can be "  \
    "read: sqlite3 FILE .recover"

/* Steps q; then db_fail, called at once, also knows what the system said. */
int db_step(sqlite3_stmt *q);
/* Asked right after a call on db that failed: for want of room? */
bool db_is_full(sqlite3 *db);
/* What the last call on db met, as "cannot <verb> '<path>': …".  Returns -1. */
int db_fail(sqlite3 *db, const char *path, const char *verb, struct err *e);

#endif
