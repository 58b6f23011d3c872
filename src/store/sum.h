/* sum - checksums of rows: written with the row, looked at when it is read, when a store is opened, and when it is verified. */
#ifndef NS_STORE_SUM_H
#define NS_STORE_SUM_H

#include <sqlite3.h>

#include "base/err.h"

/* For statements: ns_sum(…) of any values; ns_whole('table', name, sum, …), which fails when it is not theirs (columns.h). */
void sum_register(sqlite3 *db);

/* The bytes that are summed.  A byte at a time, so that it can also be gone backwards: mend.h. */
#define SUM_FIRST UINT64_C(0xcbf29ce484222325)
#define SUM_PRIME UINT64_C(0x100000001b3)
uint64_t sum_add(uint64_t h, const void *p, size_t n);

/* What has sums: table, what names its rows, its columns, which rows a start is made from; NULL: none. */
struct sum_table {
    const char *name, *row, *columns, *start;
};
extern const struct sum_table sum_tables[];
extern const size_t sum_tables_n;

enum sum_what {
    SUM_START, /* rows that a start is made from, but the journal's: whoever reads that looks at it */
    SUM_HISTORY, /* the others */
    SUM_ALL
};
/* After an upgrade: of few rows that every start is made from. */
int sum_give(sqlite3 *db, const char *path, struct err *e) MUST_USE;

/* ERR_INTERNAL names a row that is not as it was written. */
int sum_check(sqlite3 *db, const char *path, enum sum_what what, struct err *e) MUST_USE;

#endif
