/* look - what the checks share: reading the machine below in->root, and saying what was found.
 *
 * Texts are cut at the size of the result, and control characters in them become '?'.
 */
#ifndef NS_DOCTOR_LOOK_H
#define NS_DOCTOR_LOOK_H

#include "doctor/doctor.h"

#define LOOK_PATH 4096

/* ---- saying ---- */

void say_good(struct doctor_result *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
void say_bad(struct doctor_result *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
void say_skip(struct doctor_result *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
void say_fix(struct doctor_result *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- reading ---- */

/* root + the formatted path.  What does not fit becomes "", which is never there. */
void look_path(const struct doctor_in *in, char out[static LOOK_PATH], const char *fmt, ...)
    PRINTF_LIKE(3, 4);
bool look_exists(const struct doctor_in *in, const char *path);

/* The path itself, or the nearest folder above it that is there. */
void look_nearest(const struct doctor_in *in, const char *path, char out[static LOOK_PATH]);

/* false when it cannot be read or is larger than `limit`; *out is replaced. */
bool look_read(const struct doctor_in *in, const char *path, size_t limit, struct buf *out);
bool look_number(const struct doctor_in *in, const char *path, uint64_t *out); /* the first word */
bool look_has_word(const struct doctor_in *in, const char *path, const char *word);

/* A program in in->path or the usual folders; false when there is none. */
bool look_program(const struct doctor_in *in, const char *name, char out[static LOOK_PATH]);

/* What `path args…` (at most 14, then NULL) writes to stdout; false when it failed or took too long. */
bool look_output(const char *path, const char *const *args, struct buf *out);

/* The first two numbers with a dot between them: "crun version 1.8.1" -> 1, 8. */
struct look_version {
    uint32_t major, minor;
    char text[32]; /* "1.8.1" */
};
bool look_find_version(struct str text, struct look_version *out);
bool look_older(const struct look_version *v, uint32_t major, uint32_t minor);

/* Will jobs be ordinary processes, or those of one account? */
bool look_plain(const struct doctor_in *in);
bool look_as_root(const struct doctor_in *in);

#endif
