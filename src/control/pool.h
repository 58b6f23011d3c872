/* pool - machines that are lent at the same times, as people describe them: text becomes checked values.
 *
 * A window is kept in one form, and a place (zone=Europe/Berlin) as the rule that it has now, so that
 * what was said means the same after an update of the machine's time zones.
 */
#ifndef NS_CONTROL_POOL_H
#define NS_CONTROL_POOL_H

#include "base/arena.h"
#include "base/calendar.h"

#define POOL_NAME_MAX 200
#define POOL_NODES_MAX 4096u
#define POOL_LIST_MAX (1u << 20) /* bytes of a list of machines */

/* of: whose name it is to be, e.g. a pool. */
int pool_check_name(const char *of, struct str name, struct err *e) MUST_USE;

/* An empty text is always open, as calendar_always is. */
int pool_read_window(struct str text, int64_t now_ms, struct calendar *out, struct err *e) MUST_USE;

/* A hostlist; each name once.  The names live in `a`; an empty list has none. */
int pool_read_nodes(struct str list, struct arena *a, const char ***out, size_t *out_n,
                    struct err *e) MUST_USE;

/* Its window with exceptions, which are in UTC, on top: the later one wins. */
int pool_merge(const struct calendar *window, const struct calendar *exceptions,
               struct calendar *out, struct err *e) MUST_USE;

/* Open or closed from one instant to another, whole minutes around them.  What is over by `now` and what
 * the new one covers is dropped. */
struct pool_except {
    bool open;
    int64_t from_ms, until_ms;
};
int pool_add_exception(struct calendar *exceptions, const struct pool_except *x, int64_t now_ms,
                       struct err *e) MUST_USE;

#endif
