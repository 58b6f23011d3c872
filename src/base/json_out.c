/* The writing half of json.h. */
#include "base/json.h"

#include <stdio.h>

static void add_escaped(struct buf *b, unsigned char c)
{
    switch (c) {
    case '"': buf_addz(b, "\\\""); break;
    case '\\': buf_addz(b, "\\\\"); break;
    case '\n': buf_addz(b, "\\n"); break;
    case '\t': buf_addz(b, "\\t"); break;
    case '\r': buf_addz(b, "\\r"); break;
    default: buf_printf(b, "\\u%04x", c);
    }
}

static bool plain(char c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

/* What is not UTF-8 becomes U+FFFD: a reply must be JSON whatever a job printed. */
static void add_quoted(struct buf *b, struct str s)
{
    buf_addc(b, '"');
    while (s.n) {
        size_t n = 0;
        while (n < s.n && plain(s.p[n]))
            n++;
        if (n) {
            buf_add(b, (struct str){ s.p, n });
        } else if ((n = str_utf8_len(s)) > 1) {
            buf_add(b, (struct str){ s.p, n });
        } else if (n == 1) {
            add_escaped(b, (unsigned char)s.p[0]);
        } else {
            buf_addz(b, "\xef\xbf\xbd");
            n = 1;
        }
        s = (struct str){ s.p + n, s.n - n };
    }
    buf_addc(b, '"');
}

static void new_line(struct json_out *w)
{
    if (w->indent)
        buf_printf(w->b, "\n%*s", w->indent * w->depth, "");
}

/* What stands before a value: the comma, the line, the key. */
static void lead_in(struct json_out *w, const char *key)
{
    if (w->comma)
        buf_addc(w->b, ',');
    if (w->depth)
        new_line(w);
    if (key) {
        add_quoted(w->b, str_of(key));
        buf_addz(w->b, w->indent ? ": " : ":");
    }
    w->comma = true;
}

void json_begin(struct json_out *w, const char *key, char bracket)
{
    lead_in(w, key);
    buf_addc(w->b, bracket);
    w->depth++;
    w->comma = false;
}

void json_end(struct json_out *w, char bracket)
{
    w->depth--;
    if (w->comma) /* an empty one stays on its line */
        new_line(w);
    buf_addc(w->b, bracket);
    w->comma = true;
}

void json_put_str(struct json_out *w, const char *key, struct str v)
{
    lead_in(w, key);
    add_quoted(w->b, v);
}

void json_put_i64(struct json_out *w, const char *key, int64_t v)
{
    lead_in(w, key);
    buf_printf(w->b, "%lld", (long long)v);
}

void json_put_u64(struct json_out *w, const char *key, uint64_t v)
{
    lead_in(w, key);
    buf_printf(w->b, "%llu", (unsigned long long)v);
}

void json_put_f64(struct json_out *w, const char *key, double v, int digits)
{
    char text[400]; /* the largest double has 309 digits before the point */
    if (!__builtin_isfinite(v)) {
        json_put_null(w, key);
        return;
    }
    digits = digits < 0 ? 0 : MIN(digits, 20);
    int n = snprintf(text, sizeof text, "%.*f", digits, v);
    /* printf writes the locale's decimal point, whose length is not known. */
    const char *whole = text;
    int whole_n = n - digits;
    if (digits)
        whole_n = (int)strspn(text, "-0123456789");
    if (text[0] == '-' && strspn(text + 1, "0") == (size_t)whole_n - 1 &&
        strspn(text + n - digits, "0") == (size_t)digits) {
        whole++; /* "-0.00" is no number people expect */
        whole_n--;
    }
    lead_in(w, key);
    buf_add(w->b, (struct str){ whole, (size_t)whole_n });
    if (digits)
        buf_printf(w->b, ".%s", text + n - digits);
}

void json_put_bool(struct json_out *w, const char *key, bool v)
{
    lead_in(w, key);
    buf_addz(w->b, v ? "true" : "false");
}

void json_put_null(struct json_out *w, const char *key)
{
    lead_in(w, key);
    buf_addz(w->b, "null");
}

void json_put_raw(struct json_out *w, const char *key, struct str json)
{
    lead_in(w, key);
    buf_add(w->b, json);
}
