/* err - a failure as a value: a code for programs, a message and a hint for people.
 *
 * Fixed size, on the caller's stack: reporting never allocates and there is nothing to release.
 * Libraries fill it and return -1 or NULL; only an edge (main, the HTTP reply, the loop's
 * background reporter) prints it.  One table maps a code to every outside form.  Control characters
 * become '?', so a message is one line and can quote anything.
 */
#ifndef NS_BASE_ERR_H
#define NS_BASE_ERR_H

#include "base/base.h"

enum err_code {
    ERR_NONE,
    ERR_INVALID,
    ERR_DENIED,
    ERR_NOT_FOUND,
    ERR_CONFLICT,
    ERR_QUOTA,
    ERR_TOO_LARGE,
    ERR_UNAVAILABLE,
    ERR_INTERNAL,
    ERR_CODE_COUNT
};

struct err {
    enum err_code code;
    char msg[320];  /* what happened */
    char hint[200]; /* what the person can do about it */
    char field[96]; /* what part of what was given it is about, for programs; may be empty */
};

struct err_info {
    const char *slug;
    int http_status;
    int exit_code;
};

/* All return -1, so a caller can write `return err_set(e, ...)`. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
int err_wrap(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3); /* "fmt: old message" */
int err_hint(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
int err_about(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

const struct err_info *err_info(enum err_code code);

#endif
