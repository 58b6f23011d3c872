/* columns - of the rows that carry a checksum, as statements read and write them.
 *
 * A row is written with ns_sum of its columns; one that is changed keeps the sum it has when it was not whole before, so that
 * damage stays to be seen.  One that is read has ns_whole beside it: whoever steps there gets ERR_INTERNAL and the row's name.
 * A sum of 0: the row is from before there were any.
 */
#ifndef NS_STORE_COLUMNS_H
#define NS_STORE_COLUMNS_H

#define SUM(values) "ns_sum(" values ")"
#define INTACT(columns) "sum IN (0, ns_sum(" columns "))"
#define RESUM(old, new) "CASE WHEN " INTACT(old) " THEN ns_sum(" new ") ELSE sum END"
#define WHOLE(table, row, columns) ", ns_whole('" table "', " row ", sum, " columns ")"

#define JOB_FIXED_COLUMNS                                                                          \
    "id, tenant, user, name, uid, submitted_ms, replicas, gpu_milli, array_id, array_index"
#define JOB_NOW_COLUMNS                                                                            \
    "state, priority, state_ms, started_ms, ended_ms, run, exit_code, exit_signal, ended_as, "     \
    "message, place, ran_ms, fails"
#define JOB_COLUMNS JOB_FIXED_COLUMNS ", " JOB_NOW_COLUMNS
#define ACCOUNT_COLUMNS "name, home, uid, gid, ours, created_ms"
#define POOL_COLUMNS "name, calendar, nodes, exceptions, of_settings, stage"
#define ENTRY_COLUMNS "kind, name, body"
#define SPEC_COLUMNS "job, spec"
#define LINE_COLUMNS "t_ms, line"
#define SEGMENT_COLUMNS "number, t_ms, begins, lines_before"
#define SEGMENT_FIRST "(SELECT max(number) FROM journal_segment) * 4294967296"
#define META_COLUMNS "key, value"
#define EVENT_COLUMNS "number, t_ms, kind, tenant, job, body"
#define ANSWER_COLUMNS "user, key, t_ms, body"
#define LOG_COLUMNS "job, ended_ms, bytes, removed_ms, why, tenant"
#define LOG_INTACT(l)                                                                              \
    l "sum IN (0, ns_sum(" l "job, " l "ended_ms, " l "bytes, " l "removed_ms, " l "why, " l       \
      "tenant))"
#define STEP_COLUMNS                                                                               \
    "job, number, t_ms, what, state, run, reason, who, note, place, exit_code, exit_signal"
#define NOTICE_COLUMNS "id, user, way, event, state, made_ms, due_ms, tries, subject, data, why"
#define RUN_COLUMNS                                                                                \
    "job, run, tenant, user, node, model, gpu_milli, cpu_milli, mem_mib, started_ms, ended_ms"
#define CARRIED_COLUMNS "day, job, run"
#define USAGE_COLUMNS "day, tenant, user, model, gpu_milli_ms, cpu_milli_ms, starts, carried"
#define LEDGER_COLUMNS "day, tenant, entitled, got, lent, borrowed, frozen, wanted"
#define MACHINES_COLUMNS "day, total, got, idle, away"

/* Beside the columns of a row that is read. */
#define ACCOUNT_WHOLE WHOLE("account", "name", ACCOUNT_COLUMNS)
#define ANSWER_WHOLE WHOLE("answer", "key", ANSWER_COLUMNS)
#define ENTRY_WHOLE WHOLE("directory", "name", ENTRY_COLUMNS)
#define EVENT_WHOLE WHOLE("event", "number", EVENT_COLUMNS)
#define JOB_WHOLE WHOLE("job", "id", JOB_COLUMNS)
#define LEDGER_WHOLE WHOLE("ledger_day", "day", LEDGER_COLUMNS)
#define LINE_WHOLE WHOLE("journal", "seq", LINE_COLUMNS)
#define LOG_WHOLE WHOLE("job_log", "job", LOG_COLUMNS)
#define MACHINES_WHOLE WHOLE("machines_day", "day", MACHINES_COLUMNS)
#define META_WHOLE WHOLE("meta", "key", META_COLUMNS)
#define NOTICE_WHOLE WHOLE("notice", "id", NOTICE_COLUMNS)
#define POOL_WHOLE WHOLE("pool", "name", POOL_COLUMNS)
#define RUN_WHOLE WHOLE("run", "job", RUN_COLUMNS)
#define SEGMENT_WHOLE WHOLE("journal_segment", "number", SEGMENT_COLUMNS)
#define SPEC_WHOLE WHOLE("job_spec", "job", SPEC_COLUMNS)
#define STEP_WHOLE WHOLE("job_step", "job", STEP_COLUMNS)
#define USAGE_WHOLE WHOLE("usage_day", "day", USAGE_COLUMNS)

#define JOB_VALUES                                                                                 \
    "?1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, " \
    "?22, ?23, ?24"
#define NOW_VALUES "?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14"

#endif
