/* statements_notice - those of notices; a part of statements.h. */
#ifndef NS_STORE_STATEMENTS_NOTICE_H
#define NS_STORE_STATEMENTS_NOTICE_H

#include "store/columns.h"

#define NOTICE_VALUES "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11"

#define NOTICE_STATEMENTS(X)                                                                       \
    X(PUT_NOTICE, W,                                                                               \
      "INSERT OR REPLACE INTO notice (" NOTICE_COLUMNS ", sum) "                                   \
      "VALUES (" NOTICE_VALUES ", " SUM(NOTICE_VALUES) ")")                                        \
    X(TRIM_NOTICES, W,                                                                             \
      "DELETE FROM notice WHERE ?5 <> 0 AND user = ?2 AND state <> 0 AND made_ms < (SELECT "       \
      "made_ms FROM notice INDEXED BY notice_by_user WHERE user = ?2 "                             \
      "ORDER BY made_ms DESC, id DESC LIMIT 1 OFFSET ?12)")                                        \
    X(DELETE_NOTICES, W, "DELETE FROM notice WHERE user = ?1")                                     \
    X(NOTICES_WAITING, R,                                                                          \
      "SELECT " NOTICE_COLUMNS " FROM notice INDEXED BY notice_waiting WHERE state = 0 "           \
      "AND " INTACT(NOTICE_COLUMNS) " ORDER BY made_ms, id LIMIT ?1")                              \
    X(NOTICES_OF, R,                                                                               \
      "SELECT id, user, way, event, state, made_ms, due_ms, tries, subject, '', why" NOTICE_WHOLE  \
      " "                                                                                          \
      "FROM notice INDEXED BY notice_by_user WHERE user = ?1 ORDER "                               \
      "BY made_ms DESC, id DESC "                                                                  \
      "LIMIT ?2")                                                                                  \
    X(NOTICE_KNOWN, R, "SELECT 1 FROM notice WHERE id = ?1")

#endif
