/* migrate - the shape of the store's tables, as numbered steps from nothing to today.
 *
 * A step that was released is never changed; a new shape is a new step at the end of the table.
 * Each runs in a transaction of its own with the number it leads to, so an upgrade that is cut off
 * goes on where it was.
 */
#ifndef NS_STORE_MIGRATE_H
#define NS_STORE_MIGRATE_H

#include <sqlite3.h>

#include "base/err.h"
#include "sys/log.h"

#define STORE_APPLICATION_ID 0x4e534854 /* "NSHT" */

struct migration {
    int number; /* 1, 2, 3 … without gaps */
    const char *name, *sql;
};
extern const struct migration migrations[];
extern const size_t migrations_n;

/* Is it ours, or empty, and not from a newer version?  Changes nothing. */
int migrate_check(sqlite3 *db, const char *path, struct err *e) MUST_USE;
/* A step that takes long says so, every second.  log: may be NULL. */
int migrate_up(sqlite3 *db, const char *path, struct log *log, struct err *e) MUST_USE;
/* After it: ERR_INTERNAL names a table, index or trigger in whose words some bytes are others than these steps make.  What
 * somebody has dropped, or another SQLite writes otherwise, is let be. */
int migrate_words(sqlite3 *db, const char *path, struct err *e) MUST_USE;

#endif
