/* statements_usage - those of runs, usage and the ledger; a part of statements.h. */
#ifndef NS_STORE_STATEMENTS_USAGE_H
#define NS_STORE_STATEMENTS_USAGE_H

#include "store/columns.h"

#define RUN_WHAT_COLUMNS "tenant, user, node, model, gpu_milli, cpu_milli, mem_mib, started_ms"
#define RUN_VALUES "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0"
#define RUN_WITH(started, ended)                                                                   \
    "job, run, tenant, user, node, model, gpu_milli, cpu_milli, mem_mib, " started ", " ended
#define RUN_USAGE_COLUMNS "tenant, user, model, gpu_milli, cpu_milli, started_ms, ended_ms"
#define RUN_END "max(?3, started_ms, 1)"
#define RUN_SHIFTED "max(started_ms + ?1, 1)"
/* The run (?1, ?2) that ends at ?3, once for each day that it was in. */
#define DAYS_OF_RUN                                                                                \
    "WITH RECURSIVE part (day, tenant, user, model, gpu_milli, cpu_milli, started_ms, ended_ms) "  \
    "AS (SELECT started_ms / 86400000, tenant, user, model, gpu_milli, cpu_milli, "                \
    "started_ms, " RUN_END " FROM run WHERE job = ?1 AND run = ?2 AND ended_ms = 0 "               \
    "UNION ALL SELECT day + 1, tenant, user, model, gpu_milli, cpu_milli, started_ms, ended_ms "   \
    "FROM part WHERE ended_ms > (day + 1) * 86400000) "
#define USAGE_NAMED "usage_day.day, usage_day.tenant, usage_day.user, usage_day.model, "
#define USAGE_ADDED                                                                                \
    USAGE_NAMED "usage_day.gpu_milli_ms + excluded.gpu_milli_ms, usage_day.cpu_milli_ms + "        \
                "excluded.cpu_milli_ms, usage_day.starts + excluded.starts, "                      \
                "usage_day.carried + excluded.carried"
#define USAGE_HAD                                                                                  \
    USAGE_NAMED "usage_day.gpu_milli_ms, usage_day.cpu_milli_ms, usage_day.starts, "               \
                "usage_day.carried"

