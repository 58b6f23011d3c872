/* doc - fields of a Kubernetes object, and one error for a whole document.
 *
 * Absent and null are the same, as for Kubernetes itself.  A field of the wrong type, or text that
 * no name can be, marks the document as bad and gives the empty value, so a reader reads on and
 * looks once, at its end.  Texts end with a NUL, have no control characters and are borrowed from
 * the document.
 */
#ifndef NS_ENGINE_KUBE_DOC_H
#define NS_ENGINE_KUBE_DOC_H

#include "base/json.h"

#define DOC_TEXT_MAX 1024  /* of a name, a key, a value */
#define DOC_LIST_MAX 65535 /* of labels, taints, terms … */

struct doc {
    struct err *e;
    bool bad;
};

const char *doc_text(struct doc *d, const struct json *o, const char *key); /* "" when absent */
const char *doc_as_text(struct doc *d, const struct json *v, const char *what);
/* A text for people: cut at `max` bytes, on one line; lives in `a`. */
const char *doc_prose(struct doc *d, const struct json *o, const char *key, size_t max,
                      struct arena *a);
/* Of what anybody may write as they like: "" also for what no text of ours can be. */
const char *doc_said(const struct json *o, const char *key);
int32_t doc_i32(struct doc *d, const struct json *o, const char *key); /* 0 when absent */
int64_t doc_int(struct doc *d, const struct json *o, const char *key, int64_t when_absent);
bool doc_bool(struct doc *d, const struct json *o, const char *key);
int64_t doc_time_ms(struct doc *d, const struct json *o, const char *key); /* 0 when absent */
const struct json *doc_object(struct doc *d, const struct json *o, const char *key);
const struct json *doc_array(struct doc *d, const struct json *o, const char *key);
bool doc_has(const struct json *o, const char *key); /* there, and not null or empty */

int doc_fail(struct doc *d, const char *fmt, ...) PRINTF_LIKE(2, 3); /* keeps the first */

/* The member of `list`, an array of objects, whose `key` is that text; NULL when none is. */
const struct json *doc_find_by(const struct json *list, const char *key, const char *text);

#define DOC_EACH(v, list) for (const struct json *v = json_first(list); v; v = json_next((list), v))

#endif
