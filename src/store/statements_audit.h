/* statements_audit - those of the audit; a part of statements.h. */
#ifndef NS_STORE_STATEMENTS_AUDIT_H
#define NS_STORE_STATEMENTS_AUDIT_H

#define AUDIT_HEAD_KEY "audit_head"
#define AUDIT_CUT_KEY "audit_cut"
#define AUDIT_COLUMNS                                                                              \
    "number, t_ms, who, via, address, what, subject, tenant, before, after, reason, hash"
#define AUDIT_CUT_NUMBER                                                                           \
    "coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = '" AUDIT_CUT_KEY "'), 0)"

#define AUDIT_STATEMENTS(X)                                                                        \
    X(AUDIT_HEAD, W, "SELECT value FROM meta WHERE key = '" AUDIT_HEAD_KEY "'")                    \
    X(AUDIT_LAST, W, "SELECT coalesce(max(number), 0) FROM audit")                                 \
    X(ADD_AUDIT, W,                                                                                \
      "INSERT INTO audit (" AUDIT_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "    \
      "?11, ?12)")                                                                                 \
    X(SET_AUDIT_HEAD, W,                                                                           \
      "INSERT OR REPLACE INTO meta (key, value) VALUES ('" AUDIT_HEAD_KEY "', ?13)")               \
    X(SET_AUDIT_CUT, W,                                                                            \
      "INSERT OR REPLACE INTO meta (key, value) SELECT '" AUDIT_CUT_KEY "', "                      \
      "number || ' ' || lower(hex(hash)) FROM audit WHERE number = ?1")                            \
    X(CUT_AUDIT, W, "DELETE FROM audit WHERE number <= ?1 AND number <= " AUDIT_CUT_NUMBER)        \
    X(AUDIT_NEWEST, R,                                                                             \
      "SELECT " AUDIT_COLUMNS " FROM audit WHERE number < ?1 ORDER BY number DESC")                \
    X(AUDIT_OF_WHO, R,                                                                             \
      "SELECT " AUDIT_COLUMNS " FROM audit INDEXED BY audit_by_who "                               \
      "WHERE who = ?2 AND number < ?1 ORDER BY number DESC")                                       \
    X(AUDIT_OF_SUBJECT, R,                                                                         \
      "SELECT " AUDIT_COLUMNS " FROM audit INDEXED BY audit_by_subject "                           \
      "WHERE subject = ?2 AND number < ?1 ORDER BY number DESC")                                   \
    X(AUDIT_OF_TENANT, R,                                                                          \
      "SELECT " AUDIT_COLUMNS " FROM audit INDEXED BY audit_by_tenant "                            \
      "WHERE tenant = ?2 AND number < ?1 ORDER BY number DESC")                                    \
    X(AUDIT_PAGE, R,                                                                               \
      "SELECT " AUDIT_COLUMNS " FROM audit WHERE number > ?1 AND number <= ?2 ORDER BY number "    \
      "LIMIT ?3")                                                                                  \
    X(AUDIT_OLDEST, R, "SELECT " AUDIT_COLUMNS " FROM audit ORDER BY number")                      \
    X(AUDIT_OUTSIDE, R,                                                                            \
      "SELECT coalesce((SELECT min(number) FROM audit WHERE number <= " AUDIT_CUT_NUMBER "), "     \
      "(SELECT min(number) FROM audit WHERE number > coalesce((SELECT CAST(value AS INTEGER) "     \
      "FROM meta WHERE key = '" AUDIT_HEAD_KEY "'), 0)))")

#endif