#define USAGE_STATEMENTS(X)                                                                        \
    X(PUT_RUN, W,                                                                                  \
      "INSERT INTO run (" RUN_COLUMNS ", sum) VALUES (" RUN_VALUES                                 \
      ", " SUM(RUN_VALUES) ") "                                                                    \
                           "ON CONFLICT (job, run) DO UPDATE SET (" RUN_WHAT_COLUMNS               \
                           ", sum) = (?3, ?4, ?5, ?6, ?7, "                                        \
                           "?8, ?9, ?10, " SUM(RUN_VALUES) ") WHERE ended_ms = 0")                 \
    X(CARRY_RUN, W,                                                                                \
      "INSERT INTO run_carried (" CARRIED_COLUMNS ", sum) " DAYS_OF_RUN                            \
      "SELECT day, ?1, ?2, " SUM("day, ?1, ?2") " FROM part WHERE started_ms < day * 86400000")    \
    X(SUM_RUN, W,                                                                                  \
      "INSERT INTO usage_day (" USAGE_COLUMNS ", sum) SELECT " USAGE_COLUMNS                       \
      ", " SUM(USAGE_COLUMNS) " FROM (" DAYS_OF_RUN "SELECT day, tenant, user, model, "            \
                              "gpu_milli * (min(ended_ms, day * 86400000 + 86400000) - "           \
                              "max(started_ms, day * 86400000)) "                                  \
                              "AS gpu_milli_ms, cpu_milli * (min(ended_ms, day * 86400000 + "      \
                              "86400000) - max(started_ms, "                                       \
                              "day * 86400000)) AS cpu_milli_ms, started_ms >= day * 86400000 AS " \
                              "starts, "                                                           \
                              "started_ms < day * 86400000 AS carried FROM part) WHERE 1 "         \
                              "ON CONFLICT (day, tenant, user, model) DO UPDATE SET "              \
                              "gpu_milli_ms = gpu_milli_ms + excluded.gpu_milli_ms, "              \
                              "cpu_milli_ms = cpu_milli_ms + excluded.cpu_milli_ms, "              \
                              "starts = starts + excluded.starts, carried = carried + "            \
                              "excluded.carried, "                                                 \
                              "sum = CASE WHEN usage_day.sum IN (0, " SUM(                         \
                                  USAGE_HAD) ") THEN " SUM(USAGE_ADDED) " ELSE usage_day.sum END") \
    X(END_RUN, W,                                                                                  \
      "UPDATE run SET ended_ms = " RUN_END ", sum = " RESUM(                                       \
          RUN_COLUMNS, RUN_WITH("started_ms", RUN_END)) " WHERE job = ?1 AND run = ?2 "            \
                                                        "AND ended_ms = 0")                        \
    X(SHIFT_RUNS, W,                                                                               \
      "UPDATE run SET started_ms = " RUN_SHIFTED                                                   \
      ", sum = " RESUM(RUN_COLUMNS, RUN_WITH(RUN_SHIFTED, "0")) " WHERE ended_ms = 0")             \
    X(PUT_LEDGER, W,                                                                               \
      "INSERT OR REPLACE INTO ledger_day (" LEDGER_COLUMNS ", sum) VALUES (?1, ?2, ?3, ?4, ?5, "   \
      "?6, ?7, ?8, " SUM("?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8") ")")                                    \
    X(PUT_MACHINES, W,                                                                             \
      "INSERT OR REPLACE INTO machines_day (" MACHINES_COLUMNS ", sum) "                           \
      "VALUES (?1, ?2, ?3, ?4, ?5, " SUM("?1, ?2, ?3, ?4, ?5") ")")                                \
    X(PRUNE_CARRIED, W,                                                                            \
      "DELETE FROM run_carried WHERE (day, job, run) IN (SELECT day, job, run FROM run_carried "   \
      "WHERE day < ?1 ORDER BY day, job, run LIMIT ?2)")                                           \
    X(RUNS, R, "SELECT " RUN_COLUMNS RUN_WHOLE " FROM run WHERE job = ?1 ORDER BY run")            \
    X(USAGE_DAYS, R,                                                                               \
      "SELECT tenant, user, model, gpu_milli_ms, cpu_milli_ms, starts, carried, day" USAGE_WHOLE   \
      " FROM usage_day WHERE day >= ?1 AND day < ?2")                                              \
    X(RUNS_BEGUN, R,                                                                               \
      "SELECT " RUN_USAGE_COLUMNS RUN_WHOLE " FROM run INDEXED BY run_by_start "                   \
      "WHERE started_ms >= ?1 AND started_ms < ?2 AND ended_ms > 0")                               \
    X(RUNS_CARRIED, R,                                                                             \
      "SELECT " RUN_USAGE_COLUMNS ", ns_whole('run', job, run.sum, " RUN_COLUMNS "), "             \
      "ns_whole('run_carried', job, run_carried.sum, " CARRIED_COLUMNS ") "                        \
      "FROM run_carried JOIN run USING (job, run) WHERE day = ?1")                                 \
    X(RUNS_LIVING, R,                                                                              \
      "SELECT " RUN_USAGE_COLUMNS RUN_WHOLE " FROM run INDEXED BY run_living "                     \
      "WHERE ended_ms = 0 AND started_ms < ?1")                                                    \
    X(LEDGER_LAST, R, "SELECT day FROM machines_day ORDER BY day DESC LIMIT 1")                    \
    X(LEDGER_DAYS, R,                                                                              \
      "SELECT day, '' AS tenant, total, got, idle, away, 0, 0" MACHINES_WHOLE                      \
      " FROM machines_day "                                                                        \
      "WHERE day >= ?1 AND day < ?2 UNION ALL "                                                    \
      "SELECT " LEDGER_COLUMNS LEDGER_WHOLE " FROM ledger_day "                                    \
      "WHERE day >= ?1 AND day < ?2 "                                                              \
      "ORDER BY day, tenant")

#endif
