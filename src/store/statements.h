/* statements - every SQL statement of the product, prepared once at open.
 *
 * W statements run on the writer thread's connection, with the fields of an operation (batch.c) as
 * ?1, ?2 …; R statements on the loop's.  INDEXED BY makes a lost index an error at open, and not a
 * list that has become slow.
 */
#ifndef NS_STORE_STATEMENTS_H
#define NS_STORE_STATEMENTS_H

#include <sqlite3.h>

#include "base/err.h"
#include "store/columns.h"
#include "store/statements_audit.h"
#include "store/statements_life.h"
#include "store/statements_notice.h"
#include "store/statements_usage.h"

/* Ids between ?3 and ?4, the newest ?5; of ended jobs only those since ?9. */
#define LIST_ORDER "AND id > ?3 AND id < ?4 AND (?9 = 0 OR state_ms > ?9) ORDER BY id DESC LIMIT ?5"

#define WHOLE_DAYS_KEY "usage_whole_days_before_ms"

/* id, side, SQL */
#define STATEMENTS(X)                                                                               \
    X(BEGIN, W, "BEGIN IMMEDIATE")                                                                  \
    X(COMMIT, W, "COMMIT")                                                                          \
    X(ROLLBACK, W, "ROLLBACK")                                                                      \
    X(ADD_JOB, W,                                                                                   \
      "INSERT INTO job (" JOB_COLUMNS ", sum) VALUES (" JOB_VALUES ", ns_sum(" JOB_VALUES "))")     \
    X(ADD_SPEC, W, "INSERT INTO job_spec (job, spec, sum) VALUES (?1, ?2, ns_sum(?1, ?2))")         \
    X(SET_JOB, W,                                                                                   \
      "UPDATE job SET (" JOB_NOW_COLUMNS ", sum) = (" NOW_VALUES                                    \
      ", " RESUM(JOB_COLUMNS, JOB_FIXED_COLUMNS ", " NOW_VALUES) ") WHERE id = ?1")                 \
    /* A trigger has made it. */                                                                    \
    X(SUM_LOG, W, "UPDATE job_log SET sum = " SUM(LOG_COLUMNS) " WHERE job = ?1 AND sum = 0")       \
    X(ADD_JOURNAL, W,                                                                               \
      "INSERT INTO journal (seq, t_ms, line, sum) VALUES (max(" SEGMENT_FIRST                       \
      ", coalesce((SELECT max(seq) FROM journal), 0) + 1), ?1, ?2, ns_sum(?1, ?2))")                \
    X(ADD_SEGMENT, W,                                                                               \
      "INSERT INTO journal_segment (" SEGMENT_COLUMNS                                               \
      ", sum) SELECT max(number) + 1, ?1, 0, 0, " SUM(                                              \
          "max(number) + 1, ?1, 0, 0") " FROM journal_segment")                                     \
    X(SEGMENT_BEGINS, W,                                                                            \
      "UPDATE journal_segment SET begins = ?1, lines_before = ?2, sum = " RESUM(                    \
          SEGMENT_COLUMNS,                                                                          \
          "number, t_ms, ?1, ?2") " WHERE number = (SELECT max(number) FROM journal_segment)")      \
    X(PUT_LINE, W,                                                                                  \
      "INSERT OR REPLACE INTO journal (seq, t_ms, line, sum) VALUES (?1, ?2, ?3, " SUM(             \
          "?2, ?3") ")")                                                                            \
    X(PRUNE_SEGMENTS, W,                                                                            \
      "DELETE FROM journal_segment "                                                                \
      "WHERE number < (SELECT max(number) FROM journal_segment) - ?2")                              \
    X(PRUNE_JOURNAL, W,                                                                             \
      "DELETE FROM journal "                                                                        \
      "WHERE seq < (SELECT min(number) FROM journal_segment) * 4294967296 "                         \
      "AND seq < (SELECT min(seq) FROM journal) + ?1")                                              \
    X(ADD_EVENT, W,                                                                                 \
      "INSERT INTO event (" EVENT_COLUMNS ", sum) "                                                 \
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, " SUM("?1, ?2, ?3, ?4, ?5, ?6") ")")                         \
    X(PRUNE_EVENTS, W,                                                                              \
      "DELETE FROM event WHERE number <= (SELECT max(number) FROM event) - ?1 "                     \
      "AND number < (SELECT min(number) FROM event) + ?2")                                          \
    X(PUT_ACCOUNT, W,                                                                               \
      "INSERT OR REPLACE INTO account (" ACCOUNT_COLUMNS ", sum) "                                  \
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ns_sum(?1, ?2, ?3, ?4, ?5, ?6))")                            \
    X(PUT_ENTRY, W,                                                                                 \
      "INSERT OR REPLACE INTO directory (kind, name, body, sum) "                                   \
      "VALUES (?1, ?2, ?3, ns_sum(?1, ?2, ?3))")                                                    \
    X(DELETE_ENTRY, W, "DELETE FROM directory WHERE kind = ?1 AND name = ?2")                       \
    X(PUT_POOL, W,                                                                                  \
      "INSERT OR REPLACE INTO pool (" POOL_COLUMNS ", sum) "                                        \
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ns_sum(?1, ?2, ?3, ?4, ?5, ?6))")                            \
    X(DELETE_POOL, W, "DELETE FROM pool WHERE name = ?1")                                           \
    X(PUT_ANSWER, W,                                                                                \
      "INSERT OR IGNORE INTO answer (" ANSWER_COLUMNS ", sum) "                                     \
      "VALUES (?1, ?2, ?3, ?4, " SUM("?1, ?2, ?3, ?4") ")")                                         \
    X(PRUNE_ANSWERS, W,                                                                             \
      "DELETE FROM answer WHERE (user, key) IN (SELECT user, key FROM answer "                      \
      "INDEXED BY answer_by_time WHERE t_ms < ?1 ORDER BY t_ms LIMIT ?2)")                          \
    X(WHOLE_DAYS, W,                                                                                \
      "INSERT INTO meta (key, value, sum) VALUES ('" WHOLE_DAYS_KEY "', ?1, " SUM(                  \
          "'" WHOLE_DAYS_KEY "', ?1") ") ON CONFLICT (key) DO UPDATE SET (value, sum) = "           \
                                      "(excluded.value, excluded.sum) WHERE CAST(value AS "         \
                                      "INTEGER) < CAST(excluded.value AS INTEGER)")                 \
    X(SIZE_LOG, W,                                                                                  \
      "UPDATE job_log SET bytes = ?2, sum = " RESUM(                                                \
          LOG_COLUMNS,                                                                              \
          "job, ended_ms, ?2, removed_ms, why, tenant") " WHERE job = ?1 AND removed_ms = 0")       \
    X(REMOVE_LOG, W,                                                                                \
      "UPDATE job_log SET bytes = 0, removed_ms = ?2, why = ?3, sum = " RESUM(                      \
          LOG_COLUMNS, "job, ended_ms, 0, ?2, ?3, tenant") " WHERE job = ?1 AND removed_ms = 0")    \
    /* Ids only grow, also when the newest job is old; an array's first row has the spec of all. */ \
    X(REMOVE_JOB, W,                                                                                \
      "DELETE FROM job WHERE id = ?1 AND state >= 9 AND id < (SELECT max(id) FROM job) "            \
      "AND NOT EXISTS (SELECT 1 FROM job_log WHERE job = ?1 AND removed_ms = 0) "                   \
      "AND (array_id <> id OR NOT EXISTS (SELECT 1 FROM job AS other INDEXED BY job_by_array "      \
      "WHERE other.array_id = ?1 AND other.array_id > 0 AND other.id > ?1))")                       \
    X(SET_META, W,                                                                                  \
      "INSERT OR REPLACE INTO meta (" META_COLUMNS ", sum) VALUES (?1, ?2, " SUM("?1, ?2") ")")     \
                                                                                                    \
    X(SNAPSHOT, R, "BEGIN")                                                                         \
    X(SNAPSHOT_END, R, "COMMIT")                                                                    \
    X(LAST_JOB, R,                                                                                  \
      "SELECT max((SELECT coalesce(max(id), 0) FROM job), "                                         \
      "coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'last_job'), 0))")             \
    X(LAST_EVENT, R, "SELECT coalesce(max(number), 0) FROM event")                                  \
    X(JOURNAL_LINES, R,                                                                             \
      "SELECT coalesce(max(seq) - " SEGMENT_FIRST " + 1, 0) FROM journal "                          \
      "WHERE seq >= " SEGMENT_FIRST)                                                                \
    X(JOB, R, "SELECT " JOB_COLUMNS JOB_WHOLE " FROM job WHERE id = ?1")                            \
    X(SPEC, R, "SELECT spec" SPEC_WHOLE " FROM job_spec WHERE job = ?1")                            \
    X(LIVING, R,                                                                                    \
      "SELECT " JOB_COLUMNS JOB_WHOLE " FROM job INDEXED BY job_living "                            \
      "WHERE state < 9 ORDER BY id")                                                                \
    X(COUNTS, R, "SELECT tenant, state, n FROM job_count WHERE n > 0 ORDER BY tenant, state")       \
    X(IDS_OF_TENANT, R,                                                                             \
      "SELECT id FROM job INDEXED BY job_by_tenant WHERE tenant = ?1 AND state = ?2 " LIST_ORDER)   \
    X(IDS_OF_USER, R,                                                                               \
      "SELECT id FROM job INDEXED BY job_by_user WHERE tenant = ?1 AND state = ?2 "                 \
      "AND user = ?6 AND (?7 = '' OR name = ?7) " LIST_ORDER)                                       \
    X(IDS_OF_NAME, R,                                                                               \
      "SELECT id FROM job INDEXED BY job_by_name WHERE tenant = ?1 AND state = ?2 "                 \
      "AND name = ?7 " LIST_ORDER)                                                                  \
    X(IDS_OF_ARRAY, R,                                                                              \
      "SELECT id FROM job INDEXED BY job_by_array WHERE tenant = ?1 AND state = ?2 "                \
      "AND array_id = ?8 AND array_id > 0 AND (?6 = '' OR user = ?6) "                              \
      "AND (?7 = '' OR name = ?7) " LIST_ORDER)                                                     \
    X(IDS_OF_ENDED, R,                                                                              \
      "SELECT id FROM job INDEXED BY job_by_end WHERE tenant = ?1 AND state = ?2 AND state >= 9 "   \
      "AND state_ms > ?9 AND (?6 = '' OR user = ?6) AND (?7 = '' OR name = ?7) "                    \
      "AND (?8 = 0 OR array_id = ?8) " LIST_ORDER)                                                  \
    X(MANY_ENDED, R,                                                                                \
      "SELECT 1 FROM job INDEXED BY job_by_end WHERE tenant = ?1 AND state >= 9 "                   \
      "AND state_ms > ?2 LIMIT 1 OFFSET ?3")                                                        \
    X(LOG, R, "SELECT bytes, removed_ms, why" LOG_WHOLE " FROM job_log WHERE job = ?1")             \
    X(LOG_SUM, R, "SELECT logs, bytes FROM log_sum")                                                \
    X(LOGS_NEW, R,                                                                                  \
      "SELECT id, run, replicas, 0, state_ms FROM job_log INDEXED BY job_log_new "                  \
      "JOIN job ON id = job WHERE bytes < 0 AND " LOG_INTACT("job_log.") " ORDER BY job LIMIT ?1")  \
    X(LOGS_KEPT, R,                                                                                 \
      "SELECT id, run, replicas, bytes, l.ended_ms FROM job_log AS l INDEXED BY job_log_kept "      \
      "JOIN job ON id = job WHERE removed_ms = 0 AND (l.ended_ms, job) > (?1, ?2) "                 \
      "AND l.ended_ms < ?3 AND " LOG_INTACT("l.") " ORDER BY l.ended_ms, job LIMIT ?4")             \
    X(LOGS_OF, R,                                                                                   \
      "SELECT id, run, replicas, bytes, l.ended_ms FROM job_log AS l INDEXED BY job_log_tenant "    \
      "JOIN job ON id = job WHERE removed_ms = 0 AND l.tenant = ?5 "                                \
      "AND (l.ended_ms, job) > (?1, ?2) AND l.ended_ms < ?3 AND " LOG_INTACT(                       \
          "l.") " ORDER BY l.ended_ms, job LIMIT ?4")                                               \
    X(LOG_TENANTS, R,                                                                               \
      "SELECT tenant, bytes FROM log_tenant WHERE bytes > 0 ORDER BY bytes DESC, tenant LIMIT ?1")  \
    X(JOBS_OLD, R,                                                                                  \
      "SELECT id, run, replicas, 0, state_ms FROM job INDEXED BY job_by_age WHERE state >= 9 "      \
      "AND (state_ms, id) > (?1, ?2) AND state_ms < ?3 AND " INTACT(                                \
          JOB_COLUMNS) " ORDER BY state_ms, id LIMIT ?4")                                           \
    X(JOURNAL, R,                                                                                   \
      "SELECT seq, t_ms, line" LINE_WHOLE " FROM journal WHERE seq >= " SEGMENT_FIRST               \
      " ORDER BY seq")                                                                              \
    X(JOURNAL_ALL, R,                                                                               \
      "SELECT seq, t_ms, line" LINE_WHOLE " FROM journal "                                          \
      "WHERE seq >= (SELECT min(number) FROM "                                                      \
      "journal_segment) * 4294967296 ORDER BY seq")                                                 \
    X(JOURNAL_FROM, R,                                                                              \
      "WITH begin AS (SELECT coalesce((SELECT max(number) FROM journal_segment WHERE t_ms <= "      \
      "?1), "                                                                                       \
      "(SELECT min(number) FROM journal_segment), 0) AS number) "                                   \
      "SELECT number * 4294967296, coalesce((SELECT max(seq) FROM journal), 0), "                   \
      "coalesce((SELECT t_ms FROM journal_segment s WHERE s.number = begin.number), "               \
      "(SELECT t_ms FROM journal ORDER BY seq LIMIT 1), 0) FROM begin")                             \
    X(JOURNAL_PAGE, R,                                                                              \
      "SELECT seq, t_ms, line" LINE_WHOLE                                                           \
      " FROM journal WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3")                          \
    X(SEGMENT, R,                                                                                   \
      "SELECT number, begins, lines_before" SEGMENT_WHOLE " FROM journal_segment "                  \
      "ORDER BY number DESC LIMIT 1 OFFSET ?1")                                                     \
    X(SEGMENT_LINES, R,                                                                             \
      "SELECT seq, t_ms, line, " INTACT(LINE_COLUMNS) " FROM journal "                              \
                                                      "WHERE seq >= ?1 AND seq < ?2 ORDER BY seq")  \
    X(TRIM_LEFT, R,                                                                                 \
      "SELECT coalesce((SELECT max(number) FROM event) - (SELECT min(number) FROM event) >= ?1, "   \
      "0) "                                                                                         \
      "OR coalesce((SELECT min(seq) FROM journal) < (SELECT min(number) FROM journal_segment) * "   \
      "4294967296, 0) OR coalesce((SELECT min(t_ms) FROM answer) < ?2, 0) "                         \
      "OR coalesce((SELECT min(day) FROM run_carried) < ?3, 0)")                                    \
    X(EVENTS, R,                                                                                    \
      "SELECT number FROM event WHERE number > ?2 AND number < ?3 ORDER BY number LIMIT ?4")        \
    X(EVENTS_OF_TENANT, R,                                                                          \
      "SELECT number FROM event INDEXED BY event_by_tenant "                                        \
      "WHERE tenant = ?1 AND number > ?2 AND number < ?3 ORDER BY number LIMIT ?4")                 \
    X(EVENT, R,                                                                                     \
      "SELECT number, job, t_ms, kind, tenant, body" EVENT_WHOLE " FROM event WHERE number = ?1")   \
    X(ACCOUNTS, R, "SELECT " ACCOUNT_COLUMNS ACCOUNT_WHOLE " FROM account ORDER BY name")           \
    X(ENTRIES, R, "SELECT name, body" ENTRY_WHOLE " FROM directory WHERE kind = ?1 ORDER BY name")  \
    X(POOLS, R, "SELECT " POOL_COLUMNS POOL_WHOLE " FROM pool ORDER BY name")                       \
    X(ANSWER, R, "SELECT body" ANSWER_WHOLE " FROM answer WHERE user = ?1 AND key = ?2")            \
    USAGE_STATEMENTS(X)                                                                             \
    LIFE_STATEMENTS(X)                                                                              \
    AUDIT_STATEMENTS(X)                                                                             \
    NOTICE_STATEMENTS(X)                                                                            \
    X(META, R, "SELECT value" META_WHOLE " FROM meta WHERE key = ?1")

enum stmt {
#define X(id, side, sql) ST_##id,
    STATEMENTS(X)
#undef X
    STMT_COUNT
};

enum stmt_side {
    STMT_R,
    STMT_W
};

struct statements {
    sqlite3_stmt *of[STMT_COUNT]; /* NULL: of the other side */
};

int statements_prepare(struct statements *st, sqlite3 *db, enum stmt_side side, const char *path,
                       struct err *e) MUST_USE;
void statements_clear(struct statements *st);

#endif
