#include "cli/sse.h"

#include <stdio.h>

struct sse sse_new(void)
{
    return (struct sse){ .line = BUF(SSE_EVENT_MAX), .data = BUF(SSE_EVENT_MAX) };
}

void sse_clear(struct sse *s)
{
    buf_free(&s->line);
    buf_free(&s->data);
}

/* true: the line was empty and ends an event. */
static bool take_line(struct sse *s, struct str line)
{
    struct str name, value;
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    if (line.n == 0)
        return true;
    str_cut(line, ':', &name, &value);
    if (value.n && value.p[0] == ' ')
        value = (struct str){ value.p + 1, value.n - 1 };
    if (str_is(name, "data")) {
        if (s->data.n)
            buf_addc(&s->data, '\n');
        buf_add(&s->data, value);
    } else if (str_is(name, "id") && value.n < sizeof s->id) {
        snprintf(s->id, sizeof s->id, "%.*s", STR_ARG(value));
    }
    return false;
}

int sse_next(struct sse *s, struct str *chunk, struct sse_event *out, struct err *e)
{
    if (s->given)
        buf_truncate(&s->data, 0);
    s->given = false;
    while (chunk->n) {
        const char *end = memchr(chunk->p, '\n', chunk->n);
        size_t n = end ? (size_t)(end - chunk->p) : chunk->n;
        buf_add(&s->line, (struct str){ chunk->p, n });
        *chunk = (struct str){ chunk->p + n + (end != NULL), chunk->n - n - (end != NULL) };
        if (buf_check(&s->line, e) < 0 || buf_check(&s->data, e) < 0)
            return -1;
        if (!end)
            return 0;
        bool over = take_line(s, buf_str(&s->line));
        buf_truncate(&s->line, 0);
        s->given = over && s->data.n;
        if (s->given) {
            *out = (struct sse_event){ buf_str(&s->data), s->id };
            return 1;
        }
    }
    return 0;
}
