/* read - what the readers of this folder share: a snapshot, rows, columns, who may see what.
 *
 * A read of several statements holds a snapshot, so the writer's commits in between do not show.
 * A statement is reset at the end of its scope: one left open would keep the write-ahead log from
 * being copied back.
 */
#ifndef NS_STORE_READ_H
#define NS_STORE_READ_H

#include "store/inside.h"

#define PAGE_MAX 1000u
#define DAY_MS INT64_C(86400000) /* as in the statements */

void snapshot_end_p(struct store **s);
/* AUTO(snapshot_end_p) struct store *held = snapshot_begin(s); they nest. */
struct store *snapshot_begin(struct store *s);

void row_end_p(sqlite3_stmt **q);
/* AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_…); */
sqlite3_stmt *row_query(struct store *s, enum stmt id);
int row_next(struct store *s, sqlite3_stmt *q, struct err *e) MUST_USE; /* 1, 0 at the end, -1 */
void row_bind_text(sqlite3_stmt *q, int at, struct str v);              /* borrowed until the end */
void row_bind_u64(sqlite3_stmt *q, int at, uint64_t v);                 /* cut to what SQL has */

struct str row_text(sqlite3_stmt *q, int column, struct arena *a); /* a NULL: until the next row */
uint64_t row_u64(sqlite3_stmt *q, int column);
uint32_t row_u32(sqlite3_stmt *q, int column);

/* The one number of a statement without parameters. */
int read_number(struct store *s, enum stmt id, uint64_t *out, struct err *e) MUST_USE;

/* Before this, usage is counted in whole days: the runs are gone. */
int read_whole_days(struct store *s, int64_t *out_ms, struct err *e) MUST_USE;

#endif
