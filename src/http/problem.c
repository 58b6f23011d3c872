#include "http/problem.h"

#include <microhttpd.h>

#include "base/json.h"

#define FIELD_MAX 256

void problem_write(int status, const struct err *why, const char *field, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    /* No page explains a problem further, so its type is the status itself (RFC 9457). */
    json_put_str(&w, "type", STR("about:blank"));
    json_put_str(&w, "title", str_of(MHD_get_reason_phrase_for((unsigned)status)));
    json_put_i64(&w, "status", status);
    json_put_str(&w, "code", str_of(err_info(why->code)->slug));
    json_put_str(&w, "detail", str_of(why->msg));
    if (why->hint[0])
        json_put_str(&w, "hint", str_of(why->hint));
    if (!field && why->field[0])
        field = why->field;
    if (field)
        json_put_str(&w, "field", (struct str){ field, strnlen(field, FIELD_MAX) });
    json_end(&w, '}');
}
