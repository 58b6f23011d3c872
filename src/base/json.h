/* json - documents read with yyjson, values taken out with checks that name the field; a writer.
 *
 * Reading: json_read gives the root; the json_get_* functions look a key up in an object, check
 * type and range, and on failure say "field 'gpus': …".  A missing key leaves the output as it was
 * and is an error only for the json_need_* ones.  json_only refuses keys that are not in a list,
 * naming the nearest known one, and keys given twice.
 * Writing: straight into a buf, commas are the writer's business.
 */
#ifndef NS_BASE_JSON_H
#define NS_BASE_JSON_H

#include "base/arena.h"
#include "base/buf.h"

struct json_doc;
struct json; /* one value inside a document */

struct json_doc *json_read(struct str text, struct err *e); /* error names line and column */
struct json_doc *json_free(struct json_doc *d);             /* NULL ok; returns NULL */
void json_free_p(struct json_doc **d);
const struct json *json_root(const struct json_doc *d);

bool json_is_object(const struct json *v);
bool json_is_array(const struct json *v);
bool json_is_string(const struct json *v);
bool json_is_number(const struct json *v);
bool json_is_null(const struct json *v);
const struct json *json_find(const struct json *obj, const char *key); /* NULL when absent */
size_t json_len(const struct json *arr);
const struct json *json_at(const struct json *arr, size_t i); /* O(i): iterate with json_next */
const struct json *json_first(const struct json *arr);        /* NULL when empty */
const struct json *json_next(const struct json *arr, const struct json *prev);
size_t json_members(const struct json *obj); /* how many; 0 when it is no object */
int json_only(const struct json *obj, const char *const *keys, size_t n, struct err *e) MUST_USE;
/* What json_only refuses: the first key that is not in the list or is there twice; p NULL: none. */
struct str json_odd_key(const struct json *obj, const char *const *keys, size_t n);

int json_get_u64(const struct json *obj, const char *key, uint64_t max, uint64_t *out,
                 struct err *e) MUST_USE;
int json_get_i64(const struct json *obj, const char *key, int64_t min, int64_t max, int64_t *out,
                 struct err *e) MUST_USE;
int json_get_f64(const struct json *obj, const char *key, double min, double max, double *out,
                 struct err *e) MUST_USE;
int json_get_bool(const struct json *obj, const char *key, bool *out, struct err *e) MUST_USE;
int json_get_str(const struct json *obj, const char *key, size_t max, struct str *out,
                 struct err *e) MUST_USE;
int json_need_u64(const struct json *obj, const char *key, uint64_t max, uint64_t *out,
                  struct err *e) MUST_USE;
int json_need_i64(const struct json *obj, const char *key, int64_t min, int64_t max, int64_t *out,
                  struct err *e) MUST_USE;
int json_need_str(const struct json *obj, const char *key, size_t max, struct str *out,
                  struct err *e) MUST_USE;
int json_as_u64(const struct json *v, uint64_t max, uint64_t *out, struct err *e) MUST_USE;
int json_as_str(const struct json *v, size_t max, struct str *out, struct err *e) MUST_USE;
int json_as_f64(const struct json *v, double min, double max, double *out, struct err *e) MUST_USE;
int json_as_bool(const struct json *v, bool *out, struct err *e) MUST_USE;

/* For documents whose fields are not known beforehand (json_walk.c). */
enum json_kind {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};
enum json_kind json_kind(const struct json *v); /* JSON_NULL for NULL */

/* Walks the members of an object in their order; begin with a zeroed one.  Keys end with a NUL. */
struct json_member {
    struct str key;
    const struct json *value;
};
bool json_next_member(const struct json *obj, struct json_member *m);
void json_number_text(const struct json *v, char out[static 40]);

struct json_out {
    struct buf *b;
    bool comma;
    int indent, depth; /* indent 0: one line */
};

/* `key` is NULL inside arrays and for the root. */
void json_begin(struct json_out *w, const char *key, char bracket); /* '{' or '[' */
void json_end(struct json_out *w, char bracket);                    /* '}' or ']' */
void json_put_str(struct json_out *w, const char *key, struct str v);
void json_put_i64(struct json_out *w, const char *key, int64_t v);
void json_put_u64(struct json_out *w, const char *key, uint64_t v);
void json_put_f64(struct json_out *w, const char *key, double v,
                  int digits); /* null if not finite */
void json_put_bool(struct json_out *w, const char *key, bool v);
void json_put_null(struct json_out *w, const char *key);
void json_put(struct json_out *w, const char *key,
              const struct json *v); /* a copy; past 100 levels null */
void json_put_raw(struct json_out *w, const char *key, struct str json); /* a value, already JSON */

#endif
