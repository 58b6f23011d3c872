/* columns - of the rows that carry a checksum, as statements read and write them. */
#ifndef NS_STORE_COLUMNS_H
#define NS_STORE_COLUMNS_H

#define JOB_FIXED_COLUMNS                                                                          \
    "id, tenant, user, name, uid, submitted_ms, replicas, gpu_milli, array_id, array_index"
#define JOB_NOW_COLUMNS                                                                            \
    "state, priority, state_ms, started_ms, ended_ms, run, exit_code, exit_signal, ended_as, "     \
    "message, place, ran_ms, fails"
#define JOB_COLUMNS JOB_FIXED_COLUMNS ", " JOB_NOW_COLUMNS
#define ACCOUNT_COLUMNS "name, home, uid, gid, ours, created_ms"
#define POOL_COLUMNS "name, calendar, nodes, exceptions, of_settings, stage"
/* Checksums of rows: see sum.h, and 0011-sums.sql. */
#define JOB_VALUES                                                                                 \
    "?1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, " \
    "?22, ?23, ?24"
#define NOW_VALUES "?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14"

#endif
