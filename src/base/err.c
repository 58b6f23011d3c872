#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct err_info infos[] = {
    [ERR_NONE] = { "ok", 200, 0 },
    [ERR_INVALID] = { "invalid", 400, 2 },
    [ERR_DENIED] = { "denied", 403, 3 },
    [ERR_NOT_FOUND] = { "not_found", 404, 4 },
    [ERR_CONFLICT] = { "conflict", 409, 5 },
    [ERR_QUOTA] = { "quota", 409, 6 },
    [ERR_TOO_LARGE] = { "too_large", 413, 7 },
    [ERR_UNAVAILABLE] = { "unavailable", 503, 8 },
    [ERR_INTERNAL] = { "internal", 500, 9 },
};
_Static_assert(ARRAY_LEN(infos) == ERR_CODE_COUNT, "a code was added without its row");

const struct err_info *err_info(enum err_code code)
{
    return &infos[(unsigned)code < ERR_CODE_COUNT ? code : ERR_INTERNAL];
}

/* A message quotes text from outside: an escape sequence in it must not reach a terminal, and a
 * cut in the middle of a UTF-8 character must not reach a JSON reply. */
static void make_printable(char *text, bool cut)
{
    size_t n = strlen(text);
    for (size_t back = 1; cut && back <= 4 && back <= n; back++) {
        unsigned char c = (unsigned char)text[n - back];
        if (c < 0x80)
            break;
        if (c >= 0xc0) {
            size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
            if (back < want)
                text[n - back] = '\0';
            break;
        }
    }
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
}

/* Formats aside first, because an argument may be the very message being replaced. */
static void PRINTF_LIKE(3, 0) fill(char *dst, size_t size, const char *fmt, va_list ap)
{
    char tmp[sizeof(((struct err *)0)->msg)];
    int n = vsnprintf(tmp, size, fmt, ap);
    make_printable(tmp, n < 0 || (size_t)n >= size);
    memcpy(dst, tmp, strlen(tmp) + 1);
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    e->code = code;
    e->hint[0] = e->field[0] = '\0';
    return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    char context[sizeof e->msg], whole[sizeof e->msg * 2 + 4];
    va_list ap;
    va_start(ap, fmt);
    fill(context, sizeof context, fmt, ap);
    va_end(ap);
    int n = snprintf(whole, sizeof whole, "%s: %s", context, e->msg);
    whole[sizeof e->msg - 1] = '\0';
    make_printable(whole, (size_t)n >= sizeof e->msg);
    memcpy(e->msg, whole, strlen(whole) + 1);
    return -1;
}

int err_about(struct err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(e->field, sizeof e->field, fmt, ap);
    va_end(ap);
    return -1;
}

int err_hint(struct err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(e->hint, sizeof e->hint, fmt, ap);
    va_end(ap);
    return -1;
}
