/* statements_life - those of what happened to each job; a part of the table in statements.h. */
#ifndef NS_STORE_STATEMENTS_LIFE_H
#define NS_STORE_STATEMENTS_LIFE_H

#include "store/columns.h"

#define STEP_VALUES "?1, coalesce(max(number), 0) + 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11"

#define LIFE_STATEMENTS(X)                                                                         \
    X(ADD_STEP, W,                                                                                 \
      "INSERT INTO job_step (" STEP_COLUMNS ", sum) SELECT " STEP_VALUES                           \
      ", " SUM(STEP_VALUES) " FROM job_step WHERE job = ?1")                                       \
    /* The first and the newest stay. */                                                           \
    X(CUT_STEPS, W,                                                                                \
      "DELETE FROM job_step WHERE job = ?1 AND number > 1 AND number <= "                          \
      "(SELECT max(number) FROM job_step WHERE job = ?1) - ?12 + 1")                               \
    X(STEP_REASON, W,                                                                              \
      "UPDATE job_step SET reason = ?2, sum = " RESUM(                                             \
          STEP_COLUMNS,                                                                            \
          "job, number, t_ms, what, state, "                                                       \
          "run, ?2, who, note, place, exit_code, exit_signal") " WHERE job = ?1 AND reason = '' "  \
                                                               "AND number = "                     \
                                                               "(SELECT max(number) FROM "         \
                                                               "job_step WHERE job = ?1)")         \
    X(STEPS, R,                                                                                    \
      "SELECT " STEP_COLUMNS STEP_WHOLE " FROM job_step WHERE job = ?1 AND number > ?2 "           \
      "ORDER BY number LIMIT ?3")                                                                  \
    X(PLACES, R,                                                                                   \
      "SELECT r.run, r.started_ms, r.ended_ms, s.place FROM job_step AS s JOIN run AS r "          \
      "ON r.job = s.job AND r.run = s.run WHERE s.job = ?1 AND s.place <> '' "                     \
      "ORDER BY s.number DESC LIMIT ?2")

#endif
