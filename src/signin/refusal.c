#include "signin/refusal.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *name;
    enum err_code kind;
    const char *hint;
} reasons[] = {
#define X(id, name, kind, hint) [REASON_##id] = { name, ERR_##kind, hint },
    REASONS(X)
#undef X
};

int refuse(struct refusal *r, enum reason why, const char *fmt, ...)
{
    char text[sizeof r->e.msg];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    r->why = why;
    err_set(&r->e, reasons[why].kind, "%s", text);
    return reasons[why].hint[0] ? err_hint(&r->e, "%s", reasons[why].hint) : -1;
}

const char *reason_name(enum reason why)
{
    return reasons[why].name;
}

const char *reason_kind(enum reason why)
{
    return err_info(reasons[why].kind)->slug;
}

const char *reason_hint(enum reason why)
{
    return reasons[why].hint;
}

void refusal_write(const struct refusal *r, struct json_out *w)
{
    json_put_bool(w, "ok", false);
    json_put_str(w, "code", str_of(reason_kind(r->why)));
    json_put_str(w, "reason", str_of(reason_name(r->why)));
    json_put_str(w, "message", str_of(r->e.msg));
    if (r->e.hint[0])
        json_put_str(w, "hint", str_of(r->e.hint));
}
